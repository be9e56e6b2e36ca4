#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A software V80 for programs of AMD's, as a user meets it: `doorbell card serve --slash-dir` and `doorbell run card`. The
program is slash_program.py."""

import errno
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import DOORBELL, WithFolder, doorbell, end_of, wait_until

PROGRAM = str(pathlib.Path(__file__).with_name("slash_program.py"))
FILES = ["slash_ctl0", "slash_hotplug", "slash_qdma_ctl0"]


def run_card(*words):
    return doorbell("run", "card", *words)


def allowed():
    """Whether this machine has namespaces for this user."""
    return run_card("--", "true").returncode == 0


def folders():
    return set(pathlib.Path(tempfile.gettempdir()).glob("doorbell-slash-*"))


@unittest.skipUnless(allowed(), "no mount namespaces for this user")
class RunCard(WithFolder):
    def program(self, *words, options=(), code=0):
        done = run_card(*options, "--", sys.executable, PROGRAM, *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_the_drivers_paths_lead_to_a_card(self):
        found, errors = self.program("look")
        self.assertEqual(errors, "")
        self.assertEqual(found["nodes"], ["/dev/" + file for file in FILES])
        self.assertEqual(found["emulation"], FILES)
        self.assertTrue(found["sockets"] and found["null"])
        self.assertEqual(found["user"], os.getuid())
        self.assertEqual(found["place"], "0000:00:00.2")
        self.assertEqual(found["bar"], 128 << 20)
        self.assertTrue(found["removed"] and found["back"])
        # Outside nothing has changed.
        self.assertFalse(os.path.islink("/dev/slash_ctl0"))

    def test_bytes_come_back(self):
        before = folders()
        figures, _ = self.program("validate", "4", "2")
        self.assertEqual(figures["wrong"], 0)
        self.assertEqual(figures["hint"], 1)
        self.assertEqual(folders() - before, set())

    def test_rates_of_the_model_are_seen_by_the_program(self):
        """A slow machine can only be slower."""
        figures, _ = self.program("validate", "2", "2", options=("--card", "model:bandwidth=20M"))
        for memory in ("HBM", "DDR"):
            for way in ("write", "read"):
                self.assertLess(figures[memory][way], 20e6 * 1.05)

    def test_large_transfers_are_about_as_fast_as_copies(self):
        """A machine that pauses spoils a try, not all of them."""
        for _ in range(5):
            figures, _ = self.program("validate", "64", "2")
            slowest = min(figures[memory]["best_" + way] for memory in ("HBM", "DDR") for way in ("write", "read"))
            if slowest > figures["copy"] / 8:
                return
        self.fail(f"bytes a second: {figures}")

    def test_damage_is_found_by_the_program(self):
        figures, errors = self.program("validate", "1", "4", options=("--fault", "corrupt=1", "--counters"), code=1)
        self.assertEqual(figures["wrong"], 8)
        self.assertGreaterEqual(json.loads(errors)["injected"]["corrupt"], 8)

    def test_a_transfer_that_fails_fails_in_the_program(self):
        done = run_card("--fault", "error=1", "--", sys.executable, PROGRAM, "validate")
        self.assertEqual(done.returncode, 1)
        self.assertIn(os.strerror(errno.EIO), done.stderr)

    def test_a_call_that_is_not_there_is_named(self):
        figures, errors = self.program("unknown")
        self.assertEqual(figures["result"], -errno.ENOSYS)
        self.assertEqual(errors.splitlines(),
                         ["doorbell: slash_qdma_ctl0: a program's call 0xc004765f is none that this card has; it gets ENOSYS"])

    def test_the_programs_exit_code_and_streams_are_its_own(self):
        for code in (0, 1, 2, 77, 200):
            self.assertEqual(run_card("--", "sh", "-c", f"exit {code}").returncode, code)
        self.assertEqual(run_card("--", "sh", "-c", "kill -KILL $$").returncode, 128 + signal.SIGKILL)
        done = doorbell("run", "card", "--", "sh", "-c", "cat; echo no >&2", input="yes")
        self.assertEqual((done.stdout, done.stderr), ("yes", "no\n"))
        # A file that is there and a word of doorbell's are programs and arguments, too.
        done = run_card("--", "echo", "qdma", "--", "--help", PROGRAM)
        self.assertEqual(done.stdout, f"qdma -- --help {PROGRAM}\n")

    def started(self, *words):
        process = subprocess.Popen([DOORBELL, "run", "card", "--", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_signals_reach_the_program(self):
        for which in ("INT", "TERM", "HUP", "QUIT"):
            process = self.started("bash", "-c", f"trap 'echo got; exit 9' {which}; echo ready; while :; do sleep 0.05; done")
            process.send_signal(getattr(signal, "SIG" + which))
            out, _ = end_of(process)
            self.assertEqual((process.returncode, out), (9, "got\n"), which)

    def test_ctrl_c_on_the_terminal_reaches_the_program_once(self):
        pid, terminal = pty.fork()
        if pid == 0:
            script = "n=0; trap 'n=$((n+1)); echo got' INT; echo ready; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; exit $((40+n))"
            os.execv(DOORBELL, [DOORBELL, "run", "card", "--", "bash", "-c", script])
        said = b""
        while b"ready" not in said:
            said += os.read(terminal, 100)
        os.write(terminal, b"\x03")
        try:
            while more := os.read(terminal, 100):
                said += more
        except OSError:
            pass  # the terminal's other end has been closed
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 41, said)

    def test_the_program_ends_with_this_one(self):
        before = folders()
        process = self.started("bash", "-c", "echo ready; echo $$; sleep 100")
        program = int(process.stdout.readline())
        process.kill()
        process.wait()

        def gone():
            try:
                state = pathlib.Path(f"/proc/{program}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            except OSError:
                return True
            return state == "Z"

        wait_until(gone, "the end of the program")
        for folder in folders() - before:  # who is killed removes nothing
            shutil.rmtree(folder)

    def test_bad_input(self):
        for words, part in ((["--"], "PROGRAM"), ([], "PROGRAM"), (["true"], "unexpected argument 'true'"),
                            (["--", "/nowhere/at/all"], "/nowhere/at/all: No such file"),
                            (["--card", "server:/x", "--", "true"], "only a software card"),
                            (["--card", "model:speed=1", "--", "true"], "speed"),
                            (["--fault", "error=2", "--", "true"], "--fault"),
                            (["--slash-dir", self.folder, "--card", "model", "--", "true"], "--card"),
                            (["--slash-dir", "/" + "x" * 200, "--", "true"], "107")):
            done = run_card(*words)
            self.assertEqual(done.returncode, 1, f"{words}: {done.stdout}{done.stderr}")
            self.assertIn(part, done.stderr)
            self.assertEqual(done.stdout, "")
        done = run_card("--slash-dir", self.folder, "--", "true")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("doorbell card serve --slash-dir", done.stderr)


class CardServe(WithFolder):
    def serve(self, *words):
        self.slash = str(self.folder / "slash")
        process = subprocess.Popen([DOORBELL, "card", "serve", "--slash-dir", self.slash, *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.first = process.stdout.readline()
        return process

    def client(self, *words):
        done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_a_program_that_takes_the_path(self):
        process = self.serve()
        self.assertEqual(self.first, f"model at {self.slash}; Ctrl-C ends it\n")
        self.assertEqual(self.client("validate", "1", "2", self.slash)["wrong"], 0)
        process.send_signal(signal.SIGTERM)
        out, err = end_of(process)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertRegex(out, r"^[1-9]\d* requests, 0 refused; 0 connections, 0 descriptors, \d+ buffers, 0 queue pairs still there$")
        self.assertFalse(os.path.exists(self.slash))

    def test_beside_the_other_protocol(self):
        path = str(self.folder / "card.sock")
        self.serve("--listen", path)
        self.assertEqual(self.first, f"model at {path} and {self.slash}; Ctrl-C ends it\n")
        self.assertEqual(self.client("validate", "1", "1", self.slash)["wrong"], 0)
        done = doorbell("qdma", "--device", "server:" + path, "--measure", "latency", "--size", "4KiB", "--iterations", "5")
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(allowed(), "no mount namespaces for this user")
    def test_a_program_runs_on_the_card_of_a_server(self):
        self.serve()
        for _ in range(2):
            done = run_card("--slash-dir", self.slash, "--", sys.executable, PROGRAM, "validate")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(self.slash)), FILES)

    def test_bad_input(self):
        for words, part in ((["serve"], "--slash-dir"), (["serve", "--slash-dir", "/dev/null"], "Not a directory"),
                            (["serve", "--slash-dir", "/nowhere/at/all"], "No such file"),
                            (["serve", "--slash-dir", str(self.folder / ("x" * 100))], "107")):
            done = doorbell("card", *words)
            self.assertEqual(done.returncode, 1, f"{words}: {done.stdout}{done.stderr}")
            self.assertIn(part, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
