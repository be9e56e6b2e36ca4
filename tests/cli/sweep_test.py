#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell sweep` as a user meets it: folders, resuming, Ctrl-C, exit codes. Needs no hardware."""

import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

from harness import DOORBELL, ROOT, doorbell, wait_until
from sweeps import PLAN, WithFolder, needs_jinja, page_of, without_jinja

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


def kill_if_there(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


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
        self.assertEqual([line.split()[0] for line in lines], ["1", "2", "3", "4"], "as the table and the page have it")
        self.assertIn("doorbell nvme --write-io=100 --read-io=100 --timeout=60 --late-after=50 --num-queues=1 "
                      "--batch-size=8", lines[1])

    def test_list_prints_no_control_characters_and_still_words_for_a_shell(self):
        name = "file:/absent/a\33[31mb\u0085c'd\\e"
        text = f"name: l\ncommand: nvme\noptions: {{read-io: 5, controller: {json.dumps(name)}}}\n"
        line = self.sweep("--list", plan=self.plan(text)).stdout
        self.assertRegex(line, r"\A[ -~]+\n\Z")
        words = subprocess.run(["bash", "-c", "printf '%s\\n' " + line[line.index("--"):]], capture_output=True, timeout=60)
        self.assertEqual(words.stdout.decode(), f"--read-io=5\n--controller={name}\n")

    def test_a_folders_name_is_printed_without_control_characters(self):
        self.out = self.folder / "o\33[31m"
        for _ in "12":
            done = self.sweep("--only", "num-queues=1,batch-size=1")
            self.assertNotIn("\33", done.stdout + done.stderr)
        self.assertIn("1 of 1 runs are there already", done.stderr)

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

    def test_a_run_that_is_there_twice_is_refused(self):
        self.sweep()
        file = self.out / "results.jsonl"
        lines = file.read_bytes().splitlines(True)
        file.write_bytes(b"".join(lines + lines[1:2]))
        self.assertIn("results.jsonl:5: cell 2 of round 0 is there twice, first in line 2", self.sweep(code=1).stderr)
        self.assertEqual(len(file.read_bytes().splitlines()), 5, "nothing is touched")

    def test_an_odd_record_is_still_a_record(self):
        self.sweep("--only", "num-queues=1,batch-size=1")
        for tool in (7, {"git": 7}, {"git": "\33[31m"}):
            line, = self.lines()
            line["result"]["tool"] = tool
            (self.out / "results.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
            done = self.sweep("--only", "num-queues=1,batch-size=1")
            self.assertNotIn("\33", done.stderr)

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

    def test_what_is_wrong_with_the_folder_names_the_option(self):
        file = self.folder / "file"
        file.touch()
        for out, says in ((file, "it is no folder"), (file / "below", "Not a directory"), ("/proc/absent", "No such file")):
            done = doorbell("sweep", self.plan(), "--out", out)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"--out {out}: {says}", done.stderr)

    def test_one_sweep_at_a_time(self):
        self.sweep()
        handle = os.open(self.out, os.O_RDONLY)
        self.addCleanup(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)
        self.assertIn(f"--out {self.out}: another sweep", self.sweep(code=1).stderr)


class Killed(WithFolder):
    def start(self):
        """A sweep whose first cell runs, and the file that this cell writes its Result to."""
        process = subprocess.Popen([DOORBELL, "sweep", str(self.plan(LONG)), "--out", str(self.out)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        cell = self.child_of(process)
        words = pathlib.Path(f"/proc/{cell}/cmdline").read_text(encoding="utf-8").split("\0")
        file, = [word.removeprefix("--json=") for word in words if word.startswith("--json=")]
        return process, cell, pathlib.Path(file)

    def test_what_its_cell_still_writes_is_no_result_of_the_next_sweep(self):
        process, orphan, first = self.start()
        process.kill()
        process.communicate(timeout=60)
        kill_if_there(orphan)
        first.write_text("{}", encoding="utf-8")
        part = first.with_name(f".{first.name}.1.0.tmp")
        part.write_text("{", encoding="utf-8")
        process, cell, second = self.start()
        self.assertFalse(first.exists() or part.exists(), "what is stale is removed")
        self.assertNotEqual(first, second)
        first.write_text("{}", encoding="utf-8")
        os.kill(cell, signal.SIGKILL)
        wait_until(lambda: (self.out / "results.jsonl").read_text(encoding="utf-8"), "the first cell's record")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual((self.lines()[0]["ended"], self.lines()[0]["result"]), ("signal", None))


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


class Absent(WithFolder):
    def test_what_is_absent_skips_its_cell_and_not_the_sweep(self):
        plan = self.plan("name: a\ncommand: net\noptions: {stream: raw, link: ring, duration: 0.01, repeats: 1, warmup: 0}\n"
                         "cells:\n  - {engine: dpdk}\n  - {engine: ring}\n")
        done = doorbell("sweep", plan, "--out", self.out, env={**os.environ, "DOORBELL_PLUGINS": str(self.folder)})
        # As for reproduce: what was skipped is no failure as long as something ran.
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([x["exit_code"] for x in self.lines()], [77, 0], done.stdout)
        self.assertIn("OK: 1 of 2 runs complete, 1 skipped", done.stdout)

    def test_nothing_that_can_run_is_77_as_for_reproduce(self):
        plan = self.plan("name: a\nsource: theirs\ncommand: rdma\noptions: {provider: verbs, device: no_such_device}\n"
                         "matrix: {size: [64, 128]}\n")
        done = self.sweep(plan=plan, code=77)
        self.assertIn("SKIPPED: 0 of 2 runs complete", done.stdout)
        other = doorbell("reproduce", plan, "--out", self.folder / "reproduced")
        self.assertEqual(other.returncode, 77, other.stdout + other.stderr)

    def test_a_skipped_cell_does_not_hide_wrong_data(self):
        plan = self.plan("name: a\nsource: theirs\ncommand: nvme\noptions: {write-io: 300, read-io: 300, timeout: 60, late-after: 50}\n"
                         "cells:\n  - {controller: 'nvme0-no-such'}\n  - {controller: model, fault: corrupt=0.2}\n")
        for command in (["sweep", plan, "--out", self.out], ["reproduce", plan, "--out", self.folder / "reproduced"]):
            done = doorbell(*command)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)


class Refusals(WithFolder):
    def test_everything_is_checked_before_anything_runs(self):
        for change, says in [
            (("batch-size: [1, 8]", "batch-size: [1, 5000]"), ["plan.yaml:7", "matrix.batch-size", "1..1023"]),
            (("batch-size: [1, 8]", "batchsize: [1]"), ["plan.yaml:7", "did you mean 'batch-size'?"]),
            (("command: nvme", "command: nvm"), ["plan.yaml:3", "did you mean 'nvme'?"]),
            (("command: nvme", "command: sweep"), ["plan.yaml:3", "unknown command 'sweep'"]),
            (("matrix:", "matrx:"), ["plan.yaml:5", "did you mean 'matrix'?"]),
            (("timeout: 60", "json: x"), ["plan.yaml:4", "the sweep sets it itself"]),
            (("timeout: 60", "infinite: true, duration: 5"), ["cell 1", "--infinite", "contradicts --duration"]),
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


class NoReport(WithFolder):
    def test_is_known_before_the_first_cell(self):
        done = doorbell("sweep", self.plan(), "--out", self.out, "--html", self.folder / "page.html",
                        env=without_jinja(self.folder))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("--html", done.stderr)
        self.assertIn("python3-jinja2 is not installed", done.stderr)
        self.assertFalse(self.out.exists(), "nothing has been run")


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
        self.assertRegex(text, r"measured [-0-9 :to]+UTC; sweep of doorbell nvme, plan \S+; 4 cells of 4 results")
        self.assertIn("$ doorbell nvme --write-io 100 --read-io 100 --timeout 60 --late-after 50 --num-queues 1 --batch-size 8<", text)
        self.assertFalse(".running" in text or "--quiet" in text, "what the sweep adds for itself")

    def test_a_cell_has_one_number_in_the_table_and_the_page(self):
        done = self.sweep("--html", self.html, "--only", "batch-size=8")
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([(row[0], row[2]) for row in rows if row[:1] in (["2"], ["4"])], [("2", "8"), ("4", "8")])
        text = page_of(self, self.html)
        self.assertEqual(re.findall(r'<th scope=row data-v="\d+"><a href="#[^"]*">(\d+)</a>', text), ["2", "4"])

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
                         f"matrix: {{controller: ['file:{self.folder}/<script>', model, 'model:media=file:/nonexistent/media']}}\n")
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
            done = doorbell("compare", self.out, self.out, "--json", self.out / name)
            self.assertEqual(done.returncode, 1)
            self.assertIn("which is compared", done.stderr)
            self.assertEqual((self.out / name).read_bytes(), before)
        theirs = self.folder / "theirs.csv"
        theirs.write_text("batch,us\n1,1\n8,2\n", encoding="utf-8")
        plan = self.plan(PLAN + "reference: {file: theirs.csv, match: {batch-size: batch}, columns: {value: us, unit: us}, "
                         "ours: nvme.read.latency_ns.mean}\n")
        self.out = self.folder / "other"
        self.assertIn("--html", self.sweep("--html", theirs, plan=plan, code=1).stderr)
        self.assertTrue(theirs.read_text(encoding="utf-8").startswith("batch,us"))

    def test_a_title_that_begins_with_a_dash(self):
        self.sweep("--html", self.html, plan=self.plan(PLAN.replace("title: two by two", "title: --help")))
        self.assertIn("<title>--help</title>", page_of(self, self.html))


if __name__ == "__main__":
    unittest.main()
