# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash

# The parts that the scripts of GPU cases share, their arguments included: DOORBELL OUT [WHAT]. Sourced with
# `path`, doorbell's command, set.
doorbell=$1
out=$2
# shellcheck disable=SC2034  # which cases: the scripts ask for it
what=${3:-all}
initiator=gpu
here=$(dirname "${BASH_SOURCE[0]}")
mkdir -p "$out"
failed=0
cases=0

# need_gpu OPTIONS... ends the script with 77 where there is none.
need_gpu() {
  timeout 60 "$doorbell" "$path" --initiator gpu --quiet "$@"
  if [ $? -eq 77 ]; then
    echo "skipped: no GPU"
    exit 77
  fi
}

# ended NAME WANTED_EXIT EXIT TEXT: counts a case.
ended() {
  cases=$((cases + 1))
  [ "$3" -eq "$2" ] && return
  failed=$((failed + 1))
  echo "FAILED $1: exit $3, wanted $2: $4 $(tail -n 3 "$out/$1.err")"
  summary "$1"
}

summary() {
  python3 "$here/summary.py" "$out/$1.json" | sed "s/^/$1: /"
}

# run NAME WANTED_EXIT OPTIONS...
run() {
  local name=$1 wanted=$2
  shift 2
  timeout -k 2 "${limit_s:-60}" "$doorbell" "$path" --initiator "$initiator" --quiet --json "$out/$name.json" "$@" \
    2>"$out/$name.err"
  ended "$name" "$wanted" $? "$*"
}

show() {
  run "$@"
  summary "$1"
}

conclude() {
  echo "$cases cases, $failed failed"
  [ "$failed" -eq 0 ] || exit 2
}
