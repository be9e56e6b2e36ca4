#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Logs that cannot be written, and a client that fills one: nobody is held up, and what is lost is counted."""

import fcntl
import os
import unittest

from cases import Hostile, needs_users, on_servers
from processes import SECONDS, wait_until

LOST = "doorbelld_log_entries_lost_total"
REFUSED = 200  # requests, each an entry


def be_refused(_, server, count=REFUSED):
    with server.connect() as client:
        for _ in range(count):
            client.ask(0x7fff)
    return True


def flood(link, server):
    sent = 0
    for _ in link.until(SECONDS):
        be_refused(link, server, 50)
        sent += 50
    return sent


def one_wrong_message(_, server):
    with server.connect() as client:
        client.socket.send(b"x")
        try:
            client.receive()
        except (OSError, EOFError):
            pass


class Logs(Hostile):
    def full(self):
        return os.open("/dev/full", os.O_WRONLY)

    def pipe(self, has_reader):
        reader, writer = os.pipe()
        if has_reader:
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
            os.set_blocking(writer, False)
            try:
                while True:
                    os.write(writer, b"x" * 512)
            except BlockingIOError:
                os.set_blocking(writer, True)
            self.addCleanup(os.close, reader)
        else:
            os.close(reader)
        return writer

    def check(self, server, sink, is_lost_from_the_start):
        server = self.started(server, sink=sink)
        os.close(sink)
        before = server.page()
        if server.has_page:
            self.attack(server, be_refused).result(60)
            if is_lost_from_the_start:
                self.assertGreater(before[LOST] + wait_until(lambda: server.page()[LOST], "lost entries are counted"), 0)
            wait_until(lambda: server.page()[LOST] >= REFUSED // 2, lambda: f"{server.page()[LOST]} lost entries of {REFUSED}")
            self.counts_refusals(server, before)
        else:
            self.attack(server, one_wrong_message).result()
        self.serves(server)
        self.assertIsNotNone(server.end(), f"{server.name} does not end")
        # A program whose last line is lost may say so by its code; it does not end by a signal.
        self.assertGreaterEqual(server.process.returncode, 0)
        if server.has_page:
            self.assertEqual(server.process.returncode, 0)

    @on_servers()
    def test_a_full_disk(self, server):
        self.check(server, self.full(), True)

    @on_servers("daemon")
    def test_a_pipe_whose_reader_has_gone(self, server):
        self.check(server, self.pipe(False), True)

    @on_servers("daemon")
    def test_a_pipe_that_nobody_reads(self, server):
        """It is full from the start."""
        self.check(server, self.pipe(True), False)

    @needs_users
    @on_servers("daemon")
    def test_one_client_does_not_fill_it(self, server):
        """One user has 64 entries at once and 4 a second; entries of others still come."""
        server = self.started(server)
        victims = self.victims(server)
        begin = len(server.text())
        sent = self.attack(server, flood).result(SECONDS + 60)
        self.assertGreater(sent, 64)
        self.are_served(victims)
        own = server.text()[begin:].count(f"user {server.attacker}: ")
        self.assertLess(own, 64 + 4 * (SECONDS + 120), f"entries that {sent} requests of one user have caused")
        self.assertGreater(server.page()[LOST], 0)
        self.child(server.victims[-1], be_refused, server, 1).result()
        wait_until(lambda: f"user {server.victims[-1]}: unknown refused" in server.text() or
                   f"user {server.victims[-1]}: " in server.text()[begin:], "another user's entry")


if __name__ == "__main__":
    unittest.main()
