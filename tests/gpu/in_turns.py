#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Two builds of doorbell in turns: the figures of docs/performance.md's GPU tables, old next to new.

Usage: in_turns.py OLD NEW OUT [SECONDS] [PATH...]
OLD and NEW are the programs. Turns go on for SECONDS (400) at least five times; PATH chooses nvme, rdma, cxi.
INITIATOR=cpu in the environment measures CPU threads instead of a GPU. OUT/turns.csv gets every figure. Prints the median and the range of each case, the ratio new/old, and WORSE where all
of new's values are worse than all of old's. What this machine has no device for is left out. Exit code: 0, 2 when a case is
worse or only one build measures it, 77 when nothing could be measured.
"""

import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

NULL = "--controller model:media=null --verify off --read-io 1 --duration 0.25"
PROVIDERS = ["mlx5", "bnxt", "ionic", "ernic"]


def cases(paths):
    """(path, name, options, figure) of each case."""
    if "nvme" in paths:
        yield "nvme", "batch 1", "--controller model:media=null --verify off --read-io 40000 --batch-size 1", "mean_us"
        for batch in [16, 64, 256]:
            yield "nvme", f"null, batch {batch}", f"{NULL} --batch-size {batch} --in-flight 1023 --less-timing", "ops"
        for batch in [64, 256]:
            yield ("nvme", f"null, batch {batch}, 12 queues",
                   f"{NULL} --batch-size {batch} --in-flight 1023 --num-queues 12 --less-timing", "ops")
        yield "nvme", "null, mode 3", f"{NULL} --memory-mode 3 --batch-size 64 --in-flight 1023 --less-timing", "ops"
        for mode in [0, 8, 11]:
            yield ("nvme", f"verified, mode {mode}",
                   f"--memory-mode {mode} --batch-size 64 --write-io 150000 --read-io 150000", "ops")
    if "rdma" in paths:
        for provider in PROVIDERS:
            yield ("rdma", f"{provider} single", f"--provider {provider} --size 256,1KiB,4KiB,64KiB,1MiB "
                   "--measure latency --iterations 1000", "mean_us")
            for pairs in [1, 8]:
                for verify in ["on", "off"]:
                    yield ("rdma", f"{provider} 64 B, {pairs} QP, verify {verify}",
                           f"--provider {provider} --size 64 --measure rate --batch-size 256 --in-flight 1024 "
                           f"--num-qps {pairs} --duration 0.25 --verify {verify}", "ops")
        for target in ["host", "vram"]:
            yield ("rdma", f"1 MiB to {target}", "--provider mlx5 --size 1MiB --measure rate --duration 0.25 "
                   f"--verify off --target-mem {target}", "bytes")
    if "cxi" in paths:
        for queue in ["host", "vram"]:
            yield ("cxi", f"single, queue {queue}", f"--queue-mem {queue} --size 8,256,1KiB,4KiB,64KiB "
                   "--measure latency --iterations 1000", "mean_us")
        yield "cxi", "single, IDC", "--idc 224 --size 8,64,128 --measure latency --iterations 1000", "mean_us"
        for verify in ["on", "off"]:
            yield ("cxi", f"64 B, verify {verify}", "--size 64 --measure rate --batch-size 256 --in-flight 1024 "
                   f"--duration 0.25 --verify {verify}", "ops")
        for ends in ["host-vram", "vram-host", "vram-vram", "host-host"]:
            near, far = ends.split("-")
            yield ("cxi", f"1 MiB, {ends}", f"--size 1MiB --measure rate --data-mem {near} --target-mem {far} "
                   "--duration 0.25 --verify off", "bytes")


def measure(program, case, out):
    """name -> value for each cell of one run; empty when it failed."""
    path, name, options, figure = case
    at = out / "one.json"
    done = subprocess.run([program, path, "--initiator", os.environ.get("INITIATOR", "gpu"), "--quiet", "--json", at, "--repeats", "1"] + options.split(),
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 77:
        return {}
    if done.returncode != 0:
        print(f"{program} {path} {options}: exit {done.returncode}\n{done.stderr}", file=sys.stderr)
        return {}
    figures = {}
    for cell in json.loads(at.read_text())["cells"]:
        m = cell["metrics"]
        value = {"mean_us": lambda: m["latency_ns"]["mean"] / 1e3, "ops": lambda: m["ops_per_s"] / 1e6,
                 "bytes": lambda: m["bytes_per_s"] / 1e9}[figure]()
        size = cell["cell"].get("size_bytes", "")
        figures[f"{path} {name}{f', {size} B' if ',' in options and figure == 'mean_us' else ''}"] = value
    return figures


def main(arguments):
    programs = {"old": arguments[0], "new": arguments[1]}
    out = pathlib.Path(arguments[2])
    out.mkdir(parents=True, exist_ok=True)
    seconds = float(arguments[3]) if len(arguments) > 3 else 400
    chosen = list(cases(arguments[4:] or ["nvme", "rdma", "cxi"]))
    better_low = {}
    values = {}
    begin = time.monotonic()
    turn = 0
    while turn < 5 or (time.monotonic() - begin) * (turn + 1) / turn < seconds:
        for case in chosen:
            for which in ["old", "new"] if turn % 2 == 0 else ["new", "old"]:
                for name, value in measure(programs[which], case, out).items():
                    better_low[name] = case[3] == "mean_us"
                    values.setdefault(name, {"old": [], "new": []})[which].append(value)
        turn += 1
    if not values:
        return 77
    with open(out / "turns.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["case", "build", "turn", "value"])
        for name, both in values.items():
            for which, list_of in both.items():
                rows.writerows([name, which, i, f"{v:.6g}"] for i, v in enumerate(list_of))
    worse = 0
    print(f"{turn} turns; mean us where the case says single or batch 1, M/s or GB/s elsewhere")
    for name, both in values.items():
        old, new = both["old"], both["new"]
        if not old or not new:
            print(f"{name:44} not measured")
            worse += 1
            continue
        is_worse = min(new) > max(old) if better_low[name] else max(new) < min(old)
        worse += is_worse
        show = [f"{statistics.median(v):8.3f} [{min(v):.3f}, {max(v):.3f}]" for v in (old, new)]
        print(f"{name:44} old {show[0]:28} new {show[1]:28} "
              f"{statistics.median(new) / statistics.median(old):.3f}{'  WORSE' if is_worse else ''}")
    return 2 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
