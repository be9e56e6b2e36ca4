#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The page beside the program's own table: the same units, and what it lacks is said."""

import json
import os
import re
import unittest

import harness
from harness import TIMEOUTS, doorbell
from sweeps import needs_jinja, page_of

NET = ["net", "--count", "50", "--settle", "5", *TIMEOUTS]
NVME = ["nvme", "--write-io", "200", "--read-io", "200", *TIMEOUTS]
PLAN = """\
name: streams
command: net
options: {count: 50, timeout: 60}
matrix:
  payload: [256, 512]
"""
NO_CHARTS = "it has no charts, because the Debian package python3-matplotlib is not installed"


def units_in(text):
    text = re.sub(r"<style>.*?</style>|<pre>.*?</pre>", "", text, flags=re.DOTALL)
    return set(re.findall(r"\b(?:Mpps|kIOPS|k ops/s|GB/s|Gb/s|MB/s|ops/s)", text))


class WithPage(harness.WithFolder):
    def setUp(self):
        super().setUp()
        self.html = self.folder / "page.html"

    def page(self, *command, code=0, env=None):
        """(the page, standard output, standard error)"""
        done = doorbell(*command, "--html", str(self.html), env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return page_of(self, self.html), done.stdout, done.stderr

    def plan(self):
        path = self.folder / "plan.yaml"
        path.write_text(PLAN, encoding="utf-8")
        return ["sweep", str(path), "--out", str(self.folder / "out")]


@needs_jinja()
class Units(WithPage):
    def test_those_of_the_table(self):
        for command, expected in ((NET, {"Mpps", "GB/s"}), ([*NET, "--units", "bits"], {"Mpps", "Gb/s"}), (NVME, {"kIOPS", "GB/s"}),
                                  ([*NVME, "--units", "bits"], {"kIOPS", "Gb/s"})):
            with self.subTest(command=command):
                page, table, _ = self.page(*command)
                self.assertEqual(units_in(page), expected)
                self.assertEqual(units_in(table), expected)

    def test_those_of_a_sweep_are_its_own(self):
        page, table, _ = self.page(*self.plan(), "--units", "bits")
        self.assertEqual(units_in(page), {"Mpps", "Gb/s"})
        self.assertEqual(units_in(table), {"Mpps", "Gb/s"})

    def test_a_comparison_of_packets(self):
        files = [str(self.folder / f"{name}.json") for name in "ab"]
        for file in files:
            self.assertEqual(doorbell(*NET, "--repeats", "4", "--json", file).returncode, 0)
        out = self.folder / "compared.json"
        page, table, _ = self.page("compare", *files, "--metric", "ops_per_s,bytes_per_s", "--threshold", "1000", "--json", str(out))
        self.assertEqual(units_in(page), {"Mpps", "GB/s"})
        self.assertEqual(units_in(table), {"Mpps", "GB/s"})
        (cell,) = json.loads(out.read_text(encoding="utf-8"))["cells"]
        self.assertEqual(cell["operations"], ["packet"])
        self.assertIn("The verdicts rest on 1 run of A and 1 of B", page)
        self.assertIn("2 of 2 rest only on the repeats inside too few runs. That is weaker", page)
        self.assertIn("4 and 4 repeats of 1 and 1 runs", page)


@needs_jinja()
class WithoutCharts(WithPage):
    def test_the_page_and_one_line_say_so(self):
        (self.folder / "matplotlib.py").write_text("raise ImportError\n", encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(self.folder)}
        for command in (NVME, [*NVME, "--quiet"], self.plan()):
            with self.subTest(command=command):
                page, _, errors = self.page(*command, env=env)
                self.assertIn(f"Of this page: {NO_CHARTS}.", page)
                self.assertEqual([line for line in errors.splitlines() if "matplotlib" in line], [f"doorbell: {self.html}: {NO_CHARTS}"])


if __name__ == "__main__":
    unittest.main()
