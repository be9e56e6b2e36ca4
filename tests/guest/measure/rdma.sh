#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# doorbell compared with perftest on the kernel's soft-RoCE, in a guest, and the ratios: what docs/performance.md quotes.
# Usage: tests/guest/measure/rdma.sh [OUT [TURNS]]   (7 turns; TURNS 7:perftest leaves doorbell out, and
# 7:write-4096+send-4096 the other cells; QEMU= and DOORBELL= as in tests/guest/run.sh)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-results/guest-beside-perftest}
mkdir -p "$out"
"$here/../run.sh" "$here/beside_perftest.sh" --argument "${2:-7}" --timeout 1200 --out "$out" | grep -v '^ok'
exec /usr/bin/python3 "$here/rdma_ratios.py" "$out"
