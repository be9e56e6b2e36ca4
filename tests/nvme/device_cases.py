#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Writes and reads ONE NVMe controller in many ways and checks every block: what a driver has to get right.

Usage: device_cases.py DEVICE --allow-write [--out FOLDER] [--doorbell PROGRAM] [--scale N]
DEVICE is what `doorbell nvme --controller` takes: a PCI address such as 0000:01:00.0, or a model. ITS DATA IS LOST; all
but models take --allow-write.
First the conformance cases (nvme_conformance_device_test next to the program, when it was built), then runs of
`doorbell nvme`, 10,000 writes and 10,000 reads in all: transfers of one block to 1 MiB, 1 to 8 queues, batches of 1 to
64, in order and at random, rings of 2 to 1024 entries, registers and shadow doorbells. What the controller cannot do
is left out, and said so. One line a case; the results are kept in FOLDER.
Exit code: 0 all passed, 1 the controller cannot be used, 2 a case failed, 77 no such hardware.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("DOORBELL") or str(ROOT / "build/bin/doorbell")
# Emulated and busy machines are slow, which is no error here: a case fails on wrong data, not on late data.
TIMEOUTS = ["--timeout", "20", "--late-after", "20"]
CASE_LIMIT_S = 120

# (bytes, queues, batch, ring, pattern, doorbells, I/Os): 10,000 I/Os each way. A size that is larger than MDTS or
# smaller than a block is moved to the nearest that fits, and queues to what is granted, so that the sum stays.
# Every ring wraps, and its phase tag with it; one of 2 entries holds a single command and wraps with each.
MATRIX = [
    (0, 1, 1, 2, "sequential", "register", 300),
    (0, 8, 1, 5, "random", "register", 1600),
    (0, 2, 63, 64, "random", "register", 1700),
    (0, 8, 16, 64, "sequential", "shadow", 1600),
    (0, 1, 64, 1024, "random", "shadow", 1500),
    (4096, 4, 16, 64, "sequential", "register", 1500),
    (4096, 3, 3, 5, "random", "shadow", 1200),
    (65536, 1, 1, 5, "sequential", "register", 100),
    (65536, 8, 8, 9, "random", "shadow", 400),
    (1 << 20, 1, 1, 2, "sequential", "register", 20),
    (1 << 20, 4, 4, 5, "random", "shadow", 80),
]
assert sum(case[-1] for case in MATRIX) == 10000
assert all(ios // queues > ring for _, queues, _, ring, _, _, ios in MATRIX)


class Cases:
    def __init__(self, options):
        self.device = options.device
        self.program = options.doorbell
        self.out = pathlib.Path(options.out)
        self.scale = options.scale
        self.permission = ["--allow-write"] if options.allow_write else []
        self.failed = 0
        self.passed = 0
        self.ios = 0

    def nvme(self, name, *arguments):
        """Runs `doorbell nvme`; returns its exit code (None: it hung), its Result (None: none) and what it said."""
        path = self.out / f"{name}.json"
        path.unlink(missing_ok=True)
        command = [self.program, "nvme", "--controller", self.device, *self.permission, "--quiet", "--json", str(path),
                   *TIMEOUTS, *(str(a) for a in arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=CASE_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return None, None, f"no end after {CASE_LIMIT_S} s: {' '.join(command)}"
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            result = None
        return done.returncode, result, done.stderr.strip()

    def line(self, name, problem, seconds, detail):
        if problem:
            self.failed += 1
        else:
            self.passed += 1
        print(f"{'FAILED' if problem else 'ok':6} {name:28} {seconds:6.2f} s  {problem or detail}", flush=True)

    def probe(self):
        """Finds out what this controller can do. Returns an exit code, 0 for one that can be used."""
        code, result, said = self.nvme("probe", "--write-io", 0, "--read-io", 1)
        if code != 0 or result is None:
            print(f"{self.device}: cannot be used (exit code {code}): {said}", file=sys.stderr)
            return code if code in (77, 2) else 1
        self.info = result["cells"][0]["nvme"]["controller"]
        self.kind = result["cells"][0]["device"]["kind"]
        if self.kind != "model" and not self.permission:
            print(f"{self.device}: its data would be lost: say --allow-write", file=sys.stderr)
            return 1
        # It is refused, and the refusal says how many there are.
        code, _, said = self.nvme("probe-queues", "--write-io", 0, "--read-io", 64, "--num-queues", 64)
        granted = re.search(r"is not in 1\.\.(\d+)", said)
        self.queues = int(granted.group(1)) if granted else 64 if code == 0 else 1
        code, _, said = self.nvme("probe-shadow", "--write-io", 0, "--read-io", 1, "--doorbells", "shadow")
        self.shadow = code == 0
        info = self.info
        print(f"{self.device} ({self.kind}): {info['model']}, serial {info['serial']}, {info['blocks']} blocks of "
              f"{info['lba_bytes']} bytes, largest transfer {info['max_transfer_bytes'] or 'unlimited'}, "
              f"{self.queues} queue pairs, {info['max_queue_entries']} entries, "
              f"{'' if self.shadow else 'no '}shadow doorbells")
        return 0

    def problem(self, code, result, said, ios, size):
        """The problem with a run, or nothing."""
        if result is None or not result["cells"]:
            return f"exit code {code}, no Result: {said}"
        cell, = result["cells"]
        wrong = {k: n for k, n in {**cell["errors"], **cell["verify"]}.items()
                 if k not in ("mode", "checked", "checked_bytes", "first") and n != 0}
        if code != 0 or wrong or not result["complete"] or result["stop_reason"] != "done" or result["exit_code"] != 0:
            return (f"exit code {code}, stop_reason {result['stop_reason']}, {wrong}, first {cell['verify']['first'][:3]}, "
                    f"statuses {cell['nvme']['completion_statuses']}: {said}")
        for what, got, wanted in (
                ("reads checked", cell["verify"]["checked"], ios),
                ("bytes checked", cell["verify"]["checked_bytes"], ios * size),
                ("operations", cell["metrics"]["ops"], 2 * ios),
                ("writes", cell["nvme"]["write"]["ops"], ios),
                ("reads", cell["nvme"]["read"]["ops"], ios),
                ("bytes", cell["metrics"]["bytes"], 2 * ios * size)):
            if got != wanted:
                return f"{what}: {got}, wanted {wanted}"
        return None

    def case(self, number, size, queues, batch, ring, pattern, doorbells, ios):
        lba = self.info["lba_bytes"]
        largest = self.info["max_transfer_bytes"] or size
        size = max(min(size, largest), lba)
        queues = min(queues, self.queues)
        ring = min(ring, self.info["max_queue_entries"])
        batch = min(batch, ring - 1)
        note = ""
        if doorbells == "shadow" and not self.shadow:
            doorbells, note = "register", ", no shadow doorbells here"
        ios = max(ios // self.scale, queues)
        # At most 16 MiB in flight on a queue.
        in_flight = max(batch, min(ring - 1, 4 * batch, max((16 << 20) // size, 1)))
        name = f"{number:02}-{size}B-q{queues}-b{batch}-r{ring}-{pattern[:3]}-{doorbells[:3]}"
        began = time.monotonic()
        code, result, said = self.nvme(name, "--write-io", ios, "--read-io", ios, "--lbas-per-io", size // lba,
                                       "--num-queues", queues, "--batch-size", batch, "--in-flight", in_flight,
                                       "--queue-length", ring, "--access-pattern", pattern, "--doorbells", doorbells,
                                       "--seed", 1000 + number)
        self.ios += ios
        self.line(name, self.problem(code, result, said, ios, size), time.monotonic() - began,
                  f"{ios} written, {ios} read and checked{note}")

    def refused_above_mdts(self):
        largest = self.info["max_transfer_bytes"]
        if not largest or largest // self.info["lba_bytes"] >= 65536:
            return
        began = time.monotonic()
        code, _, said = self.nvme("above-mdts", "--write-io", 1, "--read-io", 1, "--lbas-per-io",
                                  largest // self.info["lba_bytes"] + 1)
        good = code == 1 and "MDTS" in said
        self.line("above-mdts", None if good else f"exit code {code}: {said}", time.monotonic() - began, "refused")

    def conformance(self):
        program = pathlib.Path(self.program).resolve().parent / "nvme_conformance_device_test"
        if not program.exists():
            print(f"skipped conformance: {program} was not built")
            return
        began = time.monotonic()
        log = self.out / "conformance.log"
        try:
            with log.open("w", encoding="utf-8") as file:
                code = subprocess.run([str(program)], stdout=file, stderr=subprocess.STDOUT, timeout=CASE_LIMIT_S,
                                      env={**os.environ, "DOORBELL_TEST_CONTROLLER": self.device}, check=False).returncode
        except subprocess.TimeoutExpired:
            code = None
        text = log.read_text(encoding="utf-8", errors="replace")
        passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
        skipped = re.search(r"\[  SKIPPED \] (\d+) tests?", text)
        # All of them left out is no pass: nothing was tested.
        good = code == 0 and passed and int(passed.group(1)) > 0
        self.line("conformance", None if good else f"exit code {code}, see {log}", time.monotonic() - began,
                  f"{passed.group(1) if passed else 0} passed, {skipped.group(1) if skipped else 0} skipped")
        if not good:
            # The output of each failed test; of a program that crashed, that of its last test.
            tests = re.split(r"^(?=\[ RUN      \])", text.partition("[----------] Global test environment tear-down")[0],
                             flags=re.MULTILINE)
            print("".join([t for t in tests if "[  FAILED  ]" in t] or tests[-1:]).rstrip())

    def run(self):
        began = time.monotonic()
        code = self.probe()
        if code != 0:
            return code
        self.conformance()
        for number, case in enumerate(MATRIX):
            self.case(number, *case)
        self.refused_above_mdts()
        print(f"{self.device}: {self.passed} passed, {self.failed} failed, {self.ios} writes and reads each, "
              f"{time.monotonic() - began:.1f} s")
        return 2 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("--allow-write", action="store_true", help="let go of all data on the device")
    parser.add_argument("--out", help="where results are kept (default: nowhere)")
    parser.add_argument("--doorbell", default=PROGRAM, help="the program (default: $DOORBELL, else build/bin/doorbell)")
    parser.add_argument("--scale", type=int, default=1, help="one Nth of the I/Os")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        options.out = options.out or scratch
        pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
        return Cases(options).run()


if __name__ == "__main__":
    sys.exit(main())
