#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Every path with its data in the memory of an Intel GPU, on a Level Zero that needs none (tests/gpu/fake_level_zero.cpp): no host code
reaches that memory, and what the interface does not allow is counted. CPU threads make and check the data, through copies."""

import json
import os
import pathlib
import subprocess
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder

LOOPBACK = str(pathlib.Path(DOORBELL).with_name("cxi_gpu_loopback_bw"))
NO_OTHER = {"DOORBELL_LIBCUDA": "/nonexistent/libcuda.so.1", "DOORBELL_LIBAMDHIP64": "/nonexistent/libamdhip64.so"}
RMA = ["--data-mem", "vram", "--target-mem", "vram", "--measure", "rate", "--iterations", "300", *TIMEOUTS]
NVME = ["--memory-mode", "8", "--write-io", "100", "--read-io", "100", *TIMEOUTS]


class LevelZero(WithFolder):
    def run_program(self, *command, **variables):
        self.report = self.folder / "fake"
        self.report.unlink(missing_ok=True)
        environment = {**os.environ, **NO_OTHER, "DOORBELL_LIBZE_LOADER": os.environ["FAKE_LEVEL_ZERO"], "LC_ALL": "C",
                       "FAKE_ZE_REPORT": str(self.report), **variables}
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=200, env=environment)

    def counts(self):
        """What the GPU's driver saw; nothing is left, and nothing was done that the interface does not allow."""
        counts = dict(line.split(" ", 1) for line in self.report.read_text().splitlines())
        for name in ("device", "pinned", "imported", "lists", "events", "pools", "contexts", "mistakes"):
            self.assertEqual(counts[name], "0", counts)
        return {name: int(counts[name]) for name in ("commands", "to_device", "from_device")}

    def cells(self, *arguments, code=0, **variables):
        path = self.folder / "result.json"
        done = self.run_program(DOORBELL, *arguments, "--json", path, **variables)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(path.read_text())["cells"]

    def good(self, *arguments, least=1):
        """All data was checked and good, and went through the GPU's memory."""
        cells = self.cells(*arguments)
        counts = self.counts()
        for cell in cells:
            self.assertEqual({k: n for k, n in cell["errors"].items() if n}, {}, arguments)
            self.assertGreaterEqual(cell["verify"]["checked"], least, arguments)
        self.assertGreater(counts["to_device"], 0, arguments)
        self.assertGreater(counts["from_device"], 0, arguments)
        return cells

    def bad(self, kind, *arguments):
        """The faults were found."""
        cells = self.cells(*arguments, "--fault", f"{kind}=0.05", code=2)
        self.counts()
        self.assertGreater(cells[0]["verify"][kind], 0, arguments)

    def test_the_pages_of_a_command_are_one_copy(self):
        self.good("nvme", "--memory-mode", "8", "--size", "128KiB", "--write-io", "100", "--read-io", "100", *TIMEOUTS)
        counts = self.counts()
        self.assertLess(counts["commands"], 200 * 10, "of 32 pages each")

    # --- what is shown and refused ---

    def test_it_is_listed(self):
        gpus = json.loads(self.run_program(DOORBELL, "list", "--json").stdout)["gpus"]
        self.assertEqual([(g["model"], g["runtime"], g["pci_address"]) for g in gpus],
                         [("Fake Max 1550", "level_zero", "0000:3a:00.0"), ("Fake Arc A770", "level_zero", "0000:3b:00.0")])
        self.assertIn("level_zero", self.run_program(DOORBELL, "backends").stdout)
        checks = {c["check"]: c for c in json.loads(self.run_program(DOORBELL, "doctor", "--json").stdout)["checks"]}
        self.assertEqual(checks["GPU driver"]["finding"], "level_zero: driver 1.3.24595 (Level Zero 1.4), 2 GPUs")

    def test_what_needs_kernels_is_refused(self):
        for arguments in (["nvme", "--initiator", "gpu"], ["rdma", "--initiator", "gpu"], ["cxi", "--initiator", "gpu"],
                          ["nvme", "--initiator", "gpu", "--device-engine", "gpu"],
                          ["net", "--window-mem", "vram", "--to-gpu", "kernel", "--host-memory", "pinned", "--workload", "fft"],
                          ["net", "--window-mem", "vram", "--workload", "gemm"]):
            with self.subTest(arguments):
                done = self.run_program(DOORBELL, *arguments)
                self.assertEqual(done.returncode, 77, done.stderr)
                self.assertIn("doorbell has no kernels for Intel's GPUs", done.stderr)
                self.assertIn("hint:", done.stderr)
        for arguments, option in ((["nvme", "--memory-mode", "1"], "--memory-mode"), (["rdma", "--queue-mem", "vram"], "--queue-mem")):
            done = self.run_program(DOORBELL, *arguments)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(option, done.stderr)

    def test_too_much_memory(self):
        done = self.run_program(DOORBELL, "rdma", *RMA, "--gpu", "1", "--size", "512MiB", "--in-flight", "4")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("GPU 1 (Fake Arc A770)", done.stderr)
        self.counts()

    def test_a_gpu_that_is_lost_during_a_run(self):
        """The model finds it, and ends as a drive that resets; or the thread that makes the data."""
        for arguments, said in ((["nvme", *NVME], "stopped by reset"), (["rdma", *RMA, "--size", "4096"], "ZE_RESULT_ERROR_DEVICE_LOST")):
            with self.subTest(arguments[0]):
                done = self.run_program(DOORBELL, *arguments, FAKE_ZE_LOST_AFTER="60")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertTrue(said in done.stdout + done.stderr or "ZE_RESULT_ERROR_DEVICE_LOST" in done.stderr, done)

    # --- the paths ---

    def test_nvme(self):
        for more in ([], ["--lbas-per-io", "64", "--num-queues", "2", "--access-pattern", "random"],
                     ["--batch-size", "16", "--in-flight", "64", "--check-threads", "2"],
                     ["--lbas-per-io", "2048", "--check-threads", "2"]):
            with self.subTest(more):
                self.good("nvme", *NVME, *more, least=100)
        self.bad("corrupt", "nvme", *NVME, "--batch-size", "8")

    def test_rdma(self):
        for op in ("write", "write-imm", "send", "read", "fetch-add", "compare-swap"):
            size = [] if op in ("fetch-add", "compare-swap") else ["--size", "1,100000"]
            with self.subTest(op):
                self.good("rdma", *RMA, "--op", op, *size, least=300)
        for provider in ("bnxt", "ionic", "ernic"):
            with self.subTest(provider):
                self.good("rdma", *RMA, "--provider", provider, "--size", "8", "--num-qps", "2", least=300)
        self.good("rdma", *RMA, "--size", "64", "--inline", "64")
        self.good("rdma", *RMA, "--size", "1MiB", "--check-threads", "2")
        # One side only.
        self.good("rdma", *TIMEOUTS, "--data-mem", "vram", "--iterations", "100", "--measure", "latency", "--size", "4096")
        self.bad("corrupt", "rdma", *RMA, "--size", "4096")
        self.bad("corrupt", "rdma", *RMA, "--size", "64", "--op", "read")

    def test_cxi(self):
        for op in ("put", "get"):
            with self.subTest(op):
                self.good("cxi", *RMA, "--op", op, "--size", "8,4096,100000", least=300)
        self.bad("corrupt", "cxi", *RMA, "--size", "4096")

    def test_cxi_gpu_loopback_bw(self):
        small = ["-d", "cxi-model0", "--timeout", "60", "-i", "3", "-n", "32", "-s", "4096"]
        for gpus in (["-t", "0"], ["-r", "1", "-g", "INTEL"], ["-t", "0", "-r", "0", "-g", "intel"], ["-t", "0", "-r", "1"]):
            with self.subTest(gpus):
                done = self.run_program(LOOPBACK, *small, *gpus)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("GPU Type         : INTEL\n", done.stdout)
                self.assertIn("Found 2 GPU(s)\n", done.stdout)
                self.assertGreater(self.counts()["commands"], 0)
        faulty = self.run_program(LOOPBACK, *small, "-t", "0", "-r", "1", "-g", "INTEL", "--fault", "corrupt=0.3")
        self.assertEqual(faulty.returncode, 1, faulty.stdout + faulty.stderr)
        self.counts()
        none = self.run_program(LOOPBACK, *small, "-t", "0", "-g", "INTEL", DOORBELL_LIBZE_LOADER="/nonexistent/libze_loader.so.1")
        self.assertEqual(none.returncode, 1)
        self.assertTrue(none.stderr.startswith("Unable to open libze_loader.so\n"), none.stderr)
        beyond = self.run_program(LOOPBACK, *small, "-t", "2", "-g", "INTEL")
        self.assertIn("GPU must be in the range: 0 to 1.", beyond.stderr)

    def test_qdma(self):
        small = ["qdma", "validate", "-j", "2", "--buffer-size", "64Ki", "--gpu-chunk", "16Ki", "--ddr-only", *TIMEOUTS]
        cells = self.good(*small, "--gpu-memory")
        self.assertIn("gpu-read", [c["cell"]["phase"] for c in cells])
        faulty = self.cells(*small, "--phase", "gpu-read", "--fault", "corrupt=1", code=2)
        self.counts()
        self.assertGreater(faulty[-1]["verify"]["corrupt"], 0)

    def test_net(self):
        """Windows in GPU memory, each slot of which is read back and compared."""
        windows = ["net", "--window-mem", "vram", "--to-gpu", "copy", "--convert", "int16:fp32", "--payload", "1024", "--window", "64",
                   "--count", "6400", *TIMEOUTS]
        cell, = self.good(*windows, least=6400)
        self.assertEqual((cell["windows"]["place"], cell["windows"]["conversions_failed"]), ("gpu", 0))
        self.assertGreater(cell["windows"]["conversions_checked"], 0)


if __name__ == "__main__":
    unittest.main()
