# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that connect by librdmacm, on the drop-in: an own one that checks each byte, and Debian's unmodified ones."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from pair import MISMEASURED  # noqa: E402

DOORBELL = os.environ.get("DOORBELL", "build/bin/doorbell")
PEER = os.environ.get("CM_PEER", "build/bin/cm_peer")
LONGEST_S = 100
FAULTS = ("--fault", "drop=0.03,duplicate=0.03,reorder=0.03,corrupt=0.02")
PORT_SPACES = {"tcp": 262, "udp": 273}


def run_rdma(options, words):
    return [DOORBELL, "run", "rdma", *options, "--", *map(str, words)]


def listens(space, port):
    """Whether a process has the name by which others of the host find its port."""
    name = f"@doorbell-rdmacm/port/{PORT_SPACES[space]}/{port}"
    for line in pathlib.Path("/proc/net/unix").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[-1] == name and fields[3] == "00010000":
            return True
    return False


class Programs(unittest.TestCase):
    def setUp(self):
        self.running = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="doorbell-cm-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()

    def start(self, words, options=()):
        error = open(self.folder / f"{len(self.running)}.err", "w+", encoding="utf-8")
        self.addCleanup(error.close)
        process = subprocess.Popen(run_rdma(options, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error, text=True)
        process.errors = error
        self.running.append(process)
        return process

    def said(self, process):
        process.errors.seek(0)
        return process.errors.read()

    def line(self, process, begins):
        """The next line, which begins so."""
        line = process.stdout.readline()
        self.assertTrue(line.startswith(begins), f"{line!r} instead of {begins}: {self.said(process)}")
        return line.strip()

    def ends(self, process, code=0):
        output, _ = process.communicate(timeout=LONGEST_S)
        self.assertEqual(process.returncode, code, f"{process.args}: {output[-2000:]} {self.said(process)[-2000:]}")
        return output

    def server(self, count, address="0.0.0.0", options=(), mode="server"):
        server = self.start([PEER, mode, address, 0, count], options)
        return server, self.line(server, "listening").split()[1]

    def within(self, happened, what, process=None):
        until = time.monotonic() + LONGEST_S
        while not happened():
            self.assertLess(time.monotonic(), until, "never: " + what)
            if process is not None:
                self.assertIsNone(process.poll(), f"ended before: {what}: {self.said(process) if process.poll() is not None else ''}")
            time.sleep(0.01)


class Exchanges(Programs):
    def exchange(self, count, address="127.0.0.1", options=()):
        server, port = self.server(count, options=options)
        client = self.start([PEER, "client", address, port, count], options)
        self.ends(client)
        self.ends(server)

    def closed(self, mode="reopen"):
        """A server whose port has just lost its listener."""
        server, port = self.server(3, mode=mode)
        self.line(server, "closed")
        return server, port

    def go_on(self, server):
        server.stdin.write("\n")
        server.stdin.flush()


class OwnProgram(Exchanges):
    def test_one_connection(self):
        self.exchange(1)

    def test_many_connections_at_a_time(self):
        self.exchange(40)

    def test_over_udp(self):
        self.exchange(3, options=["--carrier", "udp"])

    def test_small_mtu(self):
        self.exchange(2, options=["--mtu", "256"])

    def test_under_faults_of_the_wire(self):
        self.exchange(1, options=[*FAULTS, "--seed", "1"])

    def test_ends_of_different_mtu_meet_at_the_smaller(self):
        server, port = self.server(1, options=["--mtu", "1024"])
        self.ends(self.start([PEER, "client", "127.0.0.1", port, 1], ["--mtu", "4096"]))
        self.ends(server)

    def test_server_at_an_address_of_its_own(self):
        options = ["--address", "127.78.1.1"]
        server, port = self.server(1, address="127.78.1.1", options=options)
        self.ends(self.start([PEER, "client", "127.78.1.1", port, 1]))
        self.ends(server)

    def test_second_server_of_a_port_is_refused(self):
        _, port = self.server(1)
        second = self.start([PEER, "server", "0.0.0.0", port, 1])
        self.ends(second, 1)
        self.assertIn("errno 98", self.said(second))

    def test_calls_wait_for_a_server_that_listens_again(self):
        server, port = self.closed()
        client = self.start([PEER, "client", "127.0.0.1", port, 3])
        # perftest sleeps for a second; a client sends its request again after 1.75 s.
        time.sleep(2.2)
        self.go_on(server)
        self.ends(client)
        self.ends(server)

    def test_server_that_does_not_listen_again(self):
        _, port = self.closed()
        self.assertIn("RDMA_CM_EVENT_REJECTED 8", self.ends(self.start([PEER, "call", "127.0.0.1", port])))

    def test_rejection_has_its_reason_and_data(self):
        server, port = self.server(1)
        self.assertIn("RDMA_CM_EVENT_REJECTED 28 no, thank you", self.ends(self.start([PEER, "call", "127.0.0.1", port, "reject"])))
        # The server is as it was.
        self.ends(self.start([PEER, "client", "127.0.0.1", port, 1]))
        self.ends(server)

    def test_nobody_listens(self):
        self.assertIn("RDMA_CM_EVENT_REJECTED 8", self.ends(self.start([PEER, "call", "127.0.0.1", 9])))
        # A process is there, and listens at another port.
        options = ["--address", "127.78.1.2"]
        self.server(1, options=options)
        self.assertIn("RDMA_CM_EVENT_REJECTED 8", self.ends(self.start([PEER, "call", "127.78.1.2", 9])))

    def test_no_such_device(self):
        self.assertIn("RDMA_CM_EVENT_UNREACHABLE -110", self.ends(self.start([PEER, "call", "127.77.0.1", 9])))

    def test_killed_server_is_noticed(self):
        server, port = self.server(1)
        client = self.start([PEER, "hold", "127.0.0.1", port])
        self.line(client, "calling")
        self.line(client, "RDMA_CM_EVENT_ESTABLISHED 0 welcome")
        self.line(client, "established")
        server.send_signal(signal.SIGKILL)
        self.line(client, "disconnected")
        self.ends(client)

    def test_killed_client_is_noticed(self):
        server, port = self.server(1)
        client = self.start([PEER, "hold", "127.0.0.1", port])
        self.line(client, "calling")
        self.line(client, "RDMA_CM_EVENT_ESTABLISHED")
        # A message that says so may end with the client.
        self.line(server, "established")
        client.send_signal(signal.SIGKILL)
        self.ends(server)

    def test_server_that_dies_before_it_answers(self):
        server, port = self.server(1)
        client = self.start([PEER, "call", "127.0.0.1", port, "ignore"])
        self.line(client, "calling")
        server.send_signal(signal.SIGKILL)
        self.assertIn("RDMA_CM_EVENT_UNREACHABLE -110", self.ends(client))

    def test_trace_is_read_by_tshark(self):
        if not shutil.which("tshark"):
            self.skipTest("tshark is not installed")
        trace = self.folder / "trace.pcapng"
        server, port = self.server(1)
        self.ends(self.start([PEER, "client", "127.0.0.1", port, 1], ["--trace", trace]))
        self.ends(server)
        read = subprocess.run(["tshark", "-r", trace, "-Y", "infiniband.mad", "-T", "fields", "-e", "infiniband.mad.attributeid"],
                              capture_output=True, text=True, check=True, timeout=LONGEST_S)
        kinds = [int(word, 16) for word in read.stdout.split()]
        for kind in (0x10, 0x13, 0x14, 0x15, 0x16):
            self.assertIn(kind, kinds)
        bad = subprocess.run(["tshark", "-r", trace, "-Y", "infiniband.mad && _ws.malformed"], capture_output=True, text=True, check=True, timeout=LONGEST_S)
        self.assertEqual(bad.stdout, "")


class Lossy(Exchanges):
    """Each lost tail of a message costs its timer, half a second."""

    long = True

    def test_many_connections(self):
        for seed in ("1", "2", "3"):
            with self.subTest(seed=seed):
                self.exchange(4, options=[*FAULTS, "--seed", seed])


class Patience(Exchanges):
    long = True

    def test_it_begins_anew_when_a_port_is_left_again(self):
        server, port = self.closed("reopen-twice")
        time.sleep(4)
        self.go_on(server)
        self.line(server, "closed")
        client = self.start([PEER, "client", "127.0.0.1", port, 3])
        # More than 5 s after the first end, less than that after the second.
        time.sleep(2)
        self.go_on(server)
        self.ends(client)
        self.ends(server)


class Unmodified(Programs):
    """Debian's programs: perftest, rdmacm-utils, libfabric-bin. programs_test.py has pyverbs' tests. One that is not installed is skipped."""

    long = True

    port = 20000 + os.getpid() % 9000

    def next_port(self):
        Unmodified.port += 1
        return Unmodified.port

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")

    def pair(self, server, client, space="tcp", port=None, options=()):
        self.need(server[0])
        port = port or self.next_port()
        words = [[str(port) if word == "PORT" else word for word in part] for part in (server, client)]
        passive = self.start(words[0], options)
        self.within(lambda: listens(space, port), "the server listens", passive)
        active = self.start(words[1], options)
        self.ends(active)
        return self.ends(passive)

    def perftest(self, *words, options=(), excuse=MISMEASURED):
        """Once more where an end says `excuse` and fails; four times at most."""
        words = [*words, "-R", "-p", "PORT"]
        for last in (False, False, False, False, True):
            try:
                self.pair(words, [*words, "localhost"], options=options)
                return
            except AssertionError:
                said = "".join(map(self.said, self.running[-2:]))
                if last or (excuse not in said and MISMEASURED not in said):
                    raise

    def test_perftest(self):
        for words in (("ib_write_bw", "-n", "100"), ("ib_send_lat", "-n", "100"), ("ib_read_bw", "-n", "100"), ("ib_write_bw", "-n", "20", "-q", "4"),
                      ("ib_atomic_bw", "-n", "50"), ("ib_send_bw", "-n", "50", "--use-srq", "-q", "2"), ("ib_write_lat", "-n", "50", "-s", "64")):
            with self.subTest(words=words):
                self.perftest(*words)

    def test_perftest_with_datagrams(self):
        # It connects twice, first to exchange what its ends need to know.
        self.perftest("ib_send_bw", "-c", "UD", "-n", "50", "-s", "1024")

    def test_perftest_under_loss(self):
        # Its ends part over the connection. Who has ended sends no acknowledgement again: then the other end says so (12),
        # as of any program that is gone.
        self.perftest("ib_write_bw", "-n", "50", options=["--fault", "drop=0.01"], excuse="Bad wc status 12")

    def test_rping(self):
        self.pair(["rping", "-s", "-p", "PORT", "-C", "20", "-V"], ["rping", "-c", "-p", "PORT", "-C", "20", "-V", "-a", "127.0.0.1"])

    def test_ucmatose(self):
        self.pair(["ucmatose", "-p", "PORT", "-c", "10", "-C", "5"], ["ucmatose", "-p", "PORT", "-c", "10", "-C", "5", "-s", "127.0.0.1"])

    def test_udaddy(self):
        port = 7174  # it has no option for another
        if listens("udp", port):
            self.skipTest("another udaddy runs")
        self.pair(["udaddy"], ["udaddy", "-s", "127.0.0.1"], space="udp", port=port)

    def test_synchronous_calls(self):
        self.pair(["rdma_server", "-p", "PORT"], ["rdma_client", "-p", "PORT"])

    def test_libfabric(self):
        self.need("fi_pingpong")
        for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
            with self.subTest(provider=provider):
                port = self.next_port()
                words = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "20", "-c", "-B", str(port)]
                passive = self.start(words)
                self.within(lambda: tcp_listens(port), "the server listens", passive)
                self.ends(self.start([*words[:-2], "-P", str(port), "127.0.0.1"]))
                self.ends(passive)


def tcp_listens(port):
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(wanted) and fields[3] == "0A":
                return True
    return False


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
