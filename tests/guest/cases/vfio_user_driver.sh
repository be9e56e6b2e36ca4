#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: what Linux's driver finds in a controller that doorbell serves, its interrupts, and each command of
# nvme-cli that has an answer or a refusal by the specification.
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use served

is() { # TEXT IS WANTED
  if [ "$2" = "$3" ]; then ok "$1 is $2"; else not_ok "$1 is '$2', wanted '$3'"; fi
}
sys=/sys/class/nvme/$controller
is class "$(cat "$pci/$address/class")" 0x010802
is state "$(cat "$sys/state")" live
is "serial number" "$(tr -d ' ' <"$sys/serial")" served
is "queue count" "$(cat "$sys/queue_count")" 9
is "bytes of a block" "$(blockdev --getss "$disk")" 512
is "bytes of the disk" "$(blockdev --getsize64 "$disk")" $((256 << 20))

# One MSI-X vector a queue. A queue's commands come from its own CPU, whose vector counts them.
is "vectors" "$(grep -c "${controller}q[0-9]" /proc/interrupts)" 9
for cpu in $(seq 0 $(($(nproc) - 1))); do
  before=$(interrupts $((cpu + 1)))
  taskset -c "$cpu" dd if="$disk" of=/dev/null bs=4k count=16 iflag=direct status=none
  counted=$(($(interrupts $((cpu + 1))) - before))
  if [ $counted -ge 16 ] && [ $counted -le 64 ]; then ok "queue $((cpu + 1)): $counted interrupts for 16 reads"; else
    not_ok "queue $((cpu + 1)): $counted interrupts for 16 reads"
  fi
done

if command -v nvme >/dev/null; then
  tell() { # NAME WORDS ARGUMENT...: nvme-cli succeeds, and says this
    local name=$1 words=$2
    shift 2
    exits 0 "$name" nvme "$@" && { [ -z "$words" ] || says "$name" "$words"; }
  }
  refuse() { # NAME WORDS ARGUMENT...: the controller refuses by this status
    local name=$1 words=$2
    shift 2
    exits 1 "$name" nvme "$@" && says "$name" "$words"
  }
  char=/dev/$controller
  tell list "served" list
  tell id-ctrl "^sn +: served" id-ctrl "$char"
  tell id-ns "^nsze +: 0x80000" id-ns "$disk"
  tell list-ns "0x1" list-ns "$char"
  tell list-ctrl "0x" list-ctrl "$char"
  tell ns-descs "(uuid|nguid|eui64)" ns-descs "$disk"
  tell smart-log "critical_warning[[:space:]]+: 0" smart-log "$char"
  tell error-log "error_count" error-log "$char"
  tell fw-log "frs1" fw-log "$char"
  # Its own word for this log maps the registers, which a kernel with a driver on them does not let it.
  tell effects-log "" get-log "$char" --log-id=5 --log-len=4096
  for feature in 1 2 4 5 7 8 9 0xa 0xb; do tell "get-feature-$feature" "Current value" get-feature "$char" -f $feature; done
  tell set-feature "" set-feature "$char" -f 4 -V 0x15e
  tell get-feature-4-again "0x0000015e" get-feature "$char" -f 4
  tell flush "" flush "$disk" -n 1
  tell write-zeroes "" write-zeroes "$disk" -s 0 -c 7
  tell dsm "" dsm "$disk" -n 1 -d -s 8 -b 8
  head -c 4096 /dev/urandom >"$GUEST_OUT/block"
  tell write "" write "$disk" -s 16 -c 7 -z 4096 -d "$GUEST_OUT/block"
  tell compare "" compare "$disk" -s 16 -c 7 -z 4096 -d "$GUEST_OUT/block"
  refuse compare-other "NVMe status.*\(0x4285\)" compare "$disk" -s 24 -c 7 -z 4096 -d "$GUEST_OUT/block"
  refuse format "NVMe status.*\(0x4001\)" format "$disk" --force -l 0
  refuse sanitize "NVMe status.*\(0x4001\)" sanitize "$char" -a 2
  refuse bad-log "NVMe status.*\(0x4109\)" get-log "$char" --log-id=0xc7 --log-len=512
  refuse bad-opcode "NVMe status.*\(0x4001\)" admin-passthru "$char" --opcode=0x7f
  refuse bad-namespace "NVMe status.*\(0x400b\)" id-ns "$char" -n 77
  before=$(cat "$sys/queue_count")
  tell reset "" reset "$char"
  disk_is_back served && is "queue count after a reset" "$(cat "$sys/queue_count")" "$before"
  # Each refusal has an entry in the log of errors.
  refuse bad-opcode-again "NVMe status.*\(0x4001\)" admin-passthru "$char" --opcode=0x7f
  tell error-log-after "status_field.*0x4001" error-log "$char"
else
  not_ok "nvme-cli is not there"
fi
clean_log
finish
