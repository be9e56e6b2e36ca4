# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests in this folder: the program, a folder for its files, results that are valid, and interrupting a run."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import result_schema

DOORBELL = os.environ.get("DOORBELL", "build/bin/doorbell")
ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUTS = ["--timeout", "60", "--late-after", "50"]  # a busy machine is not an error


def doorbell(*arguments, **more):
    """Runs it to its end."""
    return subprocess.run([DOORBELL, *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


def long(case):
    """Marks a case that takes long and tells little about a build: `make test` leaves it to `make test-all`."""
    case.long = True
    return case


def wait_until(happened, what):
    """Until `happened()`, however long that takes on this machine; AssertionError after a minute without it."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if answer := happened():
            return answer
        time.sleep(0.01)
    raise AssertionError("never: " + what)


def has_initiator(process):
    """The thread that posts is there."""
    for name in pathlib.Path(f"/proc/{process.pid}/task").glob("*/comm"):
        try:
            if name.read_text(encoding="utf-8").startswith("initiator-"):
                return True
        except OSError:
            pass  # a thread that ended between the two looks
    return False


def cpu_s(process):
    """Processor time of all its threads, which says that it gets on."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_work(process, work_s=0.2):
    """Until its initiators are there and the process has had so much processor time since."""
    wait_until(lambda: process.poll() is not None or has_initiator(process), "an initiator thread")
    assert process.poll() is None, "it has ended: " + (process.stderr.read() if process.stderr else "")
    wait_for_cpu(process, work_s)


def wait_for_cpu(process, work_s):
    begin = cpu_s(process)
    wait_until(lambda: process.poll() is not None or cpu_s(process) >= begin + work_s, f"{work_s} s of processor time")


def end_of(process, timeout_s=90):
    """The text that a process still prints; it is killed when it does not end."""
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


class WithFolder(unittest.TestCase):
    """A folder of its own for each case. `command`: the words before the arguments of result() and interrupt()."""

    command = [DOORBELL]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "out.json"

    def is_valid(self, path):
        tool = result_schema.tool()
        validator = tool.validator_of(tool.SCHEMA)
        if validator is None:  # python3-jsonschema is absent
            return
        for label, text in tool.documents(str(path)):
            self.assertEqual(tool.problems(validator, text), [], label)

    def valid(self, path=None):
        """The result there, which is as the schema has it."""
        path = pathlib.Path(path or self.json)
        self.is_valid(path)
        return json.loads(path.read_text(encoding="utf-8"))

    def result(self, *arguments, code=0):
        """Of a run that ends with `code`."""
        done = subprocess.run([*self.command, *arguments, "--json", str(self.json)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        document = self.valid()
        self.assertEqual(document["exit_code"], code)
        return document

    def interrupt(self, *arguments, which=signal.SIGINT, work_s=0.2):
        """Exit code and output of a run that is interrupted while its initiators work."""
        command = [*self.command, *arguments, "--json", str(self.json), *TIMEOUTS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_for_work(process, work_s)
            process.send_signal(which)
            out, err = end_of(process)
        return process.returncode, out, err
