#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Random runs of every path, whose figures are recomputed from their Results; and the rules themselves."""

import copy
import json
import os
import tempfile
import unittest

import random_runs
import ranks
import result_checks
from harness import DOORBELL, TIMEOUTS, WithFolder

COUNT = int(os.environ.get("DOORBELL_RANDOM_RUNS", "10"))
SEED = int(os.environ.get("DOORBELL_RANDOM_SEED", "1"))


class RandomRuns(unittest.TestCase):
    def add_up(self, path):
        said = []
        found, codes = random_runs.random_runs(DOORBELL, path, COUNT, SEED, say=said.append)
        self.assertEqual(len(found), 0, "\n".join(said))
        self.assertLess(codes[1], COUNT * 0.7, "most of the runs were refused")

    def test_nvme(self):
        self.add_up("nvme")

    def test_rdma(self):
        self.add_up("rdma")

    def test_cxi(self):
        self.add_up("cxi")

    def test_net(self):
        self.add_up("net")

    def test_qdma(self):
        self.add_up("qdma")

    @unittest.skipIf(ranks.why_no_hosts(), ranks.why_no_hosts())
    def test_veth(self):
        self.add_up("veth")

    def test_peers(self):
        self.add_up("peers")

    def test_a_run_is_the_same_by_its_number(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in random_runs.PATHS:
                one, again, other = (random_runs.drawn(path, 3, index, folder).arguments for index in (5, 5, 6))
                self.assertEqual(one, again)
                self.assertNotEqual(one, other)


class TheRules(WithFolder):
    """Each finds what it is there for: a figure of a sound Result is changed."""

    def changed(self, document, *path, by=None, to=None):
        made = copy.deepcopy(document)
        place = made
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to if by is None else place[path[-1]] * by
        return result_checks.problems(made)

    def found(self, document, changes):
        self.assertEqual(result_checks.problems(document), [])
        for path, value in changes:
            with self.subTest(path=path):
                self.assertTrue(self.changed(document, *path, **value))

    def test_of_closed_loops(self):
        self.command = [DOORBELL, "nvme"]
        cell = ("cells", 0)
        latency = (*cell, "metrics", "latency_ns")
        self.found(self.result("--write-io", "300", "--read-io", "300", "--in-flight", "4", "--repeats", "2", *TIMEOUTS), [
            ((*cell, "metrics", "ops_per_s"), {"by": 1.001}), ((*cell, "metrics", "bytes_per_s"), {"by": 1000}),
            ((*cell, "metrics", "bytes"), {"by": 2}), ((*cell, "metrics", "elapsed_s"), {"by": 0.5}),
            ((*latency, "p50"), {"by": 1.02}), ((*latency, "p99"), {"to": 5e5}), ((*latency, "p99_9"), {"to": 5e5}),
            ((*latency, "mean"), {"by": 3}), ((*latency, "std"), {"by": 1e6}), ((*latency, "max"), {"by": 2}),
            ((*latency, "min"), {"to": 0}), ((*latency, "count"), {"by": 2}), ((*latency, "bins", 0, 1), {"by": 3}),
            ((*latency, "beyond_range"), {"to": 1}), ((*cell, "nvme", "read", "ops"), {"to": 299}),
            ((*cell, "nvme", "write", "elapsed_s"), {"by": 1.1}), ((*cell, "spread", "ops_per_s", "median"), {"by": 1.01}),
            ((*cell, "spread", "ops_per_s", "ci_level"), {"to": 0.95}), ((*cell, "repeats", 0, "ops_per_s"), {"by": 0}),
            ((*cell, "verify", "checked_bytes"), {"by": 2}), ((*cell, "verify", "corrupt"), {"to": 1}),
            ((*cell, "errors", "identity"), {"to": 1}), ((*cell, "errors", "completion"), {"to": 1}),
            ((*cell, "cost", "cpu_user_s"), {"to": 1e3}), ((*cell, "cost", "elapsed_s"), {"to": 1e-9}), ((*cell, "cost", "cpu_ns_per_op"), {"by": 1.01}),
            ((*cell, "cost", "doorbells_per_op"), {"by": 1.01})])

    def test_of_littles_law(self):
        self.command = [DOORBELL, "rdma"]
        document = self.result("--size", "64", "--measure", "latency", "--iterations", "50", *TIMEOUTS)
        cell = document["cells"][0]
        self.found(document, [(("cells", 0, "rdma", "submitted"), {"to": 51}), (("cells", 0, "rdma", "single_operation", "count"), {"to": 7})])
        slower = copy.deepcopy(document)
        metrics = slower["cells"][0]["metrics"]
        metrics["elapsed_s"] = metrics["latency_ns"]["max"] * 1e-9 / 1e3
        metrics["ops_per_s"], metrics["bytes_per_s"] = (metrics[k] / metrics["elapsed_s"] for k in ("ops", "bytes"))
        slack, result_checks.CLOCK_SLACK_NS = result_checks.CLOCK_SLACK_NS, 0
        self.addCleanup(setattr, result_checks, "CLOCK_SLACK_NS", slack)
        self.assertTrue(any("Little" in p for p in result_checks.of_closed_loop(slower["cells"][0])))
        self.assertFalse(any("Little" in p for p in result_checks.of_closed_loop(cell)))

    def test_of_streams(self):
        self.command = [DOORBELL, "net"]
        cell = ("cells", 0)
        self.found(self.result("--count", "300", "--settle", "1", *TIMEOUTS), [
            ((*cell, "net", "goodput_gbps"), {"by": 1.001}), ((*cell, "net", "l2_gbps"), {"by": 1.001}),
            ((*cell, "net", "l1_gbps"), {"by": 1.001}), ((*cell, "net", "mpps"), {"by": 2}), ((*cell, "net", "sent"), {"to": 301}),
            ((*cell, "net", "lost_percent"), {"to": 1}), ((*cell, "drops", "ring"), {"to": 1}), ((*cell, "verify", "missing"), {"to": 1}),
            ((*cell, "net", "repeats", 0, "rx_gbps"), {"by": 2}), ((*cell, "net", "repeats", 0, "tx_gbps"), {"by": 2}),
            ((*cell, "errors", "late"), {"to": 1})])

    def test_beyond_the_buckets(self):
        latency = {"count": 60, "min": 18e9, "mean": 19.4667e9, "std": 5.53e9, "p50": None, "p90": None, "p95": None, "p99": None, "p99_9": None,
                   "p99_99": None, "max": 40e9, "bins": [[2 ** 34, 60]], "beyond_range": 60}
        self.assertEqual(list(result_checks.of_latency(latency)), [])
        self.assertTrue(list(result_checks.of_latency({**latency, "p50": 28.59e9})))
        self.assertTrue(list(result_checks.of_latency({**latency, "beyond_range": 59})))


if __name__ == "__main__":
    unittest.main()
