#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell sweep` and `doorbell compare` as a user meets them: folders, resuming, Ctrl-C, exit codes. Needs no hardware."""

import csv
import fcntl
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import DOORBELL, ROOT, doorbell, wait_until

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
LONG = """\
name: long
command: nvme
options: {read-io: 1, duration: 30, repeats: 1, warmup: 0, timeout: 60, late-after: 50}
matrix: {batch-size: [1, 8]}
"""


def wait_for_handler(pid):
    """Until the process catches SIGINT itself."""
    def caught():
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        mask, = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
        return int(mask, 16) >> (signal.SIGINT - 1) & 1
    wait_until(caught, "a handler of SIGINT")


class WithFolder(harness.WithFolder):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"

    def plan(self, text=PLAN):
        path = self.folder / "plan.yaml"
        path.write_text(text, encoding="utf-8")
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
            words = children.read_text(encoding="utf-8").split()
            return words and b"nvme" in pathlib.Path(f"/proc/{words[0]}/cmdline").read_bytes() and int(words[0])
        return wait_until(nvme, "a cell")

    def valid_lines(self, lines):
        file = self.folder / "embedded.jsonl"
        file.write_text("".join(json.dumps(line["result"]) + "\n" for line in lines), encoding="utf-8")
        for path in (file, self.out / "results.jsonl"):
            self.is_valid(path)


class Runs(WithFolder):
    def test_every_cell_is_run_and_kept(self):
        done = self.sweep()
        self.assertIn("OK: 4 of 4 runs complete", done.stdout)
        self.assertIn("software model", done.stdout)
        lines = self.lines()
        self.assertEqual([(x["cell"], x["round"]) for x in lines], [(0, 0), (1, 0), (2, 0), (3, 0)])
        self.assertEqual([(x["options"]["num-queues"], x["options"]["batch-size"]) for x in lines],
                         [("1", "1"), ("1", "8"), ("2", "1"), ("2", "8")])
        for line in lines:
            cell, = line["result"]["cells"]
            self.assertEqual(cell["options"]["batch_size"], int(line["options"]["batch-size"]))
            self.assertEqual(cell["verify"]["checked"], 100)
            self.assertEqual(line["result"]["argv"][:2], ["doorbell", "nvme"])
        self.valid_lines(lines)
        rows = self.rows()
        self.assertEqual([row["cell"] for row in rows], ["0", "1", "2", "3"])
        for row, line in zip(rows, lines):
            self.assertEqual(float(row["ops_per_s"]), line["result"]["cells"][0]["repeats"][0]["ops_per_s"])
        self.assertEqual((self.out / "plan.yaml").read_text(), PLAN)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["plan.json", "plan.yaml", "results.jsonl", "runs.csv"])

    def test_rounds_and_repeats_are_rows(self):
        self.sweep(plan=self.plan(PLAN.replace("late-after: 50", "late-after: 50, repeats: 2") +
                                  "rounds: 2\norder: shuffled\n"))
        lines = self.lines()
        self.assertEqual([x["round"] for x in lines], [0] * 4 + [1] * 4)
        self.assertEqual(sorted(x["cell"] for x in lines[:4]), [0, 1, 2, 3])
        self.assertEqual(len(self.rows()), 16)

    def test_list_runs_nothing(self):
        done = self.sweep("--list")
        self.assertFalse(self.out.exists())
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("doorbell nvme --write-io=100 --read-io=100 --timeout=60 --late-after=50 --num-queues=1 "
                      "--batch-size=8", lines[1])

    def test_only(self):
        self.sweep("--only", "num-queues=2,batch-size=8")
        self.assertEqual([x["cell"] for x in self.lines()], [3])
        self.sweep()
        self.assertEqual([x["cell"] for x in self.lines()], [3, 0, 1, 2])

    def test_default_folder(self):
        done = subprocess.run([os.path.abspath(DOORBELL), "sweep", str(self.plan()), "--only", "num-queues=1"],
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        found, = (self.folder / "results").iterdir()
        self.assertRegex(found.name, r"^small-\d{8}-\d{6}$")

    def test_quiet_prints_nothing(self):
        done = self.sweep("--quiet")
        self.assertEqual(done.stdout + done.stderr, "")

    def test_the_plans_of_the_repository_name_rows_that_exist(self):
        done = doorbell("sweep", ROOT / "plans" / "nvme-modes.yaml", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        published = done.stdout.split("published, other machine", 1)[1]
        for figure in ("38.4", "188.9", "151.5", "198.5"):
            self.assertIn(figure, published)
            for row in self.rows():
                self.assertNotIn(figure, row.values())


class Failures(WithFolder):
    def test_data_errors_of_one_cell_are_the_sweeps(self):
        plan = self.plan("name: f\ncommand: nvme\noptions: {write-io: 2000, read-io: 2000, timeout: 60, late-after: 50}\n"
                         "cells:\n  - {batch-size: 1}\n  - {batch-size: 2, fault: corrupt=0.05}\n  - {batch-size: 4}\n")
        done = self.sweep(plan=plan, code=2)
        self.assertEqual([x["exit_code"] for x in self.lines()], [0, 2, 0])
        self.assertIn("FAILED", done.stdout)
        # It is complete, if bad: going on runs nothing and still says so.
        before = (self.out / "results.jsonl").read_bytes()
        self.sweep(plan=plan, code=2)
        self.assertEqual((self.out / "results.jsonl").read_bytes(), before)

    def test_a_cell_that_cannot_start_is_one_failed_cell(self):
        plan = self.plan("name: f\ncommand: nvme\noptions: {write-io: 10, read-io: 10}\n"
                         f"matrix: {{controller: ['file:{self.folder}/absent', model]}}\n")
        done = self.sweep(plan=plan, code=1)
        first, second = self.lines()
        self.assertEqual((first["exit_code"], second["exit_code"]), (1, 0))
        self.assertIsNone(first["result"])
        self.assertIn("absent", first["error"])
        self.assertIn("absent", done.stdout)
        self.assertEqual([row["path"] for row in self.rows()], ["", "nvme"])

    def test_a_cell_beyond_its_time_is_stopped(self):
        started = time.monotonic()
        self.sweep("--cell-timeout", "1", "--only", "batch-size=1", plan=self.plan(LONG), code=2)
        self.assertLess(time.monotonic() - started, 20)
        line, = self.lines()
        self.assertEqual(line["ended"], "timeout")
        self.assertFalse(line["result"]["complete"], "it has reported what it had")
        self.valid_lines([line])

    def test_a_cell_that_is_killed_is_one_failed_cell(self):
        plan = self.plan(LONG)
        process = subprocess.Popen([DOORBELL, "sweep", str(plan), "--out", str(self.out), "--cell-timeout", "2"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = self.child_of(process)
        os.kill(child, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, out + err)
        first, second = self.lines()
        self.assertEqual((first["ended"], first["exit_code"], first["result"]), ("signal", 137, None))
        self.assertEqual(second["ended"], "timeout", "the next one has been run")


class Resuming(WithFolder):
    def test_a_torn_last_line_is_run_again(self):
        self.sweep()
        file = self.out / "results.jsonl"
        whole = file.read_bytes()
        file.write_bytes(whole[:-200])
        done = self.sweep("--resume")
        self.assertIn("torn", done.stderr)
        self.assertIn("3 of 4 runs are there already", done.stderr)
        lines = self.lines()
        self.assertEqual([x["cell"] for x in lines], [0, 1, 2, 3])
        self.assertTrue(file.read_bytes().startswith(b"".join(whole.splitlines(True)[:3])), "the others are untouched")
        self.assertEqual([row["cell"] for row in self.rows()], ["0", "1", "2", "3"])

    def test_damage_in_the_middle_is_refused(self):
        self.sweep()
        file = self.out / "results.jsonl"
        lines = file.read_bytes().splitlines(True)
        file.write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2])
        self.assertIn("results.jsonl:2", self.sweep(code=1).stderr)

    def test_another_plan_is_refused(self):
        self.sweep()
        before = (self.out / "results.jsonl").read_bytes()
        done = self.sweep(plan=self.plan(PLAN.replace("[1, 8]", "[1, 4]")), code=1)
        self.assertIn("another plan", done.stderr)
        self.assertEqual((self.out / "results.jsonl").read_bytes(), before)

    def test_resume_needs_a_sweep(self):
        self.assertIn("holds no sweep", self.sweep("--resume", code=1).stderr)
        self.assertFalse(self.out.exists())
        done = doorbell("sweep", self.plan(), "--resume")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--out", done.stderr)

    def test_a_folder_of_something_else_is_left_alone(self):
        self.out.mkdir()
        (self.out / "precious").write_text("x")
        self.assertIn("holds no sweep", self.sweep(code=1).stderr)
        self.assertEqual([p.name for p in self.out.iterdir()], ["precious"])

    def test_one_sweep_at_a_time(self):
        self.sweep()
        handle = os.open(self.out, os.O_RDONLY)
        self.addCleanup(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)
        self.assertIn("another sweep", self.sweep(code=1).stderr)


class Interrupt(WithFolder):
    def test_ctrl_c_keeps_the_partial_cell_and_the_next_run_finishes(self):
        plan = self.plan("name: i\ncommand: nvme\noptions: {read-io: 1, duration: 2, repeats: 1, warmup: 0, timeout: 60, "
                         "late-after: 50}\nmatrix: {batch-size: [1, 8]}\n")
        process = subprocess.Popen([DOORBELL, "sweep", str(plan), "--out", str(self.out)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        wait_for_handler(self.child_of(process))  # the first cell runs
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("INTERRUPTED", out)
        line, = self.lines()
        self.assertEqual(line["ended"], "interrupted")
        self.assertEqual(line["result"]["stop_reason"], "signal")
        self.assertFalse(line["result"]["complete"])
        self.valid_lines([line])
        self.sweep("--resume", plan=plan)
        self.assertEqual([(x["cell"], x["ended"], x["result"]["complete"]) for x in self.lines()],
                         [(0, "exit", True), (1, "exit", True)])

    def test_a_run_that_somebody_else_interrupts_is_interrupted_not_failed(self):
        plan = self.plan(LONG.replace("[1, 8]", "[1]"))
        process = subprocess.Popen([DOORBELL, "sweep", str(plan), "--out", str(self.out), "--quiet"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = self.child_of(process)
        wait_for_handler(child)
        os.kill(child, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        line, = self.lines()
        self.assertFalse(line["result"]["complete"])
        self.assertEqual((process.returncode, line["ended"], line["exit_code"]), (130, "interrupted", 130), out + err)


class Outputs(WithFolder):
    def test_a_plan_is_not_overwritten(self):
        self.sweep()
        plan = self.out / "plan.yaml"
        done = doorbell("sweep", plan, "--out", self.out)
        self.assertEqual(done.returncode, 0, "the folder's own plan goes on: " + done.stderr)
        for name in ("results.jsonl", "runs.csv"):
            (self.out / name).unlink()
            os.link(plan, self.out / name)
            before = plan.read_bytes()
            self.assertIn("give another folder", doorbell("sweep", plan, "--out", self.out).stderr)
            self.assertEqual(plan.read_bytes(), before)
            (self.out / name).unlink()

    def test_what_was_measured_is_printed_when_a_file_cannot_be_written(self):
        process = subprocess.Popen([DOORBELL, "sweep", str(self.plan(LONG)), "--out", str(self.out)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = self.child_of(process)
        (self.out / "runs.csv").unlink()
        (self.out / "runs.csv").symlink_to("/dev/full")
        os.kill(child, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, "a crash is worse than a full disk: " + out + err)
        self.assertIn("signal 9", out)
        self.assertIn("FAILED: 0 of 2 runs complete", out)
        self.assertIn("runs.csv", err)

    def test_quiet_says_what_failed(self):
        plan = self.plan("name: f\ncommand: nvme\noptions: {write-io: 10, read-io: 10}\n"
                         f"matrix: {{controller: ['file:{self.folder}/absent', model]}}\n")
        done = self.sweep("--quiet", plan=plan, code=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("FAILED: 1 of 2 runs complete", done.stderr)

    def test_plans_come_with_the_program(self):
        here = doorbell("sweep", "plans/nvme-modes.yaml", "--list", cwd=ROOT)
        self.assertEqual(here.returncode, 0, here.stderr)
        elsewhere = subprocess.run([os.path.abspath(DOORBELL), "sweep", "plans/nvme-modes.yaml", "--list"],
                                   capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(elsewhere.returncode, 0, elsewhere.stderr)
        self.assertEqual(elsewhere.stdout, here.stdout)
        for absent in ("plans/absent.yaml", "nvme-modes.yaml"):
            done = subprocess.run([os.path.abspath(DOORBELL), "sweep", absent], capture_output=True, text=True,
                                  timeout=120, cwd=self.folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("No such file", done.stderr)


class Refusals(WithFolder):
    def test_everything_is_checked_before_anything_runs(self):
        for change, says in [
            (("batch-size: [1, 8]", "batch-size: [1, 5000]"), ["plan.yaml:7", "matrix.batch-size", "1..1023"]),
            (("batch-size: [1, 8]", "batchsize: [1]"), ["plan.yaml:7", "did you mean 'batch-size'?"]),
            (("command: nvme", "command: nvm"), ["plan.yaml:3", "did you mean 'nvme'?"]),
            (("command: nvme", "command: sweep"), ["plan.yaml:3", "unknown command 'sweep'"]),
            (("matrix:", "matrx:"), ["plan.yaml:5", "did you mean 'matrix'?"]),
            (("timeout: 60", "json: x"), ["plan.yaml:4", "the sweep sets it itself"]),
            (("timeout: 60", "infinite: true, duration: 5"), ["cell 0", "--infinite", "contradicts --duration"]),
        ]:
            done = self.sweep(plan=self.plan(PLAN.replace(*change)), code=1)
            for word in says:
                self.assertIn(word, done.stderr)
            self.assertFalse(self.out.exists(), "nothing has been made")

    def test_bad_options(self):
        for arguments in (["--only", "sise=1"], ["--only", "batch-size=3"], ["--cell-timeout", "0"], ["--outt", "x"]):
            self.sweep(*arguments, code=1)
            self.assertFalse(self.out.exists())
        self.assertEqual(doorbell("sweep").returncode, 1)
        self.assertEqual(doorbell("sweep", self.folder / "absent.yaml").returncode, 1)
        self.assertEqual(doorbell("sweep", self.folder).returncode, 1)

    def test_a_missing_reference_file(self):
        done = self.sweep(plan=self.plan(PLAN + "reference: {file: x.csv, match: {batch-size: b}, "
                                         "columns: {mean: m, unit: us}, ours: latency_ns.mean}\n"), code=1)
        self.assertIn("x.csv", done.stderr)
        self.assertFalse(self.out.exists())


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


def needs_jinja():
    from doorbell_report import page
    return unittest.skipUnless(page.available(), "python3-jinja2 is not installed")


@needs_jinja()
class Report(WithFolder):
    def setUp(self):
        super().setUp()
        self.html = self.folder / "page.html"

    def test_the_report_reads_the_folder(self):
        from doorbell_report import results
        self.sweep("--html", self.html)
        loaded = results.load([str(self.out)])
        self.assertEqual(len(loaded), 4)
        self.assertEqual([results.verdict(r)[0] for r in loaded], ["ok"] * 4)
        text = page_of(self, self.html)
        self.assertIn("4 ok", text)
        self.assertIn("<title>two by two</title>", text)

    def test_published_figures_are_beside_ours(self):
        (self.folder / "theirs.csv").write_text("batch,us,drive\n1,1234.5,<b>\n8,,<b>\n", encoding="utf-8")
        self.sweep("--html", self.html, plan=self.plan(
            PLAN + "rounds: 2\nreference: {file: theirs.csv, where: {drive: <b>}, match: {batch-size: batch}, "
            "columns: {value: us, unit: us}, ours: nvme.read.latency_ns.mean, note: a <drive>}\n"))
        plan = json.loads((self.out / "plan.json").read_text(encoding="utf-8"))
        self.assertEqual(plan["schema"], "doorbell.plan/1")
        (table,) = plan["published"]
        self.assertEqual([row["cell"] for row in table["rows"]], [0, 1, 2, 3])
        self.assertEqual([row["figures"] for row in table["rows"]], [{"value": 1234.5}, {}] * 2)
        self.assertEqual((table["unit"], table["ours"]), ("us", "nvme.read.latency_ns.mean"))
        self.assertAlmostEqual(table["ours_scale"], 1e-3)
        text = page_of(self, self.html)
        for expected in ("1234.5", "published value, us", "a &lt;drive&gt;", "Every round"):
            self.assertIn(expected, text)

    def test_after_an_error_and_a_crash(self):
        plan = self.plan("name: f\ncommand: nvme\noptions: {write-io: 10, read-io: 10}\n"
                         f"matrix: {{controller: ['file:{self.folder}/<script>', model, 'model:faults=corrupt=1']}}\n")
        done = doorbell("sweep", plan, "--out", self.out, "--html", self.html)
        self.assertNotEqual(done.returncode, 0)
        text = page_of(self, self.html)
        self.assertIn("failed", text)
        self.assertIn("1 ok", text)
        self.assertNotIn("/<script>", text)

    def test_after_ctrl_c(self):
        process = subprocess.Popen([DOORBELL, "sweep", str(self.plan(LONG)), "--out", str(self.out), "--html", str(self.html)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_handler(self.child_of(process))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("interrupted", page_of(self, self.html))

    def test_a_full_disk_costs_neither_the_results_nor_the_old_page(self):
        done = self.sweep("--html", "/dev/full", code=1)
        self.assertIn("OK: 4 of 4 runs complete", done.stdout)
        self.assertIn("--html /dev/full", done.stderr)
        self.html.write_text("the old page", encoding="utf-8")

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        done = subprocess.run([sys.executable, "-m", "doorbell_report", str(self.out), "-o", str(self.html)],
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, preexec_fn=small_files,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(self.html.read_text(encoding="utf-8"), "the old page")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["out", "page.html", "plan.yaml"])

    def test_an_input_is_not_overwritten(self):
        self.sweep()
        for name in ("results.jsonl", "plan.yaml", "plan.json", "runs.csv"):
            before = (self.out / name).read_bytes()
            self.assertIn("--html", self.sweep("--html", self.out / name, code=1).stderr)
            self.assertEqual((self.out / name).read_bytes(), before)


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
