#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A QDMA card that other processes use, as a user meets it: `doorbell card serve` and `doorbelld`, and `doorbell qdma` and
`qdma validate` over both. Needs no hardware."""

import fcntl
import json
import os
import pathlib
import signal
import socket
import stat
import struct
import subprocess
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder, doorbell, end_of, long, wait_for_cpu, wait_for_work, wait_until

DOORBELLD = pathlib.Path(DOORBELL).with_name("doorbelld")
PHASES = ["integrity", "read", "write", "duplex", "duplex", "duplex"]


class Serving(WithFolder):
    """`process`: what serves the card at `path`."""

    def setUp(self):
        super().setUp()
        self.path = str(self.folder / "card.sock")
        self.process = None

    def start(self, *words):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.kill, self.process)
        wait_until(lambda: self.answers() or self.process.poll() is not None, "somebody who listens")
        self.assertIsNone(self.process.poll(), self.process.returncode and self.process.communicate())
        return self.process

    @staticmethod
    def kill(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def connection(self):
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(end.close)
        end.connect(self.path)
        return end

    def answers(self):
        try:
            self.connection().close()
            return True
        except OSError:
            return False

    def end(self, which=signal.SIGTERM):
        """Exit code and output."""
        self.process.send_signal(which)
        out, err = end_of(self.process)
        return self.process.returncode, out, err

    def validates(self, device):
        """All phases over `device`, each right."""
        document = self.result("qdma", "validate", "-d", device, "-j", "2", "--buffer-size", "64Ki", *TIMEOUTS)
        self.assertEqual([(c["cell"]["memory"], c["cell"]["phase"]) for c in document["cells"]],
                         [(memory, phase) for memory in ("HBM", "DDR", "HBM+DDR") for phase in PHASES])
        for cell in document["cells"]:
            self.assertEqual(cell["device"]["kind"], "model")
            self.assertEqual(set(cell["errors"].values()), {0})
            self.assertGreater(cell["verify"]["checked"], 0)
            if cell["cell"]["phase"] == "integrity":
                self.assertEqual([p["verdict"] for p in cell["qdma"]["places"]], ["ok"] * 4)

    def transfers(self, device):
        """Puts and gets over `device`, verified."""
        for op in ("put", "get"):
            for cell in self.result("qdma", "--device", device, "--op", op, "--size", "4097,1MiB", "--iterations", "20",
                                    *TIMEOUTS)["cells"]:
                self.assertEqual(cell["device"]["kind"], "model")
                self.assertEqual((cell["metrics"]["ops"], cell["verify"]["checked"]), (20, 20))
                self.assertEqual(set(cell["errors"].values()), {0})


class CardServe(Serving):
    def serve(self, *more):
        return self.start(DOORBELL, "card", "serve", "--listen", self.path, *more)

    def device(self):
        return "server:" + self.path

    def test_other_processes_use_the_card_until_a_signal_comes(self):
        self.serve()
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.transfers(self.device())
        code, out, err = self.end()
        self.assertEqual((code, err), (0, ""))
        first, last = out.splitlines()
        self.assertEqual(first, f"model at {self.path}; Ctrl-C ends it")
        self.assertRegex(last, r"^[1-9]\d* requests, 0 refused; 0 connections, 0 descriptors, \d+ buffers, 0 queue pairs still there$")
        self.assertFalse(os.path.exists(self.path))
        done = doorbell("qdma", "--device", self.device())
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn(f"doorbell card serve --listen {self.path}", done.stderr)

    def test_validate(self):
        self.serve()
        self.validates(self.device())

    def test_ctrl_c_ends_it_too_and_counters_are_json(self):
        self.serve("--counters", "--card", "model:clock=counted")
        self.transfers(self.device())
        code, out, _ = self.end(signal.SIGINT)
        self.assertEqual(code, 0)
        counters = json.loads(out[out.index("{"):])
        self.assertEqual(counters["clock"], "counted")
        for channel in counters["channels"]:
            self.assertGreater(channel["host_to_card_bytes"], 0)

    def test_injected_faults_are_found_by_the_client(self):
        self.serve("--fault", "error=1", "--counters")
        cell, = self.result("qdma", "--device", self.device(), "--measure", "latency", "--size", "4KiB", "--iterations", "5",
                            *TIMEOUTS, code=2)["cells"]
        self.assertGreater(cell["errors"]["completion"], 0)
        _, out, _ = self.end()
        self.assertGreaterEqual(json.loads(out[out.index("{"):])["injected"]["error"], cell["errors"]["completion"])

    def test_a_client_whose_server_ends_is_told(self):
        self.serve()
        command = [DOORBELL, "qdma", "--device", self.device(), "--measure", "rate", "--duration", "3600", "--warmup", "0",
                   "--json", str(self.json), *TIMEOUTS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            wait_for_work(client)
            code, _, err = self.end()
            self.assertEqual((code, err), (0, ""))
            _, err = end_of(client)
        self.assertEqual(client.returncode, 2, err)
        document = self.valid()
        self.assertEqual(document["stop_reason"], "removed")

    def test_limits_are_of_all_clients(self):
        self.serve("--max-connections", "2", "--max-queue-pairs", "3", "--max-descriptors", "2", "--max-host-buffers", "1Mi")
        refused = {"--num-queues=2": "quota", "--size=2MiB": "quota"}
        for option, word in refused.items():
            done = doorbell("qdma", "--device", self.device(), option, "--measure", "rate", "--iterations", "2", "--in-flight", "1",
                            *TIMEOUTS)
            self.assertEqual(done.returncode, 1, f"{option}: {done.stdout}{done.stderr}")
            self.assertIn(word, done.stderr)
        first, second = self.connection(), self.connection()
        done = doorbell("qdma", "--device", self.device())
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("it takes no further client", done.stderr)
        self.assertIn("--max-connections", done.stderr)
        first.close()
        second.close()
        small = ["qdma", "--device", self.device(), "--size", "4KiB", "--iterations", "5", "--in-flight", "1", *TIMEOUTS]
        wait_until(lambda: doorbell(*small).returncode == 0, "room again")

    def test_threads_share_queue_pairs_where_these_are_few(self):
        """33 threads would have 132 of them."""
        self.serve("--max-queue-pairs", "66")
        document = self.result("qdma", "validate", "-d", self.device(), "-j", "33", "--buffer-size", "4Ki", "--ddr-only", *TIMEOUTS)
        self.assertEqual([c["cell"]["phase"] for c in document["cells"]], PHASES)
        for cell in document["cells"]:
            self.assertEqual(set(cell["errors"].values()), {0})
        self.assertTrue([w for w in document["warnings"] if "threads share queue pairs" in w and "66 were free" in w], document["warnings"])

    def test_a_path_that_is_in_use_is_left_and_an_abandoned_one_taken(self):
        self.serve()
        done = doorbell("card", "serve", "--listen", self.path)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(self.path, done.stderr)
        self.transfers(self.device())
        self.end(signal.SIGKILL)
        self.assertTrue(os.path.exists(self.path))
        self.serve()
        self.transfers(self.device())

    def test_bad_input(self):
        plain = self.folder / "plain"
        plain.write_text("mine", encoding="utf-8")
        for arguments, word in (([], "serve"), (["listen"], "listen"), (["serve"], "--listen"),
                                (["serve", "--listen", str(plain)], "is there and no socket"),
                                (["serve", "--listen", str(self.folder / "none" / "x")], "No such file"),
                                (["serve", "--listen", "/" + "x" * 200], "107"),
                                (["serve", "--listen", self.path, "--card", "kernel:/dev/slash_qdma_ctl0"], "only a software card"),
                                (["serve", "--listen", self.path, "--card", "model:speed=1"], "speed"),
                                (["serve", "--listen", self.path, "--fault", "error=2"], "--fault"),
                                (["serve", "--listen", self.path, "--max-connections", "0"], "1..4096"),
                                (["serve", "--listen", self.path, "--max-queue-pairs", "257"], "at most 256"),
                                (["serve", "--listen", self.path, "--max-host-buffers", "x"], "--max-host-buffers")):
            done = doorbell("card", *arguments)
            self.assertEqual(done.returncode, 1, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertFalse(os.path.exists(self.path))
        self.assertEqual(plain.read_text(encoding="utf-8"), "mine")


class Silent(WithFolder):
    """A stand-in for a daemon, and for a card server, that takes clients and never answers: as one that hangs."""

    def setUp(self):
        super().setUp()
        self.path = str(self.folder / "card.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.path)
        self.listener.listen(8)

    def test_the_runs_own_timeout_ends_the_wait(self):
        for device, who in (("daemon:", "doorbelld"), ("server:", "the card's server")):
            for tool in ([], ["validate"], ["tune"]):
                done = doorbell("qdma", *tool, "-d", device + self.path, "--timeout", "0.1")
                self.assertEqual(done.returncode, 1, f"{tool}: {done.stdout}{done.stderr}")
                self.assertIn(f"{who} did not answer in 0.1 s", done.stderr)

    def test_ctrl_c_ends_the_wait(self):
        for device, tool in (("daemon:", []), ("server:", ["validate"])):
            command = [DOORBELL, "qdma", *tool, "-d", device + self.path, "--timeout", "3600"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
                asked, _ = self.listener.accept()
                with asked:
                    asked.recv(4096)
                    client.send_signal(signal.SIGINT)
                    out, err = end_of(client)
            self.assertEqual((client.returncode, out), (130, ""), err)
            self.assertIn("interrupted", err)


@unittest.skipUnless(DOORBELLD.exists(), "doorbelld is not built here: libuv or libsystemd is missing")
class Daemon(Serving):
    def serve(self, *more):
        return self.start(DOORBELLD, "--card", "model", "--socket", self.path, "--log", "stderr", *more)

    def device(self):
        return "daemon:" + self.path

    def test_the_bench_and_the_validation_run_over_it(self):
        self.serve()
        self.transfers(self.device())
        self.validates(self.device())
        code, _, err = self.end()
        self.assertEqual(code, 0, err)
        self.assertFalse(os.path.exists(self.path))

    def roles(self, rights):
        """The option that gives everybody these rights."""
        path = self.folder / "roles"
        path.write_text(f"[role:all]\nrights = {rights}\n[user:*]\nroles = all\n")
        return ["--roles", str(path)]

    def ask(self, connection, opcode, body):
        """The code and the body of the daemon's answer."""
        connection.send(struct.pack("<HHI", len(body), opcode, 1) + body)
        reply, files, _, _ = socket.recv_fds(connection, 4096, 1)
        for file in files:
            self.addCleanup(os.close, file)
        return struct.unpack("<HHI", reply[:8])[1], reply[8:]

    def held_buffer(self):
        """A buffer in DDR that another connection holds: its connection, address and size."""
        other = self.connection()
        code, body = self.ask(other, 10, struct.pack("<IIIIQQ", 0, 0, 0, 0, 0, 1 << 20))
        self.assertEqual(code, 0)
        size, address, _ = struct.unpack("<QQI", body)
        return other, address, size

    def works(self):
        """A command line of each of the three commands over the daemon."""
        device = ["-d", self.device()]
        return (["qdma", *device, "--size", "64KiB", "--iterations", "20"],
                ["qdma", "validate", *device, "-j", "2", "--buffer-size", "64Ki"],
                ["qdma", "tune", *device, "--largest", "16Ki", "--iterations", "5"])

    def test_runs_leave_the_buffers_of_others_alone(self):
        """Each run is given memory of its own, and by address it must be allowed to overwrite."""
        self.serve()
        other, address, size = self.held_buffer()
        for work in self.works():
            cells = self.result(*work, *TIMEOUTS)["cells"]
            for place in [p for c in cells for p in c["qdma"].get("places", [])]:
                self.assertFalse(address <= place["address"] < address + size, place)
            raw = doorbell(*work, "--raw-memory", *TIMEOUTS)
            self.assertEqual(raw.returncode, 1, raw.stdout)
            self.assertRegex(raw.stderr, rf"--raw-memory: bytes .* are in use: user {os.getuid()} \(connection \d+\) holds "
                                         rf"{size} bytes from {address:#x} on")
            self.assertIn("--allow-write", raw.stderr)
            self.result(*work, "--raw-memory", "--allow-write", *TIMEOUTS)
        other.close()
        wait_until(lambda: doorbell(*self.works()[0], "--raw-memory", *TIMEOUTS).returncode == 0, "memory that nobody holds")

    def test_raw_access_by_offset_passes_by_what_others_hold(self):
        self.serve()
        _, _, size = self.held_buffer()
        self.result(*self.works()[0], "--raw-memory", "--starting-offset", str(size), *TIMEOUTS)
        self.result(*self.works()[1], "--raw-memory", "--ddr-only", "--starting-offset", str(size), *TIMEOUTS)

    def test_runs_need_no_raw_access(self):
        self.serve(*self.roles("query-devices, qdma, buffer"))
        for work in self.works():
            for cell in self.result(*work, *TIMEOUTS)["cells"]:
                self.assertEqual(set(cell["errors"].values()), {0})
                self.assertGreater(cell["verify"]["checked"], 0)
            raw = doorbell(*work, "--raw-memory", *TIMEOUTS)
            self.assertEqual(raw.returncode, 1, raw.stdout)
            self.assertIn("raw-mem-access", raw.stderr)
        for memory in ("hbm", "hbm-high"):
            self.result(*self.works()[0], "--memory", memory, "--op", "get", *TIMEOUTS)

    def test_a_right_that_is_missing_is_named(self):
        for rights, missing in (("query-devices, buffer", "qdma"), ("query-devices, qdma", "buffer")):
            self.serve(*self.roles(rights))
            for work in self.works():
                done = doorbell(*work, *TIMEOUTS)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(f"it needs one of the rights {missing}", done.stderr)
            self.end()

    def test_the_most_threads_within_the_usual_quotas(self):
        self.serve()
        cells = self.result("qdma", "validate", "-d", self.device(), "-j", "64", "--buffer-size", "4Ki", *TIMEOUTS)["cells"]
        self.assertEqual(len(cells), 18)
        for cell in cells:
            self.assertEqual(set(cell["errors"].values()), {0})

    def test_two_validations_at_once(self):
        """Neither finds the other's data."""
        self.serve()
        command = [DOORBELL, *self.works()[1], "--bandwidth-iterations", "20", *TIMEOUTS]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for process in both:
            self.addCleanup(self.kill, process)
        for process in both:
            out, err = end_of(process)
            self.assertEqual(process.returncode, 0, out + err)

    def test_what_the_daemon_chooses_is_not_for_an_option(self):
        """Refused before the daemon is looked for."""
        for command, option in (([], ["--starting-offset", "1Mi"]), (["validate"], ["--starting-offset", "1Mi"]),
                                (["validate"], ["--buffer-size", "4Ki", "--offset", "1Mi"]),
                                (["validate"], ["--channel-allocation", "paired"])):
            done = doorbell("qdma", *command, "-d", self.device(), *option)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(f"{option[-2]}: doorbelld gives the run its memory", done.stderr)
            self.assertIn("--raw-memory", done.stderr)
        for command in ([], ["validate"], ["tune"]):
            self.assertIn("--raw-memory: it is for a card of doorbelld", doorbell("qdma", *command, "--raw-memory").stderr)
            self.assertIn("--allow-write: it has no meaning without --raw-memory",
                          doorbell("qdma", *command, "-d", self.device(), "--allow-write").stderr)
        self.serve()
        done = doorbell("qdma", "tune", "-d", self.device(), "--largest", "1Gi", *TIMEOUTS)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("--largest: 1073741824 bytes of card memory are needed in one piece, and doorbelld gives 536870912 at most",
                      done.stderr)

    @long
    def test_a_log_that_cannot_be_written_ends_nothing(self):
        for sink in ("/dev/full", "a pipe that nobody reads", "a pipe without a reader"):
            with self.subTest(sink=sink):
                if sink.startswith("/"):
                    err = os.open(sink, os.O_WRONLY)
                else:
                    reader, err = os.pipe()
                    if sink.endswith("without a reader"):
                        os.close(reader)
                    else:
                        self.addCleanup(os.close, reader)
                        fcntl.fcntl(err, fcntl.F_SETPIPE_SZ, 4096)
                with subprocess.Popen([DOORBELLD, "--card", "model", "--socket", self.path, "--log", "stderr", "--log-level",
                                       "debug"], stderr=err) as daemon:
                    os.close(err)
                    wait_until(lambda: self.answers() or daemon.poll() is not None, "a daemon that listens")
                    for _ in range(100):  # a line for each, which is more than the pipe holds
                        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                            client.connect(self.path)
                    self.transfers(self.device())
                    daemon.send_signal(signal.SIGTERM)
                    self.assertEqual(daemon.wait(60), 0)

    def test_sockets_that_were_not_passed_are_refused(self):
        script = 'LISTEN_PID=$$ LISTEN_FDS=3 exec "$@"'
        done = subprocess.run(["sh", "-c", script, "sh", DOORBELLD, "--card", "model", "--socket", self.path],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("socket activation", done.stderr)

    def test_metrics(self):
        """Their socket's path is not cut, what another process has put there stays, and a free port is named."""
        long = str(self.folder / ("m" * 120))
        done = subprocess.run([DOORBELLD, "--card", "model", "--socket", self.path, "--metrics", long], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("107", done.stderr)
        metrics = str(self.folder / "metrics.sock")
        self.serve("--metrics", metrics)
        os.unlink(metrics)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(metrics)
            self.assertEqual(self.end()[0], 0)
            self.assertTrue(os.path.exists(metrics))
        self.serve("--metrics", "127.0.0.1:0")
        code, _, err = self.end()
        self.assertEqual(code, 0)
        self.assertRegex(err, "serves metrics at port [1-9]")

    def test_over_a_served_card(self):
        """The daemon's own card may be another process's."""
        card = str(self.folder / "served.sock")
        server = self.start(DOORBELL, "card", "serve", "--listen", self.path)
        self.path, served = card, self.path
        self.start(DOORBELLD, "--card", "server:" + served, "--socket", self.path, "--log", "stderr")
        self.validates(self.device())
        self.assertEqual(self.end()[0], 0)
        self.process = server
        self.assertEqual(self.end()[0], 0)

    @long
    def test_a_validation_whose_daemon_is_killed_keeps_its_cells(self):
        self.serve()
        command = [DOORBELL, "qdma", "validate", "-d", self.device(), "-j", "1", "--buffer-size", "64Ki", "--hbm-only",
                   "--bandwidth-duration", "3600", "--warmup", "0", "--json", str(self.json), *TIMEOUTS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            wait_for_cpu(client, 0.5)
            self.end(signal.SIGKILL)
            _, err = end_of(client)
        self.assertEqual(client.returncode, 2, err)
        document = self.valid()
        self.assertEqual(document["stop_reason"], "removed")
        self.assertEqual(document["cells"][0]["cell"]["phase"], "integrity")

    def test_a_second_one_at_the_same_socket_leaves_the_first(self):
        first = self.serve()
        done = subprocess.run([DOORBELLD, "--card", "model", "--socket", self.path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"doorbelld: --socket {self.path}: a process listens there already", done.stderr)
        self.transfers(self.device())
        # One whose socket file somebody has removed does not remove its successor's.
        os.unlink(self.path)
        self.serve()
        first.send_signal(signal.SIGTERM)
        end_of(first)
        self.transfers(self.device())

    def test_options_are_refused_before_the_card_is_opened(self):
        """The card that is not here is not looked for. Each error names the option, and the program once."""
        for arguments, said in ((["--threads", "1"], "--threads: 1 is not in 16..1024"),
                                (["--metrics", "0.0.0.0:1"], "--metrics: '0.0.0.0:1' is neither"),
                                (["--metrics", "/nowhere/at/all"], "--metrics /nowhere/at/all: there is no folder /nowhere/at"),
                                (["--roles", "/nowhere/roles"], "/nowhere/roles: "),
                                (["--socket", "/" + "x" * 200], "a socket's path has 1 to 107 characters"),
                                (["--socket-mode", "8"], "--socket-mode: '8'")):
            done = subprocess.run([DOORBELLD, "--card", "server:/nowhere/card", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("doorbelld: "), 1, done.stderr)
        for path, said in ((str(self.folder / "none" / "x"), "cannot be bound"), (str(self.folder), "no socket")):
            done = subprocess.run([DOORBELLD, "--card", "model", "--socket", path], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(f"doorbelld: --socket {path}: ", done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_quota_is_told_by_its_errno(self):
        self.serve("--max-queue-pairs", "1")
        done = doorbell("qdma", "validate", "-d", self.device(), "-j", "1", "--buffer-size", "64Ki", *TIMEOUTS)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("quota", done.stderr)


if __name__ == "__main__":
    unittest.main()
