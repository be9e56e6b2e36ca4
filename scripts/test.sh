#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Builds and runs the tests, then says what passed, what failed and what was skipped, each by name.
# Usage: scripts/test.sh [test|all|release|asan|tsan|long]...
#   test     the default: the tests in build/ but those of packages, QEMU, the browser, hostile clients and the label
#            long, and the quick lint checks
#   all      release, the model tests under both sanitizers, and the quick lint checks
#   release  every test in build/
#   asan     every test under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan/
#   tsan     every test under ThreadSanitizer, in build-tsan/
#   long     asan, tsan, the model tests 20 times while three busy loops run, a minute of clients of the daemon
#            that are killed, and 300 random runs of each path
# Environment: JOBS (compilations and tests at a time), DOORBELL_GPU (AUTO, ON or OFF: GPU kernels in release),
#   DOORBELL_CUDA_ARCHITECTURES (which NVIDIA GPUs they are compiled for; in a fresh folder 90 where none is here,
#   else "80;90").
# Exit code: 0, or 2 when something failed.
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
# The labels that only `all` has.
later='^(guest|package|emulated|browser|hostile|long)$'
# Without it ccache passes over whatever uses a precompiled header, which is nearly everything.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
results=$(mktemp -d)
helpers=()
cleanup() {
  # Each leads a group of its own: the compilers that it has started go with it.
  local leader
  for leader in "${helpers[@]}"; do kill -- "-$leader" 2>/dev/null; done
  rm -rf "$results"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
began=$SECONDS

# step NAME passed|failed|skipped REASON: what is no ctest case
step() { printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>"$results/steps.tsv"; }
say() { printf '\n== %s (at %d s)\n' "$1" $((SECONDS - began)); }
folder_of() { [ "$1" = release ] && echo build || echo "build-$1"; }

# build PRESET OPTIONS... [-- TARGETS...]
build() {
  local preset=$1 options=() targets=() launcher log=$results/configure-$1.log
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -eq 0 ] || { shift; targets=(--target "$@"); }
  if launcher=$(command -v ccache); then
    options+=("-DCMAKE_C_COMPILER_LAUNCHER=$launcher" "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher")
  fi
  say "build $preset"
  if cmake --preset "$preset" -Wno-dev --log-level=STATUS -DDOORBELL_TESTS=ON "${options[@]}" >"$log" 2>&1; then
    grep -h 'GPU kernels' "$log"
  else
    cat "$log"
    step "build $preset" failed "cmake"
    return 1
  fi
  cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}" || { step "build $preset" failed; return 1; }
}

# processors: those of this machine, with three places each, as ctest hands them out (tests/one_processor.cpp)
processors() {
  /usr/bin/python3 - <<'PYTHON'
import json
import os

given = [{"id": str(n), "slots": 3} for n in sorted(os.sched_getaffinity(0))]
print(json.dumps({"version": {"major": 1, "minor": 0}, "local": [{"processors": given}]}))
PYTHON
}

# run PRESET OPTIONS...: ctest in that preset's folder. What needs two processors says so, and what must run alone. Three tests
# a processor: many wait for a deadline or for each other. A later `--parallel` in OPTIONS holds. With `anywhere` set, the
# threads of a model test go to any processor, not all of them to one.
run() {
  local preset=$1 folder places=()
  shift
  folder=$(folder_of "$preset")
  say "test $preset"
  # Results that an earlier run left here are none of this one's.
  rm -rf "$folder/test-results"
  if [ -z "${anywhere:-}" ]; then
    processors >"$results/processors.json"
    places=(--resource-spec-file "$results/processors.json")
  fi
  ctest --test-dir "$folder" --parallel $((jobs * 3)) "${places[@]}" --output-on-failure --no-tests=error --test-output-size-passed 4000000 \
        --output-junit "$results/$preset.xml" "$@" </dev/null
  [ ! -d "$folder/test-results" ] || cp -r "$folder/test-results" "$results/$preset"
  # A failed case is in the file; only a ctest that wrote none needs a line of its own.
  [ -s "$results/$preset.xml" ] || step "test $preset" failed "ctest did not run"
}

# set_aside NAME: the results of `run release` stay, as those of NAME, when it runs once more.
set_aside() {
  mv "$results/release.xml" "$results/release-$1.xml"
  [ ! -d "$results/release" ] || mv "$results/release" "$results/release-$1"
}

build_release() {
  local gpu=("-DDOORBELL_GPU=${DOORBELL_GPU:-AUTO}")
  # Where no GPU runs the kernels, a second one's code takes a minute for nothing.
  if [ ! -e build/CMakeCache.txt ] && [ ! -e /dev/nvidiactl ]; then : "${DOORBELL_CUDA_ARCHITECTURES:=90}"; fi
  [ -z "${DOORBELL_CUDA_ARCHITECTURES:-}" ] || gpu+=("-DDOORBELL_CUDA_ARCHITECTURES=$DOORBELL_CUDA_ARCHITECTURES")
  build release "${gpu[@]}"
}
every_release_test() {
  run release -LE "$later"
  set_aside test
  # Beside the guest, which keeps one processor busy, runs what needs two.
  run release -L "$later" --parallel $((jobs + 1))
}
# Here threads meet as they do on several processors.
sanitizer() { build "$1" && anywhere=1 run "$1" --parallel $((jobs + 1)); }

# beside NAME COMMAND...: runs it in the background with what processor time the tests leave; `join NAME` waits for it,
# prints what it said and has its exit status.
declare -A beside_pid
beside() {
  local name=$1
  shift
  set -m
  (renice -n 19 $BASHPID >/dev/null; "$@") >"$results/$name.said" 2>&1 </dev/null &
  beside_pid[$name]=$!
  helpers+=($!)
  set +m
}
join() {
  wait "${beside_pid[$1]}"
  local rc=$?
  cat "$results/$1.said"
  return $rc
}

lint() {
  say lint
  while IFS=$'\t' read -r name state reason; do step "lint: $name" "$state" "$reason"; done < <(scripts/lint.sh --quick --tsv)
}
# The model tests are where threads and memory meet; the rest runs under sanitizers in `make asan` and `make tsan`.
build_models() {
  build "$1" -- doorbell_model_tests
}
sanitized_models() {
  local preset
  for preset in tsan asan; do
    build_models $preset && touch "$results/$preset.built"
    touch "$results/$preset.done"
  done
}
# await FILE PID: until the file is there or the process is gone
await() { while [ ! -e "$1" ] && kill -0 "$2" 2>/dev/null; do sleep 0.5; done; }

everything() {
  local preset built
  build_release
  built=$?
  # Tests wait for devices, guests and each other; the compilers of what comes next use that time.
  beside lint lint
  beside sanitizers sanitized_models
  [ $built -ne 0 ] || every_release_test
  for preset in tsan asan; do
    await "$results/$preset.done" "${beside_pid[sanitizers]}"
    if [ -e "$results/$preset.built" ]; then run $preset -L '^model$'; fi
  done
  join sanitizers
  join lint
}
busy_models() {
  build_release || return
  local pids=() pid
  set -m
  for _ in 1 2 3; do
    (while :; do :; done) &
    pids+=($!)
  done
  set +m
  helpers+=("${pids[@]}")
  anywhere=1 run release -L '^model$' --repeat until-fail:20 --parallel $((jobs + 1))
  for pid in "${pids[@]}"; do kill -- "-$pid"; done
  set_aside 20-times-busy
}

# Clients of the daemon that are killed at random, for a minute; `release` has a few seconds of it.
storm() {
  [ -e build/tests/qdma/qdma_daemon_process_test_suites.cmake ] ||
    { step "storm of killed clients" skipped "doorbelld is not built here"; return; }
  DOORBELL_STORM_S=60 run release -R '^qdma_daemon_process_test\.DaemonStorm$'
  set_aside storm
}

# Random options and faults; what each run says is recomputed. `release` has ten of each path.
random_runs() {
  local path
  for path in nvme rdma cxi net qdma veth peers; do
    say "300 random runs of $path"
    if tests/cli/random_runs.py --doorbell build/bin/doorbell --path "$path" --count 300 --seed 1; then
      step "300 random runs of $path" passed
    else
      step "300 random runs of $path" failed "what does not add up stands above"
    fi
  done
}

for what in "${@:-test}"; do
  case "$what" in
    all) everything ;;
    test) build_release && { beside lint lint; run release -LE "$later"; join lint; } ;;
    release) build_release && every_release_test ;;
    asan | tsan) sanitizer "$what" ;;
    long) sanitizer asan; sanitizer tsan; busy_models && { storm; random_runs; } ;;
    *) echo "usage: $0 [test|all|release|asan|tsan|long]..." >&2; exit 1 ;;
  esac
done

say "summary"
/usr/bin/python3 scripts/test-summary.py "$results"
