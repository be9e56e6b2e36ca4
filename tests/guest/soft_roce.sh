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
