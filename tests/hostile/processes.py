# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Processes of other users, and the descriptors that they send."""

import array
import json
import os
import random
import select
import signal
import socket
import struct
import time
import traceback

PATIENCE_S = 30  # for what a busy machine does late
SECONDS = float(os.environ.get("DOORBELL_HOSTILE_S", "0.3"))  # an attack lasts so long
SEED = int(os.environ.get("DOORBELL_HOSTILE_SEED", "1"))


def wait_until(happened, what, patience_s=PATIENCE_S):
    """Its answer, as soon as it is true."""
    until = time.monotonic() + patience_s
    while True:
        if answer := happened():
            return answer
        if time.monotonic() >= until:
            raise AssertionError(f"not within {patience_s} s: {what() if callable(what) else what}")
        time.sleep(0.01)


def readable(file, within_s):
    """Or at its end. Unlike select() it takes any number of a descriptor."""
    asked = select.poll()
    asked.register(file, select.POLLIN)
    return bool(asked.poll(within_s * 1000))


def become(uid):
    if uid is None or os.geteuid() != 0 or uid == 0:
        return
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


class Ended(Exception):
    """The other process has said all."""


class Link:
    """A child's end of the pipes to its parent."""

    def __init__(self, out, stop):
        self.out, self.stop = out, stop

    def say(self, what):
        os.write(self.out, json.dumps(what).encode() + b"\n")

    def stopped(self, within_s=0.0):
        return readable(self.stop, within_s)

    def wait_for_go(self):
        """Until Child.go(); False if the parent has no more use for this process."""
        return bool(os.read(self.stop, 1))

    def until(self, seconds=None):
        """Yields until the parent says stop, or for so long."""
        end = time.monotonic() + (1e9 if seconds is None else seconds)
        while time.monotonic() < end and not self.stopped():
            yield


class Child:
    """`work(link, *arguments)` in a process of user `uid`, with no descriptor of this one but `keep`. Its return value is
    the last thing that it says; an exception is raised again where it is heard."""

    def __init__(self, uid, work, *arguments, keep=()):
        out_read, out_write = os.pipe()
        stop_read, stop_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._be(Link(out_write, stop_read), uid, work, arguments, {0, 1, 2, *keep, out_write, stop_read})
        os.close(out_write)
        os.close(stop_read)
        self.heard, self.text, self.stopping = out_read, b"", stop_write
        self.status = None

    @staticmethod
    def _be(link, uid, work, arguments, keep):
        code = 1
        try:
            for name in os.listdir("/proc/self/fd"):
                if int(name) not in keep:
                    try:
                        os.close(int(name))
                    except OSError:
                        pass  # the listing's own
            become(uid)
            link.say({"result": work(link, *arguments)})
            code = 0
        except BaseException:  # pylint: disable=broad-except
            try:
                link.say({"failed": traceback.format_exc()})
            except OSError:
                pass
        finally:
            os._exit(code)

    def hear(self, patience_s=PATIENCE_S):
        """The next thing that it says."""
        until = time.monotonic() + patience_s
        while b"\n" not in self.text:
            if not readable(self.heard, max(0, until - time.monotonic())):
                raise AssertionError(f"a client's process said nothing for {patience_s} s")
            more = os.read(self.heard, 65536)
            if not more:
                raise Ended
            self.text += more
        line, _, self.text = self.text.partition(b"\n")
        said = json.loads(line)
        if isinstance(said, dict) and "failed" in said:
            raise AssertionError("a client's process failed:\n" + said["failed"])
        return said

    def go(self):
        os.write(self.stopping, b"g")

    def stop(self):
        """Asks it to end."""
        if self.stopping is not None:
            os.close(self.stopping)
            self.stopping = None

    def result(self, patience_s=PATIENCE_S):
        """What `work` returned. The process ends."""
        try:
            while True:
                said = self.hear(patience_s)
                if isinstance(said, dict) and "result" in said:
                    return said["result"]
        finally:
            self.kill()

    def kill(self):
        """Idempotent."""
        self.stop()
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitpid(self.pid, 0)[1]
            os.close(self.heard)


# Descriptors to send.

class Lingering:
    """TCP sockets whose close() waits for `seconds`, because their reader takes nothing. close() in this process is cut
    short by a timer's signal, so that the sender of such a socket does not wait itself when it is the last to close it."""

    def __init__(self, seconds=20):
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        self.linger = struct.pack("ii", 1, seconds)
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.readers = []

    def make(self):
        sender = socket.socket()
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sender.connect(self.listener.getsockname())
        self.readers.append(self.listener.accept()[0])
        sender.setblocking(False)
        try:
            while True:
                sender.send(bytes(65536))
        except BlockingIOError:
            pass
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, self.linger)
        return sender


def of_all_kinds(own):
    """Descriptors of every kind that a client may have, `own` among them: a socket sent through itself."""
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(left, [b"x"], [left.fileno(), right.fileno()])  # a cycle of its own
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    files = [own.fileno(), *os.pipe(), os.open("/dev/null", os.O_RDWR), os.open("/", os.O_RDONLY),
             os.open("/", os.O_PATH), os.open("/proc/self/maps", os.O_RDONLY), os.memfd_create("mine"),
             os.eventfd(1)]
    kept = [left, right, listener, datagrams, select.epoll()]
    files += [each.fileno() for each in kept]
    try:
        files.append(os.pidfd_open(os.getpid()))
    except OSError:
        pass
    return files, kept


def send_files(end, data, files, flags=0):
    """Unlike socket.send_fds(), a message of no bytes too. False: the server takes no more, or has closed."""
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    try:
        end.sendmsg([data], control, flags)
        return True
    except (BlockingIOError, TimeoutError, BrokenPipeError, ConnectionResetError, OSError):
        return False


def drain(end):
    """Takes the replies that have come, and closes what came with them. False: the server has closed the socket."""
    patience = end.gettimeout()
    end.setblocking(False)
    try:
        while True:
            data, files, _, _ = socket.recv_fds(end, 65536, 253)
            for each in files:
                os.close(each)
            if not data:
                return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        end.settimeout(patience)


def numbers(name):
    """Random ones, the same in every run with the same seed."""
    return random.Random(f"{SEED} {name}")
