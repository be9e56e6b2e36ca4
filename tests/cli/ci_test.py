#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""docs/ci.md: each of its shell lines is run, and ends as the page says. Needs no hardware."""

import json
import os
import pathlib
import re
import stat
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import harness
from harness import DOORBELL, ROOT, TIMEOUTS, doorbell, long

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\s*(?:- )?(?:run: )?(doorbell .*)$")


def lines():
    """The shell lines of the page, in order; each with the code that it ends with."""
    found = []
    for _, text in BLOCKS:
        for line in text.splitlines():
            if match := COMMAND.match(line):
                command, _, comment = match[1].partition("  # exit ")
                found.append((command, int(comment or 0)))
    return found


def ends_in(path):
    """{(tag, type)} of the cases that have not passed."""
    root = ElementTree.parse(path).getroot()
    return {(end.tag, end.get("type")) for case in root.iter("testcase") for end in case}


class Page(harness.WithFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "doorbell").symlink_to(os.path.abspath(DOORBELL))
        (self.folder / "ci").mkdir()
        plan, = (text for kind, text in BLOCKS if kind == "yaml" and text.startswith("# ci/doorbell.yaml\n"))
        (self.folder / "ci" / "doorbell.yaml").write_text(plan, encoding="utf-8")
        self.baseline(1e-3)

    def baseline(self, rate):
        """An earlier build that is as fast as we say: the page's own figures would differ by chance."""
        sample = self.folder / "sample.json"
        if not sample.exists():
            done = doorbell("nvme", "--read-io", "20", "--write-io", "20", *TIMEOUTS, "--quiet", "--json", sample)
            self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(sample.read_text(encoding="utf-8"))
        document["cells"][0]["repeats"][0]["ops_per_s"] = rate
        sample.write_text(json.dumps(document), encoding="utf-8")
        path = self.folder / "doorbell-main"
        path.write_text(f"#!/bin/sh\nexec cat {sample}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_line(self, line, code):
        env = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=200, cwd=self.folder, env=env)
        self.assertEqual(done.returncode, code, f"{line}\n{done.stdout}{done.stderr}")
        written = re.search(r"--junit (\S+)", line)
        self.assertIsNotNone(written, line)
        return ends_in(self.folder / written[1])

    @long
    def test_every_line_ends_as_the_page_says(self):
        found = lines()
        self.assertEqual({code for _, code in found}, {0, 2, 3})
        wanted = {0: set(), 2: {("failure", "data")}, 3: {("failure", "regression")}}
        done = set()
        for line, code in found:
            if line in done:
                continue  # the two systems have the same lines
            done.add(line)
            self.assertEqual(self.run_line(line, code), wanted[code], line)

    def test_no_line_is_left_out(self):
        commands = {line for line, _ in lines()}
        for kind, text in BLOCKS:
            self.assertIn(kind, ("sh", "yaml"))
            for line in text.splitlines():
                if re.search(r"\bdoorbell [a-z]+ .*--", line):
                    self.assertTrue(any(command in line for command in commands), line)
                if kind == "sh":
                    self.assertRegex(line, COMMAND)
        for job in ("# .github/workflows/doorbell.yml", "# .gitlab-ci.yml"):
            text, = (text for _, text in BLOCKS if text.startswith(job))
            self.assertEqual([COMMAND.match(line)[1].split()[1] for line in text.splitlines() if COMMAND.match(line)],
                             ["sweep", "compare"], job)

    @long
    def test_the_jobs_fail_on_wrong_data(self):
        plan = self.folder / "ci" / "doorbell.yaml"
        text = plan.read_text(encoding="utf-8")
        plan.write_text(text.replace("options: {", "options: {fault: corrupt=0.02, "), encoding="utf-8")
        self.assertNotEqual(plan.read_text(encoding="utf-8"), text)
        for line in {line for line, _ in lines() if line.startswith("doorbell sweep")}:
            self.assertEqual(self.run_line(line, 2), {("failure", "data")})
        for line in {line for line, _ in lines() if "--baseline" in line}:
            self.assertIn(("failure", "data"), self.run_line(line + " --fault corrupt=0.5", 2))

    def test_the_jobs_fail_on_a_regression(self):
        self.baseline(1e15)
        for line in {line for line, _ in lines() if "--baseline" in line}:
            self.assertEqual(self.run_line(line, 3), {("failure", "regression")})

    def test_the_yaml_is_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        for kind, text in BLOCKS:
            if kind == "yaml":
                self.assertIsInstance(yaml.safe_load(text), dict)


if __name__ == "__main__":
    unittest.main()
