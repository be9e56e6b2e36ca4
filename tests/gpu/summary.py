#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A line for each cell of result files: what ran, how fast, what was checked, what went wrong."""
import json
import sys

VERDICTS = ("corrupt", "misplaced", "stale", "duplicated", "missing")
STEPS = ("build", "enqueue", "sq_doorbell", "cq_poll", "cq_doorbell")


def number(value, scale=1.0, digits=2):
    return "-" if value is None else f"{value / scale:.{digits}f}"


def what_ran(cell):
    c = cell["cell"]
    if cell["path"] == "nvme":
        return f"mode {c['memory_mode']:>2} q {c['queues']:>2} b {c['batch']:>3} io {c['io_bytes']:>7}"
    if "op" not in c:
        return " ".join(f"{k}={v}" for k, v in c.items())
    who = [c["provider"]] if "provider" in c else []
    return " ".join(who + [f"{c['op']} {c['part']} {c['size_bytes']} B q {c['queue_pairs']} b {c['batch']}"])


def share_of_ceiling(cell):
    ceiling = cell.get(cell["path"], {}).get("ceiling")
    if not ceiling:
        return ""
    return f" = {ceiling['share_fraction']:.3f} of {ceiling['bytes_per_s'] / 1e9:.2f} GB/s {ceiling['what']}"


def line(cell, result):
    m, v, steps = cell["metrics"], cell["verify"], cell["substeps_ns"]
    latency = m["latency_ns"]
    spread = cell.get("spread", {}).get("ops_per_s")
    interval = f" [{spread['ci_low'] / 1e6:.3f}, {spread['ci_high'] / 1e6:.3f}]" if spread else ""
    wrong = {k: n for k, n in cell["errors"].items() if n}
    wrong.update({k: v[k] for k in VERDICTS if v[k]})
    injected = {k: n for k, n in cell.get("model", {}).get("injected", {}).items() if n}
    times = [round(steps[k], 1) for k in STEPS if steps.get(k) is not None]
    return (
        f"{what_ran(cell)} {number(m['ops_per_s'], 1e6, 3):>8} M/s{interval}"
        f" {number(m['bytes_per_s'], 1e9):>7} GB/s{share_of_ceiling(cell)}"
        f" p50 {number(latency['p50'], 1e3):>8} us mean {number(latency['mean'], 1e3):>8} us"
        f" checked {v['checked']:>7} exit {result['exit_code']}"
        + (f" steps {times}" if times else "")
        + (f" WRONG {wrong}" if wrong else "")
        + (f" injected {injected}" if injected else "")
        + (f" {result['warnings']}" if result["warnings"] else "")
    )


for path in sys.argv[1:]:
    try:
        with open(path, encoding="utf-8") as f:
            record = json.load(f)
    except (OSError, ValueError) as error:
        print(f"{path}: no result ({error})")
        continue
    for one in record["cells"]:
        print(line(one, record))
