#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Boots a guest whose NVMe controller is doorbell's server (cases/vfio_user.sh), with a QEMU that is a vfio-user client.
# Usage: tests/guest/vfio_user.sh MODE
#   mapped    doorbells in a page that QEMU maps; the guest has an IOMMU, so each page is a mapping of its own
#   message   each doorbell is a message, and Linux takes shadow doorbells
#   unshared  the guest's memory is not shared: each access of the controller is a message
# Environment: DOORBELL_VFIO_USER_QEMU (default build/qemu/qemu, see scripts/unpack-qemu.sh), and what run.sh reads
# Exit code: run.sh's; 77 without such a QEMU; 2 if the server does not end well.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
qemu=${DOORBELL_VFIO_USER_QEMU:-$root/build/qemu/qemu}
program=${DOORBELL:-$root/build/bin/doorbell}
if ! [ -x "$qemu" ] || ! "$qemu" -device vfio-user-pci,help >/dev/null 2>&1; then
  echo "guest: skipped: no QEMU with vfio-user-pci (10.1 or newer): scripts/unpack-qemu.sh build/qemu"
  exit 77
fi
mode=${1:?usage: $0 mapped|message|unshared}
doorbells=mapped
memory=(-object memory-backend-memfd,id=mem,size=1G,share=on -machine memory-backend=mem)
case $mode in
  mapped) ;;
  message) doorbells=message ;;
  unshared) memory=() ;;
  *) echo "guest: '$mode' is not one of mapped, message, unshared" >&2; exit 200 ;;
esac
folder=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
"$program" serve nvme --socket "$folder/s" --controller model:serial=served,capacity=256Mi,queues=8 \
  --doorbells $doorbells --details >"$folder/server" 2>&1 &
server=$!
for _ in $(seq 200); do [ -S "$folder/s" ] && break; sleep 0.05; done
[ -S "$folder/s" ] || { cat "$folder/server"; exit 2; }
QEMU=$qemu DOORBELL_GUEST_CONTROLLERS=none "$here/run.sh" "$here/cases/vfio_user.sh" --timeout "${DOORBELL_GUEST_SECONDS:-240}" \
  ${2:+--out "$2"} -- "${memory[@]}" \
  -device "{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"$folder/s\"}}"
rc=$?
"$program" serve status "$folder/s" >"$folder/status" || { echo "the server does not answer"; rc=2; }
kill -INT "$server"
wait "$server" || { echo "the server ended with $?"; rc=2; }
server=
[ $rc -eq 0 ] || { cat "$folder/server"; exit $rc; }
grep -E '"(messages|dma_.*_by_message|interrupts_delivered)"' "$folder/status"
exit 0
