#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell net`: what it says before it runs, workloads of libraries that compute wrong, other programs' own words."""

import json
import os
import shutil
import signal
import stat
import subprocess
import time
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder, doorbell, long


class Net(WithFolder):
    command = [DOORBELL, "net"]

    def first_line(self, *arguments, code=0):
        done = doorbell("net", *arguments, *TIMEOUTS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr.splitlines()[0] if done.stderr else ""

    def test_says_what_will_run(self):
        self.assertEqual(self.first_line("--duration", "0.02"), "7 repeats of 0.02 s, a warm-up of 0.002 s, about 2 s")
        self.assertEqual(self.first_line("--duration", "0.02", "--repeats", "1", "--warmup", "0", "--payload", "64,1000"),
                         "2 cells, each 1 repeat of 0.02 s, about 1 s")
        self.assertEqual(self.first_line("--count", "10"), "1 repeat of 10 packets of each flow")
        self.assertEqual(self.first_line("--stream", "tcp", "--payload", "1000", "--count", "100", "--pairs", "2",
                                         "--target-gbps", "0.01"),
                         "1 repeat of 100 packets of each flow, about 0.2 s")
        self.assertEqual(self.first_line("--count", "10", "--quiet"), "")

    def test_says_what_the_kernels_will_run(self):
        done = doorbell("net", "--mode", "kernels", "--duration", "0.001", "--repeats", "1")
        self.assertIn(done.returncode, (0, 77), done.stderr)  # 77: without a GPU
        self.assertEqual(done.stderr.splitlines()[0], "40 cells, each 1 repeat of 0.001 s, about 16 s")
        done = doorbell("net", "--mode", "kernels", "--gpu", "1000")  # which is not there
        self.assertEqual(done.stderr.splitlines()[0], "40 cells, each 7 repeats of 0.2 s, about 74 s")

    def test_says_so_before_a_long_run(self):
        command = [*self.command, "--stream", "tcp", "--payload", "262144", "--pairs", "2", "--count", "300",
                   "--target-gbps", "0.01", "--fault", "drop=0.01"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                self.assertEqual(process.stderr.readline(), "1 repeat of 300 packets of each flow, about 2 min\n")
            finally:
                process.kill()

    def test_a_library_that_computes_wrong_is_found_in_each_window(self):
        fake = os.environ["FAKE_CPU_MATH"]
        for wrong in ("0", "1", "2"):  # right; a row of each product; an element
            os.environ.update(DOORBELL_LIBOPENBLAS=fake, DOORBELL_FAKE_CPU_MATH_WRONG=wrong)
            try:
                cell, = self.result("--workload", "gemm", "--gemm-dim", "64", "--window", "16", "--payload", "1056", "--count",
                                    "160", *TIMEOUTS, code=2 if wrong != "0" else 0)["cells"]
            finally:
                del os.environ["DOORBELL_LIBOPENBLAS"], os.environ["DOORBELL_FAKE_CPU_MATH_WRONG"]
            windows = cell["windows"]
            self.assertEqual(windows["checked"], 10)
            self.assertEqual(windows["failed"], 10 if wrong != "0" else 0)

    @long
    def test_both_processes_stopped_for_longer_than_their_limits(self):
        """Packets that are late because no process ran count as late; nothing is lost, and no wait has timed out."""
        for stream in (["tcp"], ["udp", "--payload", "1000", "--target-gbps", "0.05"]):
            with subprocess.Popen([*self.command, "--listen", "127.0.0.1:0"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as listener:
                address = listener.stderr.readline().split()[-1]
                path = self.folder / "stopped.json"
                with subprocess.Popen([*self.command, "--stream", *stream, "--connect", address, "--duration", "0.5", "--repeats", "1",
                                       "--settle", "0.5", "--timeout", "1", "--late-after", "50", "--json", str(path)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
                    listener.stderr.readline()  # the cell has begun
                    for process in (client, listener):
                        process.send_signal(signal.SIGSTOP)
                    time.sleep(2.2)  # which is the matter of this test
                    for process in (client, listener):
                        process.send_signal(signal.SIGCONT)
                    client.wait(60)
                    listener.stderr.read()
                    listener.wait(60)
            cell, = json.loads(path.read_text(encoding="utf-8"))["cells"]
            self.assertEqual(cell["errors"]["timeout"], 0)
            self.assertEqual(cell["verify"]["missing"], 0)

    @unittest.skipUnless(shutil.which("iperf3"), "iperf3 is not installed")
    def test_iperf3s_own_words(self):
        program = self.folder / "bin" / "iperf3"
        program.parent.mkdir()
        program.write_text(f"""#!/bin/sh
case "$*" in
*-c*) echo '{{"error": "error - made up by a test"}}'; exit 1;;
esac
exec {shutil.which("iperf3")} "$@"
""", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{program.parent}:{path}"
        begin = time.monotonic()
        try:
            done = doorbell("net", "--stream", "tcp", "--payload", "8000", "--duration", "60", "--repeats", "1", "--warmup",
                            "0.1", "--beside", "iperf3", *TIMEOUTS)
        finally:
            os.environ["PATH"] = path
        self.assertIn("made up by a test", done.stdout + done.stderr)
        self.assertLess(time.monotonic() - begin, 60)  # neither a repeat nor the limit for one was waited for


if __name__ == "__main__":
    unittest.main()
