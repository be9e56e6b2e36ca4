#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell net` between two machines with a router between them that drops packets: network namespaces of its own."""

import json
import os
import shutil
import subprocess
import unittest

from harness import DOORBELL, TIMEOUTS

FAR = "10.71.2.2"


def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=60)


def why_not():
    """Why this machine can have no such network; "" if it can."""
    if os.geteuid() != 0:
        return "it takes root"
    missing = [program for program in ("ip", "tc", "sysctl") if not shutil.which(program)]
    return f"{missing[0]} is not installed" if missing else ""


@unittest.skipIf(why_not(), why_not())
class OverARouter(unittest.TestCase):
    def setUp(self):
        self.near, self.router, self.far = (f"db{place}{os.getpid()}" for place in "nrf")
        for name in (self.near, self.router, self.far):
            made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, timeout=60, check=False)
            if made.returncode != 0:
                self.skipTest("no network namespaces: " + made.stderr.strip())
            self.addCleanup(run, "ip", "netns", "del", name)
        self.wire(self.near, "10.71.1")
        self.wire(self.far, "10.71.2")
        run("ip", "netns", "exec", self.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def wire(self, machine, network):
        """A cable from a machine to the router, whose end there has the machine's first letter."""
        end = "r" + machine[2]
        run("ip", "link", "add", "eth", "netns", machine, "type", "veth", "peer", "name", end, "netns", self.router)
        run("ip", "-n", machine, "addr", "add", network + ".2/24", "dev", "eth")
        run("ip", "-n", self.router, "addr", "add", network + ".1/24", "dev", end)
        run("ip", "-n", machine, "link", "set", "eth", "up")
        run("ip", "-n", self.router, "link", "set", end, "up")
        run("ip", "-n", machine, "route", "add", "default", "via", network + ".1")

    def limit(self):
        """From now on the router drops what is faster than 10 Mb/s."""
        made = subprocess.run(["tc", "-n", self.router, "qdisc", "add", "dev", "rf", "root", "tbf", "rate", "10mbit", "burst",
                               "20kb", "limit", "20000"], capture_output=True, text=True, timeout=60, check=False)
        if made.returncode != 0:
            self.skipTest("no token bucket: " + made.stderr.strip())

    def client(self, *arguments):
        """(client's exit code, its Result, listener's exit code)"""
        with subprocess.Popen(["ip", "netns", "exec", self.far, DOORBELL, "net", "--listen", f"{FAR}:0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as listener:
            try:
                address = listener.stderr.readline().split()[-1]
                done = subprocess.run(["ip", "netns", "exec", self.near, DOORBELL, "net", *arguments, "--connect", address,
                                       "--repeats", "1", "--warmup", "0", *TIMEOUTS, "--json", "-"],
                                      capture_output=True, text=True, timeout=120, check=False)
                listener.communicate(timeout=120)
                self.assertTrue(done.stdout, done.stderr)
                return done.returncode, json.loads(done.stdout), listener.returncode
            finally:
                listener.kill()

    def test_without_a_stream_it_is_tcp(self):
        code, result, theirs = self.client("--count", "50", "--size", "1000")
        self.assertEqual((code, theirs), (0, 0), result["warnings"])
        self.assertEqual(result["cells"][0]["cell"]["stream"], "tcp")

    def test_loss_on_the_way_is_an_error_unless_it_is_allowed(self):
        self.limit()
        fast = ["udp", "--target-gbps", "0.05", "--payload", "1400", "--duration", "0.3"]
        code, result, theirs = self.client(*fast)
        cell = result["cells"][0]
        lost = cell["drops"]["unexplained"]
        self.assertGreater(lost, 0)
        self.assertEqual((code, theirs, cell["verify"]["missing"]), (2, 2, lost))
        self.assertIn(f"{lost} packets were lost on the way: no counter of either end has them; --max-way-loss PERCENT allows that",
                      result["warnings"])
        code, result, theirs = self.client(*fast, "--max-way-loss", "99.9")
        cell = result["cells"][0]
        self.assertGreater(cell["drops"]["unexplained"], 0)
        self.assertEqual((code, theirs, cell["verify"]["missing"]), (0, 0, 0), result["warnings"])
        self.assertGreater(cell["net"]["lost_percent"], 0)
        code, _, theirs = self.client(*fast, "--max-way-loss", "1")
        self.assertEqual((code, theirs), (2, 2))

    def test_a_payload_that_the_way_does_not_carry_names_one_that_it_does(self):
        with subprocess.Popen(["ip", "netns", "exec", self.far, DOORBELL, "net", "--listen", f"{FAR}:0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as listener:
            try:
                address = listener.stderr.readline().split()[-1]
                done = subprocess.run(["ip", "netns", "exec", self.near, DOORBELL, "net", "udp", "--connect", address, "--count",
                                       "5"], capture_output=True, text=True, timeout=120, check=False)
            finally:
                listener.kill()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--payload 1472 fits", done.stderr)


if __name__ == "__main__":
    unittest.main()
