#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Requests for what another client holds, and for what nobody has: each is refused with an errno, and nothing is reached."""

import errno
import os
import socket
import struct
import unittest

from cases import Hostile, needs_users, on_servers
from wire import (BUF_CREATE, CLOSE_ON_EXEC, DELETE, FROM_CARD, PAGE, QPAIR_ADD, QPAIR_GET_FD, QPAIR_OP, START, STOP, TO_CARD,
                  TRANSFER, UNIT, Wire, buf_create, sub_transfer, transfer_structure)

FAR = 1 << 64
ROLES = "[role:all]\nrights = query-devices, qdma, buffer\n[user:*]\nroles = all\n[user:0]\nroles = all\n"


def wrong_transfers(descriptor):
    """Structures, each with something wrong in it; their buffer is of one page."""
    base, length = descriptor.address, descriptor.bytes
    yield "count 0", transfer_structure(count=0)
    yield "count 3", transfer_structure(sub_transfer(1, base, PAGE), count=3)
    yield "count 2^32-1", transfer_structure(sub_transfer(1, base, PAGE), count=0xffffffff)
    for direction in (0, 3, 4, 0xffffffff):
        yield f"direction {direction}", transfer_structure(sub_transfer(direction, base, PAGE))
    for index in (2, 3, 0x7fffffff, 0xffffffff):
        yield f"queue pair {index}", transfer_structure(sub_transfer(1, base, PAGE, index=index))
    for buffer in (-1, 1, 2, 253, 0x7fffffff, -0x80000000):
        yield f"buffer {buffer}", transfer_structure(sub_transfer(1, base, PAGE, buffer))
    for size in (0, PAGE + 1, 2 * PAGE, length + 1, 1 << 32, 0xffffffff, FAR - 1, FAR - PAGE):
        yield f"{size} bytes", transfer_structure(sub_transfer(1, base, size))
    for offset in (1, PAGE, 1 << 32, FAR - PAGE, FAR - 1):
        yield f"buffer offset {offset}", transfer_structure(sub_transfer(1, base, PAGE, offset=offset))
    for size in (0, 4, 7, 89, 0xffffffff):
        yield f"size {size}", struct.pack("<I", size) + transfer_structure(sub_transfer(1, base, PAGE))[4:]


def outside(descriptor):
    base, length = descriptor.address, descriptor.bytes
    for address in (0, base - 1, base - PAGE, base + 1 + length - PAGE, base + length - 1, base + length, base ^ (1 << 40),
                    FAR - PAGE, FAR - 1, 0x102100000, 0x60000000000):
        yield address % FAR


def own_kinds():
    """Descriptors that are no host buffer."""
    left, right = os.pipe()
    return {"pipe": left, "pipe's other end": right,
            "/dev/null": os.open("/dev/null", os.O_RDWR), "folder": os.open("/", os.O_RDONLY),
            "path": os.open("/", os.O_PATH), "memfd": os.memfd_create("mine"), "/proc": os.open("/proc/self/maps", os.O_RDONLY)}


def probe_descriptor(_, server, foreign):
    """What was answered with success, of requests that must not be. `foreign`: an address that another client holds."""
    done = []
    with server.connect() as client, client.descriptor() as descriptor:
        buffer = descriptor.host_buffer(PAGE)

        def refused(what, result):
            if result >= 0:
                done.append(what)

        for what, structure in wrong_transfers(descriptor):
            refused(what, descriptor.call(TRANSFER, structure, [buffer])[0])
        if server.quotas_by_user:  # a card server gives all of its clients all of the card
            for address in [*outside(descriptor), foreign]:
                for direction in (TO_CARD, FROM_CARD):
                    refused(f"address {address:#x}", descriptor.transfer(direction, buffer, address=address))
        for what, file in own_kinds().items():
            refused(what, descriptor.transfer(TO_CARD, file))
        refused("its own socket", descriptor.transfer(TO_CARD, descriptor.socket.fileno()))
        for number in (QPAIR_ADD, QPAIR_OP, QPAIR_GET_FD, 0, 0xffffffff):
            refused(f"call {number:#x}", descriptor.call(number, bytes(36))[0])
        for length in (0, 1, PAGE - 1, 1 << 62, (1 << 62) + PAGE, FAR - PAGE, FAR - 1):
            refused(f"a buffer of {length} bytes", descriptor.call(BUF_CREATE, buf_create(length))[0])
        descriptor.round_trip(buffer)  # and what is right still works
    return done


def probe_daemon(_, server, foreign, foreign_pairs):
    """The same on a connection: `foreign`, `foreign_pairs` are another client's buffer and queue pairs."""
    done = []
    with server.connect() as client:
        own = client.add_queue_pair()
        probes = [("buffer-close", struct.pack("<IQQ", 0, foreign, UNIT)), ("buffer-close", struct.pack("<IQQ", 0, 0, UNIT)),
                  ("buffer-close", struct.pack("<IQQ", 1, foreign, UNIT)),
                  ("buffer-open-raw", struct.pack("<IIIQQ", 0, 0, 1, foreign, UNIT)),
                  ("queue-pair-op", struct.pack("<III", 0, own, 3)), ("queue-pair-op", struct.pack("<III", 1, own, STOP)),
                  ("descriptor", struct.pack("<IIIIIIQQ", 0, 0, 3, own, own, 0, 0, 0)),
                  ("descriptor", struct.pack("<IIIIIIQQ", 0, 0, 0, own, own, 0, 0, 0)),
                  ("descriptor", struct.pack("<IIIIIIQQ", 0, 0, 2, own, own, 0, 0, 0)),
                  ("descriptor", struct.pack("<IIIIIIQQ", 0, 0, 1, own, 0, 8, 0, 0)),
                  ("descriptor", struct.pack("<IIIIIIQQ", 0, 1, 1, own, 0, 0, 0, 0)),
                  ("descriptor", struct.pack("<IIIIIIQQ", 0, 0, 1, own, 0, 0, PAGE, FAR - 1))]
        for pair in [*foreign_pairs, 0xffffffff, own + (1 << 24)]:
            probes += [("queue-pair-op", struct.pack("<III", 0, pair, op)) for op in (START, STOP, DELETE)]
            probes += [("queue-pair-descriptor", struct.pack("<III", 0, pair, CLOSE_ON_EXEC)),
                       ("descriptor", struct.pack("<IIIIIIQQ", 0, 0, 2, own, pair, 0, 0, 0))]
        wrong_buffers = ((3, 0, 1, 0, PAGE), (0, 3, 1, 0, PAGE), (0, 0, 3, 0, PAGE), (0, 0, 1, 0, 0), (1, 0, 1, 64, PAGE),
                         (0, 0, 1, 0, FAR - 1), (0, 0, 1, 0, (512 << 20) + 1))
        for kind, direction, channel, argument, size in wrong_buffers:
            probes.append(("buffer-open", struct.pack("<IIIIQQ", 0, kind, direction, channel, argument, size)))
        for opcode, body in probes:
            if client.ask(opcode, body)[0] == 0:
                done.append(f"{opcode} {body.hex()}")
        # A descriptor of a queue pair alone, without a buffer, reaches nothing.
        _, file = client.must("descriptor", struct.pack("<IIIIIIQQ", 0, CLOSE_ON_EXEC, 1, own, 0, 0, 0, 0))
        bare = Wire(socket.socket(fileno=file))
        buffer = client.host_buffer(PAGE)
        for address in (foreign, 0):
            move = transfer_structure(sub_transfer(FROM_CARD, address, PAGE))
            if bare.call(TRANSFER, move, [buffer])[0] >= 0:
                done.append(f"a transfer by a bare queue pair at {address:#x}")
    return done


class Isolation(Hostile):
    def roles(self):
        path = os.path.join(self.folder, "roles")
        with open(path, "w", encoding="utf-8") as out:
            out.write(ROLES)
        return path

    @on_servers()
    def test_wrong_requests_on_a_descriptor(self, server):
        server = self.started(server)
        files, before = self.settled_files(server), server.page()
        with server.connect() as client, client.descriptor() as held:
            buffer = held.host_buffer(PAGE)
            os.pwrite(buffer, b"mine" * 1024, 0)
            self.assertEqual(held.transfer(TO_CARD, buffer), PAGE)
            self.assertEqual(self.attack(server, probe_descriptor, held.address).result(120), [])
            os.pwrite(buffer, bytes(PAGE), 0)
            self.assertEqual(held.transfer(FROM_CARD, buffer), PAGE)
            self.assertEqual(os.pread(buffer, PAGE, 0), b"mine" * 1024)
            os.close(buffer)
        self.comes_back(server, files)
        self.counts_refusals(server, before)

    @needs_users
    @on_servers("daemon")
    def test_what_another_user_holds(self, server):
        server = self.started(server, "--roles", self.roles())
        files, before = self.settled_files(server), server.page()
        with server.connect() as client, client.descriptor() as held:
            pair = client.add_queue_pair()
            self.assertEqual(self.attack(server, probe_daemon, held.address, [pair]).result(120), [])
            buffer = held.host_buffer(PAGE)
            held.round_trip(buffer)
            os.close(buffer)
            client.must("queue-pair-op", struct.pack("<III", 0, pair, DELETE))
            error, _, _ = client.ask("queue-pair-op", struct.pack("<III", 0, pair, STOP))
            self.assertEqual(error, errno.ESTALE)
        self.comes_back(server, files)
        self.counts_refusals(server, before)


if __name__ == "__main__":
    unittest.main()
