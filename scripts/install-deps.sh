#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Installs the Debian or Ubuntu packages that a make target needs; does nothing when all are there.
# Usage: scripts/install-deps.sh demo|test|guest|lint|fuzz|gpu|deb|wheel|docs
# Exit code: 0 all there, 1 something is missing and could not be installed (the line to run is printed).
set -eu

build="cmake ninja-build g++ make git libfmt-dev nlohmann-json3-dev liburing-dev libibverbs-dev libisal-dev libyaml-cpp-dev"
guest="qemu-system-x86 busybox-static cpio kmod zstd binutils xz-utils fio iproute2
       ibverbs-providers librdmacm1 perftest rdmacm-utils"
wanted=
case "${1:-}" in
  demo) packages="$build python3 python3-jinja2 python3-matplotlib" ;;
  test) packages="$build python3 python3-jinja2 python3-matplotlib python3-jsonschema python3-html5lib
                  python3-pandas python3-nbclient python3-ipykernel libgtest-dev libbenchmark-dev
                  python3-dev python3-venv pkg-config clang-format libdpdk-dev dpdk-dev libsystemd-dev
                  libfftw3-single3 libopenblas0 libmicrohttpd12 python3-prometheus-client
                  openmpi-bin iperf3 iproute2 util-linux $guest"
        # Debian's names of a browser that draws pages for tests, of shells whose completion is tested, of what makes
        # and tries packages, and of what reads the headers' comments; where there is no such package, its tests are
        # skipped.
        # Of programs that run on the drop-in libibverbs, likewise.
        wanted="chromium-headless-shell zsh fish dpkg-dev debhelper dh-python lintian debootstrap doxygen
                python3-pyverbs ibverbs-utils ucx-utils libfabric-bin tshark python3-scapy" ;;
  guest) packages="$build python3 python3-jsonschema libgtest-dev $guest" ;;
  lint) packages="$build python3 libbenchmark-dev clang clang-format clang-tidy" ;;
  fuzz) packages="$build python3 clang libclang-rt-dev libgtest-dev" ;;
  deb)  packages="$build pkg-config libdpdk-dev libsystemd-dev dpkg-dev debhelper dh-python" ;;
  gpu)  packages="g++ python3 python3-venv" ;;  # what scripts/fetch-nvcc.sh runs on
  wheel) packages="$build python3-dev python3-venv" ;;
  docs) packages="python3 doxygen" ;;
  *) echo "usage: $0 demo|test|guest|lint|fuzz|gpu|deb|wheel|docs" >&2; exit 1 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install-deps: this is neither Debian nor Ubuntu; the build expects what these packages hold:" $packages >&2
  exit 0
fi

# not_installed PACKAGE...: those that are missing
not_installed() {
  for package in "$@"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=
    case "$state" in installed*) ;; *) printf ' %s' "$package" ;; esac
  done
}
# shellcheck disable=SC2086  # the lists are meant to split
missing=$(not_installed $packages) absent=$(not_installed $wanted)
[ -n "$missing$absent" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then
    as_root="sudo -n"
  elif [ -z "$missing" ]; then
    exit 0
  else
    echo "install-deps: missing packages; run this line, then make again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
  fi
fi

echo "install-deps: installing$missing$absent"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  # shellcheck disable=SC2086  # as_root is empty or two words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null && return
  cat "$log" >&2
  echo "install-deps: apt-get $* failed" >&2
  return 1
}
# One broken list among several fails the update; the packages may still be in the others.
apt update || true
# shellcheck disable=SC2086  # the list is meant to split
[ -z "$missing" ] || apt install -y --no-install-recommends $missing || exit 1
for package in $absent; do
  apt install -y --no-install-recommends "$package" || echo "install-deps: goes on without $package" >&2
done
