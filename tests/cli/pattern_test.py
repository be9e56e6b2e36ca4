#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The program in docs/pattern.md checks what doorbell wrote, and doorbell what an earlier one wrote."""

import os
import re
import struct
import subprocess
import sys
import unittest

from file_test import OnDisk
from harness import ROOT, TIMEOUTS

UNIT = 512
UNITS = 256


def old_unit(seed, address, sequence):
    """A unit of version 1: the LFSR walks through all of it."""
    def mix64(x):
        for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53, 1):
            x = (x ^ x >> 33) * factor % 2**64
        return x

    h = mix64(seed ^ mix64(address ^ mix64(sequence)))
    state = (h ^ h >> 32) % 2**32 or 1
    unit = struct.pack("<4sIQQQ", b"DBL1", state, seed, address, sequence)
    for _ in range(120):
        state = state << 1 & 0xffffffff ^ (0x400007 if state >> 31 else 0)
        unit += struct.pack("<I", state)
    return unit


class Pattern(OnDisk):
    def setUp(self):
        super().setUp()
        code, = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "pattern.md").read_text(encoding="utf-8"), re.S)
        self.program = self.folder / "check.py"
        self.program.write_text(code, encoding="utf-8")

    def write(self):
        """An image of 4 KiB I/Os over all of a file."""
        self.result(*self.on_file("--file-size", str(UNITS * UNIT), "--lbas-per-io", "8", "--write-io", str(UNITS // 8),
                                  "--read-io", "0", "--seed", "77"))

    def read(self, code):
        return self.result(*self.on_file("--lbas-per-io", "8", "--write-io", "0", "--read-io", str(UNITS // 8)), code=code)

    def checked(self):
        done = subprocess.run([sys.executable, self.program, self.file], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def change(self, unit, content):
        """As a device does it, whose file keeps the time of its last change."""
        before = self.file.stat()
        with self.file.open("r+b") as file:
            file.seek(unit * UNIT)
            file.write(content)
        os.utime(self.file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def unit(self, number):
        return self.file.read_bytes()[number * UNIT:(number + 1) * UNIT]

    def test_an_image_is_right(self):
        self.write()
        self.assertEqual(self.unit(3)[:4], b"DBL2")
        self.assertEqual(self.checked(), "")

    def test_a_flipped_bit_a_moved_unit_and_an_old_one(self):
        self.write()
        for number, at, bit in ((9, 0, 0), (10, 5, 3), (11, 300, 7), (12, 511, 0)):
            damaged = bytearray(self.unit(number))
            damaged[at] ^= 1 << bit
            self.change(number, damaged)
        self.change(20, self.unit(40))
        self.change(30, old_unit(77, 30 * UNIT, 5))
        self.change(50, bytes(UNIT))
        expected = [f"{number * UNIT} damaged" for number in (9, 10, 11, 12)]
        expected += [f"{20 * UNIT} moved from {40 * UNIT}", f"{30 * UNIT} old: version 1 of the pattern"]
        self.assertEqual(self.checked().splitlines(), expected)
        cell, = self.read(code=2)["cells"]  # I/Os of 8 units: 9 to 12 are in one
        self.assertEqual({k: cell["verify"][k] for k in ("corrupt", "misplaced", "stale", "missing")},
                         {"corrupt": 1, "misplaced": 1, "stale": 0, "missing": 0} if not self.marked() else
                         {"corrupt": 1, "misplaced": 1, "stale": 2, "missing": 0})

    def marked(self):
        """The file system keeps the mark that says what doorbell wrote: zeros and older units are then stale."""
        return "user.doorbell.written" in os.listxattr(self.file)

    def test_an_image_of_version_1_is_right_and_named(self):
        self.file.write_bytes(b"".join(old_unit(77, n * UNIT, 5) for n in range(UNITS)))
        result = self.read(code=0)
        verify = result["cells"][0]["verify"]
        self.assertEqual((verify["checked"], verify["unverifiable"], verify["corrupt"]), (UNITS // 8, 0, 0))
        self.assertIn(f"{UNITS // 8} reads found right units of version 1 of the pattern, written by an earlier doorbell: "
                      "write them again", result["warnings"])
        # It is doorbell's own data: no permission is needed to write it again, and then nothing is to be said.
        self.write()
        self.assertEqual(self.checked(), "")
        self.assertFalse([w for w in self.read(code=0)["warnings"] if "version 1" in w])
        damaged = bytearray(old_unit(77, 7 * UNIT, 5))
        damaged[100] ^= 1
        self.change(7, damaged)
        self.assertEqual(self.read(code=2)["cells"][0]["verify"]["corrupt"], 1)


if __name__ == "__main__":
    unittest.main()
