#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The behaviour of a run where this machine has no more for it: open files, threads, a file or a card that another run has."""

import os
import resource
import shutil
import signal
import subprocess
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder, doorbell, end_of, wait_for_work, wait_until

NOBODY_ELSE = 60123  # a user who has no other processes
EACH_PATH = (["nvme", "--write-io", "50", "--read-io", "50", "--num-queues", "2"],
             ["rdma", "--size", "8", "--iterations", "50", "--num-qps", "2"],
             ["cxi", "--size", "8", "--iterations", "50", "--num-queues", "2"],
             ["qdma", "--size", "4096", "--iterations", "50", "--num-queues", "2"],
             ["qdma", "validate", "-j", "2", "--buffer-size", "64Ki"],
             ["net", "--count", "100", "--queues", "2x2"])


def limited(which, soft, hard):
    return lambda: resource.setrlimit(which, (soft, hard))


class OpenFiles(unittest.TestCase):
    MANY = ["qdma", "--size", "4KiB", "--num-queues", "8", "--measure", "rate", "--iterations", "2000", *TIMEOUTS]

    def test_the_soft_limit_is_not_the_limit(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if 0 <= hard < 4096:
            self.skipTest(f"no more than {hard} open files here")
        done = doorbell(*self.MANY, preexec_fn=limited(resource.RLIMIT_NOFILE, 256, hard))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_cannot_fit_is_refused_by_its_option(self):
        done = doorbell(*self.MANY, preexec_fn=limited(resource.RLIMIT_NOFILE, 256, 256))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("--num-queues", done.stderr)
        self.assertIn("256", done.stderr)

    def test_io_uring_is_not_blamed(self):
        done = doorbell("nvme", "--controller", "file:" + DOORBELL, "--read-io", "640", "--num-queues", "64", "--direct", "off",
                        *TIMEOUTS, preexec_fn=limited(resource.RLIMIT_NOFILE, 40, 40))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("40 files open", done.stderr)
        self.assertNotIn("forbid", done.stderr)


class Threads(unittest.TestCase):
    def run_with(self, threads, arguments):
        """With so many processes and threads for all of the user."""
        if os.geteuid() != 0:
            # The user's other processes count, so that there is room for none at all.
            return doorbell(*arguments, *TIMEOUTS, preexec_fn=limited(resource.RLIMIT_NPROC, 1, 1))
        if shutil.which("setpriv") is None:
            self.skipTest("no setpriv here")
        user = ["setpriv", f"--reuid={NOBODY_ELSE}", f"--regid={NOBODY_ELSE}", "--clear-groups"]
        if subprocess.run([*user, DOORBELL, "version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("another user may not run the program")
        return subprocess.run(["prlimit", f"--nproc={threads}:{threads}", *user, DOORBELL, *arguments, *TIMEOUTS],
                              capture_output=True, text=True, timeout=120, check=False)

    def test_threads_that_cannot_be_made_are_an_error(self):
        for arguments in EACH_PATH:
            refused = 0
            for threads in (1, 2, 3, 4, 6):
                with self.subTest(arguments=arguments, threads=threads):
                    done = self.run_with(threads, arguments)
                    self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
                    if done.returncode == 1:
                        refused += 1
                        # Behind a cell that was measured it is a warning of the Result.
                        self.assertRegex(done.stdout + done.stderr, "thread.* cannot be made|threads: the system has|Resource temporarily unavailable")
            self.assertGreater(refused, 0, arguments)


class InUse(WithFolder):
    def another(self, *arguments):
        process = subprocess.Popen([DOORBELL, *arguments, "--infinite", "--quiet", *TIMEOUTS], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_for_work(process)
        return process

    def refused(self, holder, *arguments):
        done = doorbell(*arguments, *TIMEOUTS)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"in use by process {holder.pid} (doorbell)", done.stderr)

    def allowed(self, *arguments):
        done = doorbell(*arguments, *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_file_has_one_writer(self):
        media = f"model:media=file:{self.folder}/m,capacity=1Mi"
        self.allowed("nvme", "--controller", media, "--write-io", "2048")
        ways = (["--controller", media], ["--controller", f"file:{self.folder}/m", "--direct", "off"])
        for held in ways:
            holder = self.another("nvme", *held, "--write-io", "100", "--read-io", "100")
            for way in ways:
                self.refused(holder, "nvme", *way, "--read-io", "100")
                self.refused(holder, "nvme", *way, "--write-io", "100")
            holder.send_signal(signal.SIGINT)
            end_of(holder)
            reader = self.another("nvme", *held, "--read-io", "100")
            for way in ways:
                self.allowed("nvme", *way, "--read-io", "100")
                self.refused(reader, "nvme", *way, "--write-io", "100")
            reader.send_signal(signal.SIGINT)
            end_of(reader)

    def test_bytes_of_a_served_card_have_one_run(self):
        socket = self.folder / "card"
        with subprocess.Popen([DOORBELL, "card", "serve", "--listen", str(socket)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as server:
            self.addCleanup(server.kill)
            wait_until(socket.exists, "a card")
            device = ["--device", f"server:{socket}", "--size", "4096"]
            holder = self.another("qdma", *device, "--measure", "rate")
            self.refused(holder, "qdma", *device, "--iterations", "10")
            self.refused(holder, "qdma", "tune", "--device", f"server:{socket}", "--iterations", "10")
            self.allowed("qdma", *device, "--iterations", "10", "--memory", "hbm")
            self.allowed("qdma", *device, "--iterations", "10", "--starting-offset", "1Gi")
            holder.send_signal(signal.SIGINT)
            end_of(holder)
            self.allowed("qdma", *device, "--iterations", "10")
            server.terminate()


if __name__ == "__main__":
    unittest.main()
