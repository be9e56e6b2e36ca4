#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell compare` as a user meets it: verdicts, what differs, exit codes. Needs no hardware."""

import json
import os
import unittest

from harness import doorbell
from sweeps import WithFolder, needs_jinja, page_of


class Compare(WithFolder):
    def result(self):
        """A result of this machine, with rates of our own."""
        path = self.folder / "sample"
        if not path.exists():
            done = doorbell("nvme", "--write-io", "50", "--read-io", "50", "--timeout", "60", "--late-after", "50", "--quiet",
                            "--json", path)
            self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(path.read_text())

    def runs(self, name, factor=1.0, count=7, change=None):
        """A folder of as many runs, whose rates are around 100000 * factor."""
        folder = self.folder / name
        folder.mkdir()
        for i in range(count):
            document = self.result()
            document["cells"][0]["repeats"][0]["ops_per_s"] = 1e5 * factor * (1 + i / 1000)
            if change:
                change(document)
            (folder / f"{i}.json").write_text(json.dumps(document))
        return folder

    def compare(self, *arguments, code=0):
        done = doorbell("compare", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_across_an_option(self):
        def set_controller(name):
            def change(document):
                document["cells"][0]["options"]["controller"] = name
                document["cells"][0]["cell"]["batch"] = len(name)
            return change
        a = self.runs("a", change=set_controller("model"))
        b = self.runs("b", 0.9, change=set_controller("another"))
        self.assertIn("no cell in common", self.compare(a, b, code=1).stderr)
        out = self.folder / "across.json"
        done = self.compare(a, b, "--across", "controller", "--json", out, code=3)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[2], "cells are paired across: controller")
        self.assertTrue(lines[3].startswith("  what differs"), lines)
        self.assertRegex(done.stdout, r"(?m)^  option controller +1 +model +another$")
        self.assertRegex(done.stdout, r"(?m)^  parameter batch +1 +5 +7$")
        self.assertEqual(json.loads(out.read_text())["across"], ["controller"])
        for name in ("", "controler", "json,,x"):
            self.assertIn("--across", self.compare(a, b, "--across", name, code=1).stderr)
        self.assertIn("the same: build, machine, devices, options", self.compare(a, a).stdout)

    def test_a_regression_is_3(self):
        a, b = self.runs("a"), self.runs("b", 0.9)
        done = self.compare(a, b, code=3)
        self.assertIn("REGRESSION", done.stdout)
        self.assertIn("0.900", done.stdout)
        self.assertIn("7 and 7", done.stdout)
        self.compare(b, a)
        self.compare(a, a)
        self.compare(a, b, "--threshold", "20")
        out = self.folder / "c.json"
        done = self.compare(a, b, "--quiet", "--json", out, code=3)
        self.assertEqual(done.stdout, "")
        self.assertIn("REGRESSION", done.stderr)
        document = json.loads(out.read_text())
        ratio, = document["cells"][0]["ratios"]
        self.assertAlmostEqual(ratio["ratio"], 0.9)
        self.assertGreaterEqual(ratio["ci_level"], 0.95)
        self.assertEqual((ratio["runs_before"], ratio["runs_after"], ratio["verdict"]), (7, 7, "regression"))
        self.assertEqual(document["exit_code"], 3)
        self.assertEqual(self.compare(a, a, "--quiet").stderr, "")

    def test_one_run_a_side_decides_nothing(self):
        a, b = self.runs("a", count=1), self.runs("b", 0.5, count=1)
        done = self.compare(a / "0.json", b / "0.json")
        self.assertIn("UNDECIDED", done.stdout)
        self.assertIn("'rounds: 7'", done.stdout)

    def test_data_errors_that_are_new_are_2(self):
        def corrupt(document):
            document["cells"][0]["verify"]["corrupt"] = 3
            document["exit_code"] = 2
        a, b = self.runs("a"), self.runs("b", change=corrupt)
        done = self.compare(a, b, "--quiet", code=2)
        self.assertIn("FAILED", done.stderr)
        self.assertIn("not comparable: B: 21 corrupt", self.compare(a, b, code=2).stdout)
        self.compare(b, a, code=3)
        self.compare(b, b, code=3)

    def test_what_is_missing_is_3(self):
        a = self.runs("a")
        self.assertIn("7 incomplete runs",
                      self.compare(a, self.runs("b", change=lambda d: d.update(complete=False)), code=3).stdout)
        self.sweep()
        whole, lacking = self.folder / "whole.jsonl", self.folder / "lacking.jsonl"
        lines = (self.out / "results.jsonl").read_text().splitlines(True)
        whole.write_text("".join(lines))
        lacking.write_text("".join(lines[:3]))
        self.assertIn("no such cell", self.compare(whole, lacking, code=3).stdout)
        lost = json.loads(lines[3])
        lost.update(result=None, ended="timeout", exit_code=137)
        lacking.write_text("".join(lines[:3]) + json.dumps(lost) + "\n")
        self.assertIn("1 runs without a result (timeout)", self.compare(whole, lacking, code=3).stdout)

    def test_what_is_different_is_said_first(self):
        def unverified(document):
            document["cells"][0]["verify"]["mode"] = "none"
            document["cells"][0]["options"]["verify"] = "off"
            document["warnings"] = ["the machine is busy: load average 3.14 on 2 CPUs"]
        text = self.compare(self.runs("a"), self.runs("b", change=unverified)).stdout
        for word in ("verify mode", "load average 3.14"):
            self.assertLess(text.index(word), text.index("metric"), text)

    def test_folders(self):
        self.sweep()
        done = self.compare(self.out, self.out)
        self.assertIn("UNDECIDED", done.stdout)
        self.assertEqual(done.stdout.count("batch-size="), 4)

    def test_no_input_is_overwritten(self):
        a, b = self.runs("a"), self.runs("b")
        one = b / "3.json"
        before = one.read_bytes()
        (self.folder / "soft").symlink_to(one)
        os.link(one, self.folder / "hard")
        for name in (one, self.folder / "soft", self.folder / "hard", self.folder / "a" / ".." / "b" / "3.json"):
            done = self.compare(a, b, "--json", name, code=1)
            self.assertIn("which is compared", done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(one.read_bytes(), before)

    @needs_jinja()
    def test_a_page_with_a_picture_of_the_ratios(self):
        a, b = self.runs("a<script>"), self.runs("b", 0.9)
        html = self.folder / "page.html"
        self.compare(a, b, "--html", html, "--json", self.folder / "c.json", code=3)
        text = page_of(self, html)
        for expected in ("1 REGRESSION", "0.900", "7 and 7", "a&lt;script&gt;", "The threshold is 5.0 %"):
            self.assertIn(expected, text)
        from doorbell_report import drawing
        self.assertEqual("<svg " in text, drawing.available())
        document = json.loads((self.folder / "c.json").read_text(encoding="utf-8"))
        self.assertEqual((document["before"], document["after"], document["threshold_percent"]), (str(a), str(b), 5))
        before = (b / "3.json").read_bytes()
        self.assertIn("which is compared", self.compare(a, b, "--html", b / "3.json", code=1).stderr)
        self.assertEqual((b / "3.json").read_bytes(), before)
        self.assertEqual(self.compare(a, b, "--html", "/dev/full", code=3).stdout.count("REGRESSION: "), 1)
        self.assertIn("--html /dev/full", self.compare(a, a, "--html", "/dev/full", code=1).stderr)

    def test_a_file_that_cannot_be_written_costs_no_comparison(self):
        a, b = self.runs("a"), self.runs("b", 0.9)
        for second, code in ((b, 3), (a, 1)):
            done = self.compare(a, second, "--json", "/dev/full", code=code)
            self.assertIn("7 and 7", done.stdout)
            self.assertIn("/dev/full", done.stderr)

    def test_inputs_are_regular_files(self):
        a = self.runs("a")
        os.mkfifo(self.folder / "fifo")
        for other in (self.folder / "fifo", "/dev/zero"):
            self.assertIn("not a regular file", self.compare(a, other, code=1).stderr)
            self.assertIn("not a regular file", doorbell("sweep", other).stderr)
            self.assertEqual(doorbell("sweep", other).returncode, 1)

    def test_refusals(self):
        a = self.runs("a")
        for arguments in ([a], [a, self.folder / "absent.json"], [a, a, "--metric", "mean"], [a, self.plan()],
                          [a, a, "--threshold", "-1"], [a, a, "--json", self.folder / "absent" / "c.json"]):
            done = doorbell("compare", *arguments)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertNotEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
