#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Runs doorbell with random options, faults among them, and recomputes what each run says.

Usage: random_runs.py --path nvme|rdma|cxi|net|qdma|veth|peers [--count N] [--seed S] [--first I] [--doorbell PROGRAM] [--keep FOLDER]
Run I of seed S is the same run each time. A run must end with exit code 0, 1 (refused: it names what it refuses), 2 or 77,
within a generous multiple of what it or its options say that it takes, and leave a Result whose figures add up
(result_checks.py). `veth`: net between two network namespaces. `peers`: net from one process to another. Exit code: 0; 2 when a run did not, and for usage.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import result_checks  # noqa: E402

PATHS = ("nvme", "rdma", "cxi", "net", "qdma", "veth", "peers")
PATIENT = ["--timeout", "60", "--late-after", "50"]  # a busy machine is not an error
CLOSED_LOOPS = ("nvme", "rdma", "cxi", "qdma")  # lose nothing unless a fault does
FAULTS = {
    "nvme": ("drop", "delay", "error", "corrupt", "misplace", "stale", "duplicate", "reorder", "removal"),
    "rdma": ("drop", "delay", "error", "corrupt", "misplace", "duplicate", "reorder", "removal"),
    "cxi": ("drop", "delay", "error", "corrupt", "misplace", "duplicate", "reorder"),
    "net": ("drop", "delay", "corrupt", "misplace", "duplicate", "reorder"),
    "qdma": ("drop", "delay", "error", "corrupt", "misplace", "stale", "duplicate", "reorder"),
}


@dataclasses.dataclass
class Run:
    """A command line, and what is expected of it."""
    path: str
    arguments: list
    faults: list  # kinds
    estimate_s: float  # what follows from the options

    def command(self, program):
        return [program, "net" if self.path in ("veth", "peers") else self.path, *self.arguments]


class Draw:
    """Options by chance."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.arguments = []

    def chance(self, p):
        return self.random.random() < p

    def pick(self, *values):
        return self.random.choice(values)

    def give(self, name, *values, chance=1.0):
        """The option with one of the values, or not at all."""
        value = self.pick(*values)
        if self.chance(chance):
            self.arguments += ["--" + name, str(value)]
            return value
        return None

    def flag(self, name, chance):
        if self.chance(chance):
            self.arguments.append("--" + name)

    def faults(self, path, chance=0.4):
        """Kinds of fault; the limits that let a run with them end soon, or a busy one be patient."""
        kinds = []
        if self.chance(chance):
            kinds = self.random.sample(FAULTS[path], self.pick(1, 1, 1, 2))
            slow = () if path == "net" else ("drop", "delay")  # each is awaited
            self.arguments += ["--fault", ",".join(f"{kind}={self.pick('0.005', '0.02', *(() if kind in slow else ('0.1', '0.3')))}"
                                                   for kind in kinds)]
        if path != "net" and any(kind in ("drop", "delay", "removal") for kind in kinds):
            self.arguments += ["--timeout", "2", "--late-after", "0.1"]
            if path == "qdma":
                self.arguments += ["--deadline", "0.2"]
        else:
            self.arguments += PATIENT
        return kinds

    def length(self, name, counts):
        """By count, or for a time. Returns seconds of a repeat's part, at most."""
        if self.chance(0.3):
            seconds = self.give("duration", 0.01, 0.03, 0.06)
            repeats = self.give("repeats", 1, 2, 3)
            self.give("warmup", 0, 0.01, chance=0.5)
            return repeats * (seconds + 0.02)
        self.give(name, *counts)
        return (self.give("repeats", 1, 2, 3, chance=0.4) or 1) * 2.0


def nvme(draw, folder):
    keys = ["capacity=" + draw.pick("1Mi", "4Mi", "16Mi")]
    on_file = draw.chance(0.15)
    if on_file:
        draw.give("controller", f"file:{folder}/data")
        draw.give("file-size", "1Mi", "4Mi")
        draw.give("direct", "off")
        draw.give("backend", "io_uring", "sync", chance=0.7)
    else:
        for key, values, chance in (("lba", ("512", "4096"), 0.4), ("threads", ("1", "2"), 0.3), ("latency", ("20us", "200us"), 0.15),
                                    ("media", ("null",), 0.05), ("queues", ("4", "16"), 0.2), ("engine", ("kernel-on-cpu",), 0.1),
                                    ("mdts", ("4", "9"), 0.1), ("shadow", ("off",), 0.1)):
            if draw.chance(chance):
                keys.append(f"{key}={draw.pick(*values)}")
        draw.give("controller", "model:" + ",".join(keys))
        draw.give("doorbells", "register", "shadow", chance=0.2)
    if draw.chance(0.7):
        seconds = 2.0 * (draw.give("repeats", 1, 2, 3, chance=0.4) or 1)
        draw.give("write-io", 0, 1, 50, 333, 1000)
        draw.give("read-io", 0, 1, 64, 500, 2000)
    else:
        seconds = draw.length("read-io", (10, 100, 1500))
        draw.give("write-io", 1, 100, chance=0.5)
    draw.give("lbas-per-io", 1, 2, 7, 8, 33, chance=0.5)
    draw.give("base-lba", 0, 8, 100, chance=0.2)
    draw.give("access-pattern", "sequential", "random", chance=0.4)
    draw.give("num-queues", 1, 2, 3, 4, 8, chance=0.6)
    draw.give("queue-length", 2, 3, 16, 64, 1024, chance=0.4)
    draw.give("batch-size", 1, 2, 5, 16, 64, chance=0.5)
    draw.give("in-flight", 1, 2, 7, 32, 200, chance=0.3)
    draw.give("threads", 0, 1, 2, chance=0.4)
    draw.give("check-threads", 0, 1, 2, chance=0.3)
    draw.give("verify", "on", "off", "sample=0.3", chance=0.3)
    draw.flag("less-timing", 0.1)
    draw.flag("substep-timing", 0.15)
    return draw.faults("nvme", 0 if on_file else 0.4), seconds


def rma(draw, path, operations):
    draw.give("op", *operations)
    sizes = draw.give("size", "1", "64", "1000", "4KiB", "64KiB", "64,4KiB", "100000", *(() if path == "qdma" else ("0", "8:64")))
    measure = draw.give("measure", "latency", "rate", "both", chance=0.7)
    # A transfer of the QDMA model is a call to the driver and back, several times as long as an operation of the others.
    seconds = draw.length("iterations", (1, 7, 32, 100, *(() if path == "qdma" else (300,))))
    draw.give("num-qps" if path == "rdma" else "num-queues", 1, 2, 3, *(() if path == "qdma" else (4,)), chance=0.6)
    draw.give("batch-size", 1, 2, 5, 16, 64, chance=0.4)
    draw.give("in-flight", 1, 2, 7, 32, 100, chance=0.3)
    draw.give("threads", 0, 1, 2, chance=0.4)
    draw.give("check-threads", 0, 1, 2, chance=0.3)
    draw.give("verify", "on", "off", "sample=0.3", chance=0.3)
    draw.flag("substep-timing", 0.15)
    cells = (2 if measure in (None, "both") else 1) * (sizes.count(",") + 1 + 3 * sizes.count(":"))
    return seconds * cells


def rdma(draw, folder):
    seconds = rma(draw, "rdma", ("write", "read", "send", "write-imm", "fetch-add", "compare-swap"))
    draw.give("provider", "mlx5", "bnxt", "ionic", "ernic", chance=0.7)
    draw.give("connection", "self", "pair", chance=0.3)
    draw.give("signal-every", 1, 3, 16, chance=0.2)
    draw.give("inline", 0, 64, 200, chance=0.2)
    keys = [f"{key}={draw.pick(*values)}" for key, values in (("mtu", ("256", "1024")), ("latency", ("20us",)), ("threads", ("1", "2")),
                                                             ("loss", ("0.001",)), ("bandwidth", ("1G",))) if draw.chance(0.12)]
    if keys:
        draw.give("device", "model:" + ",".join(keys))
    return draw.faults("rdma"), seconds


def cxi(draw, folder):
    seconds = rma(draw, "cxi", ("put", "get"))
    draw.flag("unrestricted", 0.3)
    draw.give("idc", 0, 64, 192, chance=0.2)
    keys = [f"{key}={draw.pick(*values)}" for key, values in (("latency", ("5us",)), ("jitter", ("2us",)), ("bandwidth", ("1G",)),
                                                             ("copy-threads", ("1", "2")), ("window", ("4",))) if draw.chance(0.12)]
    if keys:
        draw.give("device", "cxi-model0:" + ",".join(keys))
    return draw.faults("cxi"), seconds


def qdma(draw, folder):
    seconds = rma(draw, "qdma", ("put", "get"))
    draw.give("memory", "ddr", "hbm", "hbm-high", chance=0.5)
    draw.give("channels", "both", "0", "1", chance=0.4)
    draw.give("policy", "balanced", "v80-compat", "channel0", "channel1", chance=0.4)
    draw.give("stripe", 0, 4096, "64Ki", chance=0.2)
    draw.give("smallest-split", 0, 4096, "64Ki", chance=0.3)
    draw.give("hbm-routing", "shared", "by-half", chance=0.2)
    draw.give("ring-size-index", 0, 9, 15, chance=0.2)
    draw.give("starting-offset", 0, 4096, "1Mi", chance=0.2)
    keys = [f"{key}={draw.pick(*values)}" for key, values in (("bandwidth", ("1G", "8G")), ("latency", ("20us",)), ("clock", ("counted",)),
                                                             ("threads", ("1", "2")), ("link", ("2G",))) if draw.chance(0.12)]
    if keys:
        draw.give("device", "model:" + ",".join(keys))
    return draw.faults("qdma"), seconds


def net(draw, folder):
    stream = draw.give("stream", "raw", "raw", "udp", "tcp", "roce")
    payload = draw.give("payload", 64, 100, 1000, 1472, 8000, *(() if stream == "raw" else (32, 60000)), *(("1MiB",) if stream == "tcp" else ()))
    seconds = draw.length("count", (1, 33, 200, 1000))
    settle = draw.give("settle", 0.05, 0.25, chance=0.5) or 0.25
    draw.give("batch-size", 1, 7, 64, 256, chance=0.5)
    if stream == "raw":
        draw.give("link", "ring", "ring:overflow=drop", chance=0.3)
        draw.give("engine", "ring", "dpdk", chance=0.2)
        draw.give("queues", "1x1", "1x2", "2x1", "2x2", chance=0.5)
        draw.give("flows", 2, 3, 8, chance=0.3)
        draw.give("rss", "off", "addresses", "addresses-ports", chance=0.3)
        draw.give("encapsulation", "udp4", "udp6", "bare", chance=0.4)
    else:
        draw.give("pairs", 1, 2, 3, chance=0.4)
        draw.give("segmentation", "on", "off", chance=0.2)
    draw.give("target-gbps", 0.05, 0.5, 5, chance=0.25)
    draw.give("polling", "auto", "busy", "block", chance=0.3)
    draw.give("fill", "bytes", "float32", "zero", chance=0.2)
    draw.give("verify", "on", "off", "sample=0.3", chance=0.3)
    draw.flag("split", 0.15)
    if draw.chance(0.25) and payload != "1MiB":
        draw.flag("assemble", 1.0)
        draw.give("window", 8, 64, 256, chance=0.7)
        draw.give("windows-open", 1, 2, 8, chance=0.4)
        draw.give("convert", "int8:fp16", "int16:fp32", chance=0.3)
        draw.give("missing", "zero", "mark", chance=0.3)
    draw.give("max-loss", 0, 100, chance=0.2)
    return draw.faults("net"), seconds + settle * 3


def streams(draw, stream, pairs=True):
    """Options that streams between namespaces or processes have. Returns seconds, at most."""
    payload = draw.give("payload", 64, 100, 1000, 1400, *((8000, 60000) if stream != "raw" else ()), *(("1MiB",) if stream == "tcp" else ()))
    seconds = draw.length("count", (1, 33, 200, 1000))
    draw.give("settle", 0.25, 0.5, chance=0.5)
    draw.give("batch-size", 1, 7, 64, chance=0.4)
    if stream != "raw" and pairs:
        draw.give("pairs", 1, 2, 3, chance=0.4)
    draw.give("target-gbps", *((2, 5) if payload in (60000, "1MiB") else (0.02, 0.2, 2)), chance=0.3)
    draw.give("polling", "auto", "busy", "block", chance=0.3)
    draw.give("verify", "on", "off", "sample=0.3", chance=0.3)
    draw.give("max-loss", 100, chance=0.3)
    return seconds + 1.5


def veth(draw, folder):
    stream = draw.give("stream", "raw", "raw", "udp", "tcp")
    draw.give("link", "veth")
    if stream == "raw":
        draw.give("engine", "af_packet", "af_xdp", "dpdk:af_packet", chance=0.8)
        draw.give("queues", "1x1", "1x2", "2x2", chance=0.4)
        draw.give("flows", 2, 3, chance=0.3)
        draw.give("encapsulation", "udp4", "udp6", "bare", chance=0.3)
    seconds = 3 + streams(draw, stream)
    return draw.faults("net", 0.3), seconds


def peers(draw, folder):
    stream = draw.give("stream", "udp", "tcp")
    seconds = 3 + streams(draw, stream)
    return draw.faults("net", 0), seconds


DRAWERS = {"nvme": nvme, "rdma": rdma, "cxi": cxi, "net": net, "qdma": qdma, "veth": veth, "peers": peers}


def drawn(path, seed, index, folder):
    draw = Draw(f"{path} {seed} {index}")
    faults, seconds = DRAWERS[path](draw, folder)
    draw.give("seed", 1, 7, 2 ** 53 + 1, 2 ** 64 - 1, chance=0.3)
    # A lost operation is awaited once for each cell and repeat.
    waits = 3.0 * 8 if any(kind in ("drop", "delay", "removal") for kind in faults) else 0
    return Run(path, draw.arguments, faults, seconds + waits)


def stated_s(text):
    """The seconds that the run itself says beforehand that it takes."""
    found = re.search(r"\babout ([0-9.]+) ?(ms|s|min|h)\b", text)
    if not found:
        return None
    return float(found[1]) * {"ms": 1e-3, "s": 1, "min": 60, "h": 3600}[found[2]]


@contextlib.contextmanager
def listener(program):
    """The address of a listening process, and a function that gives its exit code and what it printed."""
    with subprocess.Popen([program, "net", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            address = re.search(r"listening at (\S+)", process.stdout.readline())[1]
            yield address, lambda: (process.wait(timeout=300), process.stdout.read())
        finally:
            process.kill()


def one_run(program, run, folder):
    """(exit code or None, problems, Result or None)"""
    if run.path != "peers":
        return one_process(program, run, folder)
    with listener(program) as (address, ended):
        run.arguments += ["--connect", address]
        code, found, document = one_process(program, run, folder)
        if code in (0, 2) and (theirs := ended())[0] != code:
            found.append(f"exit code {code} here and {theirs[0]} of the listener: {theirs[1].strip()[-200:]}")
        return code, found, document


def one_process(program, run, folder):
    """The same of the process that reports."""
    out = pathlib.Path(folder, "result.json")
    out.unlink(missing_ok=True)
    command = [*run.command(program), "--json", str(out)]
    # Generous by far: machines of two cores run this beside other tests, and threads that poll each other then wait.
    limit = 180 + 10 * run.estimate_s
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None, [f"it has not ended after {limit:.0f} s, its options say {run.estimate_s:.1f} s"], None
    took = time.monotonic() - began
    found = []
    stated = stated_s(done.stderr + done.stdout)
    if stated is not None and took > 120 + 5 * stated:
        found.append(f"it took {took:.0f} s and had said {stated:.1f} s")
    code = done.returncode
    if code < 0:
        return code, [*found, f"it died of signal {-code}"], None
    if code not in (0, 1, 2, 77):
        found.append(f"exit code {code}")
    if code in (1, 77):
        if not done.stderr.strip():
            found.append(f"exit code {code} without a word")
        return code, found, None
    if not out.exists():
        return code, [*found, f"exit code {code} and no Result: {done.stderr.strip()[-300:]}"], None
    try:
        document = json.loads(out.read_text(encoding="utf-8"))
    except ValueError as error:
        return code, [*found, f"the Result is no JSON: {error}"], None
    if document["exit_code"] != code:
        found.append(f"exit code {code}, in the Result {document['exit_code']}")
    if code == 2 and not run.faults and run.path in CLOSED_LOOPS:
        why = [{k: v for k, v in (*c["errors"].items(), *((k, c["verify"][k]) for k in result_checks.DATA_CLASSES)) if v}
               for c in document["cells"]]
        found.append(f"exit code 2 without a fault: {why}; {document['warnings'][-2:]}")
    found += result_checks.problems(document)
    return code, found, document


def random_runs(program, path, count, seed, first=0, say=print, keep=None):
    """Problems, and how often each exit code came."""
    codes, found = collections.Counter(), []
    for index in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            run = drawn(path, seed, index, folder)
            code, problems, _ = one_run(program, run, folder)
            codes[code] += 1
            if problems:
                command = " ".join(run.command("doorbell")).replace(folder, "/tmp")
                found.append((index, command, problems))
                say(f"{path} seed {seed} run {index}: {command}")
                for problem in problems:
                    say(f"    {problem}")
                result = pathlib.Path(folder, "result.json")
                if keep and result.exists():
                    pathlib.Path(keep, f"{path}-{seed}-{index}.json").write_bytes(result.read_bytes())
    return found, codes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", choices=PATHS, required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--doorbell", default=os.environ.get("DOORBELL", "build/bin/doorbell"))
    parser.add_argument("--keep", help="a folder for the Results that do not add up")
    o = parser.parse_args()
    found, codes = random_runs(o.doorbell, o.path, o.count, o.seed, o.first, keep=o.keep)
    print(f"{o.path}, seed {o.seed}: {o.count} runs, {codes[0]} exit 0, {codes[2]} exit 2, {codes[1]} refused, {codes[77]} skipped, "
          f"{len(found)} with problems")
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
