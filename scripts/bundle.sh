#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Packs the built program with its libraries, for a machine where nothing is installed: it needs
# glibc 2.36 or newer and, for its GPU, the GPU's driver. Usage: scripts/bundle.sh [--dir FOLDER]
#   without an option  dist/doorbell-VERSION-linux-ARCH.tar.gz
#   --dir FOLDER       the same, unpacked, in FOLDER (replaced)
# sbom.cdx.json in it, and beside the archive, says what it is made of (scripts/sbom.py).
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
max_bytes=60000000
folder=
case "${1:-}" in
  "") ;;
  --dir) folder=${2:?usage: $0 [--dir FOLDER]} ;;
  *) echo "usage: $0 [--dir FOLDER]" >&2; exit 1 ;;
esac

fail() {
  echo "bundle: $1" >&2
  exit 1
}
[ -x $build/bin/doorbell ] || fail "$build/bin/doorbell is missing: run make"
version=$($build/bin/doorbell --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
name=doorbell-$version-linux-$(uname -m)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
cmake --install $build --prefix "$root" --component program --strip >/dev/null
# The DPDK plugin loads DPDK's drivers from where DPDK is installed, and so works there only.
rm -f "$root"/lib*/doorbell/doorbell_dpdk.so "$root"/lib/*/doorbell/doorbell_dpdk.so
find "$root" -type d -empty -delete

# needed FILE: "NAME PATH" of each library that it loads, glibc's own and the loader left out
needed() {
  ldd "$1" | awk '$2 == "=>" {print $1, $3}' |
    grep -vE '^(linux-vdso|ld-linux[^ ]*|lib(c|m|mvec|dl|rt|pthread|resolv|util|nss_[a-z]+|anl|BrokenLocale|thread_db))\.so'
}
mkdir -p "$root/lib"
needed "$root/bin/doorbell" >"$work/libraries"
while read -r soname path; do
  [ -f "$path" ] || fail "$soname is not found"
  cp -L "$path" "$root/lib/$soname"
done <"$work/libraries"
revision=$($build/bin/doorbell --version | sed -nE '1s/.*\(([^,]*),.*/\1/p')
seconds=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct "${revision%-dirty}" 2>/dev/null || stat -c %Y CMakeLists.txt)}
/usr/bin/python3 scripts/sbom.py "$root" "$revision" "$seconds" <"$work/libraries"

# The packed program, on its own, in an empty environment.
cleanly() { env -i PATH=/usr/bin:/bin HOME="$work" "$root/bin/doorbell" "$@"; }
if env -i ldd "$root/bin/doorbell" | grep -iE 'cuda|nvidia|amdhip|hsa-runtime|ze_loader'; then
  fail "the program links a GPU library"
fi
outside=$(env -i /usr/bin/ldd "$root/bin/doorbell" | awk '$2 == "=>" {print $1, $3}' | grep -vF " $root/" |
  grep -vE '^(lib(c|m|mvec|dl|rt|pthread|resolv)\.so)' || true)
[ -z "$outside" ] || fail "these libraries would come from the machine: $outside"
for file in "$root/bin/doorbell" "$root"/lib/*.so*; do
  newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [ "$(printf '%s\nGLIBC_2.36\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.36 ] ||
    fail "$(basename "$file") needs $newest, newer than glibc 2.36"
done
env -i PATH=/usr/bin:/bin "$root/bin/cxi_gpu_loopback_bw" -d cxi-model0 -i 1 -n 16 >/dev/null ||
  fail "the packed program does not run as cxi_gpu_loopback_bw"
cleanly nvme --write-io 1000 --read-io 1000 --quiet || fail "the packed program does not run"
# The examples of `doorbell sweep --help`, from a folder that has nothing to do with the bundle.
(cd "$work" && cleanly sweep plans/nvme-modes.yaml --list >/dev/null) || fail "the packed plans are not found"

cat >"$root/README" <<EOF
doorbell $version for Linux on $(uname -m), glibc 2.36 or newer. Nothing needs to be installed:

    bin/doorbell doctor      what this machine has
    bin/doorbell demo        every path on its model; on a machine with a GPU, from the GPU too
    bin/cxi_gpu_loopback_bw -d cxi-model0    a Cassini NIC's loopback bandwidth, here on its model
    bin/doorbell sweep plans/nvme-modes.yaml --out results/modes    a plan of share/doorbell/plans

    PYTHONPATH=share/doorbell/python python3 -m doorbell_report results/modes -o report.html

Reports, that of \`demo\` too, need python3 and python3-jinja2 (and python3-matplotlib for their pictures). Manual: man -l share/man/man1/doorbell.1
EOF

if [ -n "$folder" ]; then
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  mv "$root" "$folder"
  echo "$folder: $(du -sh "$folder" | cut -f1), run $folder/bin/doorbell"
else
  mkdir -p dist
  archive=dist/$name.tar.gz
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$archive" "$name"
  bytes=$(stat -c %s "$archive")
  [ "$bytes" -lt $max_bytes ] || fail "$archive has $bytes bytes, more than $max_bytes"
  cp "$root/sbom.cdx.json" dist/$name.sbom.cdx.json
  echo "$archive: $bytes bytes, unpacked $(du -sh "$root" | cut -f1)"
fi
