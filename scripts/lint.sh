#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Checks the sources: licence headers, ASCII, generated files under version control, layers,
# formatting, clang-tidy. Usage: scripts/lint.sh [--quick] [--tsv]
#   --quick  without clang-tidy, which takes minutes
#   --tsv    prints NAME, passed|failed|skipped, REASON a line instead of a sentence; findings go to stderr
# Exit code: 0, or 2 with findings. A check whose tool is missing is skipped and named.
set -uo pipefail
cd "$(dirname "$0")/.."

quick=false
tsv=false
for option in "$@"; do
  case "$option" in
    --quick) quick=true ;;
    --tsv) tsv=true ;;
    *) echo "usage: $0 [--quick] [--tsv]" >&2; exit 1 ;;
  esac
done

failed=0
# report NAME passed|failed|skipped REASON
report() {
  [ "$2" != failed ] || failed=1
  if $tsv; then printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}"; else echo "$1: $2${3:+ ($3)}"; fi
}
# verdict NAME FINDINGS: FINDINGS is text, a line each; none is a pass
verdict() {
  if [ -z "$2" ]; then
    report "$1" passed
  else
    printf '%s\n' "$2" >&2
    report "$1" failed "$(printf '%s\n' "$2" | wc -l) findings"
  fi
}

# New files count before they are added, deleted ones no longer.
mapfile -t files < <(git ls-files --cached --others --exclude-standard | sort -u | while read -r f; do [ -f "$f" ] && echo "$f"; done)
# matching PATTERN: those of the files whose path matches
matching() { printf '%s\n' "${files[@]}" | grep -E "$1"; }

mapfile -t code < <(matching '(\.(cpp|hpp|cu|c|h|py|sh|cmake|cmake\.in|pc\.in)|(^|/)(CMakeLists\.txt|Makefile)|^\.ci/run)$')
mapfile -t cxx < <(matching '\.(cpp|hpp|cu)$')

# Two lines at the top, a #! line before them allowed; // or #, whatever the language takes.
verdict "licence headers" "$(for f in "${code[@]}"; do
  head -n 3 "$f" | grep -v '^#!' | head -n 2 | tr -d '\n' |
    grep -qE '^(//|#) SPDX-FileCopyrightText: [0-9]{4} The doorbell authors(//|#) SPDX-License-Identifier: Apache-2\.0$' ||
    echo "$f:1: the two SPDX lines are missing"
done)"

verdict "ASCII" "$(LC_ALL=C grep -nP '[^\x00-\x7f]' "${code[@]}" | cut -c1-120)"
verdict "white space" "$(grep -nE '[[:blank:]]+$' "${code[@]}" | cut -c1-120)"
# One type of JSON values: its templates are compiled once (src/system/json_instances.hpp), those of another wherever it is used.
verdict "ordered_json" "$(grep -nE 'nlohmann::json\b' "${cxx[@]}" | grep -v '^cmake/json_first.hpp:' | cut -c1-120)"
# Files that a build or a run makes do not belong into the repository; of binaries, only pictures do.
verdict "generated files" "$(git ls-files | grep -E '(^|/)(build[^/]*|results/demo-[^/]*|dist|__pycache__)/'
  git ls-files -z | xargs -0 -r grep -ILs . | grep -vE '\.(png|jpg|ico)$')"

# Results are kept for what documents quote, in the form of a sweep.
verdict "results" "$(matching '^results/[^/]+/' | grep -v '^results/demo-' | cut -d/ -f2 | sort -u | while read -r folder; do
  kept=$(matching "^results/$folder/" | cut -d/ -f3- | grep -vxE '(beside\.csv|plan\.json)' | sort | tr '\n' ' ')
  [ "$kept" = "plan.yaml results.jsonl runs.csv " ] || echo "results/$folder: has $kept: plan.yaml, results.jsonl and runs.csv, please"
  grep -qF "results/$folder" README.md CHANGELOG.md docs/*.md docs/history/*.md || echo "results/$folder: no document quotes it"
done)"

# An example must not reach a machine that somebody has: documentation addresses (192.0.2.x, 2001:db8::) or words.
mapfile -t shown < <(matching '^(README\.md|(docs|plans|src|python|scripts|bench|examples)/)' | grep -v '^scripts/lint\.sh$')
verdict "private addresses" "$(grep -nIP '(?<![\d.])(10\.\d+|192\.168|172\.(1[6-9]|2\d|3[01]))\.\d+\.\d+(?![\d.])|(?<![\w:])(f[cd][0-9a-f]{2}|fe80):[0-9a-f:]' \
  "${shown[@]}" | cut -c1-120)"

# Which part may include which: docs/architecture.md has the table.
verdict "layers" "$(scripts/layers.py 2>&1)"

if command -v clang-format >/dev/null; then
  verdict "formatting" "$(clang-format --dry-run -Werror "${cxx[@]}" 2>&1 |
    sed -nE 's/^([^:]+):[0-9]+:[0-9]+: error:.*/\1: make format changes it/p' | sort -u)"
else
  report "formatting" skipped "clang-format is not installed"
fi

if ! $quick; then
  if command -v clang-tidy >/dev/null; then
    # A configuration of clang's own, never built: it writes the compile commands that clang-tidy reads.
    cmake -S . -B build-tidy -G Ninja -Wno-dev -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DDOORBELL_GPU=OFF \
      -DDOORBELL_TESTS=OFF -DDOORBELL_BENCH=ON -DDOORBELL_PCH=OFF >/dev/null || exit 1
    mapfile -t units < <(matching '^(src|bench)/.*\.cpp$')
    verdict "clang-tidy" "$(printf '%s\0' "${units[@]}" |
      xargs -0 -P "${JOBS:-$(nproc)}" -n 1 clang-tidy -p build-tidy --quiet 2>/dev/null |
      grep -E ': (error|warning):' | sort -u)"
  else
    report "clang-tidy" skipped "clang-tidy is not installed"
  fi
fi
[ $failed -eq 0 ] || exit 2
