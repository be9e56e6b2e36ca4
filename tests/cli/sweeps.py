# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of sweeps and comparisons: a small plan, a folder for its results, and looking at their pages."""

import csv
import json
import os
import pathlib
import sys
import unittest

import harness
from harness import ROOT, doorbell, wait_until

sys.path.insert(0, str(ROOT / "python"))

PLAN = """\
name: small
title: two by two
command: nvme
options: {write-io: 100, read-io: 100, timeout: 60, late-after: 50}
matrix:
  num-queues: [1, 2]
  batch-size: [1, 8]
"""


class WithFolder(harness.WithFolder):
    text = PLAN

    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"

    def plan(self, text=None):
        path = self.folder / "plan.yaml"
        path.write_text(text or self.text, encoding="utf-8")
        return path

    def sweep(self, *arguments, plan=None, code=0):
        done = doorbell("sweep", plan or self.plan(), "--out", self.out, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def lines(self):
        text = (self.out / "results.jsonl").read_text(encoding="utf-8")
        self.assertTrue(text.endswith("\n"))
        return [json.loads(line) for line in text.splitlines()]

    def rows(self):
        return list(csv.DictReader((self.out / "runs.csv").read_text(encoding="utf-8").splitlines()))

    def child_of(self, process):
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def nvme():
            for word in children.read_text(encoding="utf-8").split():
                try:
                    if b"nvme" in pathlib.Path(f"/proc/{word}/cmdline").read_bytes():
                        return int(word)
                except FileNotFoundError:
                    pass  # another child, which has ended meanwhile
            return None
        return wait_until(nvme, "a cell")

    def valid_lines(self, lines):
        file = self.folder / "embedded.jsonl"
        file.write_text("".join(json.dumps(line["result"]) + "\n" for line in lines), encoding="utf-8")
        for path in (file, self.out / "results.jsonl"):
            self.is_valid(path)


def page_of(test, file):
    """The page's text; it is whole, and html5lib, if it is there, finds nothing wrong with it."""
    text = file.read_text(encoding="utf-8")
    test.assertTrue(text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>"))
    try:
        import html5lib
    except ImportError:
        return text
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(text)
    test.assertEqual(parser.errors, [])
    return text


def without_jinja(folder):
    """An environment in which python3 finds no jinja2."""
    (folder / "jinja2.py").write_text("raise ImportError\n", encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(folder)}


def needs_jinja():
    from doorbell_report import template
    return unittest.skipUnless(template.available(), "python3-jinja2 is not installed")
