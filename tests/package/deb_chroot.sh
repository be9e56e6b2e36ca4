#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The packages on a Debian 12 that has nothing else, without network and without a compiler: installed, used (deb_inside.sh),
# purged. Usage: deb_chroot.sh DEBS BASE SCRATCH EXAMPLES COMPILER C-COMPILER
#   DEBS     the folder of the packages
#   BASE     a folder that keeps Debian's base system and what the packages depend on; made, with network, when it is missing
#   SCRATCH  for the programs that are built here against the packages' files
# Exit code: 0, or 1; 77 and a line where this is not root, debootstrap is missing, or no mirror of Debian answers.
set -euo pipefail
debs=$1 base=$2 scratch=$3 examples=$4 cxx=$5 cc=$6
here=$(cd "$(dirname "$0")" && pwd)

skip() { echo "skipped: $1"; exit 77; }
fail() { echo "deb_chroot: $1" >&2; exit 1; }
ls "$debs"/*.deb >/dev/null 2>&1 || skip "no packages were built"
[ "$(id -u)" -eq 0 ] || skip "only root can use a chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
unshare --mount --net --pid --fork true 2>/dev/null || skip "no namespaces can be made here"

# --- Debian's part, which is kept ---------------------------------------------------------------------------------------
# The mirrors of this machine.
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
  grep -E ' bookworm(-security|-updates)? main$' | sort -u || true)
[ -n "$sources" ] || skip "no mirror of Debian 12 is in this machine's lists of apt"
mirror=$(awk '$3 == "bookworm" {print $2; exit}' <<<"$sources")

# inside FOLDER COMMAND...: in it as the root folder, with the machine's network
inside() {
  local root=$1
  shift
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} "$@" </dev/null
}
if [ ! -e "$base/complete" ]; then
  rm -rf "$base"
  mkdir -p "$base"
  debootstrap --variant=minbase bookworm "$base/root" "$mirror" >"$base/log" 2>&1 ||
    { tail -n 3 "$base/log"; rm -rf "$base/root"; skip "debootstrap could not get Debian 12 from $mirror"; }
  touch "$base/complete"
fi
# The packages' dependencies, without their own names' versions: other dependencies are loaded once more.
wanted=$(for deb in "$debs"/*.deb; do dpkg-deb -f "$deb" Depends Recommends; done | sed -E 's/\(= [^)]*\)//' | sha256sum)
if [ "$(cat "$base/wanted" 2>/dev/null)" != "$wanted" ]; then
  echo "$sources" >"$base/root/etc/apt/sources.list"
  rm -rf "$base/root/debs"
  cp -r "$debs" "$base/root/debs"
  if ! { inside "$base/root" apt-get -qq update &&
    inside "$base/root" sh -c 'apt-get -qq -y install --download-only /debs/*.deb'; } >"$base/log" 2>&1; then
    tail -n 5 "$base/log"
    skip "what the packages depend on could not be loaded from $mirror"
  fi
  rm -rf "$base/root/debs"
  echo "$wanted" >"$base/wanted"
fi

# --- programs, built here against the packages' files --------------------------------------------------------------------
rm -rf "$scratch"
mkdir -p "$scratch/files" "$scratch/programs"
for deb in "$debs"/libdoorbell*.deb; do dpkg-deb -x "$deb" "$scratch/files"; done
export PKG_CONFIG_PATH=$scratch/files/usr/lib/pkgconfig
# shellcheck disable=SC2046  # flags are meant to split
"$cc" "$examples/c_blocks/main.c" $(pkg-config --cflags --libs doorbell-c) -o "$scratch/programs/c_blocks"
cmake -S "$examples/gpu_read" -B "$scratch/gpu_read" -DCMAKE_PREFIX_PATH="$scratch/files/usr" -DCMAKE_CUDA_COMPILER= \
  -DCMAKE_CXX_COMPILER="$cxx" >"$scratch/log" 2>&1 && cmake --build "$scratch/gpu_read" >>"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; fail "examples/gpu_read does not build against the packages"; }
cp "$scratch/gpu_read/gpu_read_cpu" "$scratch/programs"

# --- the packages in it ---------------------------------------------------------------------------------------------------
# Their writes go into memory and is gone afterwards.
mkdir -p "$scratch/over"
export root=$base/root over=$scratch/over debs scratch here
unshare --mount --net --pid --fork bash -euc '
  mount -t tmpfs tmpfs "$over"
  mkdir "$over"/{upper,work,root}
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$over/upper,workdir=$over/work" "$over/root"
  cd "$over/root"
  mount -t proc proc proc
  mount -t sysfs sysfs sys
  mount --rbind /dev dev
  mount -t tmpfs tmpfs dev/shm
  ip link set lo up
  mkdir debs
  cp -r "$debs"/*.deb "$scratch/programs" "$here/deb_inside.sh" debs
  exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive bash /debs/deb_inside.sh' </dev/null
