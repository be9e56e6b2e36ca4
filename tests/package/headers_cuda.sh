#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Compiles each public header alone as CUDA for the device, which parses its host code as well, and then all of them
# together for device and host. headers_alone compiles each alone for the host; a host pass by nvcc for each of them
# would take three times as long again. Usage: headers_cuda.sh NVCC INCLUDE SCRATCH
set -u
nvcc=$1
include=$2
scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
flags="-std=c++20 -arch=sm_90 -I $include -Werror all-warnings -Xcompiler -Wall,-Wextra"
all=$scratch/all_headers.cu
# compile HEADER: its messages, and its name when it does not compile
compile() {
  unit=$scratch/$(echo "$1" | tr / _).cu
  printf '#include <%s>\n#include <%s>\n' "$1" "$1" >"$unit"
  # shellcheck disable=SC2086
  "$nvcc" $flags -ptx "$unit" -o "$unit.ptx" || echo "$1" >>"$scratch/failed"
}
running=0
for header in $(cd "$include" && find . -name '*.hpp' | sed 's|^\./||' | sort); do
  printf '#include <%s>\n' "$header" >>"$all"
  compile "$header" &
  running=$((running + 1))
  [ $((running % $(nproc))) -ne 0 ] || wait
done
wait
[ ! -e "$scratch/failed" ] || { echo "not self-contained as CUDA:" && cat "$scratch/failed"; exit 1; }
# shellcheck disable=SC2086
"$nvcc" $flags -c "$all" -o "$all.o" || { echo "the headers do not compile together as CUDA"; exit 1; }
echo "$running headers compile alone"
