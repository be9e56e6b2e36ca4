#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Compiles each public header alone as CUDA, host and device pass. Usage: headers_cuda.sh NVCC INCLUDE SCRATCH
set -u
nvcc=$1
include=$2
scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
# compile HEADER: its messages, and its name when it does not compile
compile() {
  unit=$scratch/$(echo "$1" | tr / _).cu
  printf '#include <%s>\n#include <%s>\n' "$1" "$1" >"$unit"
  "$nvcc" -std=c++20 -arch=sm_90 -I "$include" -Werror all-warnings -Xcompiler -Wall,-Wextra -c "$unit" -o "$unit.o" ||
    echo "$1" >>"$scratch/failed"
}
running=0
for header in $(cd "$include" && find . -name '*.hpp' | sed 's|^\./||' | sort); do
  compile "$header" &
  running=$((running + 1))
  [ $((running % $(nproc))) -ne 0 ] || wait
done
wait
[ ! -e "$scratch/failed" ] || { echo "not self-contained as CUDA:" && cat "$scratch/failed"; exit 1; }
echo "$running headers compile alone"
