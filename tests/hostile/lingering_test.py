#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Sockets that linger: closing one waits for 20 s, so a server that closes what it is sent must not wait for that."""

import resource
import unittest

from cases import Hostile, needs_users, on_sockets
from processes import Lingering, drain, send_files

FEW_FILES = 256
LINGERING = 400         # sockets, more than FEW_FILES
MORE_THAN_BOUNDED = 2000


def send_lingering(link, server, kind, count):
    """`count` of them, as many in each message as the kind of socket takes, and keeps their readers until told to stop. Says
    how many were sent when that is done, or when the server takes no more; and goes on sending, up to twice as many."""
    lingering = Lingering()
    kept = []

    def reach():
        kept.append(server.connect())
        kept.append(server.endpoint(kind, kept[-1]))
        kept[-1].socket.settimeout(1)

    def send():
        """How many the server has been sent."""
        most = kept[-1].MOST_CARRIED
        batch = [lingering.make() for _ in range(most)]
        was_sent = send_files(kept[-1].socket, kept[-1].carrying(most), [each.fileno() for each in batch])
        drain(kept[-1].socket)
        for each in batch:
            each.close()
        return most if was_sent else 0

    reach()
    sent = 0
    while sent < count and (more := send()) > 0:
        sent += more
    link.say({"sent": sent})
    while not link.stopped(0.02):
        if len(lingering.readers) < 2 * count and send() == 0:
            try:
                reach()  # it has closed the socket, or reads no more of this user's
            except (OSError, EOFError):
                pass
    return sent


class LingeringSockets(Hostile):
    def attacked(self, server, kind):
        """With few descriptors for the server: when they have gone, recvmsg() itself closes what finds no room."""
        server = self.started(server, limits=[(resource.RLIMIT_NOFILE, FEW_FILES)])
        victims = self.victims(server)
        self.assertGreater(self.attack(server, send_lingering, kind, LINGERING).hear(60)["sent"], 0)
        return server, victims

    @needs_users
    @on_sockets
    def test_others_are_served(self, server, kind):
        server, victims = self.attacked(server, kind)
        self.are_served(victims)
        self.is_there(server)

    @on_sockets
    def test_sigterm_ends_it(self, server, kind):
        quiet = self.started(server).end()
        server, _ = self.attacked(server, kind)
        self.ends(server, 3 + 20 * quiet)

    @on_sockets
    def test_they_are_bounded_and_given_back(self, server, kind):
        """With descriptors enough: one user's sockets that wait for their end are not more than so many, and when nothing
        lingers any more the server has what it had."""
        server = self.started(server)
        files = self.settled_files(server)
        attacker = self.attack(server, send_lingering, kind, MORE_THAN_BOUNDED)
        attacker.hear(60)
        held = server.files() - files
        self.serves(server)
        attacker.kill()  # with the readers
        self.comes_back(server, files)
        self.assertLessEqual(held, server.most_foreign, "descriptors that wait to be closed")


if __name__ == "__main__":
    unittest.main()
