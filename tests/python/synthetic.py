# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Made-up sweeps in the form of schema/results-1.schema.json, for tests of what reads them.

    python3 tests/python/synthetic.py FOLDER [CELLS]     writes FOLDER/PATH/results.jsonl and plan.json of every path
"""

import json
import math
import pathlib
import random
import sys

PATHS = ("nvme", "rdma", "cxi", "net", "qdma")
SIZES = (64, 256, 1024, 4096, 65536, 1 << 20)
LEVEL = 0.984375


def lower(ns):
    """The lower bound of the histogram's bucket of `ns`."""
    shift = max(ns.bit_length() - 7, 0)
    return ns >> shift << shift


def latency(rng, middle, count):
    counted = {}
    for _ in range(400):
        ns = lower(int(middle * math.exp(rng.gauss(0, 0.25) + (rng.random() < 0.02) * 1.5)))
        counted[ns] = counted.get(ns, 0) + max(1, count // 400)
    bins = sorted(counted.items())
    total = sum(n for _, n in bins)

    def percentile(share):
        if total * (1 - share) < 10:
            return None
        reached = 0
        for ns, n in bins:
            reached += n
            if reached >= share * total:
                return float(ns)
        return float(bins[-1][0])

    return {"count": total, "min": float(bins[0][0]), "mean": middle * 1.03, "std": middle * 0.3,
            **{name: percentile(share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99),
                                                           ("p99_9", 0.999), ("p99_99", 0.9999))},
            "max": float(bins[-1][0] * 2), "bins": [list(pair) for pair in bins]}


def metrics(rng, rate, size, middle):
    ops = int(rate / 2)
    return {"ops": ops, "bytes": ops * size, "elapsed_s": 0.5, "ops_per_s": rate, "bytes_per_s": rate * size,
            "latency_ns": latency(rng, middle, ops)}


def spread(values):
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return {"median": middle, "ci_low": ordered[0], "ci_high": ordered[-1], "ci_level": LEVEL, "min": ordered[0],
            "max": ordered[-1], "mean": sum(values) / len(values), "std": (ordered[-1] - ordered[0]) / 3,
            "noisy": (ordered[-1] - ordered[0]) / middle > 0.05, "outliers": []}


def parameters(path, i):
    """(cell parameters, bytes, queues) of cell i: a matrix of sizes, queues and batches, or of rates."""
    size, queues, batch = SIZES[i % 6], (1, 2, 4, 8)[i // 6 % 4], (1, 16)[i // 24 % 2]
    if path == "nvme":
        return {"write_io": 0, "read_io": 20000, "io_bytes": max(size, 512) if i % 6 else 512, "queues": queues, "batch": batch,
                "in_flight": batch * queues, "queue_length": 1024, "memory_mode": 0, "pattern": "random"}, max(size, 512), queues
    if path == "net":
        return {"stream": "raw", "engine": "ring", "payload_bytes": 8000, "batch_packets": 1024, "tx_queues": queues,
                "rx_queues": queues, "target_gbps": 10.0 * (i % 6 + 1)}, 8000, queues
    if path == "qdma":
        return {"op": "h2c", "size_bytes": size, "queues": queues, "batch": batch}, size, queues
    op = ("write", "read")[i // 24 % 2]
    return {"provider": ("mlx5", "ionic")[i // 12 % 2], "op": op if path == "rdma" else "put", "part": ("rate", "latency")[i // 6 % 2],
            "size_bytes": size, "queue_pairs": 1, "batch": 1, "in_flight": 16, "signal_every": 1, "inlined": False,
            "connection": "self", "queue_memory": "host", "data_memory": "host", "target_memory": "host"}, size, 1


def cell(rng, path, i):
    swept, size, queues = parameters(path, i)
    middle = 1500.0 + size / 10
    rates = [queues * 1e9 / middle * 8 * (1 + rng.uniform(-0.03, 0.03)) for _ in range(7)]
    rate = sorted(rates)[3]
    whole = metrics(rng, rate, size, middle)
    checked = i % 10 != 9
    count = whole["ops"]
    part = {"nvme": "read", "rdma": swept.get("part"), "cxi": swept.get("part"), "net": "receive", "qdma": "h2c"}[path]
    own = {part: whole, "submitted": count, "sq_doorbells_per_op": 1.0 / swept.get("batch", 1), "empty_polls": 12345,
           "completion_statuses": {}}
    extra = {"model": {"reads": count, "writes": 0, "bytes": count * size, "dma_faults": 0,
                       "injected": {name: 0 for name in ("drop", "delay", "error", "corrupt", "stale", "duplicate")}}}
    if path == "net":
        lost = max(0.0, swept["target_gbps"] - 30.0) * 2
        own = {"goodput_gbps": swept["target_gbps"] * (1 - lost / 100), "tx_gbps": swept["target_gbps"], "lost_percent": lost,
               "lost": int(lost * 1000), "mpps": 1.5, "sent": count, "received": count}
    return {
        "path": path, "cell": swept,
        "options": {**{f"option_{n}": f"its value {n}" for n in range(45)}, "size": str(size), "verify": "on" if checked else "off"},
        "operation": "packet" if path == "net" else "operation",
        "initiator": {"kind": "cpu", "gpu": None}, "device": {"kind": "model", "name": "model"}, "metrics": whole,
        "substeps_ns": {"build": 40.0 + rng.random(), "enqueue": 25.0, "sq_doorbell": 11.0, "cq_poll": 300.0, "cq_doorbell": 5.0,
                        "total": middle} if i % 6 == 3 else
        {name: None for name in ("build", "enqueue", "sq_doorbell", "cq_poll", "cq_doorbell", "total")},
        "repeats": [{"seed": n, "ops_per_s": r, "bytes_per_s": r * size, "mean_ns": middle, "p50_ns": middle, "p99_ns": middle * 2,
                     "p99_9_ns": None, "errors": 0} for n, r in enumerate(rates, 1)],
        "spread": {"bytes_per_s": spread([r * size for r in rates]), "ops_per_s": spread(rates),
                   "mean_ns": spread([middle * (1 + rng.uniform(0, 0.1)) for _ in rates]),
                   "p50_ns": spread([middle * (1 + rng.uniform(0, 0.03)) for _ in rates]),
                   "p99_ns": spread([middle * (2 + rng.uniform(0, 0.3)) for _ in rates])},
        "verify": {"mode": "full" if checked else "none", "checked": count if checked else 0,
                   "checked_bytes": count * size if checked else 0, "unverifiable": 0, "corrupt": 0, "misplaced": 0,
                   "stale": 0, "duplicated": 0, "missing": 0, "first": []},
        "errors": {name: 0 for name in ("completion", "timeout", "aborted", "identity", "late", "protocol", "removal", "reset")},
        "cost": {"cpu_user_s": 0.5, "cpu_system_s": 0.01, "cpu_ns_per_op": 900.0 + size / 30, "gpu_sm_percent": None,
                 "threads": [{"name": f"initiator-{n}", "cpu_s": 0.5} for n in range(queues)], "doorbells_per_op": 1.0,
                 "polls_per_completion": 8.25},
        path: own, **extra,
    }


ENVIRONMENT = {"date_utc": "2026-11-23T12:00:00Z", "cpu": "Example CPU @ 3 GHz", "sockets": 1, "cores": 2, "memory_bytes": 2 ** 34,
               "kernel": "6.1.0", "distribution": "Debian GNU/Linux 12", "kernel_cmdline": "quiet " * 100, "gpu": []}


def result(cells, code=0, complete=True, reason="done", warnings=(), load=0.5):
    return {"schema": "doorbell.results/1",
            "tool": {"name": "doorbell", "version": "0.1.0", "git": "abc", "build": "Release"},
            "argv": ["doorbell", cells[0]["path"] if cells else "nvme", "--repeats", "7", "--json", "/a/folder/.running.json"],
            "environment": {**ENVIRONMENT, "load_average": [load, load, load]}, "complete": complete, "stop_reason": reason,
            "exit_code": code, "warnings": list(warnings), "cells": cells}


def record(i, path, of, code=0, ended="exit", error=None, round_=0):
    options = {"size": str(SIZES[i % 6]), "queues": str(i // 6 % 4)}
    return {"schema": "doorbell.sweep/1", "cell": i, "round": round_, "options": options, "exit_code": code, "wall_s": 1.5,
            "ended": ended, "error": error, "result": of}


def sweep(path, cells, seed=1):
    """The records of a path's sweep. Some cells went wrong, each in a way of its own."""
    rng = random.Random(f"{seed}{path}")
    records = []
    for i in range(cells):
        made = cell(rng, path, i)
        load = [f"the machine is busy: load average {rng.uniform(1, 4):.2f}"] if i % 3 == 0 else []
        if i % 20 == 5:
            made["verify"].update(corrupt=3, stale=1, first=[{"kind": "corrupt", "address": 4096 * i, "sequence": i}])
            records.append(record(i, path, result([made], 2), 2))
        elif i % 20 == 7:
            made["errors"]["timeout"] = 1
            records.append(record(i, path, result([made], 2), 2))
        elif i % 20 == 11:
            records.append(record(i, path, result([made], 0, False, "signal"), 130, "interrupted"))
        elif i % 20 == 13:
            records.append(record(i, path, None, 139, "signal", "doorbell: segmentation fault\nat 0x40"))
        elif i % 20 == 15:
            records.append(record(i, path, None, 77, "exit", f"doorbell {path}: the device is not here"))
        elif i % 20 == 17:
            made["metrics"]["latency_ns"].update(p50=None, p99=None, p99_9=None, bins=[])
            made["spread"] = {}
            made["repeats"] = made["repeats"][:1]
            records.append(record(i, path, result([made], warnings=load)))
        else:
            records.append(record(i, path, result([made], warnings=load, load=i / 7)))
    return records


def plan(path, cells):
    rows = [{"cell": i, "line": i + 2, "figures": {"mean": 2.0 + SIZES[i % 6] / 20000, "std": 0.2, "max": 99.5}}
            for i in range(0, cells) if i < 6]
    return {"schema": "doorbell.plan/1", "name": path, "title": f"cells of {path}", "source": None, "command": path,
            "published": [{"file": "reference/theirs.csv", "where": {"table": ["single", "batched"], "device": ["a drive"]},
                           "note": "on a real device", "unit": "us", "columns": {"mean": "mean", "std": "std", "max": "max"},
                           "ours": "latency_ns.mean", "ours_scale": 0.001, "rows": rows}]}


def write(folder, cells=200, paths=PATHS):
    """Sweeps of all paths with as many cells together, in folders of their own."""
    folder = pathlib.Path(folder)
    for place, path in enumerate(paths):
        count = cells // len(paths) + (place < cells % len(paths))
        own = folder / path
        own.mkdir(parents=True, exist_ok=True)
        (own / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in sweep(path, count)), encoding="utf-8")
        (own / "plan.json").write_text(json.dumps(plan(path, count)), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
