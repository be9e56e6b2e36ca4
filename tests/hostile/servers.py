# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The servers under attack. A new one is a row of SERVERS: a subclass of Server."""

import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time

import wire
from processes import PATIENCE_S, wait_until

DOORBELL = os.environ.get("DOORBELL", "build/bin/doorbell")
DOORBELLD = os.environ.get("DOORBELLD", str(pathlib.Path(DOORBELL).with_name("doorbelld")))
IS_ROOT = os.geteuid() == 0
ATTACKER, THIRD = 65534, 1001


class Server:
    """A row, and a server of it that runs. What differs is in the members up to `start`."""

    name = ""
    kinds = ("connection", "descriptor")
    client = None          # the class of its clients: greet(), good_request(), descriptor(), host_buffer()
    attacker = None        # the user who attacks; None: who runs the tests
    victims = (None,)      # the users who are served meanwhile
    has_page = False       # of metrics
    quotas_by_user = False
    log = "stderr"         # where it writes what may get lost
    host_bytes = ()        # the options that let a user have 16 MiB of host buffers
    silent = None          # the options that end a silent client soon
    most_foreign = 1024 + 253 + 64  # descriptors of one user that it keeps at a time, at most

    def words(self, options):
        raise NotImplementedError

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.path = str(self.folder / f"{self.name}.sock")
        self.metrics = str(self.folder / f"{self.name}.metrics")
        self.log_file = self.folder / f"{self.name}.log"
        self.process = None

    def endpoint(self, kind, client):
        """Of `client`, which has greeted."""
        return client if kind == "connection" else client.descriptor()

    def start(self, *options, limits=(), sink=None, environment=None):
        """`limits`: pairs of a resource and its limit. `sink`: a descriptor in place of the log."""

        def limit():
            for which, most in limits:
                resource.setrlimit(which, (most, most))

        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                self.words(options), preexec_fn=limit, env={**os.environ, **(environment or {})},
                **{"stdout": log, "stderr": log, self.log: log if sink is None else sink})
        wait_until(lambda: self.answers() or self.process.poll() is not None, f"{self.name} listens")
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} has ended with {self.process.returncode}: {self.text()}")
        if IS_ROOT:
            os.chmod(self.path, 0o666)
        return self

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def answers(self):
        try:
            with self.connect():
                return True
        except (OSError, EOFError):
            return False

    def connect(self):
        """A client that has greeted."""
        client = self.client(self.path)  # pylint: disable=not-callable
        try:
            return client.greet()
        except BaseException:
            client.close()
            raise

    def files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def page(self):
        """The metrics, by name with labels; {} if this server has none."""
        return read_page(self.metrics) if self.has_page else {}

    def end(self, which=signal.SIGTERM, patience_s=PATIENCE_S):
        """Seconds until it has ended; None if it does not."""
        begin = time.monotonic()
        self.process.send_signal(which)
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - begin

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Daemon(Server):
    name = "daemon"
    client = wire.DaemonClient
    attacker = ATTACKER if IS_ROOT else None
    victims = (0, THIRD) if IS_ROOT else (None,)
    has_page = True
    quotas_by_user = True
    host_bytes = ("--max-host-buffers", str(16 << 20))
    silent = ("--first-request-limit", "0.2")
    card = "model"

    def words(self, options):
        card = () if "--card" in options else ("--card", self.card)
        metrics = () if "--metrics" in options else ("--metrics", self.metrics)
        return [DOORBELLD, *card, "--socket", self.path, "--socket-mode", "0666", "--log", "stderr", *metrics, *options]


class CardServer(Server):
    """It serves its own user only, who attacks himself."""

    name = "card"
    client = wire.CardClient
    log = "stdout"
    host_bytes = ("--max-host-buffers", str(16 << 20))

    def words(self, options):
        return [DOORBELL, "card", "serve", "--listen", self.path, *options]


class SlashServer(CardServer):
    """The same by the sockets of AMD's emulation."""

    name = "slash"
    client = wire.SlashClient

    def __init__(self, folder):
        super().__init__(folder)
        self.slash = self.folder / "slash"
        self.path = str(self.slash / "slash_qdma_ctl0")

    def words(self, options):
        return [DOORBELL, "card", "serve", "--slash-dir", str(self.slash), *options]


SERVERS = (Daemon, CardServer, SlashServer)


def read_page(at, patience_s=5):
    """Prometheus's request. `at`: a path, or a port."""
    is_path = isinstance(at, str)
    with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as end:
        end.settimeout(patience_s)
        end.connect(at if is_path else ("127.0.0.1", at))
        end.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b""
        while more := end.recv(65536):
            text += more
    head, _, body = text.decode().partition("\r\n\r\n")
    if " 200 " not in head.split("\r\n", maxsplit=1)[0]:
        raise OSError(f"no page: {head!r}")
    rows = (line.rsplit(" ", 1) for line in body.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in rows}


SERVED = re.compile(r'(_accepted_total|_retired_total|_bytes_total|log_entries_lost_total)|"ok"')


def refusals(page):
    """Counters of what was not done."""
    return {name: value for name, value in page.items() if "_total" in name and not SERVED.search(name)}


def moved(before, after):
    """The counters of refusals that have grown."""
    old = refusals(before)
    return sorted(name for name, value in refusals(after).items() if value > old.get(name, 0))
