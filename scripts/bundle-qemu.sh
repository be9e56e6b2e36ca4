#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Packs a QEMU that can host an NVMe controller (--controller qemu) with its libraries, for a machine where none is
# installed. Usage: scripts/bundle-qemu.sh FOLDER   (FOLDER is replaced; about 60 MB)
# There: DOORBELL_QEMU=FOLDER/qemu doorbell nvme --controller qemu
# Environment: QEMU (default qemu-system-x86_64).
set -euo pipefail
. "$(dirname "$0")/pack-program.sh"

folder=${1:?usage: $0 FOLDER}
qemu=$(command -v "${QEMU:-qemu-system-x86_64}") || { echo "bundle-qemu: no ${QEMU:-qemu-system-x86_64}: apt-get install qemu-system-x86" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder/modules"
cp -L "$qemu" "$folder/qemu-system-x86_64"
# Its own loader and C library too: those of the other machine may be older.
pack_libraries "$folder" "$qemu"
# QEMU 7.2 has its emulator, which it wants even without a processor to emulate, in a module.
for module in /usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so; do
  if [ -e "$module" ] && [ "$qemu" = /usr/bin/qemu-system-x86_64 ]; then
    cp "$module" "$folder/modules/"
    pack_libraries "$folder" "$module"
  fi
done
pack_start "$folder" qemu qemu-system-x86_64
[ -n "$("$folder/qemu" -machine help | grep x-remote)" ] || { echo "bundle-qemu: this QEMU has no x-remote machine" >&2; exit 1; }
pack_summary "$folder"
