#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Unpacks the QEMU of a newer Debian, which is a client of vfio-user (10.1 and later), and its nvme-cli, with their own libraries
# into a folder. Nothing is installed, no privilege is needed. About 66 MB are downloaded, of which 22 are lists; 69 MB stay.
# Usage: scripts/unpack-qemu.sh FOLDER   (FOLDER is replaced, but for one that this script made before)
# There: FOLDER/qemu, to be used as qemu-system-x86_64; FOLDER/nvme
# Environment: DOORBELL_QEMU_SUITES (default "trixie trixie-backports": packages come from the last, what they need from either),
#   DEBIAN_MIRROR (default http://deb.debian.org/debian)
# Exit code: 0; 1 when something broke; 77, with one line that says why, when the packages cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pack-program.sh"

folder=${1:?usage: $0 FOLDER}
suites=${DOORBELL_QEMU_SUITES:-trixie trixie-backports}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
packages="qemu-system-x86 seabios nvme-cli"

skip() {
  echo "unpack-qemu: skipped: $1"
  exit 77
}
[ "$(uname -m)" = x86_64 ] || skip "Debian's QEMU is unpacked for x86_64 only, this is $(uname -m)"

stamp=$(sha256sum "$0" "$here/pack-program.sh" | cut -d' ' -f1 | sha256sum | cut -d' ' -f1)
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp $suites" ] && [ -x "$folder/qemu" ]; then exit 0; fi

for tool in apt-get:apt dpkg-deb:dpkg; do
  command -v "${tool%:*}" >/dev/null || skip "${tool%:*} is not installed: apt-get install ${tool#*:}"
done
[ -e $keys ] || skip "$keys is missing: apt-get install debian-archive-keyring"

rm -rf "$folder"
mkdir -p "$folder/modules" "$folder/share"
folder=$(cd "$folder" && pwd)
apt=$folder/apt
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt"/{lists/partial,cache/archives/partial,root}

# Lists and a record of installed packages (none) of our own: the machine's are neither read nor changed. Settings of the
# machine, such as a proxy, hold.
: >"$apt/status"
for suite in $suites; do echo "deb [arch=amd64 signed-by=$keys] $mirror $suite main"; done >"$apt/sources.list"
cat >"$apt/apt.conf" <<CONF
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Default-Release "${suites##* }";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
APT::Update::Error-Mode "any";
Acquire::Retries "2";
Acquire::http::Timeout "30";
CONF
apt_get() { APT_CONFIG=$apt/apt.conf apt-get -qq "$@" >"$apt/log" 2>&1 </dev/null; }
# shellcheck disable=SC2086  # the list is meant to split
apt_get update && apt_get -y --download-only install $packages ||
  skip "no $packages of $suites from $mirror: $(grep -m1 '^[EW]:' "$apt/log" || echo 'apt-get fails')"
for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$apt/root"; done

cp "$apt/root/usr/bin/qemu-system-x86_64" "$folder/qemu-system-x86_64"
cp "$apt/root/usr/sbin/nvme" "$folder/nvme-cli"
for program in qemu-system-x86_64 nvme-cli; do
  pack_libraries "$folder" "$folder/$program" "$apt/root" || { echo "unpack-qemu: $program: a library is missing" >&2; exit 1; }
done
# Firmware of a machine without a screen, and the code that starts a kernel from memory.
for file in seabios/bios-256k.bin qemu/kvmvapic.bin qemu/linuxboot_dma.bin qemu/pvh.bin; do
  cp "$apt/root/usr/share/$file" "$folder/share/"
done
pack_start "$folder" qemu qemu-system-x86_64 -L %here%/share
pack_start "$folder" nvme nvme-cli
"$folder/qemu" -device vfio-user-pci,help >/dev/null 2>&1 || skip "the QEMU of $suites has no vfio-user-pci"
"$folder/nvme" version >/dev/null || { echo "unpack-qemu: nvme-cli does not start" >&2; exit 1; }
rm -rf "$apt"
echo "$stamp $suites" >"$folder/stamp"
pack_summary "$folder"
