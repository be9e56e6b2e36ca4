#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: what doorbell must not do to a device that is not its own, and what it says instead.
. tests/guest/lib.sh

find_controllers || { not_ok "the kernel's driver does not bring the controllers up"; finish; }
nvme() { "$doorbell" nvme --controller "$@" --quiet --late-after 5; }
still() { # TEXT ADDRESS DRIVER
  if [ "$(driver_of "$2")" = "$3" ]; then ok "$1: $3 still has it"; else not_ok "$1: the driver is now '$(driver_of "$2")'"; fi
}

echo "== the kernel's driver has it (up $(uptime_s) s)"
address=$(address_of n4096)
exits 1 kernel-driver nvme "$address" --read-io 1
says kernel-driver 'doorbell bind|vfio-pci'
still kernel-driver "$address" nvme

echo "== there is no such device (up $(uptime_s) s)"
# 77 is "the hardware asked for is absent".
exits 77 no-device nvme 0000:00:1d.7 --read-io 1
says no-device '0000:00:1d.7'
exits 1 no-address nvme 0000:00:zz.0 --read-io 1
exits 77 bind-no-device "$doorbell" bind 0000:00:1d.7

echo "== no NVMe controller (up $(uptime_s) s)"
# The 9p device that this guest lives on: were it taken, no result would leave the guest.
other=$(basename "$(dirname "$(grep -lx 0x1009 "$pci"/*/device | head -n 1)")")
exits 1 bind-other "$doorbell" bind "$other"
still bind-other "$other" virtio-pci
exits 1 not-nvme nvme "$other" --read-io 1

echo "== a mounted namespace (up $(uptime_s) s)"
vfio_modules
address=$(address_of n512)
disk=$(block_device_of n512)
# Nothing in this guest loads a module by itself; and ext4 is the driver of ext2 too.
modprobe ext4
mkdir -p /run/mounted
if ! { busybox mke2fs -F "$disk" 65536 >/dev/null 2>&1 && mount -t ext4 "$disk" /run/mounted && echo precious >/run/mounted/file; }; then
  not_ok "mounted: no file system on $disk"
fi
sync
exits 1 mounted "$doorbell" bind "$address"
says mounted 'mount'
still mounted "$address" nvme
exits 1 mounted-nvme nvme "$address" --allow-write
if [ "$(cat /run/mounted/file)" = precious ]; then ok "mounted: the file is whole"; else not_ok "mounted: the file is damaged"; fi

echo "== swap (up $(uptime_s) s)"
disk=$(block_device_of bigmdts)
if ! { busybox mkswap "$disk" && busybox swapon "$disk"; } >/dev/null 2>&1; then not_ok "swap: cannot be set up"; fi
exits 1 swap "$doorbell" bind "$(address_of bigmdts)"
still swap "$(address_of bigmdts)" nvme

echo "== unmounted, it may be taken (up $(uptime_s) s)"
umount /run/mounted
exits 0 bind "$doorbell" bind "$address"
still bind "$address" vfio-pci
exits 0 bind-again "$doorbell" bind "$address"

echo "== writing takes permission (up $(uptime_s) s)"
exits 1 write nvme "$address" --write-io 10 --read-io 10
says write '--allow-write'
exits 0 read nvme "$address" --read-io 10
exits 0 read-by-default nvme "$address" # neither count given: reads only

echo "== one user at a time (up $(uptime_s) s)"
start_run in-use --controller "$address" --read-io 1 --infinite && {
  exits 1 second-user nvme "$address" --read-io 1
  kill -INT "$run_pid"
  ends_with 130 in-use 20
}

echo "== given back, nothing is lost (up $(uptime_s) s)"
if bind_kernel "$address" && disk=$(within 20 block_device_of n512) && mount -t ext4 "$disk" /run/mounted; then
  if [ "$(cat /run/mounted/file)" = precious ]; then ok "given back: the file is whole"; else not_ok "given back: the file is damaged"; fi
else
  not_ok "given back: it cannot be mounted"
fi
umount /run/mounted
busybox swapoff "$(block_device_of bigmdts)"
finish
