#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Builds and runs the tests, then says what passed, what failed and what was skipped, each by name.
# Usage: scripts/test.sh [all|release|asan|tsan]...
#   all      the default: release, the model tests under both sanitizers, and the quick lint checks
#   release  every test in build/
#   asan     every test under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan/
#   tsan     every test under ThreadSanitizer, in build-tsan/
# Environment: JOBS (compilations at a time), DOORBELL_GPU (AUTO, ON or OFF: GPU kernels in release),
#   DOORBELL_CUDA_ARCHITECTURES (which NVIDIA GPUs they are compiled for: "80;90").
# Exit code: 0, or 2 when something failed.
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
# Without it ccache passes over whatever uses a precompiled header, which is nearly everything.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
began=$SECONDS

# step NAME passed|failed|skipped REASON: what is no ctest case
step() { printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>"$results/steps.tsv"; }
say() { printf '\n== %s (at %d s)\n' "$1" $((SECONDS - began)); }

# build PRESET OPTIONS... [-- TARGETS...]
build() {
  local preset=$1 options=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -eq 0 ] || { shift; targets=(--target "$@"); }
  local launcher
  if launcher=$(command -v ccache); then
    options+=("-DCMAKE_C_COMPILER_LAUNCHER=$launcher" "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher")
  fi
  say "build $preset"
  if cmake --preset "$preset" -Wno-dev --log-level=STATUS -DDOORBELL_TESTS=ON "${options[@]}" >"$results/log" 2>&1; then
    grep -h 'GPU kernels' "$results/log"
  else
    cat "$results/log"
    step "build $preset" failed "cmake"
    return 1
  fi
  cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}" || { step "build $preset" failed; return 1; }
}

# run PRESET OPTIONS...: ctest in that preset's folder
run() {
  local preset=$1 folder=build
  shift
  [ "$preset" = release ] || folder=build-$preset
  say "test $preset"
  # One case at a time: many of them are a device thread and an initiator thread that time each other.
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --test-output-size-passed 4000000 \
        --output-junit "$results/$preset.xml" "$@" </dev/null
  # A failed case is in the file; only a ctest that wrote none needs a line of its own.
  [ -s "$results/$preset.xml" ] || step "test $preset" failed "ctest did not run"
}

release() {
  local gpu=("-DDOORBELL_GPU=${DOORBELL_GPU:-AUTO}")
  [ -z "${DOORBELL_CUDA_ARCHITECTURES:-}" ] || gpu+=("-DDOORBELL_CUDA_ARCHITECTURES=$DOORBELL_CUDA_ARCHITECTURES")
  build release "${gpu[@]}" && run release
}
sanitizer() { build "$1" && run "$1"; }
# The model tests are where threads and memory meet; the rest runs under sanitizers in `make asan` and `make tsan`.
models() {
  local preset=$1
  build "$preset" -- doorbell_model_tests && run "$preset" -L '^model$'
}

for what in "${@:-all}"; do
  case "$what" in
    all)
      release
      models tsan
      models asan
      say lint
      while IFS=$'\t' read -r name state reason; do step "lint: $name" "$state" "$reason"; done < <(scripts/lint.sh --quick --tsv)
      ;;
    release) release ;;
    asan | tsan) sanitizer "$what" ;;
    *) echo "usage: $0 [all|release|asan|tsan]..." >&2; exit 1 ;;
  esac
done

say "summary"
/usr/bin/python3 scripts/test-summary.py "$results"
