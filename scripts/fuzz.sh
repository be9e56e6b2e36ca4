#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Runs every fuzz target for SECONDS (60) or for a number of executions, one line a target; exits 1 when one finds something.
# Usage: scripts/fuzz.sh [SECONDS|EXECUTIONSx] [TARGET...]      e.g. scripts/fuzz.sh 10 nvme_model
#                                                                    scripts/fuzz.sh 100000000x net_frame
set -eu

cd "$(dirname "$0")/.."
build=${DOORBELL_FUZZ_BUILD:-build-fuzz}
limit=${1:-60}
case ${limit%x} in
  '' | *[!0-9]*) echo "fuzz.sh: '$limit' is neither a whole number of seconds nor one of executions (10000x)" >&2; exit 1 ;;
esac
case $limit in
  *x) until=-runs=${limit%x} ;;
  *) until=-max_total_time=$limit ;;
esac
[ $# -gt 0 ] && shift
if ! command -v clang++ >/dev/null; then
  echo "fuzz.sh: clang++ is not here: apt-get install clang" >&2
  exit 77
fi
mkdir -p "$build"
# Another compiler has other warnings; they are not what is looked for here.
{ cmake --preset fuzz -B "$build" -DDOORBELL_WERROR=OFF && cmake --build "$build" --target doorbell_fuzz_targets; } >"$build/build.log" 2>&1 ||
  { tail -n 40 "$build/build.log" >&2; exit 1; }

found=0
for program in "$build"/fuzz/fuzz_*; do
  name=$(basename "$program")
  name=${name#fuzz_}
  if [ $# -gt 0 ]; then
    case " $* " in *" $name "*) ;; *) continue ;; esac
  fi
  corpus=$build/corpus/$name
  log=$build/fuzz/$name.log
  mkdir -p "$corpus" "$build/findings/$name"
  began=$(date +%s)
  if "$program" "$until" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
      -artifact_prefix="$build/findings/$name/" "$corpus" >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-18s ok       %s s, %s runs, %s inputs kept\n' "$name" "$(($(date +%s) - began))" "${runs:-?}" "$(ls "$corpus" | wc -l)"
  else
    found=1
    printf '%-18s FINDING  %s\n' "$name" "see $log and $build/findings/$name/"
    grep -E 'ERROR|SUMMARY|runtime error|Test unit written' "$log" | head -n 5 || true
  fi
done
exit $found
