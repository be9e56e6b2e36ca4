# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The cells of all results as rows, grouped by path, with what varies among them told from what is equal."""

import dataclasses
import math
import re
import pathlib
import statistics

from . import form, pairs, results, units
from .results import at, items, members, number, text


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
NEVER_A_COLUMN = {"json", "csv", "html", "export", "details", "quiet", "seed", "repeats", "threads"}


# These follow from others in most plans, or matter less.
FOLLOWING = ("in_flight", "rx_queues", "queue_length", "signal_every", "window_bytes", "windows", "batch")


@dataclasses.dataclass(eq=False)  # a row is itself; comparing two would compare all their results
class Row:
    """A cell of a Result, or the same cell of several rounds of a sweep."""
    number: str  # from 1, the same in the page, in a sweep's table and in warnings
    anchor: str
    path: str
    results: list  # one a round
    cells: list  # the Result's cell a round; None where the run left none
    sweep_cell: tuple | None = None  # (file, index in the plan)
    order: int = 0  # in the page, where a number has a dot
    planned: dict = dataclasses.field(default_factory=dict)  # the plan's options that no parameter tells
    parameters: dict = dataclasses.field(default_factory=dict)
    units: object = None  # the units.Units of its group

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
                      for v in [Row("", "", "", [], [cell]).own(dotted)] if v is not None]
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
        if line.startswith("FAILED: exit code") and (any(map(results.missed, results.faults(result))) or any(
                results.data_failures(c) or results.error_counts(c) for c in result.cells)):
            return results.verdict(results.Result(result.name, {**alone.data, "exit_code": 0}))
        return kind, line

    @property
    def error(self):
        return next((r.run.error for r in self.results if r.run and r.run.error), "")

    @property
    def noisy(self):
        """As the table of the command line has it."""
        return at(self.cell, "spread", "ops_per_s", "noisy") is True and len(items(self.cell, "repeats")) > 1

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
    def planned(self):
        """Keys of what only the plan tells of rows that left no result."""
        return list(dict.fromkeys(key for row in self.rows for key in row.planned))

    @property
    def units(self):
        return self.rows[0].units

    @property
    def title(self):
        return form.heading(form.path_title(self.path), self.kind)

    @property
    def sound(self):
        """The rows whose figures stand for something: no errors, and not ended early."""
        return [row for row in self.rows if row.cell and row.verdict[0] in ("ok", "unverified")]

    @property
    def titled(self):
        """Whether each row has a title of its own, which says what it measures."""
        titles = [row.parameters.get("title") for row in self.rows]
        return "title" in self.varied and None not in titles and len(set(map(_key, titles))) == len(titles)

    def label(self, row, without=()):
        """The parameters that set the row apart from the others, as one line of text."""
        parts, known = [], row.parameters if row.cell else {**row.planned, **row.parameters}
        keys = ["title"] if self.titled and "title" not in without else self.varied
        for key in keys if row.cell else dict.fromkeys([*keys, *row.planned]):
            if key in without or key not in known:
                continue
            value = form.parameter(key, known[key])
            if value == form.MISSING:
                continue
            if key == "checked":
                parts.append(f"{value} checked")
                continue
            parts.append(value if key in ("title", "op", "provider", "device", "initiator", "part", "stream", "mode", "way")
                         or form.is_length(key) else f"{form.name(key)} {value}")
        return form.printable(", ".join(parts)).replace("\n", " ")

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


def _planned(row):
    """The options that a sweep's plan gives the row, by names like those of parameters."""
    run = next((r.run for r in row.results if r.run), None)
    found = {key.replace("-", "_"): value for key, value in (run.options if run else {}).items()}
    pairs.fold(found)
    return found


def _number_of(value):
    """A plan's value as the number that it is, else as it is."""
    return int(value) if isinstance(value, str) and re.fullmatch("0|[1-9][0-9]{0,14}", value) else value


def _teller(key, measured, plans):
    """(option, {its value: the parameter's}, whether the two are the same) of the plan's option that tells a parameter;
    (None, {}, False) where none does for sure."""
    def related(option):
        return set(key.split("_")) & set(option.split("_"))
    found = []
    for option in dict.fromkeys(option for row in measured for option in plans[row]):
        values = {}
        known = [(_key(plans[row].get(option)), row.parameters.get(key)) for row in measured]
        if any(values.setdefault(planned, value) != value for planned, value in known):
            continue
        same = all(_key(_number_of(plans[row].get(option))) == _key(row.parameters.get(key)) for row in measured)
        # Of a single value nothing but the names shows that the two belong together.
        if len(values) > 1 or option == key:
            found.append((option, values, same))
    named = [one for one in found if related(one[0])]
    if named or len(found) == 1:
        return max(named or found, key=lambda one: (one[0] == key, one[2]))
    return None, {}, False


def _complete(rows):
    """Gives rows that left no result the parameters of the others, as far as the plan's options tell them. What an
    option says that tells no parameter, and is another in some row, is kept as it is planned."""
    plans = {row: _planned(row) for row in rows}
    hollow = [row for row in rows if not row.cell and plans[row]]
    measured = [row for row in rows if row.cell and plans[row]]
    if not hollow or not measured:
        return
    for row in hollow:
        row.parameters = {end: row.parameters[end] for end in pairs.ENDS if end in row.parameters}
    told = {*pairs.ENDS, *NEVER_A_COLUMN}
    for key in dict.fromkeys(key for row in measured for key in row.parameters if key not in told):
        option, values, same = _teller(key, measured, plans)
        planned = {row: plans[row].get(option) for row in hollow}
        if option is None:
            continue
        if key == "initiator" and option == key:
            values = {value: value.upper() for value in planned.values() if isinstance(value, str)}
        if not same and any(_key(value) not in values for value in planned.values()):
            continue
        for row, value in planned.items():
            row.parameters[key] = values.get(_key(value), _number_of(value))
        told.add(option)
    for option in dict.fromkeys(option for row in rows for option in plans[row]):
        if option not in told and len({_key(plan.get(option)) for plan in plans.values()}) > 1:
            for row in hollow + measured:
                row.planned[option] = _number_of(plans[row].get(option))


def _parameters(row):
    cell = row.cell
    found = dict(members(cell, "cell"))
    if not cell:
        return _planned(row)
    pairs.fold(found)
    kind = text(cell, "device", "kind")
    found["device"] = form.KINDS.get(kind, (kind or "unknown device",))[0]
    name = text(cell, "device", "name").removeprefix(kind + ":")
    if name not in ("", kind):
        found["device"] += f" {name}"
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
    _complete(rows)
    keys = list(dict.fromkeys(key for row in rows if row.cell for key in row.parameters)) or \
        list(dict.fromkeys(key for row in rows for key in row.parameters))
    measured = [row for row in rows if row.cell] or rows
    # A row without a result may be the only one with its value; it lacks what only results tell.
    varied = [key for key in keys
              if max(_partition([row for row in rows if row in measured or key in row.parameters], key,
                                lambda row: row.parameters)) > 0]
    for key in _varied_options(rows, keys):
        varied.append(key)
        for row in rows:
            if row.cell:
                row.parameters.setdefault(key, members(row.cell, "options").get(key))
    equal = {key: measured[0].parameters[key] for key in keys if key not in varied}
    return Group(path, kind, rows, varied, equal)


def path_of(result, plans=None):
    """The path that a Result without cells was to measure: that of its sweep's plan, else the command's; "" if unknown."""
    planned = text((plans or {}).get(result.source), "command")
    words = planned.split() or [word for word in items(result.data, "argv")[1:2] if isinstance(word, str)]
    return words[0] if words and words[0] in form.PATHS else ""


def _give_numbers(rows):
    """From 1. Of a single sweep it is the place in its plan, as in the sweep's own table, and if a run has measured
    several cells, their place behind a dot."""
    sweeps = {row.sweep_cell and row.sweep_cell[0] for row in rows}
    alone = len(sweeps) == 1 and None not in sweeps
    of_cell = {}
    for row in rows:
        of_cell.setdefault(row.sweep_cell, []).append(row)
    for order, row in enumerate(rows, 1):
        row.order, row.number = order, str(order)
        if alone:
            same = of_cell[row.sweep_cell]
            row.number = str(row.sweep_cell[1] + 1) + (f".{same.index(row) + 1}" if len(same) > 1 else "")


def group(loaded, plans=None, bits=None):
    """Every group, in the order in which its path comes first. A cell has one number in all of them. `bits`: payload a second
    is in bits; None: if it was in all that is loaded."""
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
            row = Row("", f"r{index}c{place}", path, [result], [cell],
                      (result.source, result.run.cell) if result.run else None)
            by_cell[key] = row
            rows.append(row)
    for row in rows:
        if not row.path:
            row.path = next((text(c, "path") for c in row.cells if c and text(c, "path")), "") or \
                (paths.get(row.results[0].source, "") if row.sweep_cell else "") or path_of(row.results[0], plans)
    rows.sort(key=lambda row: (row.sweep_cell is not None, row.sweep_cell or ("", 0)))  # a sweep: in the plan's order
    _give_numbers(rows)
    kinds = {}  # of a plan, for its cells that left no result
    for row in rows:
        if row.cell:
            kinds.setdefault((row.path, row.sweep_cell and row.sweep_cell[0]), _kind(row))
    by_path = {}
    for row in rows:
        kind = _kind(row) if row.cell else kinds.get((row.path, row.sweep_cell and row.sweep_cell[0]), "")
        by_path.setdefault(row.path, {}).setdefault((_plan(row, plans or {}), kind), []).append(row)
    groups = []
    for path, kinds in by_path.items():
        for (plan, kind), members_of in kinds.items():
            # One plan needs no name, nor does one kind of cells.
            said = [plan] if len({p for p, _ in kinds}) > 1 else []
            said += [kind] if len({k for p, k in kinds if p == plan}) > 1 else []
            groups.append(_group(path, ", ".join(filter(None, said)), members_of))
    if bits is None:
        bits = units.in_bits([cell for result in loaded for cell in result.cells])
    for made in groups:
        of_group = units.of_cells([cell for row in made.rows for cell in row.cells if cell], bits)
        for row in made.rows:
            row.units = of_group
    return groups
