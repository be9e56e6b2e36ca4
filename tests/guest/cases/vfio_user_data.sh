#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: blocks through controllers that doorbell serves, verified by fio over 1, 2 and 8 queues, small and
# large, and an ext4 file system. Controller `two` has doorbells by message, and shadow doorbells for its I/O queues.
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh

# cpus 0|1: all but the first two, which alone are there after a boot; eight emulated ones on two real ones are slow
cpus() {
  local online
  for online in /sys/devices/system/cpu/cpu[2-9]/online; do echo "$1" >"$online"; done
}

queues() { # SERIAL QUEUES: as many jobs, each on a CPU of another queue
  use "$1"
  local list first cpus=
  for list in "/sys/block/$(basename "$disk")"/mq/*/cpu_list; do
    first=$(cut -d, -f1 "$list")
    cpus+=${cpus:+,}$first
  done
  local jobs="--numjobs=$2 --offset_increment=8m --cpus_allowed=$cpus --cpus_allowed_policy=split"
  # shellcheck disable=SC2086  # words
  {
    verified "$1-4k" --bs=4k --size=$((4096 / $2))k --iodepth=8 --ioengine=libaio $jobs
    verified "$1-128k" --bs=128k --size=$((16 / $2))m --iodepth=4 --ioengine=libaio $jobs
  }
  for queue in $(seq "$2"); do
    if [ "$(interrupts "$queue")" -gt 16 ]; then ok "$1: queue $queue was used"; else not_ok "$1: queue $queue was not used"; fi
  done
}
cpus 1
queues one 1
queues two 2
queues served 8
cpus 0
verified uring-4k --bs=4k --size=2m --iodepth=16 --ioengine=io_uring
# Every PRP list is used: the largest transfer, from memory that begins in the middle of a page.
verified largest --bs=1m --size=16m --iodepth=2 --ioengine=libaio --iomem_align=512
new_files
same_files "a new mount"
exits 0 fsck fsck.ext4 -f -n "${disk}p1"
exits 0 discard blkdiscard -o 1048576 -l 1048576 "$disk"
clean_log
finish
