#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell nvme --beside`: several ways in turns, with fio among them where it is installed."""

import json
import os
import shutil
import signal
import subprocess
import unittest

from file_test import OnDisk
from harness import DOORBELL, wait_for_work
from nvme_test import run

READ = ["--write-io", "0", "--read-io", "1", "--verify", "off"]
SHORT = ["--duration", "0.2", "--warmup", "0", "--repeats", "3"]


class Beside(OnDisk):
    def setUp(self):
        super().setUp()
        self.file = self.sparse("data", 16 << 20)

    def cells(self, *arguments, code=0):
        return self.result(*arguments, code=code)["cells"]

    def test_ways_of_our_own(self):
        first, ring, sync = self.cells(*self.on_file(*READ, *SHORT, "--in-flight", "4", "--beside", "io_uring,sync"))
        self.assertNotIn("ops_per_s_ratio", first["beside"])
        for other, label, queues, depth in ((ring, "io_uring", 1, 4), (sync, "sync", 4, 1)):
            self.assertEqual(other["beside"]["label"], label)
            self.assertEqual((other["cell"]["queues"], other["cell"]["in_flight"]), (queues, depth))
            for name in ("ops_per_s_ratio", "mean_latency_ratio"):
                ratio = other["beside"][name]
                self.assertEqual(len(ratio["samples"]), 3)
                self.assertTrue(0 < ratio["ci_low"] <= ratio["median"] <= ratio["ci_high"])
            for mine, its, ratio in zip(first["repeats"], other["repeats"], other["beside"]["ops_per_s_ratio"]["samples"]):
                self.assertAlmostEqual(mine["ops_per_s"] / its["ops_per_s"], ratio)

    def test_the_kernel_beside_a_controller(self):
        first, ring = self.cells("--controller", f"model:media=file:{self.file},capacity=16Mi", *READ, *SHORT,
                                 "--lbas-per-io", "8", "--beside", "io_uring", "--beside-file", str(self.file),
                                 *self.direct)
        self.assertEqual(first["device"]["kind"], "model")
        self.assertEqual(ring["device"]["kind"], "kernel")
        self.assertEqual(ring["cell"]["io_bytes"], 4096)

    def test_writes_are_not_stopped_by_what_others_wrote(self):
        cells = self.cells(*self.on_file("--write-io", "1", "--read-io", "0", *SHORT, "--in-flight", "8", "--beside",
                                         "io_uring,sync"))
        self.assertTrue(all(len(c["repeats"]) == 3 for c in cells))

    def test_refusals(self):
        for arguments, word in ((["--beside", "sync"], "--duration"),
                                (["--beside", "nothing", *SHORT], "nothing"),
                                (["--beside", "gpu", *SHORT], "--beside gpu"),
                                (["--beside-file", "x", *SHORT], "--beside"),
                                (["--beside", "fio:mmap", *SHORT], "fio:mmap")):
            done = run(*self.on_file(*READ, *arguments))
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(word, done.stderr)
        done = run("--controller", "model", *READ, *SHORT, "--beside", "io_uring")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--beside-file", done.stderr)

    def test_a_way_that_breaks_leaves_the_others(self):
        """The file is cut while it is measured: what was measured is delivered, and the exit code tells."""
        out = self.disk / "r.json"
        with subprocess.Popen([DOORBELL, "nvme", *self.on_file(*READ), "--duration", "0.3", "--warmup", "0",
                               "--repeats", "50", "--beside", "sync", "--json", str(out), "--quiet"],
                              stderr=subprocess.PIPE, text=True) as process:
            wait_for_work(process, 0.3)
            os.truncate(self.file, 0)
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertTrue(out.exists())

    def test_ctrl_c(self):
        out = self.disk / "r.json"
        for work_s in (0, 0.5):  # in the warm-up, and in a repeat
            with subprocess.Popen([DOORBELL, "nvme", *self.on_file(*READ), "--duration", "0.3", "--warmup", "0.5",
                                   "--repeats", "50", "--beside", "sync", "--json", str(out), "--quiet"],
                                  stderr=subprocess.PIPE, text=True) as process:
                wait_for_work(process, work_s)
                process.send_signal(signal.SIGINT)
                errors = process.communicate(timeout=60)[1]
            r = self.valid(out)
            self.assertEqual((process.returncode, r["stop_reason"], r["complete"]), (130, "signal", False), errors)

    def test_no_fio(self):
        done = subprocess.run([DOORBELL, "nvme", *self.on_file(*READ, *SHORT, "--beside", "fio")], text=True,
                              capture_output=True, timeout=60, env={**os.environ, "PATH": "/nonexistent"})
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("install", done.stderr)


    def test_what_a_failing_fio_says_is_no_command_to_the_terminal(self):
        fio = self.folder / "fio"
        fio.write_text("#!/bin/sh\nprintf 'fio \\033[31mred\\302\\233\\n' >&2\n", encoding="ascii")
        fio.chmod(0o755)
        done = subprocess.run([DOORBELL, "nvme", *self.on_file(*READ, *SHORT, "--beside", "fio")], text=True,
                              capture_output=True, timeout=60, env={**os.environ, "PATH": f"{self.folder}:/usr/bin:/bin"})
        self.assertIn("fio ?[31mred??", done.stdout)
        self.assertNotIn("\033", done.stdout + done.stderr)


    def test_fios_percentiles_keep_our_rules(self):
        """None of too few samples, and none outside of what was measured: fio gives both."""
        percentiles = {f"{p:.6f}": ns for p, ns in ((50, 1005), (90, 2010), (95, 3000), (99, 5050), (99.9, 5100), (99.99, 5100))}
        lat = {"min": 1008, "max": 5000, "mean": 1500.5, "stddev": 300.25, "percentile": percentiles}
        for count, due in ((56, {"p50": 1008}), (1200, {"p50": 1008, "p90": 2010, "p95": 3000, "p99": 5000}),
                           (10000, {"p50": 1008, "p90": 2010, "p95": 3000, "p99": 5000, "p99_9": 5000}),
                           (100000, {"p50": 1008, "p90": 2010, "p95": 3000, "p99": 5000, "p99_9": 5000, "p99_99": 5000})):
            side = {"total_ios": count, "io_bytes": 512 * count, "runtime": 100, "iops": count / 0.1, "bw_bytes": 5120 * count,
                    "lat_ns": {**lat, "N": count}}
            said = json.dumps({"jobs": [{"read": side, "usr_cpu": 1.0, "sys_cpu": 1.0, "error": 0}]})
            fio = self.folder / "fio"
            fio.write_text(f"#!/bin/sh\ncase $1 in --version) echo fio-3.33;; *) echo '{said}';; esac\n", encoding="ascii")
            fio.chmod(0o755)
            out = self.folder / "fio.json"
            done = subprocess.run([DOORBELL, "nvme", *self.on_file(*READ, *SHORT, "--beside", "fio"), "--json", str(out)], text=True,
                                  capture_output=True, timeout=60, env={**os.environ, "PATH": f"{self.folder}:/usr/bin:/bin"})
            self.assertEqual(done.returncode, 0, done.stderr)
            latency = json.loads(out.read_text(encoding="utf-8"))["cells"][1]["metrics"]["latency_ns"]
            for key in ("p50", "p90", "p95", "p99", "p99_9", "p99_99"):
                with self.subTest(percentile=key, count=count):
                    self.assertEqual(latency[key], due.get(key))


@unittest.skipUnless(shutil.which("fio"), "fio is not installed")
class Fio(OnDisk):
    def setUp(self):
        super().setUp()
        self.file = self.sparse("data", 16 << 20)

    def test_the_same_work(self):
        first, fio = self.result(*self.on_file(*READ, *SHORT, "--lbas-per-io", "8", "--batch-size", "4",
                                               "--beside", "fio"))["cells"]
        self.assertEqual(fio["cell"]["in_flight"], first["cell"]["in_flight"])
        command = fio["fio"]["command"]
        for option in ("--bs=4096", f"--iodepth={first['cell']['in_flight']}", "--iodepth_batch_submit=4", "--rw=read"):
            self.assertIn(option, command)
        self.assertEqual(len(fio["repeats"]), 3)
        self.assertGreater(fio["metrics"]["ops"], 0)
        self.assertGreater(fio["cost"]["cpu_ns_per_op"], 0)
        self.assertIn("mean_latency_ratio", fio["beside"])

    def test_a_colon_in_a_path(self):
        self.file = self.sparse("one:two", 16 << 20)
        self.result(*self.on_file("--write-io", "1", "--read-io", "0", *SHORT, "--in-flight", "4", "--beside", "fio"))
        self.assertEqual(sorted(p.name for p in self.disk.iterdir()), ["data", "one:two", "probe"])

    def test_what_fio_wrote_needs_no_permission_the_next_time(self):
        for _ in range(2):
            self.result(*self.on_file("--write-io", "1", "--read-io", "0", *SHORT, "--in-flight", "4", "--beside", "fio"))
        self.result(*self.on_file("--write-io", "1000", "--read-io", "1000"))

    def test_the_range_is_kept(self):
        self.file.write_bytes(b"A" * (8 << 20) + bytes(8 << 20))
        self.result(*self.on_file("--write-io", "1", "--read-io", "0", *SHORT, "--in-flight", "4", "--base-lba", "16384",
                                  "--allow-write", "--beside", "fio"))
        self.assertEqual(self.file.read_bytes()[:8 << 20], b"A" * (8 << 20))

    def test_what_its_jobs_leave_of_the_range_is_said(self):
        def warned(queues):
            r = self.result(*self.on_file(*READ, *SHORT, "--lbas-per-io", "8", "--num-queues", queues, "--beside", "fio"))
            return [w for w in r["warnings"] if "untouched" in w]

        self.assertEqual(warned("2"), [])
        self.assertEqual(warned("3"), [f"fio's 3 jobs have equal parts and leave the last 1 of 4096 I/Os of {self.file} untouched"])

    def test_an_error_of_fio_counts(self):
        """Polling a file system without poll queues fails in fio as well."""
        poll = run(*self.on_file(*READ, "--iopoll"))
        if poll.returncode == 0 or self.direct:
            self.skipTest("this disk has poll queues, or no direct I/O")
        # Holes are read without the device.
        self.result(*self.on_file("--write-io", "64", "--read-io", "0", "--lbas-per-io", "512"))
        r = self.result(*self.on_file(*READ, *SHORT, "--beside", "fio:io_uring-poll"), code=2)
        self.assertEqual(r["stop_reason"], "error")
        self.assertGreater(r["cells"][1]["errors"]["completion"], 0)


if __name__ == "__main__":
    unittest.main()
