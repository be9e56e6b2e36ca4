#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""One line for each result file: what ran, how fast, what was checked, what went wrong."""
import json
import sys


def number(value, scale=1.0, digits=2):
    return "-" if value is None else f"{value / scale:.{digits}f}"


for path in sys.argv[1:]:
    try:
        result = json.load(open(path, encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"{path}: no result ({error})")
        continue
    for cell in result["cells"]:
        c, m, v, s = cell["cell"], cell["metrics"], cell["verify"], cell["substeps_ns"]
        wrong = {k: n for k, n in cell["errors"].items() if n}
        wrong.update({k: v[k] for k in ("corrupt", "misplaced", "stale", "duplicated", "missing") if v[k]})
        injected = {k: n for k, n in cell.get("model", {}).get("injected", {}).items() if n}
        lat = m["latency_ns"]
        print(
            f"mode {c['memory_mode']:>2} q {c['queues']:>2} b {c['batch']:>3} io {c['io_bytes']:>7}"
            f" {number(m['ops_per_s'], 1e6, 3):>8} MIOPS {number(m['bytes_per_s'], 1e9):>7} GB/s"
            f" p50 {number(lat['p50'], 1e3):>8} us mean {number(lat['mean'], 1e3):>8} us"
            f" checked {v['checked']:>7} exit {result['exit_code']}"
            + (f" steps {[round(s[k], 1) for k in ('build', 'enqueue', 'sq_doorbell', 'cq_poll', 'cq_doorbell') if s[k] is not None]}"
               if s["build"] is not None else "")
            + (f" WRONG {wrong}" if wrong else "")
            + (f" injected {injected}" if injected else "")
            + (f" {result['warnings']}" if result["warnings"] else "")
        )
