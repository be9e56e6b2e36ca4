#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The words of fio, iperf3 and perftest, and what is meant by a word that no program has. Needs no hardware."""

import json
import os
import tempfile
import unittest

from harness import TIMEOUTS, doorbell

QUICK = ["--repeats", "1", "--warmup", "0", *TIMEOUTS]


class Words(unittest.TestCase):
    def options(self, *arguments):
        """The options of the only cell, as the Result names them."""
        done = doorbell(*arguments, *QUICK, "--json", "-")
        self.assertEqual(done.returncode, 0, (arguments, done))
        cells = json.loads(done.stdout)["cells"]
        return cells[0]["options"]

    def check(self, arguments, **wanted):
        found = self.options(*arguments)
        self.assertEqual({name: found[name] for name in wanted}, wanted, arguments)

    def refused(self, arguments, *texts):
        done = doorbell(*arguments)
        self.assertEqual((done.returncode, done.stdout), (1, ""), arguments)
        for text in texts:
            self.assertIn(text, done.stderr, arguments)


class OfFio(Words):
    def test_each_word(self):
        self.check(["nvme", "--bs", "4k", "--read-io", "100"], size_bytes=4096)
        self.check(["nvme", "--block-size=8KiB", "--read-io", "100"], size_bytes=8192)
        self.check(["nvme", "--size", "4K", "--read-io", "100"], size_bytes=4096, lbas_per_io=None)
        self.check(["nvme", "--iodepth", "4", "--read-io", "100"], in_flight=4)
        self.check(["nvme", "--queue-depth", "4", "--read-io", "100"], in_flight=4)
        self.check(["nvme", "--numjobs", "2", "--read-io", "100"], num_queues=2)
        self.check(["nvme", "--runtime", "0.02", "--op", "read"], duration_s=0.02, op="read", write_io=0)
        self.check(["nvme", "--runtime", "20ms", "--rw", "write"], duration_s=0.02, op="write", read_io=0)
        for rw, op, order in (("read", "read", "sequential"), ("write", "write", "sequential"),
                              ("randread", "read", "random"), ("randwrite", "write", "random")):
            self.check(["nvme", "--rw", rw], op=op, access_pattern=order)

    def test_a_bare_path_is_a_file(self):
        with tempfile.TemporaryDirectory(dir=".", prefix="doorbell-test-") as folder:
            path = f"{folder}/data"
            for word in ([path], ["--filename", path], ["--device", path]):
                made = self.options("nvme", *word, "--backend", "sync", "--direct", "off", "--file-size", "1M",
                                    "--read-io", "10", "--write-io", "10")
                self.assertEqual(made["controller"], path)
                self.assertEqual(os.path.getsize(path), 1 << 20)
                os.remove(path)
            self.refused(["nvme", path], path)

    def test_a_new_file_is_filled_before_it_is_read(self):
        with tempfile.TemporaryDirectory(dir=".", prefix="doorbell-test-") as folder:
            line = ["nvme", "new.bin", "--backend", "sync", "--direct", "off", "--file-size", "300K", "--bs", "4k", "--rw", "randread",
                    "--read-io", "200", *QUICK, "--json", "-"]
            done = doorbell(*line, cwd=folder)
            self.assertEqual(done.returncode, 0, done)
            verify = json.loads(done.stdout)["cells"][0]["verify"]
            self.assertEqual((verify["checked"], verify["unverifiable"]), (200, 0))
            self.assertEqual(os.stat(f"{folder}/new.bin").st_size, 300 << 10)
            self.assertGreaterEqual(os.stat(f"{folder}/new.bin").st_blocks * 512, 300 << 10)
            line[line.index("300K")] = "1M"
            again = doorbell(*line, cwd=folder)
            self.assertEqual(again.returncode, 0, again)
            self.assertIn("--file-size makes new files only: new.bin is there, and has 307200 bytes", json.loads(again.stdout)["warnings"])

    def test_words_that_ask_for_what_is_always_so(self):
        self.check(["nvme", "--time_based", "--group_reporting", "--runtime", "0.02", "--rw", "write"], duration_s=0.02, op="write")
        with tempfile.TemporaryDirectory(dir=".", prefix="doorbell-test-") as folder:
            made = self.options("nvme", f"{folder}/x", "--file-size", "1M", "--ioengine", "psync", "--direct=0", "--read-io", "10",
                                "--write-io", "10")
            self.assertEqual((made["backend"], made["direct"]), ("sync", "off"))

    def test_the_size_of_an_operation_is_not_that_of_the_file(self):
        self.refused(["nvme", "--size", "200M", "--read-io", "1"], "largest transfer", "the size of one I/O")
        self.refused(["nvme", "--size", "1000", "--read-io", "1"], "--size: 1000 is no multiple of the logical block")
        self.refused(["nvme", "--size", "4K", "--lbas-per-io", "8"], "--size", "--lbas-per-io")

    def test_an_operation_that_contradicts_a_count(self):
        self.refused(["nvme", "--op", "read", "--write-io", "5"], "--op read: it contradicts --write-io")
        self.refused(["nvme", "--op", "write", "--write-io", "0"], "--op write: it contradicts --write-io 0")
        self.refused(["nvme", "--rw", "read", "--op", "read"], "--op: given twice")


class OfIperf3(Words):
    def test_each_word(self):
        self.check(["net", "tcp", "--count", "50", "--size", "64K"], stream="tcp", payload="64K")
        self.check(["net", "--stream", "TCP", "--count", "50", "-l", "64KB"], stream="tcp", payload="64KB")
        self.check(["net", "tcp", "--length", "4K", "-t", "0.02"], payload="4K", duration_s=0.02)
        self.check(["net", "udp", "--time", "0.02", "-b", "100M"], stream="udp", target_gbps=0.1, duration_s=0.02)
        self.check(["net", "-u", "-t", "0.02", "--bandwidth", "100m"], stream="udp", target_gbps=0.1)
        self.check(["net", "tcp", "--bitrate", "0", "--count", "20"], target_gbps=None)
        self.check(["net", "tcp", "-P", "2", "--count", "20"], pairs=2)
        self.check(["net", "tcp", "--parallel", "2", "--count", "20"], pairs=2)

    def test_a_server_and_its_client(self):
        self.refused(["net", "-s", "--payload", "64"], "--payload: with --listen the client says what is done")
        self.refused(["net", "--server", "--listen", "1"], "given twice")
        self.refused(["rdma", "--server"], "--listen: a model is a device of one process")
        self.refused(["net", "raw", "-c", "192.0.2.1"], "doorbell net tcp --connect HOST")
        self.refused(["rdma", "-c", "192.0.2.1"], "--connect: a model")
        self.refused(["rdma", "-s", "64K", "-q", "4", "-t", "3"], "-q: it is --quiet here; it takes no value, but '4' follows; did you mean '--num-qps 4'?")
        self.refused(["net", "-q", "4"], "-q: it is --quiet here; it takes no value, but '4' follows")
        self.refused(["net", "--quiet", "4"], "--quiet: it takes no value, but '4' follows")
        self.refused(["net", "tcp", "-b", "fast"], "-b: 'fast' is not a number")


class OfPerftest(Words):
    def test_each_word(self):
        one = ["--measure", "rate"]
        self.check(["rdma", "-s", "4k", "-n", "50", *one], size=4096, iterations=50)
        self.check(["rdma", "model", "--iters", "50", "--tx-depth", "8", "--batch-size", "8", *one], in_flight=8,
                   iterations=50)
        self.check(["rdma", "-d", "model", "--qp", "2", "-n", "20", *one], num_qps=2)
        self.check(["rdma", "--ib-dev", "model", "-P", "2", "--iters=20", *one], num_qps=2)
        self.check(["rdma", "--parallel", "2", "-t", "0.02", *one], num_qps=2, duration_s=0.02)
        self.check(["rdma", "--time", "0.02", "--inline_size", "64", "-s", "64", *one], inline=64)
        self.check(["rdma", "--post_list", "4", "--mtu", "1024", "-n", "20", *one], batch_size=4, path_mtu="1024")
        self.check(["cxi", "cxi-model0", "-s", "4K", "-n", "20", *one], size=4096)
        self.check(["qdma", "model", "-s", "64k", "-n", "4", *one], size=65536)


class ByMeaning(Words):
    def test_what_is_refused_was_not_announced(self):
        self.refused(["net", "--payload", "128K"], "--stream tcp carries more")
        self.refused(["nvme", "--size", "200M", "--read-io", "1"], "largest transfer")
        for arguments in (["net", "--payload", "128K"], ["nvme", "--size", "200M", "--read-io", "1"]):
            self.assertNotIn("1 repeat of", doorbell(*arguments).stderr)

    def test_each_word(self):
        for word, meant in (("--reads", "--read-io"), ("--writes", "--write-io"), ("--read", "--op"), ("--jobs", "--num-queues")):
            self.refused(["nvme", word, "5"], f"unknown option '{word}'; did you mean '{meant}'?")
        self.refused(["net", "--streams", "5"], "did you mean '--pairs'?")
        self.refused(["net", "tpc"], "--stream: 'tpc' is not one of", "did you mean 'tcp'?")
        self.refused(["nvme", "--bs", "4k", "--size", "8k"], "--size: it is another name of --bs, which is given, too")
        self.refused(["rdma", "--measure", "Bandwidth"], "'Bandwidth' is not one of", "did you mean 'rate'?")
        self.refused(["nvme", "batch-size", "4"], "unexpected argument 'batch-size'; did you mean '--batch-size'?")


if __name__ == "__main__":
    unittest.main()
