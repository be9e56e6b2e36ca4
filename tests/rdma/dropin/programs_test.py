#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Debian's unmodified RDMA programs on the drop-in: perftest, rdma-core's pingpongs and tests, UCX, libfabric."""

import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from pair import MISMEASURED, Pair, again, needs, run, under_loss  # noqa: E402

# perftest's own measuring of the processor takes a fifth of a second for each size: fewer iterations, not sizes.
COMPLETE = """
ib_write_bw -n 500
ib_write_bw -s 1
ib_write_bw -s 4097
ib_write_bw -a -n 100
ib_write_bw -b
ib_write_bw -q 4
ib_write_bw -q 8 -n 500
ib_write_bw -l 4
ib_write_bw -D 2
ib_write_bw -x 0
ib_write_bw -m 256 -s 1000
ib_write_bw -m 1024
ib_write_bw -c UC
ib_write_bw --report_gbits
ib_write_bw --use_old_post_send
ib_write_bw -u 10 -S 3
ib_write_bw --recv_post_list 2
ib_write_bw -I 32 -s 16
ib_write_lat -s 8
ib_write_lat -c UC -s 64
ib_write_lat -s 65536
ib_write_lat -s 8388608 -n 5
ib_write_lat -a -n 20
ib_read_bw -n 200
ib_read_bw -o 1
ib_read_bw -s 10001
ib_read_bw -s 1048576 -m 1024 -n 300
ib_read_bw -a -n 100
ib_read_lat -s 2
ib_send_bw -n 200
ib_send_bw -c UC
ib_send_bw -c UD -s 2048
ib_send_bw -c UD -s 1001
ib_send_bw -e
ib_send_bw --use-srq -q 2
ib_send_bw -r 16
ib_send_bw -b
ib_send_lat -s 64
ib_send_lat -c UD -s 64
ib_send_lat -e
ib_send_lat -a -n 20
ib_atomic_bw -A FETCH_AND_ADD
ib_atomic_bw -A CMP_AND_SWAP
ib_atomic_lat -A FETCH_AND_ADD
ib_atomic_lat -A CMP_AND_SWAP
ib_write_bw -c XRC -n 500
ib_write_lat -c XRC -n 500
ib_read_bw -c XRC -n 200
ib_send_bw -c XRC -n 500
ib_send_bw -c XRC -q 4 -n 200 -s 10001
ib_send_lat -c XRC -n 500
ib_atomic_bw -c XRC -n 200
""".split("\n")[1:-1]

REFUSED = """
ib_write_bw -e
ib_write_bw -c SRD
ib_write_bw -i 2
ib_write_bw -d nosuch
ib_write_bw -s 2147483649
ib_write_bw --dont_xchg_versions
ib_send_bw -g -c UD
""".split("\n")[1:-1]


def perftest(line, **more):
    words = line.split()
    needs(words[0])
    if "-d" not in words:
        words += ["-d", "doorbell0"]
    return again(lambda: Pair(words, **more), lambda pair: MISMEASURED in pair.text(), 5)


class Perftest(unittest.TestCase):
    def test_complete(self):
        for line in COMPLETE:
            with self.subTest(line):
                pair = perftest(line)
                self.assertEqual(pair.codes, [0, 0], pair.text())
                self.assertNotIn("no version information", pair.text())

    def test_refused(self):
        for line in REFUSED:
            with self.subTest(line):
                pair = perftest(line)
                self.assertEqual(pair.codes, [1, 1], pair.text())
                self.assertTrue(pair.said[0].strip())

    def test_under_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            for line in ("ib_write_bw -s 10000 -n 500", "ib_atomic_bw -n 200", "ib_send_bw -s 5000 -n 500", "ib_read_bw -n 100",
                         "ib_send_bw -c XRC -s 5000 -n 500", "ib_send_lat -e"):
                with self.subTest(line):
                    file = pathlib.Path(folder, "report")
                    file.unlink(missing_ok=True)
                    options = ["--fault", "drop=0.01,duplicate=0.01,reorder=0.01", "--report-file", str(file)]
                    pair = perftest(line, options=options)
                    self.assertEqual(pair.codes, [0, 0], pair.text())
                    reports = [json.loads(text) for text in file.read_text(encoding="ascii").splitlines()]
                    self.assertGreater(sum(one["retransmitted_packets"] for report in reports for one in report["queue_pairs"]), 0)


class Pingpong(unittest.TestCase):
    """ibv_rc_pingpong -c is the only one of these programs that checks its data."""

    def pingpong(self, line, options=()):
        words = line.split()
        needs(words[0])
        pair = Pair([*words, "-d", "doorbell0", "-g", "0"], options=options)
        self.assertEqual(pair.codes, [0, 0], pair.text())

    def test_each(self):
        for line in ("ibv_rc_pingpong -c", "ibv_rc_pingpong -c -e", "ibv_rc_pingpong -c -N", "ibv_uc_pingpong",
                     "ibv_ud_pingpong", "ibv_srq_pingpong", "ibv_xsrq_pingpong"):
            with self.subTest(line):
                self.pingpong(line)

    def test_under_faults(self):
        needs("ibv_rc_pingpong")
        for carrier in ("ring", "udp"):
            with self.subTest(carrier):
                pair = under_loss("ibv_rc_pingpong -c -n 200 -s 20000 -d doorbell0 -g 0".split(),
                                  ["--fault", "drop=0.01,duplicate=0.01,reorder=0.01", "--carrier", carrier])
                self.assertEqual(pair.codes, [0, 0], pair.text())

    def test_devinfo(self):
        needs("ibv_devinfo")
        done = run("ibv_devinfo", "-v")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"GID\[  0\]:\s+::ffff:127\.77\.\d+\.\d+, RoCE v2")


class Ucx(unittest.TestCase):
    def ucx(self, words, tls):
        needs("ucx_perftest")
        pair = Pair(["env", "UCX_NET_DEVICES=doorbell0:1", f"UCX_TLS={tls}", "ucx_perftest", *words, "-n", "1000"])
        self.assertEqual(pair.codes, [0, 0], pair.text())

    def test_transports(self):
        for words in ("-x rc_verbs -t am_lat", "-x rc_verbs -t am_bw -D bcopy -s 4096", "-x rc_verbs -t put_bw -D zcopy -s 8192",
                      "-x rc_verbs -t get -D zcopy -s 4096", "-x rc_verbs -t fadd", "-x ud_verbs -t am_lat"):
            with self.subTest(words):
                self.ucx(["-d", "doorbell0:1", *words.split()], "rc_verbs,ud_verbs")

    def test_protocols(self):
        for words in ("-t tag_lat", "-t tag_bw -s 100000", "-t ucp_put_bw -s 4096"):
            for tls in ("rc_verbs,ud_verbs", "ud_verbs"):
                with self.subTest(words=words, tls=tls):
                    self.ucx(words.split(), tls)


class Libfabric(unittest.TestCase):
    def test_pingpong(self):
        needs("fi_pingpong")
        for endpoint in ("rdm", "dgram"):
            with self.subTest(endpoint):
                pair = Pair(["fi_pingpong", "-p", "verbs", "-e", endpoint], port_options=("-B", "-P"))
                self.assertEqual(pair.codes, [0, 0], pair.text())


# Tests of rdma-core by module: how many there are, and how many are skipped at most (docs/rdma.md says why).
PYVERBS = {"addr": (3, 0), "atomic": (9, 0), "cq": (4, 0), "cq_events": (2, 0), "cqex": (5, 0), "device": (22, 0),
           "flow": (5, 5), "fork": (1, 0), "mr": (27, 10), "odp": (17, 17), "parent_domain": (6, 1), "pd": (4, 0),
           "qp": (26, 5), "qpex": (20, 0), "rdmacm": (10, 3), "relaxed_ordering": (3, 0), "rss_traffic": (1, 1),
           "shared_pd": (1, 0), "tag_matching": (4, 4)}


class Pyverbs(unittest.TestCase):
    def test_modules(self):
        source = pathlib.Path("/usr/share/doc/rdma-core/tests")
        if not source.exists() or not pathlib.Path("/usr/lib/python3/dist-packages/pyverbs").exists():
            self.skipTest("python3-pyverbs or its tests are not installed")
        with tempfile.TemporaryDirectory() as folder:
            tests = pathlib.Path(folder, "tests")
            tests.mkdir()
            for file in source.iterdir():
                if file.suffix == ".gz":
                    (tests / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
                else:
                    shutil.copy(file, tests / file.name)
            for module, (count, most_skipped) in PYVERBS.items():
                with self.subTest(module):
                    code = ("import sys, unittest, importlib; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/tests'];"
                            "name = sys.argv[2]; sys.argv[1:] = []; from args_parser import parser; parser.parse_args();"
                            "unittest.main(module=importlib.import_module('tests.test_' + name), argv=['x', '-v'])")
                    # Those of librdmacm take a device's address from the interface that sysfs names.
                    done = run("/usr/bin/python3", "-c", code, folder, module, options=["--sysfs"] if module == "rdmacm" else [])
                    if done.returncode == 77:
                        print(f"{module}: {done.stderr.strip()}", file=sys.stderr)
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(int(re.search(r"Ran (\d+) tests? in", done.stderr)[1]), count)
                    skipped = re.search(r"skipped=(\d+)", done.stderr)
                    self.assertLessEqual(int(skipped[1]) if skipped else 0, most_skipped, done.stderr)


class Traces(unittest.TestCase):
    """Other programs read what was on the wire."""

    def traces(self, folder):
        options = ["--trace", f"{folder}/%p.pcapng", "--fault", "drop=0.02,duplicate=0.02"]
        pair = perftest("ib_write_bw -s 10001 -n 50 -m 1024", options=options)
        self.assertEqual(pair.codes, [0, 0], pair.text())
        files = sorted(pathlib.Path(folder).glob("*.pcapng"))
        self.assertEqual(len(files), 2)
        return files

    def test_tshark(self):
        needs("tshark")
        with tempfile.TemporaryDirectory() as folder:
            for file in self.traces(folder):
                done = subprocess.run(["tshark", "-r", file, "-Y", "_ws.malformed"], capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout, "")
                done = subprocess.run(["tshark", "-r", file, "-Y", "infiniband", "-T", "fields", "-e", "infiniband.bth.opcode"],
                                      capture_output=True, text=True, check=True)
                self.assertGreater(len(done.stdout.split()), 500)

    def test_checksums(self):
        try:
            from scapy.all import UDP, rdpcap  # pylint: disable=import-outside-toplevel
            from scapy.contrib.roce import BTH  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("scapy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            for file in self.traces(folder):
                packets = rdpcap(str(file))
                self.assertGreater(len(packets), 500)
                for packet in packets:
                    payload = bytes(packet[UDP].payload)
                    self.assertEqual(packet[BTH].compute_icrc(payload[:-4]), payload[-4:])


if __name__ == "__main__":
    unittest.main()
