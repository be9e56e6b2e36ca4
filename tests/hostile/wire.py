# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Clients of the daemon's protocol (src/qdma/daemon/protocol.hpp) and of the wire of transfer descriptors and card servers
(src/qdma/peer/wire.hpp), written from those headers and not with the library, so that they can say what it would not."""

import errno
import os
import socket
import struct

ANSWER_S = 8  # longer than any answer that is not late
PAGE = 4096


class Refused(OSError):
    """A refusal by its errno."""

    def __init__(self, error, what):
        super().__init__(error, f"{what}: {errno.errorcode.get(error, error)}")


def connect(path):
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.settimeout(ANSWER_S)
    try:
        end.connect(str(path))
    except OSError:
        end.close()
        raise
    return end


class Endpoint:
    """One socket of a server. `socket`: for those that send what no client sends."""

    LONGEST = 0  # bytes of a message

    def __init__(self, end):
        self.socket = end
        end.settimeout(ANSWER_S)
        self.sequence = 0

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self):
        """A message and its descriptor, or None."""
        data, files, _, _ = socket.recv_fds(self.socket, PAGE, 4)
        for more in files[1:]:
            os.close(more)
        if not data:
            raise EOFError("the server has closed the socket")
        return data, files[0] if files else None


# The wire of transfer descriptors and card servers.

MAGIC = 0x31514244
WIRE_REQUEST, WIRE_REPLY = struct.Struct("<IIQQII"), struct.Struct("<IIQqII")
HELLO, CANCEL = 1, 2


def call_number(number, size):
    return 3 << 30 | size << 16 | ord("v") << 8 | number


INFO, QPAIR_ADD, QPAIR_OP = call_number(0x50, 20), call_number(0x51, 36), call_number(0x52, 12)
QPAIR_GET_FD, BUF_CREATE, TRANSFER = call_number(0x53, 24), call_number(0x54, 24), call_number(0x56, 88)
START, STOP, DELETE = 0, 1, 2
TO_CARD, FROM_CARD = 1, 2
CLOSE_ON_EXEC = 0x80000
HBM = 0x40_0000_0000


def wire_request(number, structure=b"", sequence=1, deadline_ns=0, descriptors=0, magic=MAGIC):
    return WIRE_REQUEST.pack(magic, number, sequence, deadline_ns, len(structure), descriptors) + structure


def sub_transfer(direction, address, length, buffer=0, offset=0, index=0):
    return struct.pack("<IIiIQQQ", index, direction, buffer, 0, offset, address, length)


def transfer_structure(*parts, count=None):
    body = struct.pack("<II", 88, len(parts) if count is None else count) + b"".join(parts)
    return body.ljust(88, b"\0")


def buf_create(length):
    return struct.pack("<IIQII", 24, CLOSE_ON_EXEC, length, 0, 0)


class Wire(Endpoint):
    LONGEST = 1024

    def say(self, number, structure=b"", descriptors=(), deadline_ns=0):
        """Sends without waiting. Returns the sequence."""
        self.sequence += 1
        message = wire_request(number, structure, self.sequence, deadline_ns, len(descriptors))
        socket.send_fds(self.socket, [message], list(descriptors))
        return self.sequence

    def call(self, number, structure=b"", descriptors=(), deadline_ns=0):
        """Result, structure, descriptor or None."""
        wanted = self.say(number, structure, descriptors, deadline_ns)
        while True:
            data, file = self.receive()
            _, size, sequence, result, _, _ = WIRE_REPLY.unpack_from(data)
            if sequence == wanted:
                return result, data[WIRE_REPLY.size:WIRE_REPLY.size + size], file
            if file is not None:
                os.close(file)

    def must(self, what, *call, **more):
        result, body, file = self.call(*call, **more)
        if result < 0:
            raise Refused(-result, what)
        return body, file

    def host_buffer(self, length):
        return self.must("host buffer", BUF_CREATE, buf_create(length))[1]

    @staticmethod
    def good_message():
        """A cancel of nothing, which is answered with ENOENT."""
        return wire_request(CANCEL, struct.pack("<Q", 1 << 62), 1 << 61)

    MOST_CARRIED = 2

    @staticmethod
    def carrying(count):
        """The same, which says how many descriptors come with it."""
        return wire_request(CANCEL, struct.pack("<Q", 1 << 62), 1 << 61, descriptors=count)

    def good_request(self):
        result, _, _ = self.call(CANCEL, struct.pack("<Q", 1 << 62))
        if result != -errno.ENOENT:
            raise Refused(-result, "the cancel of nothing")


    @staticmethod
    def buffer_message(length):
        return wire_request(BUF_CREATE, buf_create(length))


class Moves:
    """Transfers of an endpoint that has them. `address`: of `bytes` bytes of card memory that it reaches."""

    def __init__(self, end, address, length):
        super().__init__(end)
        self.address, self.bytes = address, length

    def transfer(self, direction, buffer, length=PAGE, offset=0, address=None, deadline_ns=0):
        part = sub_transfer(direction, self.address if address is None else address, length, 0, offset)
        return self.call(TRANSFER, transfer_structure(part), [buffer], deadline_ns)[0]

    def round_trip(self, buffer, length=PAGE):
        """Bytes to the card and back, compared."""
        sent = os.urandom(length)
        os.pwrite(buffer, sent, 0)
        for direction in (TO_CARD, FROM_CARD):
            result = self.transfer(direction, buffer, length)
            if result != length:
                raise Refused(-result, f"a transfer of {length} bytes, direction {direction}")
            if direction == TO_CARD:
                os.pwrite(buffer, bytes(length), 0)
        if os.pread(buffer, length, 0) != sent:
            raise AssertionError("the bytes that came back are not those that went to the card")


class TransferDescriptor(Moves, Wire):
    pass


class HasQueuePairs:
    """A connection to a card server. All clients share the card's memory, so each takes a place of its own."""

    made = 0  # descriptors, in this process
    descriptors = TransferDescriptor

    def __init__(self, path):
        super().__init__(connect(path))

    def add_queue_pair(self, channel=1):
        body, _ = self.must("queue pair", QPAIR_ADD, struct.pack("<9I", 36, 0, 3, channel, 0, 0, 0, 0, 0))
        number = struct.unpack_from("<I", body, 28)[0]
        self.must("start", QPAIR_OP, struct.pack("<III", 12, number, START))
        return number

    def descriptor(self, channel=1):
        number = self.add_queue_pair(channel)
        _, file = self.must("descriptor", QPAIR_GET_FD, struct.pack("<6I", 24, number, CLOSE_ON_EXEC, 1, number, 0))
        HasQueuePairs.made += 1
        place = os.getpid() % 4096 * 64 + HasQueuePairs.made % 64
        return self.descriptors(socket.socket(fileno=file), HBM + place * 65536, 65536)


class CardClient(HasQueuePairs, Wire):
    def greet(self):
        self.must("hello", HELLO, struct.pack("<II", 1, 0))
        return self


# The sockets of AMD's emulation (src/qdma/slash/wire.hpp).

SLASH = struct.Struct("<IIiI")
RESCAN = 0x7730


def slash_request(number, structure=b"", sequence=1):
    return SLASH.pack(number, sequence, 0, 0) + structure


class SlashWire(Wire):
    """The same calls with other messages, which have their replies in order."""

    def say(self, number, structure=b"", descriptors=(), deadline_ns=0):
        self.sequence += 1
        socket.send_fds(self.socket, [slash_request(number, structure, self.sequence)], list(descriptors))
        return self.sequence

    def call(self, number, structure=b"", descriptors=(), deadline_ns=0):
        wanted = self.say(number, structure, descriptors)
        while True:
            data, file = self.receive()
            _, sequence, result, _ = SLASH.unpack_from(data)
            if sequence == wanted:
                return result, data[SLASH.size:], file
            if file is not None:
                os.close(file)

    @staticmethod
    def good_message():
        """A buffer of no bytes, which is refused with EINVAL."""
        return slash_request(BUF_CREATE, buf_create(0), 1 << 31)

    MOST_CARRIED = 64

    @classmethod
    def carrying(cls, _):
        return cls.good_message()

    def good_request(self):
        result, _, _ = self.call(BUF_CREATE, buf_create(0))
        if result != -errno.EINVAL:
            raise Refused(-result, "a buffer of no bytes")

    @staticmethod
    def buffer_message(length):
        return slash_request(BUF_CREATE, buf_create(length))


class SlashDescriptor(Moves, SlashWire):
    pass


class SlashClient(HasQueuePairs, SlashWire):
    descriptors = SlashDescriptor

    def greet(self):
        self.must("info", INFO, struct.pack("<I", 52).ljust(52, b"\0"))
        return self


# The daemon's protocol.

REQUEST = struct.Struct("<HHI")
OPCODES = {"num-devices": 0, "device-info": 1, "qdma-info": 4, "queue-pair-add": 5, "queue-pair-op": 6,
           "queue-pair-descriptor": 7, "buffer-open": 10, "buffer-close": 11, "device-by-bdf": 12, "buffer-open-raw": 15,
           "hello": 0x8000, "descriptor": 0x8001, "host-buffer": 0x8002}
# Of a refusal that comes without one.
ERRNO_OF = {0: 0, 3: errno.EBADMSG, 4: errno.EINVAL, 5: errno.ENOENT, 6: errno.EIO, 7: errno.EPERM, 8: errno.EBUSY}
UNIT = 64 << 20  # of card memory


class DaemonClient(Endpoint):
    LONGEST = PAGE

    def __init__(self, path):
        super().__init__(connect(path))

    def say(self, opcode, body=b""):
        self.sequence += 1
        self.socket.send(REQUEST.pack(len(body), OPCODES.get(opcode, opcode), self.sequence) + body)
        return self.sequence

    def ask(self, opcode, body=b""):
        """Errno (0: it was done), body, descriptor or None."""
        wanted = self.say(opcode, body)
        while True:
            data, file = self.receive()
            size, code, sequence = REQUEST.unpack_from(data)
            reply = data[REQUEST.size:REQUEST.size + size]
            error = struct.unpack_from("<I", reply)[0] if code != 0 and len(reply) >= 8 else ERRNO_OF.get(code, errno.EPROTO)
            if sequence == 0 and code != 0:
                raise ConnectionRefusedError(error, f"the daemon takes no further client: code {code}")
            if sequence == wanted:
                return error, reply, file

    def must(self, opcode, body=b""):
        error, reply, file = self.ask(opcode, body)
        if error != 0:
            raise Refused(error, f"{opcode} ({reply[8:].decode(errors='replace')})")
        return reply, file

    def greet(self):
        self.must("hello", struct.pack("<II", 1, 0))
        return self

    @staticmethod
    def good_message():
        return REQUEST.pack(1, OPCODES["num-devices"], 1) + b"\0"

    MOST_CARRIED = 32

    @classmethod
    def carrying(cls, _):
        return cls.good_message()

    def good_request(self):
        self.must("num-devices", b"\0")

    def host_buffer(self, length):
        return self.must("host-buffer", struct.pack("<I", 0) + buf_create(length))[1]

    def descriptor(self, channel=1):
        """Of a buffer in card memory."""
        body = struct.pack("<IIIIQQ", 0, 2, 0, channel, 0, UNIT)
        reply, file = self.must("buffer-open", body)
        length, address, _ = struct.unpack("<QQI", reply)
        return TransferDescriptor(socket.socket(fileno=file), address, length)

    def add_queue_pair(self, channel=1):
        reply, _ = self.must("queue-pair-add", struct.pack("<10I", 0, 36, 0, 3, channel, 0, 0, 0, 0, 0))
        return struct.unpack_from("<I", reply, 28)[0]
