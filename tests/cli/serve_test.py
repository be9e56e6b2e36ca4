#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A software NVMe controller that other processes drive, as a user meets it: `doorbell serve nvme`, `serve status` and `serve fault`,
and `doorbell nvme --controller vfio-user:PATH` over it."""

import json
import os
import pathlib
import re
import signal
import socket
import stat
import struct
import subprocess
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder, doorbell, end_of, wait_until


class Serving(WithFolder):
    def setUp(self):
        super().setUp()
        self.path = str(self.folder / "nvme.sock")

    def start(self, *options, path=None):
        process = subprocess.Popen([DOORBELL, "serve", "nvme", "--socket", path or self.path, *options], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.kill, process)
        wait_until(lambda: pathlib.Path(path or self.path).exists() or process.poll() is not None, "a socket")
        self.assertIsNone(process.poll(), process.returncode and process.communicate())
        return process

    @staticmethod
    def kill(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def end(self, process, which=signal.SIGTERM):
        process.send_signal(which)
        out, errors = end_of(process)
        self.assertEqual(process.returncode, 0, out + errors)
        self.assertEqual(errors, "")
        self.assertFalse(os.path.exists(self.path))
        self.assertFalse(os.path.exists(self.path + ".control"))
        return out

    def drive(self, *options, keys="", code=0):
        done = doorbell("nvme", f"vfio-user:{self.path}{keys}", "--allow-write", "--repeats", 1, "--quiet", *TIMEOUTS,
                        "--json", self.folder / "result.json", *options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads((self.folder / "result.json").read_text(encoding="utf-8"))

    def status(self):
        done = doorbell("serve", "status", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Runs(Serving):
    def test_serves_one_client_after_another(self):
        server = self.start("--details")
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.path + ".control").st_mode), 0o600)
        for keys in ("", ",doorbells=message", ",memory=message"):
            result = self.drive("--write-io", 300, "--read-io", 300, "--in-flight", 4, keys=keys)
            self.assertEqual(result["cells"][0]["device"]["kind"], "emulated")
            self.assertEqual(result["cells"][0]["verify"]["checked"], 300)
        status = self.status()
        self.assertEqual(status["server"]["clients"], 3)
        self.assertFalse(status["server"]["connected"])
        self.assertEqual(status["server"]["malformed"], 0)
        self.assertEqual(status["server"]["dma_ranges"], 0)
        self.assertGreater(status["server"]["dma_reads_by_message"], 0)
        out = self.end(server)
        self.assertRegex(out, r"(?m)^model at .*; Ctrl-C ends it$")
        self.assertIn("3 clients, ", out)
        self.assertEqual(len(re.findall(r"a client has come \(process \d+, user \d+\)", out)), 3)
        self.assertIn('"dma_writes_by_message"', out)

    def test_blocks_stay(self):
        image = self.folder / "image"
        with open(image, "wb") as file:
            file.truncate(8 << 20)
        server = self.start("--media", f"file:{image}")
        self.drive("--write-io", 512)
        second = doorbell("serve", "nvme", "--socket", self.path + "2", "--media", f"file:{image}")
        self.assertEqual(second.returncode, 1)
        self.assertIn(str(image), second.stderr)
        self.end(server)
        self.end(self.start("--media", f"file:{image}"))
        self.assertEqual(doorbell("nvme", image, "--read-io", 512, "--verify", "strict", "--repeats", 1, *TIMEOUTS).returncode, 0)

    def test_a_file_system_is_nobodys_test_data(self):
        image = self.folder / "image"
        image.write_bytes(b"a file system" * 100000)
        refused = doorbell("serve", "nvme", "--socket", self.path, "--media", f"file:{image}")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--allow-write", refused.stderr)
        self.assertFalse(os.path.exists(self.path))
        self.end(self.start("--media", f"file:{image}", "--allow-write"))

    def test_each_fault_is_found_and_named(self):
        log = self.folder / "log"
        server = self.start("--fault", "corrupt=0.05", "--seed", "7", "--log", str(log))
        result = self.drive("--write-io", 1000, "--read-io", 1000, code=2)
        injected = self.status()["model"]["injected"]
        self.assertGreater(injected["corrupt"], 0)
        self.assertEqual(result["cells"][0]["verify"]["corrupt"], injected["corrupt"])
        changed = doorbell("serve", "fault", self.path, "--fault", "stale=0.05")
        self.assertEqual(json.loads(changed.stdout), {"faults": {"stale": 0.05}}, changed.stderr)
        result = self.drive("--write-io", 1000, "--read-io", 1000, code=2)
        injected = self.status()["model"]["injected"]
        self.assertEqual(result["cells"][0]["verify"]["stale"], injected["stale"])
        self.assertEqual(json.loads(doorbell("serve", "fault", self.path).stdout), {"faults": {}})
        self.drive("--write-io", 1000, "--read-io", 1000)
        self.end(server)
        lines = re.findall(r"(?m)^[\d-]+ [\d:]+ fault (\w+): queue \d+, command \d+$", log.read_text(encoding="utf-8"))
        self.assertEqual({kind: lines.count(kind) for kind in injected}, injected)

    def test_bytes_that_are_no_message(self):
        server = self.start()
        for junk in (b"GET / HTTP/1.1\r\n\r\n", bytes(16), struct.pack("<HHIII", 1, 1, 1 << 31, 0, 0), b"\xff" * 4096):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self.path)
                client.sendall(junk)
                client.settimeout(60)
                try:
                    while client.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
        self.drive("--write-io", 100, "--read-io", 100)
        status = self.status()
        self.assertEqual(status["server"]["malformed"], 4)
        self.end(server)

    def test_a_client_that_is_killed_in_the_middle(self):
        server = self.start()
        for _ in range(3):
            client = subprocess.Popen([DOORBELL, "nvme", f"vfio-user:{self.path}", "--allow-write", "--infinite", "--quiet"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(self.kill, client)
            before = self.status()["model"]["writes"]
            wait_until(lambda: self.status()["model"]["writes"] > before + 100 or client.poll() is not None, "some writes")
            client.kill()
            client.wait()
            self.drive("--write-io", 100, "--read-io", 100)
        self.assertEqual(self.status()["server"]["dma_ranges"], 0)
        self.end(server)


class Refusals(Serving):
    def refused(self, *arguments, code=1):
        done = doorbell(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_where_nothing_listens(self):
        self.assertIn("no server listens at", self.refused("nvme", f"vfio-user:{self.path}", code=77))
        self.assertIn("no server listens there", self.refused("serve", "status", self.path))

    def test_what_cannot_be_served(self):
        serve = ("serve", "nvme", "--socket", self.path)
        self.assertIn("only the software controller", self.refused(*serve, "--controller", "qemu"))
        self.assertIn("engine", self.refused(*serve, "--controller", "model:engine=kernel-on-cpu"))
        self.assertIn("one page", self.refused(*serve, "--controller", "model:stride=4"))
        self.assertIn("null media", self.refused(*serve, "--media", "null", "--fault", "corrupt=1"))
        self.assertIn("--socket", self.refused("serve", "nvme"))
        self.assertIn("characters", self.refused("serve", "nvme", "--socket", "/tmp/" + "x" * 120))

    def test_a_socket_that_is_in_use(self):
        server = self.start()
        self.assertIn("a process listens there already", self.refused("serve", "nvme", "--socket", self.path))
        self.end(server)

    def test_faults_that_are_none(self):
        server = self.start("--media", "null")
        self.assertIn("null media", self.refused("serve", "fault", self.path, "--fault", "corrupt=0.5"))
        self.assertIn("--fault", self.refused("serve", "fault", self.path, "--fault", "corrupt=2"))
        self.end(server)


if __name__ == "__main__":
    unittest.main()
