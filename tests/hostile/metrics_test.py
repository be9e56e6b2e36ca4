#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The page of metrics: its address, and readers that keep others out."""

import os
import re
import socket
import subprocess
import time
import unittest

from cases import Hostile, on_servers
from processes import wait_until
from servers import read_page

MANY = (16, 64)


def read_slowly(link, _, at, readers, says):
    """So many readers, which have sent `says` and read nothing."""
    ends = []
    for _ in range(readers):
        end = socket.socket(socket.AF_UNIX if isinstance(at, str) else socket.AF_INET)
        end.settimeout(2)
        try:
            end.connect(at if isinstance(at, str) else ("127.0.0.1", at))
            end.sendall(says)
        except OSError:
            pass  # it is turned away: so much the better
        ends.append(end)
    link.say("reads")
    link.stopped(600)


class Metrics(Hostile):
    def port(self, server):
        found = wait_until(lambda: re.search(r"port (\d+)", server.text()), "the log has the port that was free")
        return int(found[1])

    @on_servers("daemon")
    def test_a_path_that_is_too_long_is_refused(self, server):
        path = os.path.join(self.folder, "m" * 108)
        words = server(self.folder).words(["--metrics", path])
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("107", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    @on_servers("daemon")
    def test_the_end_of_one_leaves_the_page_of_the_next(self, server):
        first = self.started(server)
        os.unlink(first.metrics)  # as somebody does who cleans up
        second = server(self.folder)
        second.path += "2"
        self.addCleanup(second.kill)
        second.start()
        self.ends(first, 30)
        self.assertTrue(second.page())
        third = server(self.folder)
        third.path += "3"
        done = subprocess.run(third.words([]), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, "a second server at a page's path that is in use")
        self.assertTrue(second.page())

    def reads(self, server, at):
        begin = time.monotonic()
        read_page(at)
        alone = time.monotonic() - begin
        for says in (b"", b"GET /met", b"GET /metrics HTTP/1.0\r\n\r\n"):
            for readers in MANY:
                with self.subTest(readers=readers, says=says):
                    attacker = self.attack(server, read_slowly, at, readers, says)
                    try:
                        attacker.hear()
                        for _ in range(3):
                            begin = time.monotonic()
                            try:
                                self.assertIn("doorbelld_connections", read_page(at, 3))
                            except OSError as e:
                                self.fail(f"Prometheus is kept out by {readers} slow readers: {e!r}")
                            self.assertLess(time.monotonic() - begin, 1 + 20 * alone, "seconds until the page is there")
                    finally:
                        attacker.kill()
        self.serves(server)

    @on_servers("daemon")
    def test_slow_readers_of_a_port(self, server):
        server = self.started(server, "--metrics", "127.0.0.1:0")
        self.reads(server, self.port(server))

    @on_servers("daemon")
    def test_slow_readers_of_a_path(self, server):
        server = self.started(server)
        os.chmod(server.metrics, 0o666)
        self.reads(server, server.metrics)

    @on_servers("daemon")
    def test_requests_that_are_none(self, server):
        server = self.started(server)
        for request, word in ((b"POST /metrics HTTP/1.0\r\n\r\n", b" 405 "), (b"GET /etc HTTP/1.0\r\n\r\n", b" 404 "),
                              (b"GET /metrics " + b"x" * 8192 + b"\r\n\r\n", b" 414 ")):
            with socket.socket(socket.AF_UNIX) as end:
                end.settimeout(30)
                end.connect(server.metrics)
                end.sendall(request)
                self.assertIn(word, end.recv(4096))
        self.assertTrue(server.page())


if __name__ == "__main__":
    unittest.main()
