#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: a controller that doorbell serves, where its memory is reached in another way: page by page behind a strict
# IOMMU of the guest, or by messages. What an earlier guest wrote is there.
# Usage: vfio_user_memory.sh strict|unshared
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use served
if [ "$1" = strict ]; then
  if [ "$(cat "$pci/$address/iommu_group/type")" = DMA ]; then ok "its IOMMU unmaps at once"; else
    not_ok "IOMMU: '$(cat "$pci/$address/iommu_group/type" 2>&1)', wanted DMA"
  fi
fi
same_files "of an earlier guest"
verified 4k --bs=4k --size=1m --iodepth=8 --ioengine=libaio --numjobs=2 --offset_increment=8m
verified 128k --bs=128k --size=4m --iodepth=4 --ioengine=libaio
start_load 2
if echo 1 >"/sys/class/nvme/$controller/reset_controller"; then ok "reset under I/O"; else not_ok "reset under I/O"; fi
load_ends "a reset"
new_files
same_files "a new mount"
clean_log
finish
