#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: programs connect by the drop-in librdmacm at one end and by the kernel's connection manager over
# soft-RoCE at the other, each as the client and as the server.
. tests/guest/lib.sh
. tests/guest/soft_roce.sh

soft_roce || { not_ok "no soft-RoCE device"; finish; }
needs ib_send_bw perftest
own_namespace

# Listeners are no sockets. The kernel's show as resources, the drop-in's by the name that clients of the host find.
kernel_listens() { rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN.*:$1 "; }
own_listens() { ip netns exec own cat /proc/net/unix | grep -q " 00010000 .*@doorbell-rdmacm/port/[0-9]*/$1\$"; }

# ends PID NAME: the server's exit code is 0; one check
ends() {
  within 20 test ! -e /proc/$1 || kill $1
  if wait $1; then ok "$2"; else not_ok "$2: $(tail -n 3 "$GUEST_OUT/$2.log")"; fi
}

# early NAME: the client called before the server listened. The two ends of perftest tell each other over a first connection
# that they are ready; then the one calls, and the other begins to listen. Refused, its client tries again with what it has
# freed (its 3d9d8d0, of December 2025, mends that), and mostly crashes: a starved guest sees it.
early() { grep -q "REJECTED; error: 8" "$GUEST_OUT/$1.log"; }
# mismeasured NAME...: an end of perftest gave up because its own measurements of the processor's clock disagree
mismeasured() { (cd "$GUEST_OUT" && grep -qs "Correlation coefficient r^2" "${@/%/.log}"); }

# calls CLIENT'S_NAME SERVER'S_NAME LISTENS PORT: starts the command in the array `server`, and that in `client` when
# `LISTENS PORT` is true; anew where the client came early or an end measured badly. Two checks, that both end with 0.
calls() {
  local name=$1 server_name=$2 listens=$3 port=$4 pid rc try
  for try in {1..10}; do
    timeout 60 "${server[@]}" >"$GUEST_OUT/$server_name.log" 2>&1 &
    pid=$!
    within 20 "$listens" "$port" || echo "$server_name: does not listen"
    timeout 60 "${client[@]}" >"$GUEST_OUT/$name.log" 2>&1
    rc=$?
    [ $rc -ne 0 ] || within 20 test ! -e /proc/$pid
    { { [ $rc -ne 0 ] && early "$name"; } || mismeasured "$name" "$server_name"; } && [ "$try" -lt 10 ] || break
    echo "$name: too early or measured badly, exit code $rc, try $try"
    kill $pid 2>/dev/null
    wait $pid
  done
  if [ $rc -eq 0 ]; then ok "$name"; else not_ok "$name: exit code $rc: $(tail -n 20 "$GUEST_OUT/$name.log")"; fi
  ends $pid "$server_name"
}

# both NAME PORT SERVER -- CLIENT: the drop-in calls the kernel, then the kernel calls the drop-in; to the client's words
# the server's address is added. All four must end with 0.
both() {
  local name=$1 port=$2 server=() client=()
  shift 2
  while [ "$1" != -- ]; do server+=("$1"); shift; done
  shift
  client=("${own[@]}" "$@" $roce_address)
  calls "$name-to-kernel" "$name-kernel-server" kernel_listens "$port"
  client=("$@" $own_address)
  server=("${own[@]}" "${server[@]}")
  calls "$name-from-kernel" "$name-own-server" own_listens "$port"
}

both cm-write 18601 ib_write_bw -R -p 18601 -n 20 -s 4096 -- ib_write_bw -R -p 18601 -n 20 -s 4096
both cm-read 18602 ib_read_bw -R -p 18602 -n 20 -s 4096 -- ib_read_bw -R -p 18602 -n 20 -s 4096
if command -v udaddy >/dev/null; then
  both cm-udaddy 7174 udaddy -- udaddy -s
fi
if command -v rping >/dev/null; then
  # It compares its data.
  both cm-rping 18604 rping -s -p 18604 -C 20 -V -- rping -c -p 18604 -C 20 -V -a
  # Nobody listens at that port: the answer is a refusal, not a time-out.
  timeout 60 "${own[@]}" rping -s -p 18605 >"$GUEST_OUT/cm-other-port.log" 2>&1 &
  pid=$!
  within 20 own_listens 18605
  exits 255 cm-refused-by-own timeout 60 rping -c -p 18609 -a $own_address
  says cm-refused-by-own "RDMA_CM_EVENT_REJECTED, error 8"
  kill $pid
  wait $pid
  exits 255 cm-refused-by-kernel timeout 60 "${own[@]}" rping -c -p 18609 -a $roce_address
  says cm-refused-by-kernel "RDMA_CM_EVENT_REJECTED, error 8"
fi
finish
