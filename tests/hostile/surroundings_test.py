#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""What is around a server: its service manager, its memory limit, its card, its roles."""

import errno
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import time
import unittest

from cases import Hostile, needs_users, on_servers, round_trip
from processes import SECONDS, Child, wait_until
from servers import CardServer
from wire import UNIT, Refused

BUFFERS = "[role:all]\nrights = query-devices, buffer\n[user:*]\nroles = all\n"
NOTHING = "[role:all]\nrights = query-devices\n[user:*]\nroles = all\n"


def ask_for_everything(link, server):
    """Connections, buffers and garbage, without end; whatever is answered."""
    asked = 0
    for _ in link.until(SECONDS):
        kept = []
        try:
            for _ in range(8):
                client = server.connect()
                kept.append(client)
                client.socket.settimeout(1)
                descriptor = client.descriptor()
                kept.append(descriptor)
                os.close(descriptor.host_buffer(1 << 20))
                os.close(client.host_buffer(1 << 20))
                client.socket.send(bytes(client.LONGEST))
                asked += 1
        except (OSError, EOFError):
            time.sleep(0.01)
        for each in kept:
            each.close()
    return asked


def hold_a_buffer(link, server):
    """Opens one, and when told so tries to open another and closes its own. Returns both errnos."""
    with server.connect() as client, client.descriptor() as descriptor:
        link.say("held")
        link.wait_for_go()
        try:
            client.descriptor()
            second = 0
        except Refused as refusal:
            second = refusal.errno
        closed, _, _ = client.ask("buffer-close", struct.pack("<IQQ", 0, descriptor.address, UNIT))
        return [second, closed]


class Surroundings(Hostile):
    def works_again(self, server):
        def works():
            self.is_there(server)
            try:
                return Child(server.victims[-1], round_trip, server).result() is None
            except AssertionError:
                time.sleep(0.1)
                return False

        wait_until(works, f"{server.name} serves again")

    @on_servers("daemon")
    def test_sockets_that_were_not_passed_are_refused(self, server):
        words = server(self.folder).words([])
        for count in ("1", "3", "1000000", "2147483647"):
            script = f'LISTEN_PID=$$ LISTEN_FDS={count} exec "$@"'
            done = subprocess.run(["sh", "-c", script, "sh", *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1, f"LISTEN_FDS={count}: {done.stderr}")
            self.assertNotEqual(done.stderr, "")

    @on_servers("daemon")
    def test_a_notify_socket_that_takes_no_more(self, server):
        path = os.path.join(self.folder, "notify")
        ends = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        with ends[0] as manager, ends[1] as filler:
            manager.bind(path)
            filler.setblocking(False)
            filler.connect(path)
            try:
                while True:
                    filler.send(b"x")
            except BlockingIOError:
                pass
            server = self.started(server, environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"})
            victims = self.victims(server)
            server.process.send_signal(signal.SIGHUP)
            self.are_served(victims)
            self.ends(server, 30)

    @on_servers("daemon")
    def test_its_card_server_dies_and_comes_back(self, server):
        card = self.started(CardServer)
        server = self.started(server, "--card", "server:" + card.path)
        self.serves(server)
        card.kill()
        self.is_there(server)
        card = self.started(CardServer)
        self.works_again(server)
        self.serves(card)
        self.ends(server, 30)

    @on_servers()
    def test_memory_that_is_no_longer_there(self, server):
        """The limit of its address space is lowered to what it has while requests come."""
        server = self.started(server)
        files = self.settled_files(server)
        attackers = [self.attack(server, ask_for_everything) for _ in range(3)]
        status = pathlib.Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
        most = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSize:")) * 1024
        old = resource.prlimit(server.pid, resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for each in attackers:
            each.result(SECONDS + 120)
        self.is_there(server)
        resource.prlimit(server.pid, resource.RLIMIT_AS, old)
        self.works_again(server)
        self.comes_back(server, files)

    def roles(self, text):
        path = os.path.join(self.folder, "roles")
        pathlib.Path(path).write_text(text, encoding="utf-8")
        return path

    @on_servers("daemon")
    def test_a_roles_file_of_nothing(self, server):
        """It is refused, or the log warns of it."""
        path = self.roles("")
        try:
            server = self.started(server, "--roles", path)
        except AssertionError as e:
            self.assertIn("roles", str(e))
            return
        except Refused as e:
            self.assertEqual(e.errno, errno.EPERM)
        self.assertIn("gives nobody a right", server.text())

    @needs_users
    @on_servers("daemon")
    def test_who_has_lost_a_right_still_closes_his_own(self, server):
        path = self.roles(BUFFERS)
        server = self.started(server, "--roles", path)
        attacker = self.attack(server, hold_a_buffer)
        attacker.hear()
        self.roles(NOTHING)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "the roles have been read again" in server.text(), "the roles are read again")
        attacker.go()
        self.assertEqual(attacker.result(), [errno.EPERM, 0], "errnos of a new buffer, and of closing the own one")


if __name__ == "__main__":
    unittest.main()
