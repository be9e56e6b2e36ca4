#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell nvme --controller file:PATH` and `--controller qemu` as a user meets them. Needs no hardware."""

import hashlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from harness import DOORBELL, TIMEOUTS, wait_until
from nvme_test import WithFolder, run


def qemu_reason():
    """Why there is no QEMU to test with; empty when there is one."""
    done = run("--controller", "qemu:capacity=1Mi", "--read-io", "1", *TIMEOUTS)
    return done.stderr.strip() if done.returncode == 77 else ""


class OnDisk(WithFolder):
    """Its files lie in the working directory, a build folder: tmpfs has no direct I/O on many kernels."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(dir=".", prefix="doorbell-test-")
        self.addCleanup(folder.cleanup)
        self.disk = pathlib.Path(folder.name).resolve()
        self.file = self.disk / "data"
        self.direct = []
        probe = self.sparse("probe", 4096)
        try:
            os.close(os.open(probe, os.O_RDWR | os.O_DIRECT))
        except OSError:
            self.direct = ["--direct", "off"]

    def sparse(self, name, size):
        path = self.disk / name
        with path.open("wb") as file:
            file.truncate(size)
        return path

    def digest(self):
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def on_file(self, *arguments):
        return ["--controller", f"file:{self.file}", *self.direct, *TIMEOUTS, *arguments]


class Runs(OnDisk):
    def test_all_that_was_written_is_known_not_only_the_longest_part(self):
        for base, count in (("0", "100"), ("1000", "200"), ("4000", "50")):
            self.result(*self.on_file("--file-size", "4Mi", "--base-lba", base, "--write-io", count, "--read-io", "1"))
        if not os.listxattr(self.file):
            self.skipTest("no extended attributes here")
        with self.file.open("r+b") as file:
            for block in (50, 4010):  # in the second and in the shortest part
                file.seek(block * 512)
                file.write(bytes(512))
        reads = ["--write-io", "0", "--read-io", "8192"]
        for arguments in (self.on_file(*reads), ["--controller", f"model:media=file:{self.file}", *TIMEOUTS, *reads]):
            cell, = self.result(*arguments, code=2)["cells"]
            self.assertEqual((cell["verify"]["stale"], cell["verify"]["corrupt"]), (2, 0))

    def test_the_result(self):
        r = self.result(*self.on_file("--file-size", "16Mi", "--write-io", "500", "--read-io", "500", "--lbas-per-io",
                                      "8", "--in-flight", "16", "--batch-size", "4"))
        self.assertTrue(r["complete"])
        cell, = r["cells"]
        self.assertEqual(cell["device"], {"kind": "kernel", "name": f"file:{self.file}"})
        self.assertEqual(cell["initiator"]["kind"], "cpu")
        self.assertEqual(cell["verify"]["checked"], 500)
        self.assertEqual(cell["metrics"]["ops"], 1000)
        self.assertEqual(cell["metrics"]["bytes"], 1000 * 4096)
        self.assertEqual(set(cell["errors"].values()), {0})
        self.assertEqual(cell["cell"]["in_flight"], 16)
        for option, value in (("backend", "io_uring"), ("direct", "off" if self.direct else "on"),
                              ("fixed_buffers", "on"), ("fixed_files", "on"), ("sqpoll", False), ("iopoll", False)):
            self.assertEqual(cell["options"][option], value, option)
        self.assertEqual(self.file.stat().st_size, 16 << 20)

    def test_neither_count_given(self):
        """A file that doorbell makes is its own: it writes and reads."""
        cell, = self.result(*self.on_file("--file-size", "16Mi"))["cells"]
        self.assertEqual(cell["verify"]["checked"], 10000)
        self.assertEqual(cell["metrics"]["ops"], 20000)

    def test_sync(self):
        cell, = self.result(*self.on_file("--file-size", "4Mi", "--backend", "sync", "--write-io", "200", "--read-io",
                                          "200", "--num-queues", "4", "--access-pattern", "random"))["cells"]
        self.assertEqual(cell["verify"]["checked"], 200)
        self.assertEqual(cell["options"]["backend"], "sync")

    def test_every_switch(self):
        self.sparse("data", 4 << 20)
        for more in (["--sqpoll"], ["--fixed-buffers", "off"], ["--fixed-files", "off"],
                     ["--sqpoll", "--fixed-buffers", "off", "--fixed-files", "off"], ["--direct", "off"]):
            with self.subTest(more):
                if more[0] == "--direct":
                    self.direct = []
                cell, = self.result(*self.on_file("--write-io", "100", "--read-io", "100", *more))["cells"]
                self.assertEqual(cell["verify"]["checked"], 100)

    def test_a_duration_with_repeats(self):
        r = self.result(*self.on_file("--file-size", "4Mi", "--read-io", "1", "--duration", "0.1", "--repeats", "3"))
        self.assertEqual(len(r["cells"][0]["repeats"]), 3)

    def test_damage_is_found(self):
        self.result(*self.on_file("--file-size", "1Mi", "--write-io", "100"))
        with self.file.open("r+b") as file:
            file.seek(50 * 512 + 99)
            byte = file.read(1)[0]
            file.seek(50 * 512 + 99)
            file.write(bytes([byte ^ 1]))
        cell, = self.result(*self.on_file("--read-io", "100"), code=2)["cells"]
        self.assertEqual(cell["verify"]["corrupt"], 1)
        self.assertEqual(cell["verify"]["first"][0]["address"], 50 * 512)

    def test_iopoll_works_or_says_what_is_missing(self):
        if self.direct:
            self.skipTest("no direct I/O here")
        done = run(*self.on_file("--file-size", "1Mi", "--write-io", "10", "--read-io", "10", "--iopoll"))
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        if done.returncode == 1:
            self.assertIn("--iopoll", done.stderr)
            self.assertIn("hint", done.stderr)
            self.assertFalse(self.file.exists(), "a refused run left a file")


class Refusals(OnDisk):
    def refused(self, *arguments, word):
        done = run(*arguments)
        self.assertEqual(done.returncode, 1, (arguments, done.stdout, done.stderr))
        self.assertIn(word, done.stderr, arguments)
        return done.stderr

    def test_options_that_need_a_file(self):
        for option, *value in (["--backend", "sync"], ["--backend", "io_uring"], ["--direct", "off"],
                               ["--fixed-buffers", "on"], ["--fixed-files", "off"], ["--sqpoll"], ["--iopoll"],
                               ["--file-size", "1Mi"]):
            for controller in ([], ["--controller", "model"], ["--controller", "qemu"]):
                self.assertIn("file:PATH", self.refused(*controller, option, *value, word=option))

    def test_options_that_contradict_each_other(self):
        self.sparse("data", 1 << 20)
        before = self.digest()
        here = f"file:{self.file}"
        for word, *arguments in (
                ["--iopoll", "--direct", "off", "--iopoll"], ["--sqpoll", "--backend", "sync", "--sqpoll"],
                ["--iopoll", "--backend", "sync", "--iopoll"], ["--backend", "--backend", "sync", "--in-flight", "4"],
                ["--backend", "--backend", "sync", "--batch-size", "2"], ["--backend", "--backend", "aio"],
                ["--direct", "--direct", "maybe"], ["--file-size", "--file-size", "0"],
                ["--file-size", "--file-size", "4095"], ["--file-size", "--file-size", "2Pi"],
                ["--fault", "--fault", "corrupt=0.1"], ["--in-flight", "--in-flight", "1024"],
                ["--base-lba", "--base-lba", "2048"], ["--num-queues", "--lbas-per-io", "4096"],
                ["--initiator", "--initiator", "gpu"], ["--queue-length", "--queue-length", "40000"]):
            if word == "--initiator":  # a machine without a GPU says that first
                self.assertIn(run("--controller", here, *arguments).returncode, (1, 77))
                continue
            self.refused("--controller", here, *arguments, word=word)
        self.assertEqual(self.digest(), before)

    def test_paths(self):
        fifo = self.disk / "pipe"
        os.mkfifo(fifo)
        for path in (self.disk, fifo, "/dev/null", "/dev/zero"):
            self.refused("--controller", f"file:{path}", word="neither a file nor a block device")
        self.refused("--controller", "file:", word="path")
        self.assertIn("--file-size", self.refused(*self.on_file(), word="No such file"))
        self.refused("--controller", f"file:{self.sparse('empty', 0)}", *self.direct, word="empty")
        self.refused("--controller", f"file:{self.sparse('short', 100)}", *self.direct, word="less than a block")
        self.assertFalse(self.file.exists())

    def test_a_refused_run_makes_no_file(self):
        for arguments in (["--queue-length", "40000"], ["--base-lba", "99999999"], ["--backend", "sync", "--in-flight", "4"],
                          ["--json", "/nonexistent/out.json"], ["--file-size", "1Pi"]):
            size = [] if "--file-size" in arguments else ["--file-size", "1Mi"]
            done = run(*self.on_file(*size, *arguments))
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertFalse(self.file.exists(), arguments)

    def test_a_file_of_somebody_else_takes_permission(self):
        self.file.write_bytes(b"precious" * (1 << 17))
        before = self.digest()
        for backend in ("io_uring", "sync"):
            way = ["--backend", backend]
            self.refused(*self.on_file("--write-io", "10", "--read-io", "10", *way), word="--allow-write")
            self.assertEqual(self.digest(), before)
            done = run(*self.on_file(*way))  # without counts it reads, and says why it does no more
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("--allow-write", done.stdout + done.stderr)
            self.assertEqual(self.digest(), before)
        self.assertEqual(run(*self.on_file("--allow-write")).returncode, 0)
        self.assertNotEqual(self.digest(), before)

    @unittest.skipUnless(os.geteuid() == 0, "it takes root to become somebody else")
    def test_a_file_that_may_not_be_written(self):
        self.result(*self.on_file("--file-size", "1Mi", "--write-io", "100"))
        self.file.chmod(0o444)
        self.disk.chmod(0o755)

        def as_nobody(*arguments):
            return run(*self.on_file(*arguments), user=65534, group=65534, extra_groups=[])
        try:
            done = as_nobody("--read-io", "100")
        except PermissionError:
            self.skipTest("nobody may not run the program")
        if "Permission denied" in done.stderr and done.returncode == 1:
            self.skipTest("nobody may not reach the folder")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = as_nobody("--write-io", "10")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied", done.stderr)
        self.assertIn("--read-io", done.stderr)
        done = as_nobody()
        self.assertEqual(done.returncode, 1, "it wanted to write: the file is doorbell's own")


class Stops(WithFolder):
    def test_file(self):
        for way in (["--in-flight", "8"], ["--backend", "sync"]):
            for which in (signal.SIGINT, signal.SIGTERM):
                media = self.folder / "media"
                code, _, err = self.interrupt("--infinite", "--controller", f"file:{media}", "--file-size", "4Mi",
                                              "--direct", "off", "--read-io", "1", *way, which=which)
                self.assertEqual(code, 130, err)
                r = self.valid(self.json)
                self.assertEqual(r["stop_reason"], "signal")
                self.assertFalse(r["complete"])
                self.assertGreater(r["cells"][0]["metrics"]["ops"], 0)
                self.assertEqual(set(r["cells"][0]["errors"].values()), {0})


class Qemu(WithFolder):
    @classmethod
    def setUpClass(cls):
        if reason := qemu_reason():
            raise unittest.SkipTest(reason)

    def children(self, pid):
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == pid:
                    found.append(int(stat.parent.name))
            except (OSError, IndexError):
                pass  # it has ended
        return found

    def test_the_result(self):
        cell, = self.result("--controller", "qemu:capacity=16Mi", "--write-io", "200", "--read-io", "200",
                            "--num-queues", "2", *TIMEOUTS)["cells"]
        self.assertEqual(cell["device"], {"kind": "emulated", "name": "qemu:capacity=16Mi"})
        self.assertEqual(cell["verify"]["checked"], 200)
        self.assertGreater(cell["emulated"]["messages"], 0)

    def test_a_bad_sector(self):
        cell, = self.result("--controller", "qemu:capacity=16Mi,bad-sector=5", "--write-io", "10", "--read-io", "10",
                            *TIMEOUTS, code=2)["cells"]
        self.assertEqual(cell["errors"]["completion"], 1)
        self.assertEqual(cell["nvme"]["completion_statuses"], {"Unrecovered Read Error": 1})

    def test_refusals(self):
        for spec, code in (("qemu:binary=/nonexistent", 77), ("qemu:binary=/bin/false", 1), ("qemu:medai=ram", 1),
                           ("qemu:lba=1000", 1), ("qemu:queues=65", 1), ("qemu:mdts=11", 1), ("qemu:drive=/dev/null", 1),
                           ("qemu:drive=/nonexistent", 1), ("qemux", 1)):
            done = run("--controller", spec)
            self.assertEqual(done.returncode, code, (spec, done.stdout, done.stderr))
            self.assertTrue(done.stderr.strip(), spec)
        self.assertIn("--fault", run("--controller", "qemu", "--fault", "corrupt=0.1").stderr)
        environment = {**os.environ, "DOORBELL_QEMU": "/nonexistent/qemu"}
        done = run("--controller", "qemu", env=environment)
        self.assertEqual(done.returncode, 77)
        self.assertIn("/nonexistent/qemu", done.stderr)

    def test_it_ends_with_its_user(self):
        """However doorbell ends, at whatever time: QEMU goes as well."""
        for after_s in (0.02, 0.1, 0.2, None):
            command = [DOORBELL, "nvme", "--controller", "qemu:capacity=16Mi", "--infinite"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                if after_s is None:
                    wait_until(lambda: self.children(process.pid), "QEMU")
                else:
                    time.sleep(after_s)
                process.send_signal(signal.SIGSTOP)  # so that it starts nothing between the look and its end
                started = self.children(process.pid)
                process.kill()
            for pid in started:
                wait_until(lambda: not self.runs(pid), f"killed after {after_s} s, the end of QEMU")

    @staticmethod
    def runs(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
        except (OSError, IndexError):
            return False


if __name__ == "__main__":
    unittest.main()
