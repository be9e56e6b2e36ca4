# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Soft-RoCE for the scripts that run inside the guest: the kernel's rdma_rxe on one end of a virtual Ethernet pair.
roce_address=10.9.0.1

rxe_active() { grep -qs ACTIVE /sys/class/infiniband/rxe0/ports/1/state; }

# needs COMMAND PACKAGE: the script is skipped without it
needs() { command -v "$1" >/dev/null || { echo "guest: skipped: $1 is not installed: apt-get install $2"; exit 77; }; }

# soft_roce: brings up rxe0 with the address $roce_address; false, with what the tools said, when it does not work
soft_roce() {
  needs ip iproute2
  needs rdma iproute2
  ! rxe_active || return 0  # an earlier case of this boot brought it up
  # crc32_generic: rdma_rxe asks the crypto layer for it by another name, which the dependency lists do not know.
  modprobe -a crc32_generic veth rdma_rxe ib_uverbs rdma_ucm || return 1
  ip link set lo up
  ip link add v0 type veth peer name v1
  # Room for RoCE's largest path MTU, 4096, and its headers.
  ip link set v0 mtu 4200 up
  ip link set v1 mtu 4200 up
  ip address add $roce_address/24 dev v0
  rdma link add rxe0 type rxe netdev v0 && within 10 rxe_active
}

# The drop-in's NIC has the other end of the pair.
own_address=10.9.0.2
own=(ip netns exec own "$doorbell" run rdma --address $own_address --carrier udp --)

# own_namespace: the other end of the pair goes into a network namespace, because the kernel's RoCE keeps port 4791 of its
# own; once a boot
own_namespace() {
  ! ip netns list | grep -qw own || return 0
  ip netns add own
  ip link set v1 netns own
  ip -n own link set lo up
  ip -n own address add $own_address/24 dev v1
  ip -n own link set v1 mtu 4200 up
}

# listens PORT: somebody does; /proc has it in hexadecimal, state 0A
listens() { grep -qsi ":$(printf %04X "$1") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
listens_no_more() { ! listens "$1"; }

# both_ends NAME PORT SERVER -- CLIENT: starts the server's command, and the client's once it listens. Output goes to
# $GUEST_OUT/NAME.server.log and NAME.log; one check, that both end with 0.
both_ends() {
  local name=$1 port=$2 server=() pid rc server_rc
  shift 2
  while [ "$1" != -- ]; do server+=("$1"); shift; done
  shift
  within 10 listens_no_more "$port"
  timeout 120 "${server[@]}" >"$GUEST_OUT/$name.server.log" 2>&1 &
  pid=$!
  within 20 listens "$port" || echo "$name: nobody listens on port $port"
  timeout 120 "$@" >"$GUEST_OUT/$name.log" 2>&1
  rc=$?
  # Without its client, a server may wait for ever.
  [ $rc -eq 0 ] || kill "$pid" 2>/dev/null
  wait "$pid"
  server_rc=$?
  if [ $rc -eq 0 ] && [ $server_rc -eq 0 ]; then
    ok "$name"
  else
    not_ok "$name: exit codes $rc and $server_rc (server): $*"
    tail -n 5 "$GUEST_OUT/$name.log" "$GUEST_OUT/$name.server.log"
    return 1
  fi
}
