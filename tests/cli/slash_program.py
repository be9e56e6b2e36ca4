#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""A program for a V80 with the driver's paths in it, as AMD's are: it speaks what their client library speaks to sockets,
written from src/qdma/slash/wire.hpp. slash_test.py runs it by `doorbell run card`. Prints JSON; exits with 1 for wrong data.

    slash_program.py validate [MIB [TIMES [FOLDER]]]    bytes to HBM and DDR and back, compared
    slash_program.py look                               what it finds
    slash_program.py unknown                            a call that nobody has"""

import glob
import json
import mmap
import os
import socket
import stat
import struct
import sys
import time

HEADER = struct.Struct("<IIiI")
PAGE = 4096
PLACES = {"HBM": 0x40_0000_0000, "DDR": 0x600_0000_0000}


def number(nr, size):
    return 3 << 30 | size << 16 | ord("v") << 8 | nr


INFO, ADD, OPERATE, GET_FD = number(0x50, 20), number(0x51, 36), number(0x52, 12), number(0x53, 24)
CREATE, TRANSFER = number(0x54, 24), number(0x56, 88)
BAR_INFO, BAR_FD, DEVICE_INFO = number(0x30, 24), number(0x31, 24), number(0x32, 44)
RESCAN, REMOVE = 0x7730, 0x40247731


class Client:
    def __init__(self, at):
        self.socket = at
        if isinstance(at, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.socket.connect(at)
        self.socket.settimeout(60)
        self.sequence = 0

    def call(self, op, structure=b"", files=()):
        """Result, structure, descriptor or None."""
        socket.send_fds(self.socket, [HEADER.pack(op, self.sequence, 0, 0) + structure], list(files))
        data, got, _, _ = socket.recv_fds(self.socket, 65536, 4)
        if not data:
            raise EOFError("the server has closed the socket")
        what, sequence, result, _ = HEADER.unpack_from(data)
        assert (what, sequence) == (op, self.sequence), "a reply to something else"
        self.sequence += 1
        return result, data[HEADER.size:], got[0] if got else None

    def must(self, *call):
        result, body, file = self.call(*call)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return body, file


class Card:
    def __init__(self, folder):
        self.control = Client(f"{folder}/slash_qdma_ctl0")
        body, _ = self.control.must(ADD, struct.pack("<9I", 36, 0, 3, 0, 0, 0, 0, 0, 0))
        self.queue = struct.unpack_from("<I", body, 28)[0]
        self.control.must(OPERATE, struct.pack("<3I", 12, self.queue, 0))
        _, file = self.control.must(GET_FD, struct.pack("<6I", 24, self.queue, 0x80000, 0, 0, 0))
        self.transfers = Client(socket.socket(fileno=file))

    def buffer(self, size):
        body, file = self.control.must(CREATE, struct.pack("<IIQII", 24, 0x80000, size, 0, 0))
        return file, mmap.mmap(file, size), struct.unpack_from("<I", body, 20)[0]

    def move(self, direction, file, size, place):
        part = struct.pack("<IIiIQQQ", 0, direction, 0, 0, 0, place, size)
        body = struct.pack("<II", 88, 1) + part + bytes(40)
        result, _, _ = self.transfers.call(TRANSFER, body, [file])
        if result != size:
            raise OSError(-result, f"a transfer: {os.strerror(-result)}")


def validate(mib=1, times=1, folder="/dev"):
    size = int(mib) << 20
    card = Card(folder)
    (out, sent, hint), (back, got, _) = card.buffer(size), card.buffer(size)
    sent[:] = os.urandom(min(size, 1 << 20)) * (size // min(size, 1 << 20))
    figures = {"hint": hint, "wrong": 0}
    copies = []
    for memory, place in PLACES.items():
        seconds = {1: [], 2: []}
        for _ in range(int(times)):
            for direction, file in ((1, out), (2, back)):
                begin = time.monotonic()
                card.move(direction, file, size, place)
                seconds[direction].append(time.monotonic() - begin)
            figures["wrong"] += sent[:] != got[:]
            begin = time.monotonic()
            memoryview(got)[:] = memoryview(sent)
            copies.append(time.monotonic() - begin)
            got[:PAGE] = bytes(PAGE)
        ways = (("write", seconds[1]), ("read", seconds[2]))
        figures[memory] = {way: size * len(s) / sum(s) for way, s in ways}
        figures[memory] |= {"best_" + way: size / min(s) for way, s in ways}
    figures["copy"] = size / min(copies)  # by this process, of as many bytes
    return figures


def look():
    found = {"nodes": sorted(glob.glob("/dev/slash_*")), "emulation": sorted(os.listdir("/run/slash_sysemu"))}
    found["sockets"] = all(stat.S_ISSOCK(os.stat(node).st_mode) for node in found["nodes"])
    found["null"] = stat.S_ISCHR(os.stat("/dev/null").st_mode)
    found["user"] = os.getuid()
    with open("/dev/null", "w", encoding="ascii") as null:
        null.write("x")
    control, hotplug = Client("/dev/slash_ctl0"), Client("/dev/slash_hotplug")
    body, _ = control.must(DEVICE_INFO, struct.pack("<I40x", 44))
    place = body[4:36].rstrip(b"\0")
    found["place"] = place.decode()
    body, file = control.must(BAR_FD, struct.pack("<IB3xIxxxxQ", 24, 0, 0x80000, 0))
    with mmap.mmap(file, struct.unpack_from("<Q", body, 16)[0]) as bar:
        bar[16:20] = struct.pack("<I", 42)
        found["bar"] = len(bar)
    hotplug.must(REMOVE, struct.pack("<I32s", 36, place))
    found["removed"] = not os.path.exists("/dev/slash_ctl0")
    hotplug.must(RESCAN)
    found["back"] = os.path.exists("/dev/slash_ctl0")
    return found


def main(what, *words):
    if what == "unknown":
        print(json.dumps({"result": Client("/dev/slash_qdma_ctl0").call(number(0x5f, 4), bytes(4))[0]}))
        return 0
    figures = validate(*words) if what == "validate" else look()
    print(json.dumps(figures))
    return 1 if figures.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
