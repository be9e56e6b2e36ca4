#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# doorbell compared with fio on one of QEMU's controllers, in a guest, and the ratios: what docs/performance.md quotes.
# Usage: tests/guest/measure/run.sh [OUT [REPEATS]]   (about 20 s a repeat; QEMU= and DOORBELL= as in tests/guest/run.sh)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-results/guest-beside-fio}
mkdir -p "$out"
"$here/../run.sh" "$here/beside_fio.sh" --argument "${2:-7}" --timeout 900 --out "$out" | grep -v '^ok'
exec /usr/bin/python3 "$here/ratios.py" "$out"
