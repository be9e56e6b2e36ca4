#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that say nothing, that are killed, that have closed half of their socket, or that read no replies."""

import errno
import os
import signal
import socket
import time
import unittest

from cases import Hostile, on_servers, on_sockets, round_trip
from processes import SECONDS, Child, numbers, send_files, wait_until
from wire import PAGE, connect

SILENT = 16


def be_silent(link, server, halves):
    """Connections that say nothing, or the beginning of a message."""
    ends = [connect(server.path) for _ in range(SILENT)]
    for at, end in enumerate(ends):
        if halves and at % 2:
            send_files(end, b"x", [])
    link.say("silent")
    link.stopped(600)


def close_half(link, server, kind):
    """Shuts down one direction of each socket, with a request on its way, and holds them."""
    kept = []
    for how in (socket.SHUT_WR, socket.SHUT_RD):
        for requests in (0, 1, 40):
            client = server.connect()
            endpoint = server.endpoint(kind, client)
            for _ in range(requests):
                send_files(endpoint.socket, endpoint.good_message(), [], socket.MSG_DONTWAIT)
            endpoint.socket.shutdown(how)
            kept += [client, endpoint]
    link.say("half closed")
    link.stopped(600)


def read_nothing(link, server, kind):
    """Requests until the server takes no more, and their replies are left."""
    kept, sent = [], 0
    for _ in range(4):
        client = server.connect()
        endpoint = server.endpoint(kind, client)
        endpoint.socket.setblocking(False)
        for _ in range(20000):
            if not send_files(endpoint.socket, endpoint.good_message(), []):
                break
            sent += 1
        kept += [client, endpoint]
    link.say(sent)
    link.stopped(600)


def leave_buffers(link, server):
    """The same with replies that carry descriptors."""
    with server.connect() as client, client.descriptor() as descriptor:
        descriptor.socket.settimeout(0.5)
        for _ in range(64):
            send_files(descriptor.socket, descriptor.buffer_message(PAGE), [])
        link.say("sent")
        link.stopped(600)


def go_round(_, server):
    """Until killed."""
    while True:
        try:
            round_trip(None, server)
        except OSError as e:
            if e.errno not in (errno.EBUSY, errno.EDQUOT, errno.EAGAIN):
                raise


class Clients(Hostile):
    @on_servers()
    def test_silent_ones(self, server):
        server = self.started(server, *(server.silent or ()))
        files, before = self.settled_files(server), server.page()
        victims = self.victims(server)
        attacker = self.attack(server, be_silent, True)
        attacker.hear()
        self.are_served(victims)
        if server.silent:
            name = 'doorbelld_connections_refused_total{reason="silent"}'
            wait_until(lambda: server.page().get(name, 0) - before.get(name, 0) >= SILENT,
                       lambda: f"{server.page().get(name, 0)} silent clients counted")
        attacker.kill()
        self.comes_back(server, files)

    @on_servers()
    def test_killed_ones(self, server):
        """At random, in the middle of whatever they do, while others' round trips stay right."""
        server = self.started(server)
        files = self.settled_files(server)
        victims = self.victims(server)
        random = numbers("killed")
        for _, child, _ in victims:
            child.go()
        until = time.monotonic() + SECONDS
        killed = 0
        while time.monotonic() < until:
            some = [Child(server.attacker, go_round, server) for _ in range(4)]
            time.sleep(random.random() * 0.1)
            for each in some:
                os.kill(each.pid, signal.SIGKILL)
                each.kill()
            killed += len(some)
        for uid, child, _ in victims:
            self.assertEqual(child.result(90)["lost"], [], f"user {uid}, while {killed} clients were killed")
        self.comes_back(server, files)
        if server.has_page:
            wait_until(lambda: server.page()["doorbelld_buffers"] == 0 and server.page()["doorbelld_queue_pairs"] == 0,
                       "what the dead held is taken back")

    @on_sockets
    def test_half_closed_ones(self, server, kind):
        """They are not served in a loop that never rests, and go when their client goes."""
        server = self.started(server)
        files = self.settled_files(server)
        attacker = self.attack(server, close_half, kind)
        attacker.hear()
        self.serves(server)
        begin, cpu = time.monotonic(), server.cpu_s()
        time.sleep(0.3)
        spent, passed = server.cpu_s() - cpu, time.monotonic() - begin
        self.assertLess(spent, 0.5 * passed, "CPU seconds of a server that has nothing to do")
        attacker.kill()
        self.comes_back(server, files)

    @on_sockets
    def test_ones_that_do_not_read(self, server, kind):
        server = self.started(server)
        files = self.settled_files(server)
        victims = self.victims(server)
        attacker = self.attack(server, read_nothing, kind)
        self.assertGreater(attacker.hear(60), 0)
        self.are_served(victims)
        attacker.kill()
        self.comes_back(server, files)

    @on_servers()
    def test_ones_that_do_not_take_their_buffers(self, server):
        server = self.started(server)
        files = self.settled_files(server)
        attacker = self.attack(server, leave_buffers)
        attacker.hear(60)
        self.serves(server)
        attacker.kill()
        self.comes_back(server, files)


if __name__ == "__main__":
    unittest.main()
