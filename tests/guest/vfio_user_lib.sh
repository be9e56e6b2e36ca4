# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Functions for the cases whose controllers doorbell serves (tests/guest/vfio_user_boots.sh). Source it after lib.sh. The
# driver is the kernel's, the programs are fio, nvme-cli and those of ext4: nobody here wrote them.

# The kernel would load it by itself, if it found a modprobe outside of this folder.
modprobe ext4
find_controllers || { not_ok "the kernel's driver does not bring the controllers up"; dmesg | tail -n 40; finish; }

# use SERIAL: fills address, disk (/dev/nvme0n1) and controller (nvme0); ends the script without them
use() {
  address=$(address_of "$1")
  disk_is_back "$1" || { not_ok "$1: no block device"; dmesg | tail -n 40; finish; }
  controller=$(basename "$(readlink -f "$pci/$address"/nvme/nvme*)")
}

# disk_is_back SERIAL: the controller is live, and a block can be read
disk_is_back() {
  within 30 disk_reads "$1"
}
disk_reads() {
  disk=$(block_device_of "$1") && dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
}

# interrupts QUEUE: how many the controller's queue has had, on all CPUs
interrupts() {
  awk -v name="${controller}q$1\$" '$0 ~ name {for (i = 2; i <= NF; ++i) if ($i ~ /^[0-9]+$/) n += $i} END {print n + 0}' /proc/interrupts
}

# verified NAME FIO_ARGUMENT...: writes blocks with sums in them and reads them again; one check
verified() {
  local name=$1
  shift
  exits 0 "$name" fio --name="$name" --filename="$disk" --offset=1m --direct=1 --rw=randwrite --verify=crc32c --verify_fatal=1 \
    --do_verify=1 --group_reporting --output-format=terse "$@"
}

# kept TEXT OPTION...: blocks with sums in them, which are written, or with --verify_only=1 read only; one check
kept() {
  local text=$1
  shift
  if fio --name=kept --filename="$disk" --offset=8m --size=4m --bs=64k --direct=1 --rw=write --verify=crc32c --verify_fatal=1 \
    --output-format=terse "$@" >"$GUEST_OUT/kept.log" 2>&1; then ok "$text"; else
    not_ok "$text"
    tail -n 5 "$GUEST_OUT/kept.log"
  fi
}

# start_load SECONDS: reads and writes in the background, each block checked by what reads it
start_load() {
  fio --name=load --filename="$disk" --direct=1 --rw=randrw --bs=4k --offset=64m --size=32m --iodepth=8 --ioengine=libaio \
    --time_based --runtime="$1" --output-format=terse >"$GUEST_OUT/load.log" 2>&1 &
  load=$!
  within 20 load_moves || not_ok "no I/O began"
}
requests() { awk '{print $1 + $5}' "/sys/block/$(basename "$disk")/stat"; }
load_moves() {
  local before
  before=$(requests)
  sleep 0.1
  [ "$(requests)" -gt $((before + 8)) ]
}
load_ends() {
  if wait "$load"; then ok "$1: the I/O went on to its end"; else
    not_ok "$1: the I/O failed"
    tail -n 5 "$GUEST_OUT/load.log"
  fi
}

# --- a partition with a file system, behind what fio writes: a file, and its sum beside it ---------------------------
files=/run/files
new_files() {
  # A table of one partition: type 83, from 128 MiB on, 64 MiB.
  printf '\0\0\0\0\x83\0\0\0\0\0\x04\0\0\0\x02\0' | dd of="$disk" bs=2 seek=223 conv=notrunc status=none
  printf '\x55\xaa' | dd of="$disk" bs=2 seek=255 conv=notrunc status=none
  exits 0 rereadpt blockdev --rereadpt "$disk"
  within 10 test -b "${disk}p1" || { not_ok "no partition"; return; }
  exits 0 mkfs mkfs.ext4 -q -F "${disk}p1"
  mkdir -p $files
  exits 0 mount mount "${disk}p1" $files || return
  head -c 16777216 /dev/urandom >$files/file
  (cd $files && sha256sum file >sum)
  exits 0 umount umount $files
}
# same_files TEXT: they are as they were made; nothing comes from the kernel's cache
same_files() {
  mkdir -p $files
  within 10 test -b "${disk}p1" || { not_ok "$1: no partition"; return; }
  mount "${disk}p1" $files || { not_ok "$1: mount"; return; }
  sync
  echo 3 >/proc/sys/vm/drop_caches
  if (cd $files && sha256sum --quiet -c sum); then ok "$1: the files are there"; else not_ok "$1: the files differ"; fi
  umount $files || not_ok "$1: umount"
}

# clean_log: nothing that the kernel complained of since the case began
clean_log() {
  dmesg >"$GUEST_OUT/dmesg.log"
  if grep -iE 'nvme.*(timeout|timed out|abort|error|fail|disabl|dead)|I/O error|DMAR:.*fault|irq.*nobody|EXT4-fs error|BUG|WARNING' \
    "$GUEST_OUT/dmesg.log"; then
    not_ok "the kernel's log has complaints"
  else
    ok "the kernel's log has none"
  fi
}
