# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The cells of all results as rows, grouped by path, with what varies among them told from what is equal."""

import dataclasses
import math
import pathlib
import statistics

from . import form, pairs, results
from .results import at, members, number, text


def median_interval(values):
    """(low, high, level): the interval of the median by order statistics, at 95 % where there are values enough for
    that. With fewer than five, the lowest and the highest, and level 0."""
    values, n = sorted(values), len(values)
    if n < 5:
        return values[0], values[-1], 0.0
    def outside(rank):
        return 2 * sum(math.comb(n, i) for i in range(rank)) / 2 ** n
    rank = max((k for k in range(1, n // 2 + 1) if outside(k) <= 0.05), default=1)
    return values[rank - 1], values[n - rank], 1 - outside(rank)


# Options that say where and how often, not what was measured.
NEVER_A_COLUMN = {"json", "csv", "quiet", "seed", "repeats", "threads"}


# These follow from others in most plans, or matter less.
FOLLOWING = ("in_flight", "rx_queues", "queue_length", "signal_every", "window_bytes", "windows", "batch")


@dataclasses.dataclass
class Row:
    """A cell of a Result, or the same cell of several rounds of a sweep."""
    number: int
    anchor: str
    path: str
    results: list  # one a round
    cells: list  # the Result's cell a round; None where the run left none
    sweep_cell: tuple | None = None  # (file, index in the plan)
    parameters: dict = dataclasses.field(default_factory=dict)

    @property
    def cell(self):
        """The round whose rate is the median, the upper one of two."""
        known = [cell for cell in self.cells if cell is not None]
        rated = sorted((c for c in known if number(c, "metrics", "ops_per_s") is not None),
                       key=lambda c: number(c, "metrics", "ops_per_s"))
        return rated[len(rated) // 2] if rated else known[0] if known else {}

    def figure(self, *keys):
        """The median over the rounds, or None."""
        values = [v for cell in self.cells if cell is not None for v in [number(cell, *keys)] if v is not None]
        return statistics.median(values) if values else None

    def own(self, dotted):
        """A figure by the path that a plan names: inside the metrics, else inside the cell."""
        keys = dotted.split(".")
        inside = self.figure("metrics", *keys)
        return self.figure(*keys) if inside is None else inside

    def of_path(self, key):
        """One of the figures that only this path reports."""
        return self.figure(self.path, key)

    def interval(self, metric):
        """(low, high, level) of the median: over the rounds, or over the repeats of the only one. Without enough of
        them for a level, lowest and highest, and level 0. None where there is but one value."""
        if len(self.cells) == 1:
            spread = members(self.cell, "spread", metric)
            low, high, level = (number(spread, key) for key in ("ci_low", "ci_high", "ci_level"))
            return (low, high, level) if level and low is not None and high is not None else None
        key = ("metrics", metric) if metric in ("ops_per_s", "bytes_per_s") else \
            ("metrics", "latency_ns", metric.removesuffix("_ns"))
        values = [v for cell in self.cells if cell for v in [number(cell, *key)] if v is not None]
        return median_interval(values) if len(values) > 1 else None

    def own_interval(self, dotted, scale):
        """The interval of `own` over the rounds, in the unit that `scale` leads to; None with a single round."""
        if dotted in ("ops_per_s", "bytes_per_s"):
            found = self.interval(dotted)
        else:
            values = [v for cell in self.cells if cell
                      for v in [Row(0, "", "", [], [cell]).own(dotted)] if v is not None]
            found = median_interval(values) if len(values) > 1 else None
        return found and (found[0] * scale, found[1] * scale, found[2])

    @property
    def verdict(self):
        """(kind, text) of the worst round."""
        order = ("failed", "interrupted", "skipped", "unverified", "ok")
        found = [self._verdict(result, cell) for result, cell in zip(self.results, self.cells)]
        return min(found, key=lambda pair: order.index(pair[0]))

    @staticmethod
    def _verdict(result, cell):
        if cell is None or len(result.cells) == 1:
            return results.verdict(result)
        alone = results.Result(result.name, {**result.data, "cells": [cell]})
        kind, line = results.verdict(alone)
        # The code of a Result with several cells is that of its worst one.
        if line.startswith("FAILED: exit code") and any(
                results.data_failures(c) or results.error_counts(c) for c in result.cells):
            return results.verdict(results.Result(result.name, {**alone.data, "exit_code": 0}))
        return kind, line

    @property
    def error(self):
        return next((r.run.error for r in self.results if r.run and r.run.error), "")

    @property
    def noisy(self):
        return any(at(s, "noisy") is True for metric, s in members(self.cell, "spread").items()
                   if metric in ("ops_per_s", "bytes_per_s"))

    @property
    def checked(self):
        """The part of the data that was checked: all, none, a sample."""
        if not self.cell:
            return form.MISSING
        mode = text(self.cell, "verify", "mode")
        if not results.is_verified(self.cell):
            return "nothing"
        return {"full": "all data", "strict": "all data, strictly"}.get(
            mode, f"a {mode.replace('=', ' of ')}" if mode.startswith("sample") else mode)


@dataclasses.dataclass
class Group:
    path: str
    kind: str  # what sets it apart from other groups of its path: a plan, and the part or mode that its cells are of
    rows: list
    varied: list  # keys of what differs between rows
    equal: dict  # what is the same in all of them

    @property
    def title(self):
        return form.path_title(self.path) + (f": {self.kind}" if self.kind else "")

    @property
    def sound(self):
        """The rows whose figures stand for something: no errors, and not ended early."""
        return [row for row in self.rows if row.cell and row.verdict[0] in ("ok", "unverified")]

    def label(self, row, without=(), limit=0):
        """The parameters that set the row apart from the others, as one line of text."""
        parts = []
        for key in self.varied:
            if key in without or key not in row.parameters:
                continue
            value = form.parameter(key, row.parameters[key])
            if value == form.MISSING:
                continue
            if key == "checked":
                parts.append(f"{value} checked")
                continue
            parts.append(value if key in ("title", "op", "provider", "device", "initiator", "part", "stream", "mode", "way")
                         or form.is_length(key) else f"{form.name(key)} {value}")
        label = form.printable(", ".join(parts)).replace("\n", " ")
        return label[:limit - 3] + "..." if limit and len(label) > limit else label


    def short_labels(self, rows, without=()):
        """A label a row, without what is not needed to tell these rows apart."""
        kept = [key for key in self.varied if key not in without and len({_key(row.parameters.get(key)) for row in rows}) > 1]

        def different(keys):
            return len({tuple(_key(row.parameters.get(key)) for key in keys) for row in rows})

        wanted = different(kept)
        for key in sorted(kept, key=lambda k: (k not in FOLLOWING, k != "device", -kept.index(k))):
            fewer = [k for k in kept if k != key]
            if different(fewer) == wanted:
                kept = fewer
        return [self.label(row, without=[key for key in self.varied if key not in kept]) for row in rows]


def initiator(cell):
    gpu = number(cell, "initiator", "gpu")
    kind = text(cell, "initiator", "kind").upper() or "?"
    return f"{kind} {gpu}" if gpu is not None else kind


def _parameters(row):
    cell = row.cell
    found = dict(members(cell, "cell"))
    if not cell:
        run = next((r.run for r in row.results if r.run), None)
        found = {key.replace("-", "_"): value for key, value in (run.options if run else {}).items()}
        pairs.fold(found)
        return found
    pairs.fold(found)
    kind = text(cell, "device", "kind")
    found["device"] = form.KINDS.get(kind, (kind or "unknown device",))[0]
    if text(cell, "device", "name") not in ("", kind):
        found["device"] += f" {text(cell, 'device', 'name')}"
    found["initiator"] = initiator(cell)
    found["checked"] = row.checked
    if text(cell, "beside", "label"):
        found["way"] = text(cell, "beside", "label")
    return found


def _key(value):
    return form.value_text(value)


def _partition(rows, key, source):
    """Which rows have the same value of a key, as a tuple that another key can be compared with."""
    seen = {}
    return tuple(seen.setdefault(_key(source(row).get(key)), len(seen)) for row in rows)


def _varied_options(rows, known):
    """Options whose values differ, but for those that a parameter already tells."""
    whole = [row for row in rows if row.cell]
    if len(whole) < 2:
        return []
    def options(row):
        return members(row.cell, "options")
    told = {_partition(whole, key, lambda row: row.parameters) for key in known}
    found = []
    for key in dict.fromkeys(key for row in whole for key in options(row)):
        shape = _partition(whole, key, options)
        if key in NEVER_A_COLUMN or max(shape) == 0 or shape in told:
            continue
        # An option that only some commands have is told by what makes those differ.
        if any(key not in options(row) for row in whole) or key in known:
            continue
        told.add(shape)
        found.append(key)
    return found


def _kind(row):
    """Rates and single latencies are different questions, and so are streams and their kernels alone."""
    cell = members(row.cell, "cell")
    found = next((cell[key] for key in ("part", "mode") if isinstance(cell.get(key), str)), "")
    return form.printable(found.replace("_", " "))


def _plan(row, plans):
    """The title of the plan that a sweep ran, else its folder; what no sweep ran has none."""
    if row.sweep_cell is None:
        return ""
    source = row.sweep_cell[0]
    plan = plans.get(source, {})
    return text(plan, "title") or text(plan, "name") or pathlib.PurePath(source).parent.name


def _group(path, kind, rows):
    for row in rows:
        row.parameters = _parameters(row)
    keys = list(dict.fromkeys(key for row in rows if row.cell for key in row.parameters)) or \
        list(dict.fromkeys(key for row in rows for key in row.parameters))
    measured = [row for row in rows if row.cell] or rows
    varied = [key for key in keys if max(_partition(measured, key, lambda row: row.parameters)) > 0]
    for key in _varied_options(rows, keys):
        varied.append(key)
        for row in rows:
            row.parameters.setdefault(key, members(row.cell, "options").get(key))
    equal = {key: measured[0].parameters[key] for key in keys if key not in varied}
    return Group(path, kind, rows, varied, equal)


def group(loaded, plans=None):
    """Every group, in the order in which its path comes first; rows are numbered through."""
    rows, by_cell = [], {}
    paths = {}  # of a file: of a run without a Result, the path is that of its neighbours
    for index, result in enumerate(loaded):
        for place, cell in enumerate(result.cells or ([None] if result.run or not result.cells else [])):
            path = text(cell, "path") if cell is not None else ""
            if path:
                paths.setdefault(result.source, path)
            key = (result.source, result.run.cell, place) if result.run else (index, place)
            if key in by_cell:
                by_cell[key].results.append(result)
                by_cell[key].cells.append(cell)
                continue
            row = Row(0, f"r{index}c{place}", path, [result], [cell],
                      (result.source, result.run.cell) if result.run else None)
            by_cell[key] = row
            rows.append(row)
    for row in rows:
        if not row.path:
            row.path = next((text(c, "path") for c in row.cells if c and text(c, "path")),
                            paths.get(row.results[0].source, ""))
    rows.sort(key=lambda row: (row.sweep_cell is not None, row.sweep_cell or ("", 0)))  # a sweep: in the plan's order
    kinds = {}  # of a plan, for its cells that left no result
    for row in rows:
        if row.cell:
            kinds.setdefault((row.path, row.sweep_cell and row.sweep_cell[0]), _kind(row))
    by_path = {}
    for row in rows:
        by_path.setdefault(row.path, {}).setdefault((_plan(row, plans or {}), _kind(row) if row.cell else
                                                kinds.get((row.path, row.sweep_cell and row.sweep_cell[0]), "")), []).append(row)
    groups, numbered, found = [], 0, []
    for path, kinds in by_path.items():
        for (plan, kind), members_of in kinds.items():
            # One plan needs no name, nor does one kind of cells.
            said = [plan] if len({p for p, _ in kinds}) > 1 else []
            said += [kind] if len({k for p, k in kinds if p == plan}) > 1 else []
            found.append((path, ", ".join(filter(None, said)), members_of))
    for path, kind, members_of in found:
        for row in members_of:
            numbered += 1
            row.number = numbered
        groups.append(_group(path, kind, members_of))
    return groups
