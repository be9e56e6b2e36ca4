#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell reproduce` and a plan's profiles as a user meets them. Needs no hardware."""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import harness
from harness import DOORBELL, ROOT, doorbell, wait_until
from sweeps import without_jinja

ONE = """\
name: one
title: a table of theirs
source: theirs
command: nvme
options: {write-io: 50, read-io: 50, timeout: 60, late-after: 50}
matrix: {batch-size: [1, 2, 4]}
profiles:
  quick: {options: {read-io: 10, repeats: 2}, only: "batch-size=1,batch-size=4", rounds: 2}
reference:
  file: theirs.csv
  match: {batch-size: batch}
  columns: {value: us, unit: us}
  ours: nvme.read.latency_ns.mean
"""
TWO = """\
name: two
source: theirs
command: rdma
options: {device: model, measure: latency, iterations: 20, repeats: 1, timeout: 60, late-after: 50}
cells:
  - {size: 64}
  - {provider: verbs, device: no_such_device}
profiles:
  quick: {}
"""
OTHER = "name: other\nsource: ours\ncommand: nvme\noptions: {read-io: 5}\nprofiles: {quick: {}}\n"
NOBODYS = "name: nobodys\ncommand: nvme\noptions: {read-io: 5}\nprofiles: {quick: {}}\n"
CSV = "batch,us\n1,1000001\n2,1000002\n4,1000004\n"


class WithPlans(harness.WithFolder):
    def setUp(self):
        super().setUp()
        self.plans = self.folder / "their plans"
        self.plans.mkdir()
        self.out = self.folder / "out"
        (self.plans / "theirs.csv").write_text(CSV, encoding="utf-8")
        for text in (ONE, TWO, OTHER, NOBODYS):
            name = text.split()[1]
            (self.plans / f"{name}.yaml").write_text(text, encoding="utf-8")

    def command(self, *arguments):
        return ["reproduce", *arguments, "--plans", self.plans, "--out", self.out]

    def reproduce(self, *arguments, code=0):
        done = doorbell(*self.command(*arguments))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def records(self, plan):
        text = (self.out / plan / "results.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def shape(self):
        """The contents of the folders but for figures and the order of runs."""
        return {p.name: sorted((r["cell"], r["round"], r["exit_code"], r["result"] is not None,
                                json.dumps(r["options"])) for r in self.records(p.name))
                for p in self.out.iterdir() if p.is_dir()}


class Reproduce(WithPlans):
    def test_the_plans_of_a_source_and_one_report(self):
        done = self.reproduce("theirs", "--profile", "full")
        self.assertEqual({"one", "two"}, {p.name for p in self.out.iterdir() if p.is_dir()})
        self.assertEqual([(r["cell"], r["exit_code"]) for r in self.records("one")], [(0, 0), (1, 0), (2, 0)])
        self.assertIn("3 ok", done.stdout)
        self.assertIn("1 ok, 1 skipped", done.stdout)
        self.assertIn("skipped: ", done.stdout)
        tables = (self.out / "tables.txt").read_text(encoding="utf-8")
        for figure in ("1000001", "1000002", "1000004"):
            self.assertIn(figure, tables)
        self.assertIn("published, other machine", tables)
        self.assertIn("software model", tables)
        self.assertIn("skipped", tables)
        page = (self.out / "report.html").read_text(encoding="utf-8")
        self.assertIn("<html", page)
        self.assertIn("batch", page)

    def test_one_plan_by_its_file_or_its_name(self):
        for what in (self.plans / "one.yaml", "one.yaml", "one"):
            self.out = self.folder / str(what).replace("/", "-")
            done = self.reproduce(what)
            self.assertEqual([p.name for p in self.out.iterdir() if p.is_dir()], ["one"])
            self.assertIn("3 ok", done.stdout)
        self.out = self.folder / "nobody"
        self.assertIn("1 ok", self.reproduce(self.plans / "nobodys.yaml").stdout)  # it has no source
        listed = self.reproduce("one", "--list")
        self.assertEqual([line.split()[1] for line in listed.stdout.splitlines()[1:]], ["one"])
        self.assertIn("No such file", self.reproduce(self.folder / "absent.yaml", code=1).stderr)
        self.assertIn("did you mean 'other'?", self.reproduce("othr", code=1).stderr)

    def kernel(self, more=""):
        """A plan that makes a file among the temporary ones; returns the environment and that folder."""
        tmp = self.folder / "tmp"
        tmp.mkdir(exist_ok=True)
        (self.plans / "other.yaml").write_text(
            "name: other\nsource: ours\ncommand: nvme\n"
            f"options: {{controller: 'file:{tmp}/made.img', file-size: 1Mi, allow-write: true, direct: off, backend: sync,"
            f" read-io: 20, timeout: 60, late-after: 50{more}}}\nmatrix: {{batch-size: [1]}}\n"
            "cells: [{lbas-per-io: 2}]\n", encoding="utf-8")
        return {**os.environ, "TMPDIR": str(tmp)}, tmp

    def test_nothing_stays_among_the_temporary_files(self):
        env, tmp = self.kernel()
        done = doorbell(*self.command("ours"), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.records("other")[0]["result"]["cells"][0]["device"]["kind"], "kernel")
        self.assertEqual(list(tmp.iterdir()), [])
        # A folder that was there before is somebody's.
        self.out = self.folder / "again"
        (tmp / "made.img").write_bytes(b"\0" * (1 << 20))
        done = doorbell(*self.command("ours"), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([p.name for p in tmp.iterdir()], ["made.img"])

    def test_nothing_stays_after_errors(self):
        env, tmp = self.kernel()
        self.out.mkdir()
        (self.out / "other").mkdir()
        (self.out / "other" / "precious").write_text("x", encoding="utf-8")
        done = doorbell(*self.command("ours"), env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(list(tmp.iterdir()), [])
        env, tmp = self.kernel(", write-io: 3")
        (self.plans / "other.yaml").write_text((self.plans / "other.yaml").read_text(encoding="utf-8").replace(
            "lbas-per-io: 2", "file-size: 1Ki, base-lba: 999999"), encoding="utf-8")
        self.out = self.folder / "failing"
        done = doorbell(*self.command("ours"), env=env)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list(tmp.iterdir()), [])

    def test_nothing_stays_after_ctrl_c(self):
        env, tmp = self.kernel(", duration: 60, repeats: 1")
        with subprocess.Popen([DOORBELL, *map(str, self.command("ours"))], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=env) as process:
            wait_until((tmp / "made.img").exists, "the file")
            process.send_signal(signal.SIGINT)
            out, err = harness.end_of(process)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertEqual(list(tmp.iterdir()), [])

    def test_files_of_the_plans_that_come_with_doorbell_are_temporary_ones(self):
        for plan in pathlib.Path(ROOT, "plans").glob("*.yaml"):
            for path in re.findall(r"(?m)^[^#\n]*file:(/[^\s\"',}]+)", plan.read_text(encoding="utf-8")):
                self.assertTrue(path.startswith("/tmp/"), f"{plan.name}: {path}")

    def test_quick_is_another_sweep(self):
        self.reproduce("theirs", "--profile", "quick")
        lines = self.records("one")
        self.assertEqual(sorted((r["cell"], r["round"]) for r in lines), [(0, 0), (0, 1), (2, 0), (2, 1)])
        for line in lines:
            self.assertEqual(line["options"]["read-io"], "10")
            self.assertEqual(len(line["result"]["cells"][0]["repeats"]), 2)
        refused = self.reproduce("theirs", code=1)
        self.assertIn("another plan", refused.stderr)
        # The sweep of a plan's profile goes on in the same folder.
        again = doorbell("sweep", self.plans / "one.yaml", "--profile", "quick", "--resume", "--out", self.out / "one")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.records("one"), lines)

    def test_an_interrupted_one_goes_on(self):
        slow = ONE.replace("write-io: 50, read-io: 50", "read-io: 50, duration: 1, repeats: 1")
        (self.plans / "one.yaml").write_text(slow, encoding="utf-8")
        process = subprocess.Popen([DOORBELL, *map(str, self.command("all", "--profile", "full"))],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        file = self.out / "one" / "results.jsonl"
        wait_until(lambda: file.exists() and file.read_text(encoding="utf-8").count("\n") >= 1, "a finished cell")
        process.send_signal(signal.SIGINT)
        out, err = harness.end_of(process)
        self.assertEqual(process.returncode, 130, out + err)
        self.reproduce("all", "--profile", "full")
        after = self.shape()
        whole, self.out = self.out, self.folder / "whole"
        self.reproduce("all", "--profile", "full")
        self.assertEqual(after, self.shape())
        self.assertTrue((whole / "report.html").exists())

    def test_data_errors_are_its_exit_code(self):
        bad = OTHER.replace("read-io: 5", "write-io: 500, read-io: 500, fault: corrupt=0.1, timeout: 60, late-after: 50")
        (self.plans / "other.yaml").write_text(bad, encoding="utf-8")
        done = self.reproduce("ours", "--profile", "full", code=2)
        self.assertIn("1 exit 2", done.stdout)
        self.assertTrue((self.out / "report.html").exists())

    def test_nothing_that_can_run_is_77(self):
        (self.plans / "other.yaml").write_text("name: other\nsource: ours\ncommand: rdma\n"
                                               "options: {provider: verbs, device: no_such_device}\n", encoding="utf-8")
        done = self.reproduce("ours", code=77)
        self.assertIn("1 skipped", done.stdout)
        self.assertIn("nothing was measured", done.stderr)

    def test_no_report_is_said_first_and_costs_no_figures(self):
        done = doorbell(*self.command("ours"), env=without_jinja(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        first, last = done.stderr.splitlines()
        self.assertIn("there will be no report: python3-jinja2", first)
        self.assertIn("python3-jinja2 is not installed", last)
        self.assertTrue((self.out / "tables.txt").exists())

    def test_what_it_has_not_made_is_left_alone(self):
        self.out.mkdir()
        for name in ("tables.txt", "report.html"):
            (self.out / name).write_text("precious", encoding="utf-8")
            self.assertIn(f"--out {self.out}: {name} is there", self.reproduce("ours", code=1).stderr)
            self.assertEqual([p.name for p in self.out.iterdir()], [name])
            (self.out / name).unlink()
            (self.out / name).symlink_to("/dev/null")
            self.assertIn(f"{name} is there", self.reproduce("ours", code=1).stderr)
            (self.out / name).unlink()
        for _ in "12":
            self.reproduce("ours")
            self.assertTrue((self.out / "tables.txt").read_text(encoding="utf-8").startswith("doorbell reproduce ours"))

    def test_bad_input(self):
        for arguments, says in ((["thiers"], "did you mean 'theirs'"), (["--profile", "slow"], "quick, full"),
                                (["--cell-timeout", "0"], "0.1")):
            done = self.reproduce(*arguments, code=1)
            self.assertIn(says, done.stderr)
        self.assertFalse(self.out.exists())
        (self.plans / "broken.yaml").write_text("name: broken\nsource: theirs\n", encoding="utf-8")
        self.assertIn("'command' is missing", self.reproduce("ours", code=1).stderr)
        missing = doorbell("reproduce", "--plans", self.folder / "absent")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("--plans", missing.stderr)

    def test_list(self):
        done = self.reproduce("--list")
        self.assertEqual([line.split()[:3] for line in done.stdout.splitlines()[1:]],
                         [["ours", "other", "1"], ["theirs", "one", "3"], ["theirs", "two", "2"]])
        self.assertFalse(self.out.exists())


class Profiles(WithPlans):
    def test_bad_ones_are_refused(self):
        path = self.folder / "plan.yaml"
        for change, says in (("profiles: {quick: {options: {batch-size: 1}}}", "--batch-size is in the matrix"),
                             ("profiles: {quick: {options: {no-such: 1}}}", "no-such"),
                             ("profiles: {quick: {rounds: 0}}", "rounds"),
                             ("profiles: {quick: {speed: 1}}", "speed"),
                             ("profiles: {'a b': {rounds: 1}}", "a name has")):
            path.write_text("name: p\ncommand: nvme\nmatrix: {batch-size: [1, 2]}\n" + change + "\n", encoding="utf-8")
            done = doorbell("sweep", path, "--list")
            self.assertEqual(done.returncode, 1, change)
            self.assertIn(says, done.stderr, change)
            self.assertIn("plan.yaml:", done.stderr)

    def test_an_unknown_one_names_those_there_are(self):
        done = doorbell("sweep", self.plans / "one.yaml", "--profile", "quik", "--list")
        self.assertEqual(done.returncode, 1)
        self.assertIn("it has quick", done.stderr)

    def test_only_and_the_profiles_own(self):
        done = doorbell("sweep", self.plans / "one.yaml", "--profile", "quick", "--list", "--only", "batch-size=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("--batch-size=4"), 2)
        self.assertNotIn("--batch-size=1", done.stdout)
        none = doorbell("sweep", self.plans / "one.yaml", "--profile", "quick", "--list", "--only", "batch-size=2")
        self.assertEqual(none.returncode, 1)


class Shipped(unittest.TestCase):
    def test_every_published_plan_has_a_quick_profile(self):
        done = doorbell("reproduce", "--list", "--profile", "quick")
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = {line.split()[1] for line in done.stdout.splitlines()[1:]}
        sources = {line.split()[0] for line in done.stdout.splitlines()[1:]}
        self.assertLessEqual({"xio", "daqiri", "cxi"}, sources)
        with_source = {p.stem for p in pathlib.Path(ROOT, "plans").glob("*.yaml")
                       if "\nsource:" in p.read_text(encoding="utf-8")}
        self.assertEqual(listed, with_source)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
