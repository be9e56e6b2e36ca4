#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: controllers through VFIO, 10,000 verified writes and reads and the conformance cases each.
# Usage: nvme.sh [SERIAL]; without one, all that have no faults, one after the other.
. tests/guest/lib.sh

find_controllers || { not_ok "the kernel's driver does not bring the controllers up"; finish; }
for serial in ${1:-n512 n4096 smallmdts bigmdts fewqueues}; do
  address=$(address_of "$serial")
  echo "== $serial, $address (up $(uptime_s) s)"
  bind_vfio "$address" || { not_ok "$serial: bind"; continue; }
  # A function level reset takes 0.1 s whenever VFIO opens or closes the device. One controller keeps it; the others
  # are like a device without: what an earlier user left running must be stopped through its registers.
  [ "$serial" = bigmdts ] || echo >"$pci/$address/reset_method"
  tests/nvme/device_cases.py "$address" --allow-write --out "$GUEST_OUT/$serial" 2>&1
  rc=$?
  if [ $rc -eq 0 ]; then ok "$serial"; else not_ok "$serial: device_cases.py ended with $rc"; fi
done
# The IOMMU stops accesses outside of what was mapped, and QEMU's controller completes them all the same: only the
# kernel's log tells.
if dmesg | grep -E 'DMAR:.*(fault|Fault)|DMAR: \[DMA' >"$GUEST_OUT/dmar.log"; then
  not_ok "the IOMMU caught accesses outside of mapped memory"
  head -n 20 "$GUEST_OUT/dmar.log"
else
  ok "no IOMMU fault"
fi
finish
