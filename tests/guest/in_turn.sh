#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: runs cases one after the other in one boot. Each has a folder in $GUEST_OUT, named like it, for its
# results, what it said (`said`) and its exit code (`verdict`); tests/guest/verdict.sh reads them outside.
# Usage: in_turn.sh CASE+CASE...; a CASE is a script of tests/guest/cases, or SCRIPT:ARGUMENT, or `reset`: the machine is
#   reset as by its button, boots again (run.sh's --resets), and goes on behind that
# Exit code: 0 when every case has a verdict, whatever it is.
cases=$(cd "$(dirname "$0")" && pwd)/cases
out=$GUEST_OUT
case_seconds=240
. tests/guest/lib.sh

# A case finds every controller with the kernel's driver, as after a boot.
give_back_controllers() {
  local class address
  for class in $(grep -lx 0x010802 "$pci"/*/class); do
    address=$(basename "$(dirname "$class")")
    [ "$(driver_of "$address")" != vfio-pci ] || bind_kernel "$address" || echo "in_turn: $address does not go back to the kernel's driver"
  done
}

for case in ${1//+/ }; do
  script=${case%%:*}
  argument=${case#"$script"}
  argument=${argument#:}
  folder=$out/${case//:/_}
  [ ! -s "$folder/verdict" ] || continue
  mkdir -p "$folder"
  if [ "$case" = reset ]; then
    echo 0 >"$folder/verdict"
    touch "$out/.reset"
    exit 0
  fi
  # Messages that the last case left in the kernel's log are not this one's.
  dmesg --clear
  give_back_controllers >"$folder/said" 2>&1
  began=$(uptime_s)
  GUEST_OUT=$folder timeout --kill-after=5 $case_seconds "$cases/$script.sh" ${argument:+"$argument"} >>"$folder/said" 2>&1 </dev/null
  rc=$?
  [ $rc -ne 124 ] || echo "guest: no end after $case_seconds s" >>"$folder/said"
  echo $rc >"$folder/verdict"
  echo "$case: exit code $rc, from $began to $(uptime_s) s"
done
exit 0
