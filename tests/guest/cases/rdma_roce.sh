#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: the drop-in libibverbs' NIC and the kernel's soft-RoCE exchange packets over a virtual Ethernet, each as
# the client and as the server, every operation verified by `doorbell rdma --provider verbs` at both ends.
. tests/guest/lib.sh
. tests/guest/soft_roce.sh

soft_roce || { not_ok "no soft-RoCE device"; finish; }
needs ip iproute2
own_namespace

kernel=("$doorbell" rdma --provider verbs --device rxe0 --quiet --timeout 60)
drop_in=("${own[@]}" "$doorbell" rdma --provider verbs --device doorbell0 --quiet --timeout 60)
listens_in_own() { ip netns exec own cat /proc/net/tcp /proc/net/tcp6 | grep -qsi ":$(printf %04X "$1") [0-9A-F]*:0000 0A"; }

# both NAME OPTIONS...: the drop-in as the client of the kernel's NIC, then the other way round; all four must end with 0
both() {
  local name=$1 server
  shift
  "${kernel[@]}" --listen $roce_address:18515 >"$GUEST_OUT/$name-kernel-server.log" 2>&1 &
  server=$!
  within 20 listens 18515
  exits 0 "$name-to-kernel" "${drop_in[@]}" --late-after 50 --connect $roce_address:18515 "$@"
  within 10 test ! -e /proc/$server || kill -9 $server
  if wait $server; then ok "$name: the kernel's server"; else not_ok "$name: the kernel's server: $(tail -n 2 "$GUEST_OUT/$name-kernel-server.log")"; fi

  "${drop_in[@]}" --listen $own_address:18516 >"$GUEST_OUT/$name-server.log" 2>&1 &
  server=$!
  within 20 listens_in_own 18516
  exits 0 "$name-from-kernel" "${kernel[@]}" --late-after 50 --connect $own_address:18516 "$@"
  within 10 test ! -e /proc/$server || kill -9 $server
  if wait $server; then ok "$name: the drop-in's server"; else not_ok "$name: the drop-in's server: $(tail -n 2 "$GUEST_OUT/$name-server.log")"; fi
}

for op in write write-imm read send send-imm; do
  both "roce-$op" --op $op --size 0,1,33,4KiB,4097,64KiB --iterations 20
done
for op in fetch-add compare-swap; do
  both "roce-$op" --op $op --iterations 50
done
finish
