#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Fills the cache folder with what tests/guest/run.sh boots: `vmlinux` and `initrd.img`. Debian's kernel package
# is downloaded and unpacked there; nothing is installed, no privilege is needed. Does nothing when all is there.
# Usage: tests/guest/prepare.sh
# Environment: DOORBELL_GUEST_CACHE (the folder, default build/guest), QEMU (the emulator, looked for only)
# Exit code: 0; 1 when something broke; 77, with one line that says what to install, when a part cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
cache=${DOORBELL_GUEST_CACHE:-build/guest}
qemu=${QEMU:-qemu-system-x86_64}

# Kernel modules of the guest; what they depend on comes along. A name that this kernel does not have fails the build
# of the image, so that no test finds out later.
#   virtio_pci .. overlay  the host's files; nvme .. vfio_iommu_type1: the tests' devices; ext4: something to mount
#   crc32_generic          is needed by rdma_rxe through the crypto layer, which the dependency lists do not know
modules="virtio_pci 9pnet_virtio 9p overlay nvme vfio-pci vfio_iommu_type1 ext4
         crc32_generic veth rdma_rxe ib_uverbs rdma_ucm"

skip() {
  echo "guest: skipped: $1"
  exit 77
}
fail() {
  echo "guest: $1" >&2
  exit 1
}

[ "$(uname -m)" = x86_64 ] || skip "the guest is an x86_64 machine with Debian's kernel, this is $(uname -m)"
command -v "$qemu" >/dev/null || skip "$qemu is not installed: apt-get install qemu-system-x86"
busybox=$(command -v busybox) || skip "busybox is not installed: apt-get install busybox-static"
# The image holds no libraries, so a dynamically linked busybox would not even start.
! LC_ALL=C ldd "$busybox" >/dev/null 2>&1 || skip "busybox is linked dynamically: apt-get install busybox-static"
for tool in cpio:cpio depmod:kmod modprobe:kmod zstd:zstd dpkg-deb:dpkg apt-get:apt flock:util-linux strip:binutils; do
  PATH=$PATH:/usr/sbin:/sbin command -v "${tool%:*}" >/dev/null ||
    skip "${tool%:*} is not installed: apt-get install ${tool#*:}"
done
PATH=$PATH:/usr/sbin:/sbin

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
exec 9>"$cache/lock"
flock 9

# Files in the cache count as long as the scripts and busybox that made them are the same.
wanted=$(sha256sum "$here/prepare.sh" "$here/init" "$busybox" | cut -d' ' -f1 | sha256sum | cut -d' ' -f1)
if [ -s "$cache/stamp" ] && [ -s "$cache/vmlinux" ] && [ -s "$cache/initrd.img" ]; then
  read -r made kernel <"$cache/stamp"
  if [ "$made" = "$wanted" ] && [ -s "$cache/$kernel.deb" ]; then exit 0; fi
fi

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# --- the kernel package: linux-image-amd64 is empty and depends on the real one -------------------------
newest_kernel() { LC_ALL=C apt-cache depends --important linux-image-amd64 2>/dev/null | awk '/Depends:/ {print $2; exit}'; }
fetch() {
  local package
  package=$(newest_kernel)
  [ -n "$package" ] || return 1
  (cd "$work" && apt-get -qq download "$package") >"$work/log" 2>&1 || return 1
  mv "$work/$package"_*.deb "$cache/$package.deb"
  echo "$package"
}
# A package of an earlier time is as good, and needs no network.
kernel=$(cd "$cache" && ls -t linux-image-*.deb 2>/dev/null | head -n 1) || true
kernel=${kernel%.deb}
if [ -z "$kernel" ]; then
  # The package lists of a fresh container are empty, those of an old machine name packages that are gone.
  kernel=$(fetch) || { [ "$(id -u)" -eq 0 ] && apt-get -qq update >"$work/log" 2>&1 && kernel=$(fetch); } ||
    skip "no kernel: 'apt-get download' of what linux-image-amd64 depends on fails (no network, or no Debian)"
fi
dpkg-deb -x "$cache/$kernel.deb" "$work/kernel" || { rm -f "$cache/$kernel.deb"; fail "$kernel.deb is damaged, now removed"; }
modules_root=$work/kernel
[ -d "$modules_root/lib/modules" ] || modules_root=$work/kernel/usr
release=$(ls "$modules_root/lib/modules")

# --- vmlinux: QEMU starts an ELF kernel directly (PVH), which saves the 4.5 s that bzImage's own
# decompression takes in an emulated CPU -----------------------------------------------------------------
/usr/bin/python3 - "$work/kernel/boot/vmlinuz-$release" "$work/vmlinux" <<'PYTHON'
import lzma
import subprocess
import sys

image = open(sys.argv[1], "rb").read()
for magic, unpack in (
    (b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
    # zstd complains about what follows the frame, after it has written all of it.
    (b"\x28\xb5\x2f\xfd", lambda data: subprocess.run(["zstd", "-dcq"], input=data, capture_output=True).stdout),
):
    at = image.find(magic)
    while at >= 0:
        try:
            kernel = unpack(image[at:])
        except lzma.LZMAError:
            kernel = b""
        if kernel[:4] == b"\x7fELF":
            open(sys.argv[2], "wb").write(kernel)
            sys.exit(0)
        at = image.find(magic, at + 1)
sys.exit("guest: no ELF kernel in " + sys.argv[1])
PYTHON

# --- initrd.img: busybox, the modules, init -------------------------------------------------------------
depmod -b "$modules_root" "$release"
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,host,out,root}
cp "$busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
install -m 755 "$here/init" "$root/init"
for module in $modules; do
  modprobe -d "$modules_root" -S "$release" --show-depends "$module" || fail "kernel $release has no module $module"
done >"$work/closure"
# Debian 13 compresses its modules, and busybox may not know how.
awk '$1 == "insmod" {print $2}' "$work/closure" | sort -u | while read -r file; do
  to=$root/lib/modules/$release/kernel/${file#*/kernel/}
  mkdir -p "$(dirname "$to")"
  case "$file" in
    *.xz) xz -dc "$file" >"${to%.xz}" && to=${to%.xz} ;;
    *.zst) zstd -dcq "$file" >"${to%.zst}" && to=${to%.zst} ;;
    *) cp "$file" "$to" ;;
  esac
  strip --strip-debug "$to"
done
cp "$modules_root/lib/modules/$release"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$release/"
depmod -b "$root" "$release"
(cd "$root" && find . -print0 | cpio -0 -o -H newc --quiet) >"$work/initrd.img"

mv "$work/vmlinux" "$work/initrd.img" "$cache/"
echo "$wanted $kernel" >"$cache/stamp"
echo "guest: made $cache: $release, initrd $(du -h "$cache/initrd.img" | cut -f1)"
