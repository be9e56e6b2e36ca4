#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A program that writes WQEs and rings doorbells itself, on rings that the drop-in's mlx5dv_init_obj hands out: doorbell's own
back end for ConnectX, which verifies every operation. The NIC at the other end is of another process, too."""

import subprocess
import unittest
from pathlib import Path

import harness
from harness import DOORBELL, TIMEOUTS

RUN = [DOORBELL, "run", "rdma", "--rings", "mlx5", "--"]
RDMA = [DOORBELL, "rdma", "--provider", "mlx5", "--device", "doorbell0"]
ONE_SIDED = ("write", "write-imm", "read", "send", "send-imm")


def setUpModule():
    folder = Path(DOORBELL).resolve().parent
    if not any((folder / place / "libibverbs.so.1").exists() for place in ("../lib/verbs", "../lib/doorbell/verbs")):
        raise unittest.SkipTest("no drop-in libibverbs beside this program")


class Rings(harness.WithFolder):
    command = [*RUN, *RDMA]

    def assert_verified(self, document, ops, checked=None):
        for cell in document["cells"]:
            self.assertGreaterEqual(cell["metrics"]["ops"], ops)
            self.assertGreaterEqual(cell["verify"]["checked"], checked or ops)
            self.assertEqual(set(cell["errors"].values()), {0})

    def test_each_operation_to_the_own_nic(self):
        for op in ONE_SIDED:
            with self.subTest(op):
                self.assert_verified(self.result("--op", op, "--size", "0,8,4097,64KiB", "--num-qps", "2", "--iterations",
                                                 "200", *TIMEOUTS), 200)
        for op in ("fetch-add", "compare-swap"):
            with self.subTest(op):
                self.assert_verified(self.result("--op", op, "--iterations", "200", *TIMEOUTS), 200)

    def test_payloads_in_the_wqe_itself(self):
        self.assert_verified(self.result("--op", "send", "--size", "1,64,200", "--inline", "256", "--iterations", "500",
                                         *TIMEOUTS), 500)

    def test_another_process(self):
        # A WRITE that the next one covers is not checked.
        for op in ("write", "read", "send-imm"):
            with self.subTest(op), subprocess.Popen([*self.command, "--listen", "127.0.0.1:0"],
                                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                                    text=True) as listener:
                try:
                    address = listener.stderr.readline().split()[-1]
                    self.assert_verified(self.result("--connect", address, "--op", op, "--size", "8,64KiB", "--iterations",
                                                     "200", *TIMEOUTS), 200, checked=1)
                    _, err = listener.communicate(timeout=120)
                    self.assertEqual(listener.returncode, 0, err)
                finally:
                    listener.kill()


if __name__ == "__main__":
    unittest.main()
