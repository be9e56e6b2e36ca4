#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Measures random 4 KiB reads by fio through libfio-doorbell.so and by `doorbell nvme`, in turns, on the same controller.

Usage: fio-in-turns.py DOORBELL ENGINE [ROUNDS] [CONTROLLER]
Prints, for 1 and 32 in flight, the ratio of fio's rate to doorbell's: the median of the rounds (two at least), the two between
which the middle half of them lies, the least and the largest.
Exit code: 0, or 1 when a run fails.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

SECONDS = 1


def by_fio(engine, controller, depth):
    done = subprocess.run(["fio", "--name=turn", f"--ioengine=external:{engine}", f"--controller={controller}", "--thread",
                           "--rw=randread", "--bs=4k", f"--iodepth={depth}", "--time_based", f"--runtime={SECONDS}",
                           "--norandommap", "--output-format=json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["jobs"][0]["read"]["iops"]


def by_doorbell(program, controller, depth):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "turn.json"
        subprocess.run([program, "nvme", "--controller", controller, "--rw", "randread", "--bs", "4k", "--iodepth", str(depth),
                        "--runtime", str(SECONDS), "--repeats", "1", "--warmup", "0", "--verify", "off", "--quiet",
                        "--json", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return json.loads(out.read_text(encoding="utf-8"))["cells"][0]["repeats"][0]["ops_per_s"]


def main(program, engine, rounds="7", controller="model:capacity=256Mi"):
    for depth in (1, 32):
        ratios = []
        for turn in range(int(rounds)):
            # Who begins alternates, so that a machine that slows down favours neither.
            if turn % 2 == 0:
                fio = by_fio(engine, controller, depth)
                own = by_doorbell(program, controller, depth)
            else:
                own = by_doorbell(program, controller, depth)
                fio = by_fio(engine, controller, depth)
            ratios.append(fio / own)
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        print(f"{depth:3} in flight: fio has {statistics.median(ratios):.2f} of doorbell's rate (half of {rounds} rounds "
              f"{low:.2f} to {high:.2f}, all {min(ratios):.2f} to {max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} ended with {error.returncode}")
