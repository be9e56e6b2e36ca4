#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that no client sends, with descriptors of all kinds: the server closes each, counts each, and serves others."""

import os
import unittest

from cases import Hostile, on_servers, on_sockets
from processes import SECONDS, drain, numbers, of_all_kinds, send_files
from wire import (CANCEL, INFO, MAGIC, REQUEST, RESCAN, TRANSFER, DaemonClient, SlashWire, slash_request, sub_transfer,
                  transfer_structure, wire_request)

COUNTS = (1, 2, 3, 17, 253)


def messages(endpoint, random):
    """Bytes of every wrong form, and right ones."""
    good = endpoint.good_message()
    yield b""
    yield good
    yield good[:-1]
    yield good[:4]
    yield good[:1]
    yield good + b"\0"
    yield good + bytes(endpoint.LONGEST)  # longer than a message may be
    yield bytes(endpoint.LONGEST)
    yield random.randbytes(random.randint(1, endpoint.LONGEST))
    if isinstance(endpoint, DaemonClient):
        yield REQUEST.pack(0, 0xffff, 1)
        yield REQUEST.pack(0xffff, 0, 1)
        for opcode in range(16):
            yield REQUEST.pack(0, opcode, 1)
        return
    move = transfer_structure(sub_transfer(1, 0, 4096))
    if isinstance(endpoint, SlashWire):
        for number in (TRANSFER, RESCAN, INFO, 0, 0xffffffff):
            yield slash_request(number, move)
            yield slash_request(number, move[:20])
            yield slash_request(number)
        return
    yield wire_request(CANCEL, bytes(8), magic=MAGIC ^ 1)
    yield wire_request(TRANSFER, move, descriptors=2)  # and how many come is another matter
    yield wire_request(TRANSFER, move, descriptors=254)
    yield wire_request(TRANSFER, move, descriptors=0)
    yield wire_request(TRANSFER, move[:20], descriptors=1)
    yield wire_request(0xffffffff, b"", descriptors=1)


def send_all(link, server, kind):
    """Every message with descriptors of every kind, on sockets that are opened again when the server closes them."""
    random = numbers(f"messages {server.name} {kind}")
    sent = 0
    for _ in link.until(SECONDS):
        with server.connect() as client, server.endpoint(kind, client) as endpoint:
            files, kept = of_all_kinds(endpoint.socket)
            endpoint.socket.settimeout(0.2)
            for message in messages(endpoint, random):
                some = random.choices(files, k=random.choice(COUNTS))
                if not send_files(endpoint.socket, message, some):
                    break  # on to the next socket
                sent += 1
                if not drain(endpoint.socket):
                    break
            for each in kept:
                if each.fileno() in files:
                    files.remove(each.fileno())
                each.close()
            files.remove(endpoint.socket.fileno())
            for each in files:
                os.close(each)
    return sent


def send_one(_, server, kind, message, count):
    """On a socket of its own, which is then left at once or after the answer."""
    for wait in (False, True):
        with server.connect() as client, server.endpoint(kind, client) as endpoint:
            files = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
            send_files(endpoint.socket, message, files)
            for each in files:
                os.close(each)
            if wait:
                endpoint.socket.settimeout(0.1)
                try:
                    endpoint.receive()
                except (OSError, EOFError):
                    pass


class Messages(Hostile):
    @on_sockets
    def test_all_descriptors_are_closed(self, server, kind):
        server = self.started(server)
        files, before = self.settled_files(server), server.page()
        self.assertGreater(self.attack(server, send_all, kind).result(SECONDS + 60), 0)
        self.comes_back(server, files)
        self.counts_refusals(server, before)
        self.serves(server)

    @on_sockets
    def test_descriptors_of_a_message_without_bytes_are_closed(self, server, kind):
        server = self.started(server)
        files, before = self.settled_files(server), server.page()
        for count in COUNTS:
            self.attack(server, send_one, kind, b"", count).result()
        self.comes_back(server, files)
        self.counts_refusals(server, before)
        self.serves(server)

    @on_servers("card")
    def test_the_last_line_has_the_refusals(self, server):
        server = self.started(server)
        self.attack(server, send_one, "descriptor", bytes(40), 2).result()
        self.ends(server, 30)
        self.assertRegex(server.text(), r"requests, [1-9]\d* refused")

    @on_sockets
    def test_messages_cut_anywhere(self, server, kind):
        """A good request of every length, from 1 byte to more than it has."""
        server = self.started(server)
        files, before = self.settled_files(server), server.page()

        def all_lengths(_, server):
            for length in range(1, 65):
                with server.connect() as client, server.endpoint(kind, client) as endpoint:
                    good = endpoint.good_message().ljust(64, b"\0")
                    send_files(endpoint.socket, good[:length], [])
                    drain(endpoint.socket)

        self.attack(server, all_lengths).result()
        self.comes_back(server, files)
        self.counts_refusals(server, before)
        self.serves(server)


if __name__ == "__main__":
    unittest.main()
