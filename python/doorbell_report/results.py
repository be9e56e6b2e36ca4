# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Reads result files (schema doorbell.results/1) and answers questions about them."""

import dataclasses
import json
import math
import os
import pathlib
import re
import stat
import sys

SCHEMA = "doorbell.results/1"
SWEEP_SCHEMA = "doorbell.sweep/1"  # a line of a sweep's results.jsonl, with a result inside
PLAN_SCHEMA = "doorbell.plan/1"  # a sweep's plan.json
COMPARE_SCHEMA = "doorbell.compare/1"  # what `doorbell compare --json` writes

MAX_BYTES = 1 << 30  # of one file


class Unreadable(Exception):
    """A file that is no result; the message names it."""


@dataclasses.dataclass
class Run:
    """A sweep's record of one of its runs."""
    cell: int
    round: int
    options: dict
    exit_code: int
    ended: str
    error: str
    wall_s: float


@dataclasses.dataclass
class Result:
    """One Result. That of a sweep's run that left none is empty, and `run` says what became of it."""
    name: str
    data: dict
    source: str = ""  # the file
    run: Run | None = None

    @property
    def cells(self):
        return [cell for cell in items(self.data, "cells") if isinstance(cell, dict)]


def at(value, *keys):
    """value[key][key]..., or None where a key is missing."""
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def items(value, *keys):
    found = at(value, *keys)
    return found if isinstance(found, list) else []


def members(value, *keys):
    found = at(value, *keys) if keys else value
    return found if isinstance(found, dict) else {}


def number(value, *keys):
    """A finite number, or None. A boolean is not a number here. An integer beyond 2^53 - 1 is written as its digits."""
    found = at(value, *keys) if keys else value
    if isinstance(found, str) and re.fullmatch("[1-9][0-9]{15,19}", found):
        return int(found)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
        return None
    return found


def text(value, *keys):
    found = at(value, *keys)
    return found if isinstance(found, str) else ""


def _json(name, content):
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name}: not JSON: {error}") from error


def _run_of(line):
    return Run(int(number(line, "cell") or 0), int(number(line, "round") or 0), members(line, "options"),
               int(number(line, "exit_code") or 0), text(line, "ended"), text(line, "error"),
               number(line, "wall_s") or 0.0)


def _parse(name, source, content):
    data = _json(name, content)
    schema = at(data, "schema")
    run = None
    if schema == SWEEP_SCHEMA:
        run = _run_of(data)
        data = at(data, "result")
        if data is None:
            return Result(name, {"complete": False, "exit_code": run.exit_code, "stop_reason": run.ended}, source, run)
        schema = at(data, "schema")
    if schema != SCHEMA:
        raise Unreadable(f"{name}: its schema is {schema!r}, this program reads {SCHEMA!r}")
    return Result(name, data, source, run)


def _open(path):
    """A regular file, opened for bytes: a FIFO would wait for its other end, /dev/zero has none."""
    # O_NONBLOCK is for the FIFO; regular files do not know it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is not a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _content(path):
    try:
        with _open(path) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise OSError(f"it is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: {error}") from error


def _read(path):
    content = _content(path)
    if path.suffix != ".jsonl":
        return [_parse(str(path), str(path), content)]
    results = []
    # str.splitlines would also split at characters that JSON allows inside of strings.
    lines = content.split("\n")
    for i, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            results.append(_parse(f"{path}:{i}", str(path), line))
        except Unreadable:
            if i < len(lines) or not results:
                raise
            # A machine that went down leaves a torn end; the sweep runs that cell again.
            print(f"doorbell_report: {path}: the last line is torn, it is left out", file=sys.stderr)
    return results


def _is_result(path):
    """Whether a file found in a directory says that it is a result; others there are none of our business."""
    try:
        with _open(path) as file:
            start = file.read(4096)
            return SCHEMA.encode() in start or SWEEP_SCHEMA.encode() in start
    except OSError:
        return False


def _same(one, other):
    """Whether two names lead to one file, through links and whatever their spelling."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False  # one is not there: it is not read or not overwritten


def files_of(names, output=None):
    """The result files among the named files and directories, in that order. `output` must be none of them."""
    found = []
    for name in names:
        path = pathlib.Path(name)
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.suffix in (".json", ".jsonl") and p.is_file())
            files = [p for p in files if _is_result(p)]
            if not files:
                raise Unreadable(f"{name}: no result file in this directory")
        else:
            files = [path]
        for file in files:
            if output not in (None, "-") and _same(file, output):
                raise Unreadable(f"{output}: it is {file}, which the report is made from; give another name")
        found.extend(files)
    return found


def load(names, output=None):
    """Every result in the named files and directories, in that order. `output` must be none of the files."""
    return [result for file in files_of(names, output) for result in _read(file)]


def comparison(name):
    """The comparison in the file, or None if the file is something else."""
    path = pathlib.Path(name)
    if path.is_dir() or path.suffix == ".jsonl":
        return None
    data = _json(name, _content(path))
    return data if at(data, "schema") == COMPARE_SCHEMA else None


def plans(loaded):
    """{file of results: the plan} of the sweeps among the results, whose folders have a plan.json."""
    found = {}
    for source in dict.fromkeys(result.source for result in loaded if result.run):
        path = pathlib.Path(source).with_name("plan.json")
        if path.is_file():
            data = _json(str(path), _content(path))
            if at(data, "schema") == PLAN_SCHEMA:
                found[source] = data
    return found


# ---- what a result amounts to (the C++ side's verdict.cpp says the same)

DATA_CLASSES = ("corrupt", "misplaced", "stale", "duplicated", "missing")


def data_failures(cell):
    """{class: count} of the verification failures, only those that occurred."""
    return {name: number(cell, "verify", name) for name in DATA_CLASSES if number(cell, "verify", name)}


def error_counts(cell):
    return {name: count for name, count in members(cell, "errors").items() if number(count)}


def is_verified(cell):
    return text(cell, "verify", "mode") != "none" and bool(number(cell, "verify", "checked"))


def verdict(result):
    """(kind, text); kind is ok, failed, interrupted, skipped or unverified."""
    failures = {}
    for cell in result.cells:
        for found in (data_failures(cell), error_counts(cell)):
            for name, count in found.items():
                failures[name] = failures.get(name, 0) + count
    complete = at(result.data, "complete") is True
    code = number(result.data, "exit_code")
    if result.run and not result.cells and result.run.ended not in ("", "exit", "interrupted"):
        return "failed", f"FAILED: ended by {result.run.ended}"
    if failures:
        listed = ", ".join(f"{count} {name}" for name, count in failures.items())
        return "failed", f"FAILED: {listed}" + ("" if complete else " (partial)")
    if code == 77:
        return "skipped", "SKIPPED: the hardware asked for is absent"
    if code not in (0, 130):
        return "failed", f"FAILED: exit code {code}"
    if not complete:
        return "interrupted", f"INTERRUPTED (partial, stopped by {text(result.data, 'stop_reason') or 'unknown'})"
    if not all(is_verified(cell) for cell in result.cells):
        return "unverified", "OK, but not all data was verified"
    return "ok", "OK"


def faults(result):
    """The fault checks of a demo: objects with path, fault, injected, found and found_as."""
    return [fault for fault in items(result.data, "faults") if text(fault, "path") and text(fault, "fault")]


def missed(fault):
    """Whether a check found another count than was injected."""
    return number(fault, "injected") is None or number(fault, "injected") != number(fault, "found")


def populations(cell):
    """[(name, metrics)]: the path's own parts, then "all"."""
    parts = [(name, part) for name, part in members(cell, text(cell, "path")).items()
             if isinstance(at(part, "latency_ns"), dict) and number(part, "ops") is not None]
    return parts + [("all", members(cell, "metrics"))]
