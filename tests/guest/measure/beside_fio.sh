#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: doorbell through VFIO and fio through the kernel's driver, on the same controller in turns.
# Usage: beside_fio.sh [REPEATS]; run it with tests/guest/measure/run.sh, which reads what it leaves in $GUEST_OUT.
. tests/guest/lib.sh

modprobe nvme poll_queues=1
find_controllers || { not_ok "the kernel's driver does not bring the controllers up"; finish; }
address=$(address_of n512)
echo >"$pci/$address/reset_method"  # 0.1 s whenever VFIO opens it, and nothing to do with what is measured

ours() { # NAME OPTIONS...
  local name=$1
  shift
  exits 0 "$name" "$doorbell" nvme --controller "$address" --quiet --json "$GUEST_OUT/$name.json" --lbas-per-io 8 \
    --access-pattern random --verify off --write-io 0 --read-io 1 --duration 1.2 --warmup 0.3 --repeats 1 "$@"
}
theirs() { # NAME OPTIONS...
  local name=$1
  shift
  exits 0 "$name" fio --name=guest "--filename=$(block_device_of n512)" --readonly --rw=randread --bs=4k --direct=1 \
    --norandommap --randrepeat=0 --time_based --runtime=1.2 --ramp_time=0.3 --thread --output-format=json \
    --output="$GUEST_OUT/$name.json" "$@"
}

# Blocks that were never written are answered without reading the image.
bind_vfio "$address" && exits 0 fill "$doorbell" nvme --controller "$address" --quiet --allow-write --lbas-per-io 512 \
  --write-io 2048 --read-io 0
for ((i = 0; i < ${1:-7}; i++)); do
  bind_vfio "$address" || not_ok "bind"
  ours "ours-1-$i"
  ours "ours-32-$i" --in-flight 32 --batch-size 16
  bind_kernel "$address" && within 20 block_device_of n512 >/dev/null || not_ok "the kernel's driver does not come back"
  for depth in 1 32; do
    theirs "libaio-$depth-$i" --ioengine=libaio --iodepth=$depth
    theirs "io_uring-$depth-$i" --ioengine=io_uring --iodepth=$depth
    theirs "io_uring-polled-$depth-$i" --ioengine=io_uring --iodepth=$depth --hipri=1 --fixedbufs=1 --registerfiles=1
  done
  theirs "psync-1-$i" --ioengine=psync
  # fio's best here: submissions in batches too, which the plain engines do not do
  theirs "io_uring-batched-32-$i" --ioengine=io_uring --iodepth=32 --hipri=1 --fixedbufs=1 --registerfiles=1 \
    --iodepth_batch_submit=32 --iodepth_batch_complete_max=32
done
finish
