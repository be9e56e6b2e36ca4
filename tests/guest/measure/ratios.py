#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Ratios of doorbell to fio's engines from the JSON files of beside_fio.sh. Usage: ratios.py FOLDER"""

import json
import pathlib
import statistics
import sys


def ours(path):
    metrics = json.loads(path.read_text())["cells"][0]["metrics"]
    return metrics["latency_ns"]["mean"], metrics["ops_per_s"]


def theirs(path):
    text = path.read_text()
    side = json.loads(text[text.index("{"):])["jobs"][0]["read"]
    return side["lat_ns"]["mean"], side["iops"]


def spread(values, unit=1.0):
    return f"{statistics.median(values) / unit:.3g} [{min(values) / unit:.3g} to {max(values) / unit:.3g}]"


def main():
    folder = pathlib.Path(sys.argv[1])
    for depth in (1, 32):
        runs = sorted(folder.glob(f"ours-{depth}-*.json"), key=lambda p: int(p.stem.rsplit("-", 1)[1]))
        numbers = [p.stem.rsplit("-", 1)[1] for p in runs]
        mine = [ours(p) for p in runs]
        print(f"QD{depth}, 4 KiB random reads, {len(runs)} repeats: median [min to max]")
        print(f"  {'doorbell':<18}{'mean us ' + spread([m for m, _ in mine], 1e3):<36}"
              f"kIOPS {spread([r for _, r in mine], 1e3)}")
        for engine in ("psync", "libaio", "io_uring", "io_uring-polled", "io_uring-batched"):
            files = [folder / f"{engine}-{depth}-{n}.json" for n in numbers]
            if not all(f.exists() for f in files):
                continue
            other = [theirs(f) for f in files]
            print(f"  {engine:<18}{'mean us ' + spread([m for m, _ in other], 1e3):<36}"
                  f"kIOPS {spread([r for _, r in other], 1e3):<26}"
                  f"doorbell/fio: mean {spread([a[0] / b[0] for a, b in zip(mine, other)])}, "
                  f"rate {spread([a[1] / b[1] for a, b in zip(mine, other)])}")


if __name__ == "__main__":
    main()
