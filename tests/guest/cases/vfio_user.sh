#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: the controller that doorbell serves to this QEMU (serial number "served"), under Linux's driver,
# which nobody here wrote: identification, interrupts, verified I/O, a file system, resets, removal.
# Usage: vfio_user.sh
. tests/guest/lib.sh

find_controllers || { not_ok "the kernel's driver does not bring the controllers up"; dmesg | tail -n 40; finish; }
address=$(address_of served)
disk=$(block_device_of served) || { not_ok "no block device"; dmesg | grep -i nvme | tail -n 20; finish; }
controller=$(basename "$(dirname "$(readlink -f "/sys/block/$(basename "$disk")")")")
[ -e "/sys/class/nvme/$controller" ] || controller=$(basename "$pci/$address"/nvme/nvme*)
ok "$address is $controller with $disk (up $(uptime_s) s)"
dmesg --clear

[ "$(cat "$pci/$address/class")" = 0x010802 ] && ok "class" || not_ok "class $(cat "$pci/$address/class")"
[ "$(tr -d ' ' <"/sys/class/nvme/$controller/model")" != "" ] && ok "model $(cat "/sys/class/nvme/$controller/model")"
[ "$(cat "/sys/class/nvme/$controller/state")" = live ] && ok "live" || not_ok "state $(cat "/sys/class/nvme/$controller/state")"

# --- interrupts: one MSI-X vector a queue, and they count up
vectors() { grep -c "$controller""q" /proc/interrupts; }
counted() { awk -v c="$controller""q" '$0 ~ c {for (i = 2; i < 6; ++i) if ($i ~ /^[0-9]+$/) n += $i} END {print n + 0}' /proc/interrupts; }
[ "$(vectors)" -ge 2 ] && ok "$(vectors) vectors" || not_ok "$(vectors) vectors"
before=$(counted)
exits 0 dd dd if="$disk" of=/dev/null bs=4k count=64 iflag=direct
[ "$(counted)" -gt "$before" ] && ok "$(($(counted) - before)) interrupts" || not_ok "no interrupt counted"

# --- data, verified by fio
job() {
  local name=$1
  shift
  exits 0 "$name" fio --name="$name" --filename="$disk" --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 \
    --group_reporting --output-format=terse "$@"
}
job fio_4k --rw=randwrite --bs=4k --size=4m --iodepth=8 --ioengine=libaio
job fio_128k --rw=randwrite --bs=128k --size=16m --iodepth=4 --ioengine=libaio
job fio_2jobs --rw=randwrite --bs=4k --size=2m --offset_increment=16m --numjobs=2 --iodepth=8 --ioengine=libaio
job fio_uring --rw=randwrite --bs=4k --size=2m --iodepth=8 --ioengine=io_uring

# --- a file system
modprobe ext4
exits 0 mkfs mkfs.ext4 -q -F "$disk"
mkdir -p /run/disk
exits 0 mount mount "$disk" /run/disk
head -c 8388608 /dev/urandom >/run/disk/file
sum=$(sha256sum </run/disk/file)
sync
echo 3 >/proc/sys/vm/drop_caches
[ "$(sha256sum </run/disk/file)" = "$sum" ] && ok "the file is as it was written" || not_ok "the file differs"
exits 0 umount umount /run/disk
exits 0 fsck fsck.ext4 -f -n "$disk"

# --- resets: by the driver while there is I/O, and of the function
fio --name=load --filename="$disk" --direct=1 --rw=randread --bs=4k --size=64m --iodepth=8 --ioengine=libaio \
  --time_based --runtime=4 --output-format=terse >"$GUEST_OUT/load.log" 2>&1 &
load=$!
for _ in 1 2; do
  sleep 0.7
  echo 1 >"/sys/class/nvme/$controller/reset_controller" && ok "reset_controller under I/O" || not_ok "reset_controller"
done
wait $load && ok "the I/O went on" || { not_ok "the I/O failed"; tail -n 5 "$GUEST_OUT/load.log"; }
compare() {
  mount "$disk" /run/disk && [ "$(sha256sum </run/disk/file)" = "$sum" ] && umount /run/disk && ok "$1: the file is there" ||
    { not_ok "$1: the file"; umount /run/disk 2>/dev/null; }
}
live() { disk=$(block_device_of served) && [ -b "$disk" ] && dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; }
compare "after resets"
echo 1 >"$pci/$address/reset" && within 20 live && compare "after a function level reset" || not_ok "function level reset"
echo "$address" >/sys/bus/pci/drivers/nvme/unbind
echo "$address" >/sys/bus/pci/drivers/nvme/bind
within 20 live && compare "after unbind and bind" || not_ok "unbind and bind"
echo 1 >"$pci/$address/remove"
echo 1 >/sys/bus/pci/rescan
within 20 live && compare "after remove and rescan" || not_ok "remove and rescan"

# --- nothing that the kernel complained of
dmesg >"$GUEST_OUT/dmesg.log"
if grep -iE 'nvme.*(timeout|abort|error|fail|disabl)|I/O error|DMAR:.*fault|irq.*nobody' "$GUEST_OUT/dmesg.log"; then
  not_ok "the kernel's log has complaints"
else
  ok "the kernel's log is clean"
fi
finish
