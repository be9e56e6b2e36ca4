#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Unpacks the QEMU of a newer Debian suite, which has the device vfio-user-pci, with its own C library into a folder.
# Nothing is installed, no privilege is needed; about 45 MB are downloaded.
# Usage: scripts/unpack-qemu.sh FOLDER [SUITE]   (FOLDER is replaced; default suite sid)
# There: FOLDER/qemu, to be used as qemu-system-x86_64. tests/guest/vfio_user.sh finds it as $DOORBELL_VFIO_USER_QEMU, or in
# build/qemu.
set -euo pipefail

folder=${1:?usage: $0 FOLDER [SUITE]}
suite=${2:-sid}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $keys ] || { echo "unpack-qemu: $keys is missing: apt-get install debian-archive-keyring" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial} "$folder/root"
folder=$(cd "$folder" && pwd)
apt=$folder/apt
: >"$apt/status"
echo "deb [signed-by=$keys] http://deb.debian.org/debian $suite main" >"$apt/sources.list"
cat >"$apt/apt.conf" <<CONF
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Debug::NoLocking "true";
Acquire::Languages "none";
CONF
export APT_CONFIG=$apt/apt.conf
apt-get -qq update
apt-get -qq -y -d install qemu-system-x86 seabios ipxe-qemu
for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder/root"; done
rm -rf "$apt"
cat >"$folder/qemu" <<'WRAPPER'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
lib=$root/usr/lib/x86_64-linux-gnu
# Modules of a QEMU that this machine has are not this one's.
QEMU_MODULE_DIR=$lib/qemu exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$root/usr/bin/qemu-system-x86_64" \
  -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -L "$root/usr/lib/ipxe/qemu" "$@"
WRAPPER
chmod +x "$folder/qemu"
"$folder/qemu" -device vfio-user-pci,help >/dev/null || { echo "unpack-qemu: this QEMU has no vfio-user-pci" >&2; exit 1; }
echo "$folder: $(du -sh "$folder" | cut -f1), $("$folder/qemu" --version | head -n 1)"
