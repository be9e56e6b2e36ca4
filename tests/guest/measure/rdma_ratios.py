#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Ratios of doorbell to perftest from the files of beside_perftest.sh. Usage: rdma_ratios.py FOLDER"""

import json
import math
import pathlib
import statistics
import sys

# The figure that is compared in each cell: messages a second, or microseconds (the median of each tool).
CELLS = {
    "write-4096": "rate",
    "write-65536": "rate",
    "send-4096": "rate",
    "write-one-8": "rate",
    "read-lat-4096": "us",
    "write-lat-8": "us",
    "write-lat-inline-8": "us",
}


def ours(path, kind):
    (cell,) = json.loads(path.read_text())["cells"]  # one part was asked for
    metrics = cell["metrics"]
    return metrics["ops_per_s"] if kind == "rate" else metrics["latency_ns"]["p50"] / 1e3


def theirs(path, kind):
    """perftest prints one line of numbers below its headings: sizes and iterations first."""
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) >= 5 and all(w.replace(".", "", 1).isdigit() for w in words):
            # bandwidth: bytes, iterations, peak, average, million messages/s; latency: bytes, iterations, min, max, typical
            value = float(words[4])
            # Of a run whose clock went wrong perftest reports zeroes and exits 0.
            return None if value == 0 else value * 1e6 if kind == "rate" else value
    raise ValueError(f"{path}: no line of results")


def turns(folder, cell, who, suffix):
    found = {}
    for path in folder.glob(f"{cell}-{who}-*{suffix}"):
        number = path.name[len(f"{cell}-{who}-") : -len(suffix)]
        if number.isdigit():
            found[int(number)] = path
    return found


def spread(values):
    return f"{statistics.median(values):.4g} [{min(values):.4g} to {max(values):.4g}]"


def mean_ratio(ratios):
    """The geometric mean and the factor of its standard error: of many turns it is known better than each is."""
    logs = [math.log(r) for r in ratios]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0
    return f"{math.exp(statistics.mean(logs)):.3f} (times or over {math.exp(error):.3f})"


def print_cell(folder, cell, kind):
    mine = {n: ours(p, kind) for n, p in turns(folder, cell, "ours", ".json").items()}
    print(f"{cell}: {'messages/s' if kind == 'rate' else 'us'}, median [min to max]")
    if mine:
        print(f"  {'doorbell':<18}{spread(list(mine.values())):<36}({len(mine)} turns)")
    for who in ("default", "best"):
        other = {n: theirs(p, kind) for n, p in turns(folder, cell, who, ".log").items()}
        other = {n: value for n, value in other.items() if value is not None}
        if not other:
            continue
        line = f"  {'perftest, ' + who:<18}{spread(list(other.values())):<36}({len(other)} turns)"
        both = sorted(mine.keys() & other.keys())
        if both:
            ratios = [mine[n] / other[n] for n in both]
            line += f"  doorbell/perftest {spread(ratios)}, geometric mean {mean_ratio(ratios)}"
        print(line)


def main():
    folder = pathlib.Path(sys.argv[1])
    version = folder / "perftest.version"
    if version.exists():
        print("perftest:", version.read_text().strip())
    for cell, kind in CELLS.items():
        print_cell(folder, cell, kind)


if __name__ == "__main__":
    main()
