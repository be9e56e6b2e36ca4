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

# both NAME PORT SERVER -- CLIENT: the drop-in calls the kernel, then the kernel calls the drop-in; to the client's words
# the server's address is added. All four must end with 0.
both() {
  local name=$1 port=$2 server=() pid
  shift 2
  while [ "$1" != -- ]; do server+=("$1"); shift; done
  shift
  timeout 60 "${server[@]}" >"$GUEST_OUT/$name-kernel-server.log" 2>&1 &
  pid=$!
  within 20 kernel_listens $port || echo "$name: the kernel does not listen"
  exits 0 "$name-to-kernel" timeout 60 "${own[@]}" "$@" $roce_address
  ends $pid "$name-kernel-server"
  timeout 60 "${own[@]}" "${server[@]}" >"$GUEST_OUT/$name-own-server.log" 2>&1 &
  pid=$!
  within 20 own_listens $port || echo "$name: the drop-in does not listen"
  exits 0 "$name-from-kernel" timeout 60 "$@" $own_address
  ends $pid "$name-own-server"
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
