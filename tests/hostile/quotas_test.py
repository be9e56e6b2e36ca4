#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""One user's shares: what he holds counts as long as he holds it, and his many connections are one user's."""

import errno
import os
import struct
import time
import unittest

from cases import Hostile, needs_users, on_servers, on_sockets
from processes import Child, wait_until
from wire import PAGE, TO_CARD, TRANSFER, UNIT, Refused, sub_transfer, transfer_structure

PART = 4 << 20  # a host buffer; a user may have 16 MiB of them
CONNECTIONS = 14
LARGE = 128 << 20


def hold_buffers(link, server, kind):
    """Makes host buffers, keeps each, and ends the socket through which it was made, until one is refused. Says with which
    errno and how many it holds, and holds them until told to stop."""
    held, error = [], 0
    while error == 0 and len(held) < 32:
        with server.connect() as client, server.endpoint(kind, client) as endpoint:
            try:
                held.append(endpoint.host_buffer(PART))
            except Refused as refusal:
                error = refusal.errno
    link.say({"error": error, "held": len(held)})
    link.stopped(600)


def get_buffer(_, server, length):
    with server.connect() as client:
        os.close(client.host_buffer(length))


class HostBuffers(Hostile):
    @needs_users
    @on_sockets
    def test_they_count_while_somebody_has_them(self, server, kind):
        server = self.started(server, *server.host_bytes)
        before = server.page()
        attacker = self.attack(server, hold_buffers, kind)
        said = attacker.hear(120)
        self.assertEqual((said["error"], said["held"]), (errno.EDQUOT, 4), "errno of the first refusal, and buffers held then")
        self.counts_refusals(server, before)
        if server.quotas_by_user:
            for uid in server.victims:
                self.child(uid, get_buffer, server, PART).result()
        attacker.kill()  # its buffers are nobody's now

        def is_given():
            try:
                return Child(server.attacker, get_buffer, server, PART).result() is None
            except AssertionError:
                return False

        wait_until(is_given, "the attacker's quota is free again")
        self.serves(server)


def transfer_all(link, server, connections, transfers):
    """From so many connections so many transfers at a time, each longer than its deadline."""
    clients = [server.connect() for _ in range(connections)]
    descriptors = [client.descriptor(channel=1) for client in clients]
    buffer = clients[0].host_buffer(UNIT)
    for each in descriptors:
        for _ in range(transfers):
            each.say(TRANSFER, transfer_structure(sub_transfer(TO_CARD, each.address, UNIT)), [buffer])
    link.say("sent")
    while not link.stopped(0.05):
        for each in descriptors:
            each.socket.setblocking(False)
            try:
                while True:
                    each.receive()
                    each.say(TRANSFER, transfer_structure(sub_transfer(TO_CARD, each.address, UNIT)), [buffer])
            except (BlockingIOError, EOFError):
                pass


def make_buffers(link, server, connections, each):
    """Asks for so many buffers on each connection, before the first has come."""
    clients = [server.connect() for _ in range(connections)]
    body = struct.pack("<IIIQII", 0, 24, 0, LARGE, 0, 0)
    for client in clients:
        for _ in range(each):
            client.say("host-buffer", body)
    link.say("sent")
    while not link.stopped(0.02):
        for client in clients:
            client.socket.setblocking(False)
            try:
                _, file = client.receive()
                client.say("host-buffer", body)
                if file is not None:
                    os.close(file)
            except (BlockingIOError, EOFError):
                pass


def small_work(link, server):
    """Says when it is ready; then the seconds of a transfer and of a host buffer of a page, the longest of five."""
    with server.connect() as client, client.descriptor(channel=2) as descriptor:
        buffer = descriptor.host_buffer(PAGE)
        longest = {}
        for again in (False, True):
            longest = {"transfer": 0, "host buffer": 0}
            for _ in range(5):
                for what, work in (("transfer", lambda: descriptor.round_trip(buffer)),
                                   ("host buffer", lambda: os.close(client.host_buffer(PAGE)))):
                    begin = time.monotonic()
                    try:
                        work()
                    except TimeoutError:
                        return {what: time.monotonic() - begin}
                    longest[what] = max(longest[what], time.monotonic() - begin)
            if not again:
                link.say(longest)
                link.wait_for_go()
        return longest


class Turns(Hostile):
    # Of each channel; the attacker's channel has 56 transfers of 64 MiB to move then.
    SLOW_CARD = ("--card", "model:bandwidth=16777216")

    def compare(self, server, work, *arguments):
        victims = [(uid, self.child(uid, small_work, server)) for uid in server.victims]
        quiet = [child.hear(60) for _, child in victims]
        self.attack(server, work, *arguments).hear(60)
        for _, child in victims:
            child.go()
        for (uid, child), alone in zip(victims, quiet):
            for what, took in child.result(120).items():
                self.assertLess(took, 1 + 20 * alone[what], f"seconds of user {uid}'s {what} of a page")
        self.is_there(server)

    @needs_users
    @on_servers("daemon")
    def test_transfers_of_many_connections(self, server):
        self.compare(self.started(server, *self.SLOW_CARD), transfer_all, CONNECTIONS, 4)

    @needs_users
    @on_servers("daemon")
    def test_transfers_of_one_connection(self, server):
        self.compare(self.started(server, *self.SLOW_CARD), transfer_all, 1, 200)

    @needs_users
    @on_servers("daemon")
    def test_host_buffers_of_many_connections(self, server):
        self.compare(self.started(server), make_buffers, CONNECTIONS, 4)


if __name__ == "__main__":
    unittest.main()
