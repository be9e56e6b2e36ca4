# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Two processes of an unmodified RDMA program, run by `doorbell run rdma`."""

import os
import shutil
import socket
import subprocess
import time
import unittest

DOORBELL = os.environ.get("DOORBELL", "build/bin/doorbell")
VERBS = os.environ.get("VERBS", "build/lib/verbs")
PATIENCE_S = 240  # for what takes seconds on a quiet machine
# perftest measures the processor's clock before it reports, and gives up, with this, where its measurements disagree: on a
# machine that is busy with something else. Then it is run again.
MISMEASURED = "Correlation coefficient r^2"


def needs(program):
    """Skips the case where a program is not installed."""
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is not installed")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    """Whether somebody listens at the TCP port, as the kernel says."""
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name, encoding="ascii") as table:
            for line in table:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False


def run(*words, options=(), **more):
    """Runs a program with the drop-in to its end."""
    return subprocess.run([DOORBELL, "run", "rdma", *options, "--", *map(str, words)], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False, **more)


def again(attempt, excused, tries):
    """The first pair of `attempt()` that `excused(pair)` does not excuse, or the last."""
    for _ in range(tries):
        pair = attempt()
        if not excused(pair):
            break
    return pair


def under_loss(words, options, file=None, **more):
    """A pair whose packets are lost. Who has received everything ends; if its last acknowledgement was lost, the other end
    sends until its retries are spent, as it would to any program that has ended. Then again, without the `file` that they wrote."""

    def attempt():
        if file is not None:
            file.unlink(missing_ok=True)
        return Pair(words, options=options, **more)

    return again(attempt, lambda pair: sorted(pair.codes) == [0, 1] and "transport retry counter exceeded" in pair.text(), 6)


class Pair:
    """A server, and a client when the server listens. Of each `code` and `said`."""

    def __init__(self, words, client_words=("localhost",), options=(), port_options=("-p", "-p"), env=None):
        port = free_port()
        words = list(map(str, words))
        begin = [DOORBELL, "run", "rdma", *options, "--"]
        self.server = subprocess.Popen([*begin, *words, port_options[0], str(port)], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, env=env)
        until = time.monotonic() + PATIENCE_S
        while not listens(port) and self.server.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        self.client = subprocess.Popen([*begin, *words, port_options[1], str(port), *client_words], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, env=env)
        self.said = []
        self.codes = []
        for process in (self.client, self.server):
            try:
                self.said.append(process.communicate(timeout=PATIENCE_S)[0])
            except subprocess.TimeoutExpired:
                process.kill()
                self.said.append(process.communicate()[0] + "\n(killed: it did not end)")
            self.codes.append(process.returncode)

    def text(self):
        return f"client ended with {self.codes[0]}:\n{self.said[0]}\nserver ended with {self.codes[1]}:\n{self.said[1]}"
