#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The harness itself: whatever becomes of a guest, run.sh's exit status says so. A test that cannot fail is none.
# Exit code: 0, 2 when a case fails, 77 when this machine cannot boot a guest.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/prepare.sh"
rc=$?
[ $rc -eq 0 ] || exit $rc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# boots NAME WANTED_STATUS WANTED_TEXT LINES [run.sh's ARGUMENT]...: LINES are the script; the text must be printed. The guest has
# no controllers and no IOMMU, which take a tenth of a boot, but by an ARGUMENT.
boots() {
  local name=$1 wanted=$2 text=$3 lines=$4 began rc verdict=ok
  shift 4
  printf '#!/bin/bash\n%s\n' "$lines" >"$work/script.sh"
  chmod +x "$work/script.sh"
  began=$(date +%s%N)
  "$here/run.sh" "$work/script.sh" --timeout 60 --out "$work/out" --controllers none --iommu none "$@" >"$work/log" 2>&1
  rc=$?
  if [ $rc -ne "$wanted" ] || ! grep -q -e "$text" "$work/log"; then
    verdict=FAILED
    failed=$((failed + 1))
  fi
  printf '%-6s %-8s exit status %d, wanted %d; %d ms\n' "$verdict" "$name" $rc "$wanted" $((($(date +%s%N) - began) / 1000000))
  [ "$verdict" = ok ] || cat "$work/log"
}

# shellcheck disable=SC2016  # what is quoted is for the guest's shell
boots passes 0 'this is [6-9]' 'echo "this is $(uname -r)"; echo kept >"$GUEST_OUT/file"; echo lost >/lost-in-the-guest' --controllers all --iommu on
[ "$(cat "$work/out/file")" = kept ] || { echo "FAILED results: the file did not come back"; failed=$((failed + 1)); }
[ ! -e /lost-in-the-guest ] || { echo "FAILED isolation: the guest wrote to this machine"; failed=$((failed + 1)); }
boots fails 3 'exit status 3' 'exit 3'
boots crashes 100 'exit status 100' 'kill -SEGV $$'  # 139 is more than the harness carries
boots panics 200 'sysrq triggered crash' 'echo c >/proc/sysrq-trigger; sleep 60'
boots hangs 200 'no status after 6 s' 'sleep 1000' --timeout 6
boots vanishes 200 'never reported' '/bin/busybox poweroff -f; sleep 60'
boots shutdown 3 'exit status 3' 'exit 3' --end poweroff
# shellcheck disable=SC2016
boots resets 4 'exit status 4' '[ ! -e "$GUEST_OUT/once" ] || exit 4; touch "$GUEST_OUT/once"; echo b >/proc/sysrq-trigger; sleep 60' --resets once --timeout 150
boots circles 200 'never reported' 'echo b >/proc/sysrq-trigger; sleep 60' --resets once --timeout 150
boots badly 200 'no-such-device' 'exit 0' -- -device no-such-device
# A status that only one of the two ways tells is none.
boots lies 200 'never reported' 'echo 0 >"$GUEST_OUT/.status"; /bin/busybox poweroff -f; sleep 60'

[ $failed -eq 0 ] || { echo "$failed failed"; exit 2; }
