# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of all cases: a folder, servers that end with the case, clients that are served meanwhile."""

import errno
import os
import tempfile
import time
import unittest

from processes import SECONDS, Child, wait_until
from servers import SERVERS, moved


def on_servers(*only):
    """The case is run over each server, or over those of these names, as test_NAME_SERVER."""

    def mark(function):
        function.over = [(row, None) for row in SERVERS if not only or row.name in only]
        return function

    return mark


def on_sockets(function):
    """Over each kind of socket of each server, as test_NAME_SERVER_KIND."""
    function.over = [(row, kind) for row in SERVERS for kind in row.kinds]
    return function


def needs_users(function):
    """Processes of other users can be had by root only."""
    function.needs_users = True
    return function


def _bound(function, row, kind):
    def case(self):
        if getattr(function, "needs_users", False) and row.attacker is None and row.quotas_by_user:
            self.skipTest("not root: no process of another user can be made")
        if kind is None:
            function(self, row)
        else:
            function(self, row, kind)

    case.__doc__ = function.__doc__
    return case


class Hostile(unittest.TestCase):
    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        for name, function in list(vars(cls).items()):
            if not hasattr(function, "over"):
                continue
            delattr(cls, name)
            for row, kind in function.over:
                ending = row.name if kind is None else f"{row.name}_{kind}"
                setattr(cls, f"{name}_{ending}", _bound(function, row, kind))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o711)  # other users reach the sockets

    def started(self, row, *options, **more):
        server = row(self.folder)
        self.addCleanup(server.kill)
        return server.start(*options, **more)

    def child(self, uid, work, *arguments, **more):
        child = Child(uid, work, *arguments, **more)
        self.addCleanup(child.kill)
        return child

    def attack(self, server, work, *arguments):
        """A process of the attacking user."""
        return self.child(server.attacker, work, server, *arguments)

    def is_there(self, server):
        """It has not ended."""
        self.assertIsNone(server.process.poll(), f"{server.name} has ended: {server.text()[-2000:]}")

    def settled_files(self, server):
        """Descriptors of a server that has served one client and has forgotten it."""
        with server.connect() as client, server.endpoint("descriptor", client) as descriptor:
            buffer = descriptor.host_buffer(4096)
            descriptor.round_trip(buffer)
            os.close(buffer)
        last = [-1, 0.0]

        def settled():
            now = server.files()
            if now != last[0]:
                last[:] = now, time.monotonic()
            return time.monotonic() - last[1] > 0.15 and now

        return wait_until(settled, "the descriptors of a server that does nothing stay the same")

    def comes_back(self, server, files):
        wait_until(lambda: server.process.poll() is not None or server.files() <= files,
                   lambda: f"{server.name} has {server.files()} descriptors, and {files} before the attack")
        self.is_there(server)

    def serves(self, server):
        """Each victim gets a new connection and a verified round trip."""
        self.is_there(server)
        for uid in server.victims:
            self.child(uid, round_trip, server).result()

    def ends(self, server, within_s):
        """By SIGTERM, without an error."""
        took = server.end(patience_s=max(10, 2 * within_s))
        self.assertIsNotNone(took, f"{server.name} does not end")
        self.assertEqual(server.process.returncode, 0, server.text()[-2000:])
        self.assertLess(took, within_s, f"seconds until {server.name} has ended")

    def counts_refusals(self, server, before):
        """The page says that something was refused."""
        if server.has_page:
            self.assertTrue(moved(before, server.page()), "no counter of the metrics moved")

    def victims(self, server):
        """Users who are served: each has said how long its requests take without an attack, and waits for more."""
        children = [self.child(uid, timed, server, SECONDS) for uid in server.victims]
        return [(uid, child, child.hear(60)) for uid, child in zip(server.victims, children)]

    def are_served(self, victims, what=("request", "transfer", "host buffer", "connection")):
        """Each request of each victim is answered within a second, and 20 times as long as without an attack."""
        for _, child, _ in victims:
            child.go()
        for uid, child, quiet in victims:
            busy = child.result(SECONDS + 90)
            self.assertEqual(busy["lost"], [], f"user {uid}: {busy['errors']}")
            for each in what:
                took, limit = busy["seconds"][each], 1 + 20 * p99(quiet["seconds"][each])
                self.assertTrue(took, f"user {uid}: no {each} at all; {busy['errors']}")
                self.assertLess(p99(took), limit, f"user {uid}: p99 of {len(took)} x {each}, in seconds; {busy['errors']}")


def p99(values):
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)]


def round_trip(_, server):
    with server.connect() as client, client.descriptor() as descriptor:
        buffer = descriptor.host_buffer(4096)
        descriptor.round_trip(buffer)
        os.close(buffer)


# With DOORBELL_HOSTILE_STRICT=1 victims must be served, not only answered.
STRICT = os.environ.get("DOORBELL_HOSTILE_STRICT") == "1"
WANT = {errno.EMFILE, errno.ENFILE, errno.EBUSY, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.ENOBUFS}
REFUSALS = set() if STRICT else WANT


class Timed:
    """The requests of one victim, each timed. A refusal for want of descriptors or memory is an answer; `lost` has what was
    not answered, or wrongly."""

    def __init__(self, server):
        self.server = server
        self.client = server.connect()
        self.descriptor = self.client.descriptor()
        self.buffer = self.descriptor.host_buffer(4096)
        self.forget()

    def forget(self):
        self.seconds = {"request": [], "transfer": [], "host buffer": [], "connection": []}
        self.errors, self.lost = {}, []

    def figures(self):
        return {"seconds": self.seconds, "errors": self.errors, "lost": self.lost}

    def do(self, what, work):
        begin = time.monotonic()
        try:
            work()
        except (AssertionError, EOFError, OSError) as e:
            said = f"{what}: {e!r}"
            self.errors[said] = self.errors.get(said, 0) + 1
            turned_away = REFUSALS and what == "connection" and isinstance(e, (EOFError, ConnectionError))
            if not turned_away and getattr(e, "errno", None) not in REFUSALS:
                self.lost.append(f"{said} after {time.monotonic() - begin:.1f} s")
        self.seconds[what].append(time.monotonic() - begin)

    def go_on(self, link, seconds):
        for _ in link.until(seconds):
            for what, work in (("request", self.client.good_request),
                               ("transfer", lambda: self.descriptor.round_trip(self.buffer)),
                               ("host buffer", lambda: os.close(self.client.host_buffer(4096))),
                               ("connection", lambda: self.server.connect().close())):
                self.do(what, work)
                if self.lost:
                    return


def timed(link, server, seconds):
    victim = Timed(server)
    victim.go_on(link, min(seconds, 0.3))
    link.say(victim.figures())
    victim.forget()
    if link.wait_for_go():
        victim.go_on(link, seconds)
    return victim.figures()
