#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Makes a wheel of the Python package (docs/python.md), against the library of the build folder: only the extension module is
# compiled. Usage: scripts/wheel.sh [--dir FOLDER]
#   without an option  dist/doorbell-VERSION-...-manylinux_....whl
#   --dir FOLDER       the same in FOLDER (its wheels are replaced)
# Environment: BUILD, the build folder (build); PYTHON, the interpreter that the wheel is for (/usr/bin/python3).
# The wheel before libraries of this machine are put into it stays in BUILD/wheel/raw: Debian's package is made of it. The tools
# come from PyPI into BUILD/wheel/tools.
# Exit code: 0, or 1; 77 where the tools are not to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$(realpath "${BUILD:-build}")
python=${PYTHON:-/usr/bin/python3}
folder=dist
case "${1:-}" in
  "") ;;
  --dir) folder=${2:?usage: $0 [--dir FOLDER]} ;;
  *) echo "usage: $0 [--dir FOLDER]" >&2; exit 1 ;;
esac
[ -e "$build/whole/libdoorbell.a" ] || { echo "wheel: $build has no library: run make" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

work=$build/wheel
log=$work/log
mkdir -p "$work"
logged() { "$@" >"$log" 2>&1; }

# One folder of tools for each interpreter and list of tools.
tools=$work/tools
stamp=$tools/$("$python" -c 'import sys; print(sys.version_info[:2])' | tr -dc '0-9,')-$(cksum <packaging/wheel-tools.txt | tr ' ' -)
if [ ! -e "$stamp" ]; then
  rm -rf "$tools"
  logged "$python" -m venv "$tools" || skip "$python makes no virtual environment: install python3-venv"
  logged "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --require-virtualenv -r packaging/wheel-tools.txt ||
    { tail -n 3 "$log"; skip "pip cannot install packaging/wheel-tools.txt"; }
  touch "$stamp"
fi

prefix=$work/prefix
rm -rf "$prefix" "$work/raw"
for component in library runtime; do
  logged cmake --install "$build" --prefix "$prefix" --component $component || { cat "$log" >&2; exit 1; }
done
# The same compiler as the library's; it may be any that CMake takes.
compiler() { sed -n "s/^CMAKE_$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
settings=(--config-settings=cmake.source-dir=src/python "--config-settings=cmake.define.CMAKE_PREFIX_PATH=$prefix")
for name in C_COMPILER CXX_COMPILER CXX_COMPILER_LAUNCHER; do
  value=$(compiler $name)
  [ -z "$value" ] || settings+=("--config-settings=cmake.define.CMAKE_$name=$value")
done
PATH=$tools/bin:$PATH logged "$tools/bin/python" -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$work/raw" "${settings[@]}" . || { cat "$log" >&2; echo "wheel: pip failed" >&2; exit 1; }

mkdir -p "$folder"
rm -f "$folder"/doorbell-*.whl
PATH=$tools/bin:$PATH logged "$tools/bin/python" -m auditwheel repair --wheel-dir "$folder" "$work"/raw/doorbell-*.whl ||
  { cat "$log" >&2; echo "wheel: auditwheel failed" >&2; exit 1; }
(cd "$folder" && stat -c '%n: %s bytes' doorbell-*.whl)
