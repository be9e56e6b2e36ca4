#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Installs NVIDIA's CUDA compiler into build-tools/cuda, from the wheels that NVIDIA publishes on PyPI,
# for machines without the CUDA toolkit. Needs python3 with pip or venv (Debian: python3-venv), g++ and
# 300 MB. Nothing outside build-tools/ changes. Usage: scripts/fetch-nvcc.sh [FOLDER]
set -eu

# CUDA 13.0 kernels load with every driver from 580 on. The pins keep two builds the same.
version=13.0.88
packages="nvidia-cuda-nvcc==$version nvidia-cuda-crt==$version nvidia-nvvm==$version
          nvidia-cuda-runtime==$version"

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/build-tools/cuda}

fail() {
  echo "fetch-nvcc: $1" >&2
  exit 1
}

# Prints the installed compiler's path; fails when there is none or it cannot compile a kernel.
working_nvcc() {
  nvcc=$(find "$folder/nvidia" -path '*/bin/nvcc' -print 2>/dev/null | head -n 1)
  [ -n "$nvcc" ] || return 1
  scratch=$(mktemp -d)
  cat > "$scratch/check.cu" <<'EOF'
#include <cstdint>
extern "C" __global__ void check(std::uint32_t* p) { p[threadIdx.x] = __popc(threadIdx.x); }
EOF
  if "$nvcc" -std=c++20 -O3 --fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
      -gencode arch=compute_90,code=compute_90 "$scratch/check.cu" -o "$scratch/check.fatbin" \
      >"$scratch/log" 2>&1 && [ -s "$scratch/check.fatbin" ]; then
    rm -r "$scratch"
    echo "$nvcc"
  else
    cat "$scratch/log" >&2
    rm -r "$scratch"
    return 1
  fi
}

command -v g++ >/dev/null || fail "nvcc needs a host compiler: install g++"
if [ -f "$folder/version" ] && [ "$(cat "$folder/version")" = "$version" ] && nvcc=$(working_nvcc); then
  echo "fetch-nvcc: $nvcc $version is here already"
  exit 0
fi

# Debian's own interpreter first: a pyenv or conda python may lack pip's certificates or be too new.
python=
for candidate in /usr/bin/python3 python3; do
  if command -v "$candidate" >/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || fail "python3 is missing: install python3 and python3-venv"

# pip installs into a folder of ours (--target), never into the system's python; where only venv is
# there, a throw-away environment brings pip along.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! "$python" -m pip --version >/dev/null 2>&1; then
  "$python" -m venv "$work/venv" >/dev/null 2>&1 ||
    fail "$python has neither pip nor venv: install python3-venv or python3-pip"
  python=$work/venv/bin/python3
fi

rm -rf "$folder"
mkdir -p "$folder"
echo "fetch-nvcc: installing nvcc $version into $folder"
# shellcheck disable=SC2086  # the list is meant to split
"$python" -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore \
    --only-binary=:all: --no-deps --target "$folder" $packages ||
  fail "pip could not install $packages"
nvcc=$(working_nvcc) || fail "the installed compiler cannot compile a kernel (its messages are above)"
echo "$version" > "$folder/version"
echo "fetch-nvcc: $nvcc works"
