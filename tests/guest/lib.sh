# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Functions for the scripts that run inside the guest (tests/guest/cases). Source it first: `. tests/guest/lib.sh`; end
# with `finish`. NEVER run these scripts on a machine of your own: they unbind drivers and destroy data.

[ -n "${GUEST_OUT:-}" ] || { echo "this runs inside the guest only: tests/guest/run.sh" >&2; exit 1; }
doorbell=${DOORBELL:-build/bin/doorbell}
pci=/sys/bus/pci/devices
shopt -s nullglob
guest_failed=0
guest_checks=0

uptime_s() { cut -d' ' -f1 /proc/uptime; }

# ok TEXT, not_ok TEXT: one check each
ok() { guest_checks=$((guest_checks + 1)); echo "ok     $1"; }
not_ok() { guest_checks=$((guest_checks + 1)); guest_failed=$((guest_failed + 1)); echo "FAILED $1"; }

# finish: ends the script; no checks at all is a failure too
finish() {
  echo "$((guest_checks - guest_failed)) passed, $guest_failed failed; up $(uptime_s) s"
  [ $guest_failed -eq 0 ] && [ $guest_checks -gt 0 ] && exit 0
  exit 2
}

# within SECONDS COMMAND...: repeats the command until it succeeds; false when the time is over
within() {
  local until=$((SECONDS + $1 + 1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.05
  done
}

# exits WANTED NAME COMMAND...: runs it, output to $GUEST_OUT/NAME.log; one check. True when the exit code is as wanted.
exits() {
  local wanted=$1 name=$2 rc
  shift 2
  "$@" >"$GUEST_OUT/$name.log" 2>&1
  rc=$?
  if [ $rc -eq "$wanted" ]; then
    ok "$name: exit code $rc"
  else
    not_ok "$name: exit code $rc, wanted $wanted: $*"
    tail -n 20 "$GUEST_OUT/$name.log"
    return 1
  fi
}

# says NAME WORDS: the output of NAME, which `exits` kept, has these words; one check
says() {
  if grep -qiE -e "$2" "$GUEST_OUT/$1.log"; then
    ok "$1: says '$2'"
  else
    not_ok "$1: does not say '$2':"
    cat "$GUEST_OUT/$1.log"
  fi
}

# --- finding controllers: only the kernel's driver knows serial numbers, so all are looked up before any is unbound --
declare -A address_of_serial

probed() {
  local devices controller
  devices=$(grep -lx 0x010802 "$pci"/*/class | wc -l)
  for controller in /sys/class/nvme/nvme*; do
    [ "$(cat "$controller/state" 2>/dev/null)" = live ] && devices=$((devices - 1))
  done
  [ $devices -eq 0 ]
}

# find_controllers: fills the table; false when the kernel's driver does not get through in 20 s
find_controllers() {
  local controller serial
  modprobe nvme && within 20 probed || return 1
  for controller in /sys/class/nvme/nvme*; do
    serial=$(tr -d ' ' <"$controller/serial")
    address_of_serial[$serial]=$(cat "$controller/address")
  done
}

# address_of SERIAL: its PCI address, e.g. 0000:00:03.0
address_of() {
  echo "${address_of_serial[$1]:?no controller has the serial number $1}"
}

# block_device_of SERIAL: e.g. /dev/nvme0n1, while the kernel's driver has it
block_device_of() {
  local found
  # With native multipath the name has the controller's number in it: nvme0c0n1 is /dev/nvme0n1.
  for found in "$pci/$(address_of "$1")"/nvme/nvme*/nvme*n[0-9]*; do
    found=$(basename "$found" | sed -E 's/c[0-9]+//')
    [ -b "/dev/$found" ] && echo "/dev/$found" && return
  done
  return 1
}

driver_of() { basename "$(readlink "$pci/$1/driver" 2>/dev/null)"; }

# --- binding ----------------------------------------------------------------------------------------------
vfio_modules() { modprobe -a vfio-pci vfio_iommu_type1; }

# bind_vfio ADDRESS: takes it from the kernel's driver, as a user would; by hand in a program without `bind`
bind_vfio() {
  vfio_modules
  if "$doorbell" help bind >/dev/null 2>&1; then
    "$doorbell" bind "$1" || return 1
  else
    echo vfio-pci >"$pci/$1/driver_override"
    [ ! -e "$pci/$1/driver" ] || echo "$1" >"$pci/$1/driver/unbind"
    echo "$1" >/sys/bus/pci/drivers_probe
  fi
  [ "$(driver_of "$1")" = vfio-pci ]
}

# bind_kernel ADDRESS: gives it back to the kernel's driver
bind_kernel() {
  echo >"$pci/$1/driver_override"
  [ ! -e "$pci/$1/driver" ] || echo "$1" >"$pci/$1/driver/unbind"
  echo "$1" >/sys/bus/pci/drivers_probe
  [ "$(driver_of "$1")" = nvme ]
}

# --- configuration space: setpci may not be there ---------------------------------------------------------
# config_write ADDRESS OFFSET BYTES: BYTES as \ooo or \xhh, lowest first
config_write() {
  # shellcheck disable=SC2059  # the format is the bytes
  printf "$3" | dd of="$pci/$1/config" bs=1 seek="$2" conv=notrunc status=none
}
# config_read ADDRESS OFFSET COUNT: hexadecimal bytes, lowest first, e.g. "06 04"
config_read() { od -An -tx1 -v -j "$2" -N "$3" "$pci/$1/config" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'; }
# pcie_capability ADDRESS: offset of its PCI Express capability
pcie_capability() {
  local at header
  at=$((16#$(config_read "$1" 52 1)))
  while [ $at -ne 0 ]; do
    header=$(config_read "$1" $at 2)
    [ "${header% *}" != 10 ] || { echo $at; return; }
    at=$((16#${header#* }))
  done
  return 1
}

# --- runs that something happens to -----------------------------------------------------------------------
has_initiator() { grep -qs '^initiator-' "/proc/$1/task"/*/comm; }

# start_run NAME OPTIONS...: `doorbell nvme` in the background; comes back when its initiator has worked a while
start_run() {
  local name=$1
  shift
  rm -f "$GUEST_OUT/$name.json"
  "$doorbell" nvme --quiet --json "$GUEST_OUT/$name.json" "$@" >"$GUEST_OUT/$name.log" 2>&1 &
  run_pid=$!
  if ! within 30 has_initiator "$run_pid"; then
    not_ok "$name: no initiator thread in 30 s"
    cat "$GUEST_OUT/$name.log"
    kill -KILL "$run_pid" 2>/dev/null
    wait "$run_pid" 2>/dev/null
    return 1
  fi
  sleep 0.5
}

gone() { [ ! -e "/proc/$1" ] || [ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" = Z ]; }

# ends_with WANTED NAME SECONDS: what start_run started ends within that time with this exit code; one check
ends_with() {
  local wanted=$1 name=$2 limit=$3 rc began
  began=$(date +%s%N)
  if ! within "$limit" gone "$run_pid"; then
    not_ok "$name: still running after $limit s"
    kill -KILL "$run_pid"
    wait "$run_pid" 2>/dev/null
    return 1
  fi
  wait "$run_pid"
  rc=$?
  if [ $rc -eq "$wanted" ]; then
    ok "$name: exit code $rc after $((($(date +%s%N) - began) / 1000000)) ms"
  else
    not_ok "$name: exit code $rc, wanted $wanted"
    cat "$GUEST_OUT/$name.log"
    return 1
  fi
}

# result NAME EXPRESSION...: Python expressions over the Result `r` and its cell `c` that must be true; a check each
result() {
  local name=$1 said
  shift
  said=$(/usr/bin/python3 - "$GUEST_OUT/$name.json" "$@" <<'PYTHON'
import json
import sys

try:
    r = json.load(open(sys.argv[1], encoding="utf-8"))
    c = r["cells"][0]
except (OSError, ValueError, LookupError) as error:
    print(f"not_ok no Result: {error!r}")
    sys.exit()
for text in sys.argv[2:]:
    try:
        good = eval(text)
    except (LookupError, TypeError) as error:
        good = f"{error!r}"
    if good is True:
        print("ok", text)
    else:
        print(f"not_ok {text} is {good}: stop_reason {r.get('stop_reason')}, errors {c.get('errors')}, "
              f"statuses {c.get('nvme', {}).get('completion_statuses')}, verify {c.get('verify')}")
PYTHON
  )
  while read -r verdict text; do "$verdict" "$name: $text"; done <<<"${said:-not_ok no answer}"
}
