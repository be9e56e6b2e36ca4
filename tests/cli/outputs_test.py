#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run whatever happens to its outputs: exit codes, files, standard error, signals."""

import json
import os
import pathlib
import pty
import resource
import select
import signal
import stat
import subprocess
import sys
import unittest

import harness
from harness import DOORBELL, TIMEOUTS, doorbell, long, wait_for_cpu, wait_for_work
from sweeps import needs_jinja, without_jinja

SOUND = ["nvme", "--write-io", "200", "--read-io", "200", *TIMEOUTS]
CORRUPT = [*SOUND, "--fault", "corrupt=1"]


class WithFolder(harness.WithFolder):
    def nothing_but(self, *names):
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), sorted(names))


class FilesThatCannotBeWritten(WithFolder):
    def test_take_neither_the_table_nor_the_verdict_away(self):
        for option in ("--json", "--csv"):
            done = doorbell(*CORRUPT, option, "/dev/full")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("200 corrupt", done.stdout)
            self.assertIn("/dev/full", done.stderr)
            done = doorbell(*SOUND, option, "/dev/full")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("OK", done.stdout)

    def test_nor_do_rows_in_the_columns_of_another_program(self):
        done = doorbell("net", "--count", "100", "--settle", "5", "--daqiri-csv", "/dev/full", "--json", str(self.json))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("OK", done.stdout)
        self.assertIn("/dev/full", done.stderr)
        self.assertEqual(json.loads(self.json.read_text(encoding="utf-8"))["exit_code"], 0)

    def test_nor_the_other_file(self):
        done = doorbell(*CORRUPT, "--json", "/dev/full", "--csv", str(self.folder / "out.csv"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("nvme,0,0", (self.folder / "out.csv").read_text(encoding="utf-8"))

    def test_a_size_limit_leaves_nothing_behind(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        done = doorbell(*SOUND, "--json", str(self.json), preexec_fn=limit)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.nothing_but()

    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([DOORBELL, *CORRUPT, "--json", str(self.json)], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=120)
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output", done.stderr)
        self.assertEqual(json.loads(self.json.read_text(encoding="utf-8"))["exit_code"], 2)


class FilesThatAreThere(WithFolder):
    def test_keep_their_mode_and_owner(self):
        self.json.write_text("old", encoding="utf-8")
        self.json.chmod(0o640)
        before = self.json.stat()
        if os.geteuid() == 0:
            os.chown(self.json, 4321, 1234)
            before = self.json.stat()
        self.assertEqual(doorbell(*SOUND, "--json", str(self.json)).returncode, 0)
        after = self.json.stat()
        self.assertEqual(stat.S_IMODE(after.st_mode), 0o640)
        self.assertEqual((after.st_uid, after.st_gid), (before.st_uid, before.st_gid))
        json.loads(self.json.read_text(encoding="utf-8"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be somebody else")
    def test_of_another_owner_are_overwritten_in_place(self):
        self.folder.chmod(0o777)
        self.json.write_text("old" * 10000, encoding="utf-8")
        os.chown(self.json, 4321, 1234)
        self.json.chmod(0o666)

        def nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        program = pathlib.Path(DOORBELL).resolve()
        reached = subprocess.run([str(program), "version"], capture_output=True, preexec_fn=nobody, check=False) \
            if os.access(program, os.X_OK) else None
        if reached is None or reached.returncode != 0:
            self.skipTest("the program lies where others may not go")
        self.assertEqual(doorbell(*SOUND, "--json", str(self.json), preexec_fn=nobody).returncode, 0)
        self.assertEqual((self.json.stat().st_uid, self.json.stat().st_gid), (4321, 1234))
        json.loads(self.json.read_text(encoding="utf-8"))
        self.nothing_but("out.json")

    def test_one_file_for_two_outputs(self):
        link = self.folder / "link"
        link.symlink_to(self.json)
        self.json.write_text("", encoding="utf-8")
        for other in (self.json, link, self.folder / "." / "out.json"):
            done = doorbell(*SOUND, "--json", str(self.json), "--csv", str(other))
            self.assertEqual(done.returncode, 1)
            self.assertIn("--csv", done.stderr)
        self.assertEqual(doorbell(*SOUND, "--json", "/dev/null", "--csv", "/dev/null").returncode, 0)

    def test_an_output_that_the_run_uses(self):
        media = self.folder / "media"
        with media.open("wb") as file:
            file.truncate(1 << 20)
        for spec in (f"model:media=file:{media}", f"file:{media}", f"qemu:drive={media}"):
            done = doorbell(*SOUND, "--controller", spec, "--json", str(media))
            self.assertEqual(done.returncode, 1, spec)
            self.assertIn("--json", done.stderr)
        self.assertEqual(media.stat().st_blocks, 0)

    def test_a_block_device_is_no_output(self):
        device = next((p for p in pathlib.Path("/dev").glob("*") if p.is_block_device()), None)
        if device is None:
            self.skipTest("no block device here")
        done = doorbell(*SOUND, "--json", str(device))
        self.assertEqual(done.returncode, 1)
        self.assertIn("block device", done.stderr)


class Page(WithFolder):
    """--html, the same option of every command that measures."""

    COMMANDS = (SOUND, ["rdma", "--size", "64", "--iterations", "32", *TIMEOUTS], ["cxi", "--size", "64", "--iterations", "32", *TIMEOUTS],
                ["qdma", "--iterations", "32", *TIMEOUTS], ["net", "--count", "50", *TIMEOUTS],
                ["qdma", "tune", "--largest", "8Ki", "--smallest", "8Ki", "--repeats", "1", *TIMEOUTS])

    def setUp(self):
        super().setUp()
        self.html = self.folder / "page.html"

    @needs_jinja()
    def test_every_command_that_measures_makes_one(self):
        for command in self.COMMANDS:
            with self.subTest(command=command):
                done = doorbell(*command, "--html", str(self.html))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                page = self.html.read_text(encoding="utf-8")
                self.assertTrue(page.rstrip().endswith("</html>"))
                self.assertIn("every byte checked; on a software model", page.replace("\n", " "))
                self.assertIn(f"$ doorbell {command[0]} ", page)
                self.nothing_but("page.html")
                self.html.unlink()

    @needs_jinja()
    def test_it_says_first_that_data_is_wrong(self):
        done = doorbell(*CORRUPT, "--html", str(self.html), "--json", str(self.json))
        self.assertEqual(done.returncode, 2)
        self.assertIn("1 cell has data errors: cell 1 (200 corrupt);", self.html.read_text(encoding="utf-8"))
        self.assertEqual(json.loads(self.json.read_text(encoding="utf-8"))["exit_code"], 2)

    @needs_jinja()
    def test_one_that_cannot_be_made_leaves_the_runs_code_unless_that_is_good(self):
        for command, code in ((SOUND, 1), (CORRUPT, 2)):
            done = doorbell(*command, "--html", "/dev/full", "--json", str(self.json))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("--html /dev/full: ", done.stderr)
            self.assertIn("verified 200", done.stdout)
            self.assertEqual(json.loads(self.json.read_text(encoding="utf-8"))["exit_code"], code if code == 2 else 0)

    def test_what_it_needs_is_looked_for_before_the_run(self):
        done = doorbell(*SOUND, "--html", str(self.html), "--json", str(self.json), env=without_jinja(self.folder))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("python3-jinja2 is not installed", done.stderr)
        self.assertFalse(self.json.exists(), "nothing has been run")

    def test_a_file_that_it_cannot_have_is_refused_before_the_run(self):
        media = self.folder / "media"
        media.write_bytes(bytes(1 << 20))
        link = self.folder / "link"
        link.symlink_to("page.html")
        self.html.write_text("old", encoding="utf-8")
        for arguments, message in ((["--html", "-"], "a page needs a file of its own"),
                                   (["--html", str(self.folder)], "it is a folder"),
                                   (["--html", str(self.folder / "absent" / "x")], "its folder"),
                                   (["--json", str(self.html), "--html", str(link)], "--json writes to the same file"),
                                   (["--csv", str(link), "--html", str(self.html)], "--csv writes to the same file"),
                                   (["--controller", f"file:{media}", "--html", str(media)], "which the run uses itself")):
            with self.subTest(arguments=arguments):
                done = doorbell(*SOUND, *arguments)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(message, done.stderr)
        self.assertEqual(self.html.read_text(encoding="utf-8"), "old")
        self.assertEqual(media.read_bytes(), bytes(1 << 20))

    def test_a_plan_cannot_ask_for_it(self):
        plan = self.folder / "p.yaml"
        plan.write_text("name: p\ncommand: nvme\noptions: {html: x.html}\n", encoding="utf-8")
        done = doorbell("sweep", str(plan), "--out", str(self.folder / "out"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("html", done.stderr)


class Pipes(WithFolder):
    def test_one_that_is_read(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
            self.assertEqual(doorbell(*SOUND, "--json", str(pipe)).returncode, 0)
            out, _ = reader.communicate(timeout=60)
        self.assertEqual(json.loads(out)["exit_code"], 0)

    @long
    def test_one_without_a_reader(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        done = doorbell(*CORRUPT, "--json", str(pipe))
        self.assertEqual(done.returncode, 2)
        self.assertIn("200 corrupt", done.stdout)
        self.assertIn("no process reads", done.stderr)

    def test_as_media(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for spec in (f"model:media=file:{pipe}", f"file:{pipe}", f"qemu:drive={pipe}"):
            done = doorbell(*SOUND, "--controller", spec)
            self.assertEqual(done.returncode, 1, spec)
            self.assertIn("file", done.stderr)


class Quiet(unittest.TestCase):
    def test_is_silent_about_what_went_well(self):
        done = doorbell(*SOUND, "-q")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_tells_what_did_not(self):
        for command in (CORRUPT, ["rdma", "--size", "4KiB", "--measure", "rate", "--iterations", "64", "--fault", "corrupt=1", *TIMEOUTS]):
            done = doorbell(*command, "-q")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"FAILED: \d+ corrupt")
            self.assertRegex(done.stderr, r"corrupt at byte 0x")
        done = doorbell(*CORRUPT, "--json", "-")
        self.assertEqual(json.loads(done.stdout)["exit_code"], 2)
        self.assertIn("FAILED", done.stderr)


class Terminals(unittest.TestCase):
    def shown(self, **environment):
        """Standard output and error of a run on a terminal."""
        ours, theirs = pty.openpty()
        child = subprocess.Popen([DOORBELL, *SOUND], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL,
                                 env={**{k: v for k, v in os.environ.items() if k not in ("TERM", "NO_COLOR")},
                                      **environment})
        os.close(theirs)
        text = b""
        while True:
            ready, _, _ = select.select([ours], [], [], 120)
            self.assertTrue(ready)
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        os.close(ours)
        self.assertEqual(child.wait(timeout=60), 0)
        return text

    def test_that_know_escapes_get_them(self):
        self.assertIn(b"\x1b[32m", self.shown(TERM="xterm"))

    def test_that_do_not_get_none(self):
        for environment in ({"TERM": "dumb"}, {}):
            text = self.shown(**environment)
            self.assertNotIn(b"\x1b", text)
            self.assertIn(b"OK", text)

    def test_no_color(self):
        text = self.shown(TERM="xterm", NO_COLOR="1")
        self.assertNotRegex(text, rb"\x1b\[[0-9;]*m")
        self.assertIn(b"\x1b[32m", self.shown(TERM="xterm", NO_COLOR=""))


class Signals(WithFolder):
    """Interrupted while it runs; what it then says."""

    def start(self, *arguments, **more):
        child = subprocess.Popen([DOORBELL, *arguments, "--json", str(self.json), *TIMEOUTS], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True, **more)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        wait_for_work(child, 0)
        return child

    def ended(self, child, code):
        out, err = child.communicate(timeout=90)
        self.assertEqual(child.returncode, code, out + err)
        result = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual(result["stop_reason"], "signal")
        self.assertEqual(result["exit_code"], code)
        self.assertFalse(result["complete"])
        self.json.unlink()
        return out

    def test_an_interrupted_run_says_so(self):
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for path in (["nvme", "--infinite"], ["rdma", "--measure", "rate", "--duration", "3600"],
                         ["cxi", "--measure", "rate", "--duration", "3600"]):
                child = self.start(*path)
                child.send_signal(which)
                self.assertIn("INTERRUPTED", self.ended(child, 130))

    @long
    def test_with_bad_data_it_is_that(self):
        child = self.start("nvme", "--infinite", "--write-io", "1000", "--read-io", "1000", "--fault", "corrupt=0.5")
        # Some of it must have been read: its own processor time says that it has got on.
        wait_for_cpu(child, 1)
        child.send_signal(signal.SIGINT)
        self.assertIn("FAILED", self.ended(child, 2))

    def test_one_request_in_several_signals(self):
        """timeout(1) signals its child, and then the child's group."""
        child = self.start("nvme", "--infinite")
        for which in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            child.send_signal(which)
        self.ended(child, 130)

    def test_nohup(self):
        child = self.start("nvme", "--infinite", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGINT)
        self.ended(child, 130)


class SummaryOfGpuCases(WithFolder):
    def test_has_a_line_for_each_cell_of_any_path(self):
        short = ["--iterations", "32"]
        for run in (["nvme", "--write-io", "50", "--read-io", "50"], ["rdma", "--size", "64", *short],
                    ["cxi", "--size", "64", *short], ["qdma", *short], ["net", "--count", "50"]):
            with self.subTest(path=run[0]):
                done = doorbell(*run, "--json", str(self.json), *TIMEOUTS)
                self.assertEqual(done.returncode, 0, done.stderr)
                cells = json.loads(self.json.read_text(encoding="utf-8"))["cells"]
                script = pathlib.Path(__file__).parents[1] / "gpu" / "summary.py"
                lines = subprocess.run([sys.executable, str(script), str(self.json)], capture_output=True, text=True, check=True,
                                       timeout=60).stdout.splitlines()
                self.assertGreater(len(cells), 0)
                self.assertEqual(len(lines), len(cells))
                for line in lines:
                    self.assertIn("exit 0", line)


class Memory(unittest.TestCase):
    def test_more_than_there_is_is_refused(self):
        # 64 x 1023 x 2 MiB, or with a long queue of large namespaces as much again: more than test machines have.
        done = doorbell("nvme", "--num-queues", "64", "--queue-length", "4096", "--in-flight", "1023", "--lbas-per-io",
                   "4096", "--controller", "model:capacity=1Ti")
        if "MemTotal" in pathlib.Path("/proc/meminfo").read_text(encoding="utf-8") and self.available() > 140e9:
            self.skipTest("this machine has that much")
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in ("--num-queues", "--in-flight", "137", "available"):
            self.assertIn(word, done.stderr)

    def test_of_an_rdma_session_too(self):
        if self.available() > 100e9:
            self.skipTest("this machine has that much")
        done = doorbell("rdma", "--measure", "rate", "--size", "1GiB", "--num-qps", "4", "--in-flight", "64")
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in ("--num-qps", "--in-flight", "available"):
            self.assertIn(word, done.stderr)

    @staticmethod
    def available():
        for line in pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return 0


if __name__ == "__main__":
    unittest.main()
