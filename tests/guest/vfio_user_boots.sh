#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Boots guests whose NVMe controllers doorbell serves, with a QEMU that is a client of vfio-user. One server has all guests in
# turn. The verdicts of their cases are for verdict.sh, with FOLDER/BOOT; FOLDER has that of vfio_user_servers.
#   shared    memory of the guest is shared, no IOMMU; four controllers; the guest is shut down at the end
#   killed    the same memory; the server of a controller, `lost`, is killed; QEMU ends like a machine that loses its power
#   strict    an IOMMU of the guest maps and unmaps each page; a new server has the media of `lost`; QEMU ends likewise
#   unshared  memory is not shared: the server asks QEMU for all that it reads and writes; the machine is reset under I/O, and
#             boots again in the same QEMU
# Usage: vfio_user_boots.sh FOLDER SECONDS [BOOT]...   (SECONDS: limit of one boot)
# Environment: what run.sh and scripts/unpack-qemu.sh read, but QEMU
# Exit code: 0 when all guests ran to their ends, and when this machine cannot boot them, which each verdict then says
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$1
limit=$2
shift 2
[ $# -gt 0 ] || set -- shared killed strict unshared
program=$(readlink -f "${DOORBELL:-$root/build/bin/doorbell}")
cache=${DOORBELL_GUEST_CACHE:-$root/build/guest}

rm -rf "$folder"
mkdir -p "$folder/vfio_user_servers" "$cache"
cache=$(cd "$cache" && pwd)
said=$("$root/scripts/unpack-qemu.sh" "$cache/newer-qemu")
rc=$?
[ -z "$said" ] || echo "$said"
if [ $rc -eq 77 ]; then
  for boot in . "$@"; do
    mkdir -p "$folder/$boot"
    echo "guest: $said" >"$folder/$boot/skipped"
  done
  exit 0
fi
[ $rc -eq 0 ] || exit 2

# --- servers --------------------------------------------------------------------------------------------------------
sockets=$(mktemp -d)
declare -A server_of
cleanup() {
  for pid in "${server_of[@]}" ${remover:+"$remover"} ${killer:+"$killer"}; do kill "$pid" 2>/dev/null; done
  rm -rf "$sockets"
}
trap cleanup EXIT
trap 'exit 200' INT TERM HUP
remover=
killer=

serve() { # NAME KEYS OPTION...
  local name=$1 keys=$2
  shift 2
  local said=$folder/vfio_user_servers/$name
  [ ! -e "$said" ] || mv "$said" "$said-killed"
  "$program" serve nvme --socket "$sockets/$name" --controller "model:serial=$name,$keys" --details "$@" >"$said" 2>&1 &
  server_of[$name]=$!
  until grep -qs "Ctrl-C ends it" "$said"; do
    kill -0 "${server_of[$name]}" 2>/dev/null || { cat "$said"; exit 2; }
    sleep 0.05
  done
}
serve served capacity=256Mi,queues=8
serve one capacity=128Mi,queues=1
serve two capacity=128Mi,queues=2 --doorbells message
truncate -s 256M "$sockets/media"
serve lost "queues=2,media=file:$sockets/media"

device() { # NAME [PROPERTY]...: an argument of QEMU
  local socket=$sockets/$1
  shift
  printf '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"%s"}%s}' "$socket" "${*:+,$*}"
}

# --- guests ---------------------------------------------------------------------------------------------------------
boot() { # NAME CASES OPTION...
  local name=$1 cases=$2
  shift 2
  QEMU=$cache/newer-qemu/qemu "$here/boot.sh" "$folder/$name" "$limit" "$cases" --controllers none --tools "$cache/newer-qemu" "$@"
}
shared=(-object "memory-backend-memfd,id=memory,size=1G,share=on" -machine memory-backend=memory)

# removes_when_asked FILE: takes controller `one` away as soon as the guest asks for that
removes_when_asked() {
  until [ -e "$1" ]; do sleep 0.1; done
  "$program" serve fault "$sockets/one" --fault removal=1 >"$folder/vfio_user_servers/removal" 2>&1
}

# kills_when_asked FILE: kills the server of `lost` as soon as the guest asks for that
kills_when_asked() {
  until [ -e "$1" ]; do sleep 0.1; done
  kill -KILL "${server_of[lost]}"
}

# sees_nobody NAME: QEMU has ended, and its server sees that when it looks next. One that never does is found by its counts.
sees_nobody() {
  local until=$((SECONDS + 20))
  while "$program" serve status "$sockets/$1" | grep -q '"connected": *true' && [ $SECONDS -lt $until ]; do sleep 0.05; done
}

# boot_killed: once more where QEMU 11.1 aborts when a server dies, by an assertion about its own errors
boot_killed() {
  local rc try said=$folder/vfio_user_servers/qemu-killed
  for try in 1 2 3 4 5; do
    kills_when_asked "$folder/killed/kill-lost" &
    killer=$!
    boot killed vfio_user_killed --iommu none -- "${shared[@]}" -device "$(device lost)" -device "$(device served)" 2>"$said"
    rc=$?
    kill "$killer" 2>/dev/null
    wait "$killer" 2>/dev/null
    killer=
    cat "$said" >&2
    if ! kill -0 "${server_of[lost]}" 2>/dev/null; then
      wait "${server_of[lost]}"
      serve lost "queues=2,media=file:$sockets/media" --allow-write
    fi
    { [ $rc -ne 0 ] && grep -q "error_setv: Assertion" "$said"; } || return $rc
    booted+=(killed)
    sees_nobody served
  done
  return $rc
}

failed=0
booted=("$@")
for name in "$@"; do
  case $name in
    shared)
      removes_when_asked "$folder/shared/remove-one" &
      remover=$!
      DOORBELL_GUEST_SMP=8 boot shared vfio_user_driver+vfio_user_data+vfio_user_resets+vfio_user_removal --iommu none --kernel maxcpus=2 --end poweroff -- \
        "${shared[@]}" -device pcie-root-port,id=behind,chassis=1,slot=1 -device "$(device one '"bus":"behind"')" \
        -device "$(device two)" -device "$(device lost)" -device "$(device served)" || failed=1
      kill "$remover" 2>/dev/null
      wait "$remover" 2>/dev/null
      remover= ;;
    killed) boot_killed || failed=1 ;;
    strict)
      boot strict vfio_user_memory:strict+vfio_user_found --iommu strict -- "${shared[@]}" -device "$(device lost)" \
        -device "$(device served)" || failed=1 ;;
    unshared)
      boot unshared vfio_user_memory:unshared+vfio_user_loaded+reset+vfio_user_again --iommu none --end poweroff --resets once -- \
        -device "$(device served)" || failed=1 ;;
    *) echo "guest: '$name' is not one of shared, killed, strict, unshared" >&2; exit 2 ;;
  esac
  for server in "${!server_of[@]}"; do sees_nobody "$server"; done
  "$program" serve status "$sockets/served" >"$folder/vfio_user_servers/served-after-$name.json" || failed=1
done
[ ! -s "$folder/$1/skipped" ] || { cp "$folder/$1/skipped" "$folder/skipped"; exit 0; }

# --- servers again: all end well, and counted nothing that they should not have seen ----------------------------------
{
  ended=0
  for name in "${!server_of[@]}"; do
    kill -INT "${server_of[$name]}"
    wait "${server_of[$name]}" || { echo "FAILED $name: the server ended with $?"; ended=2; }
  done
  server_of=()
  /usr/bin/python3 "$here/vfio_user_counts.py" "$folder/vfio_user_servers" "${booted[@]}" || ended=2
  echo $ended >"$folder/vfio_user_servers/verdict"
} >"$folder/vfio_user_servers/said" 2>&1
exit $failed
