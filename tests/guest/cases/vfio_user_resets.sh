#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: a controller that doorbell serves is reset under I/O, reset as a PCI function, unbound, removed and found
# again. What was written is there each time, and the kernel has nothing to complain of.
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use served

start_load 5
for round in 1 2 3; do
  if echo 1 >"/sys/class/nvme/$controller/reset_controller"; then ok "reset $round under I/O"; else not_ok "reset $round"; fi
  within 10 load_moves || not_ok "no I/O after reset $round"
done
load_ends "controller resets"
same_files "after resets"

if echo 1 >"$pci/$address/reset"; then ok "reset of the function"; else not_ok "reset of the function"; fi
disk_is_back served || not_ok "no disk after a reset of the function"
same_files "after a reset of the function"

echo "$address" >/sys/bus/pci/drivers/nvme/unbind
[ ! -e "$disk" ] || not_ok "the disk is there without a driver"
echo "$address" >/sys/bus/pci/drivers/nvme/bind
disk_is_back served || not_ok "no disk after unbind and bind"
same_files "after unbind and bind"

echo 1 >"$pci/$address/remove"
echo 1 >/sys/bus/pci/rescan
disk_is_back served || not_ok "no disk after remove and rescan"
same_files "after remove and rescan"
verified after-all --bs=4k --size=1m --iodepth=8 --ioengine=libaio
clean_log
finish
