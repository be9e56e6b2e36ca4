#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: a sector that cannot be read, and a controller that is reset, switched off or taken away while
# commands are in flight. Every run must end by its deadline, with exit code 2 and a Result of what was done.
. tests/guest/lib.sh

find_controllers || { not_ok "the kernel's driver does not bring the controllers up"; finish; }
address=$(address_of mediaerr)
victim=$(address_of victim)
bind_vfio "$address" || not_ok "mediaerr: bind"
bind_vfio "$victim" || not_ok "victim: bind"

echo "== a bad sector (up $(uptime_s) s)"
# nvme NAME OPTIONS...: arguments of a verified run on `address`
nvme() { echo "$doorbell" nvme --controller "$address" --allow-write --quiet --json "$GUEST_OUT/$1.json" --late-after 5; }
# shellcheck disable=SC2046  # words
{
  exits 2 media-blocks $(nvme media-blocks) --base-lba 4000 --write-io 200 --read-io 200 --batch-size 4
  exits 2 media-pages $(nvme media-pages) --base-lba 4000 --write-io 25 --read-io 25 --lbas-per-io 8
  exits 0 media-beside $(nvme media-beside) --base-lba 4097 --write-io 200 --read-io 200 --batch-size 4
}
result media-blocks 'c["nvme"]["completion_statuses"] == {"Unrecovered Read Error": 1}' 'c["errors"]["completion"] == 1' \
  'c["verify"]["checked"] == 199' 'r["complete"]' 'c["verify"]["corrupt"] + c["verify"]["missing"] == 0'
result media-pages 'c["nvme"]["completion_statuses"] == {"Unrecovered Read Error": 1}' 'c["verify"]["checked"] == 24'

# Each fault below is followed by a run that must pass: whatever happened, the next user finds a working controller.
run=(--controller "$victim" --allow-write --infinite --num-queues 2 --batch-size 4 --timeout 2 --late-after 2)
deadline=15 # the 2 s, and time for an emulated machine to clean up
partial=('not r["complete"]' 'r["exit_code"] == 2' 'c["metrics"]["ops"] > 0' 'c["verify"]["corrupt"] == 0')
recovers() { # NAME
  exits 0 "after-$1" "$doorbell" nvme --controller "$victim" --allow-write --quiet --write-io 100 --read-io 100 --late-after 5
}

echo "== reset by somebody else (up $(uptime_s) s)"
start_run reset "${run[@]}" && {
  echo 1 >"$pci/$victim/reset"
  ends_with 2 reset $deadline
  result reset "${partial[@]}" 'r["stop_reason"] in ("reset", "removed", "timeout")'
}
recovers reset

echo "== memory decoding switched off (up $(uptime_s) s)"
# QEMU answers reads of nothing with zeros, real machines with ones: the next case does that.
start_run decoding-off "${run[@]}" && {
  config_write "$victim" 4 '\0\0'
  ends_with 2 decoding-off $deadline
  result decoding-off "${partial[@]}" 'r["stop_reason"] in ("reset", "removed", "timeout")'
}
recovers decoding-off

echo "== all registers read as ones (up $(uptime_s) s)"
# The memory of an ivshmem device, full of ones, is laid over the controller's registers: of two devices at one address
# QEMU takes the one that was switched on last.
ones_device=$(basename "$(dirname "$(grep -lx 0x1110 "$pci"/*/device)")")
registers=$(awk 'NR == 1 {print $1}' "$pci/$victim/resource")
low=$((registers & 0xfff00000))
config_write "$ones_device" 4 '\0\0'
config_write "$ones_device" 24 "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x\\0\\0\\0\\0' $((low & 255)) $((low >> 8 & 255)) $((low >> 16 & 255)) $((low >> 24)))"
ones_on() { config_write "$ones_device" 4 '\2\0'; }
ones_off() { config_write "$ones_device" 4 '\0\0'; }
start_run ones "${run[@]}" && {
  ones_on
  config_write "$victim" 4 '\0\0'
  ends_with 2 ones $deadline
  result ones "${partial[@]}" 'r["stop_reason"] == "removed"' 'c["errors"]["removal"] == 1'
}
ones_off
recovers ones

echo "== the kernel asks for it back (up $(uptime_s) s)"
# The write blocks until the device has been let go.
start_run remove "${run[@]}" && {
  echo 1 >"$pci/$victim/remove" &
  remover=$!
  ends_with 2 remove $deadline
  result remove "${partial[@]}" 'r["stop_reason"] == "removed"'
  if within 10 gone "$remover" && [ ! -e "$pci/$victim" ]; then ok "remove: let go"; else not_ok "remove: the kernel still waits"; fi
}
echo 1 >/sys/bus/pci/rescan
if within 20 [ -e "$pci/$victim/driver" ] && bind_vfio "$victim"; then recovers remove; else not_ok "remove: it does not come back"; fi

echo "== pulled out of its slot (up $(uptime_s) s)"
# Switching a slot's power off makes QEMU take the device away at once, whoever uses it. The kernel gets no notice and
# tries to reset it when its user lets go and waits 60 s for an answer: without a reset method it does not try.
echo >"$pci/$victim/reset_method"
port=$(basename "$(dirname "$(readlink -f "$pci/$victim")")")
control=$(($(pcie_capability "$port") + 0x19)) # the high byte of Slot Control: power and its indicator
start_run pulled "${run[@]}" && {
  ones_on
  config_write "$port" $control "$(printf '\\x%02x' $((16#$(config_read "$port" $control 1) | 7)))"
  ends_with 2 pulled $deadline
  result pulled "${partial[@]}" 'r["stop_reason"] == "removed"'
}
if [ "$(config_read "$victim" 0 2)" = "ff ff" ]; then ok "pulled: it is gone"; else not_ok "pulled: it is still there"; fi
ones_off

echo "== the Results are valid (up $(uptime_s) s)"
/usr/bin/python3 scripts/validate-result.py "$GUEST_OUT"/*.json >"$GUEST_OUT/validate.log" 2>&1
rc=$?
case $rc in
  0) ok "validate-result.py" ;;
  77) echo "skipped validate-result.py: python3-jsonschema is not installed" ;;
  *) not_ok "validate-result.py: $(cat "$GUEST_OUT/validate.log")" ;;
esac
finish
