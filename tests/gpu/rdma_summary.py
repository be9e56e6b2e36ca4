#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A line for each cell of an RDMA result: rdma_summary.py RESULT.json"""

import json
import sys

try:
    with open(sys.argv[1], encoding="utf-8") as f:
        result = json.load(f)
except (OSError, ValueError) as e:
    sys.exit(f"no result: {e}")

for cell in result["cells"]:
    at, metrics = cell["cell"], cell["metrics"]
    latency = metrics["latency_ns"]
    mean = "-" if latency["mean"] is None else f"{latency['mean'] / 1000:.2f}"
    p50 = "-" if latency["p50"] is None else f"{latency['p50'] / 1000:.2f}"
    spread = cell.get("spread", {}).get("ops_per_s")
    interval = "" if not spread else f" [{spread['ci_low'] / 1e6:.3f}, {spread['ci_high'] / 1e6:.3f}]"
    ceiling = cell["rdma"].get("ceiling")
    share = "" if not ceiling else f", {ceiling['share_fraction']:.3f} of {ceiling['bytes_per_s'] / 1e9:.2f} GB/s {ceiling['what']}"
    bad = {k: n for k, n in {**cell["errors"], **cell["verify"]}.items()
           if isinstance(n, int) and n > 0 and k not in ("checked", "checked_bytes", "unverifiable")}
    print(f"{at['provider']} {at['op']} {at['part']} {at['size_bytes']} B qps {at['queue_pairs']} batch {at['batch']}: "
          f"{metrics['ops_per_s'] / 1e6:.3f} Mops/s{interval}, {metrics['bytes_per_s'] / 1e9:.3f} GB/s{share}, "
          f"mean {mean} us, p50 {p50} us, checked {cell['verify']['checked']}{', ' + str(bad) if bad else ''}")
