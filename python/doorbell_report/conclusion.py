# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The first sentence of a page: what the results amount to. It is made of the data alone, and wrong data comes first."""

import dataclasses

from . import charts, form, groups, results
from .results import number, text

SURE = 0.9  # an interval's level
SAME = 1.005  # a ratio that nobody calls a difference
SAID = 4  # cells that a sentence names one by one
NAMES = 3  # parameters that tell where a difference is
SIZES = {key for _, _, keys in charts.SUBJECTS[:1] for key in keys}
# Parameters whose values say by themselves what they are.
NAMELESS = {"title", "provider", "device", "initiator", "stream", "way", "engine"}
# How much was done: cells that differ in it can be compared.
COUNTS = {"write_io", "read_io", "iterations", "seed"}
# Parameters that are no question of speed, or has no answer in one parameter.
NO_AXIS = {"checked", "title", "part", *COUNTS}


@dataclasses.dataclass
class Difference:
    """The fastest and the slowest of the cells that differ in one parameter alone, or in any."""
    group: groups.Group
    measure: object
    key: str  # empty: they differ in more than one parameter
    fast: groups.Row
    slow: groups.Row
    rest: list  # keys of what else varies in the group, which is equal in the two

    @property
    def ratio(self):
        return max(self.measure.of(self.fast), self.measure.of(self.slow)) / \
            min(self.measure.of(self.fast), self.measure.of(self.slow))

    @property
    def _intervals(self):
        found = [self.measure.interval_of(row) for row in (self.fast, self.slow)]
        return None if None in found else found

    @property
    def overlaps(self):
        """Whether the runs do not tell the two apart."""
        if self.ratio < SAME:
            return True
        if self._intervals is None:
            return False
        one, other = self._intervals
        return one[0] <= other[1] and other[0] <= one[1]

    @property
    def doubt(self):
        """Why a difference may be chance although no interval says so; "" if they do."""
        if self._intervals is None:
            return "each measured once"
        return "" if min(interval[2] for interval in self._intervals) >= SURE else "of too few repeats to be sure"

    @property
    def worth(self):
        """For max(): differences that are shown, between kinds of work rather than sizes, and large."""
        return (not self.overlaps, bool(self.key), self.key not in SIZES, self.ratio)


def measure_of(group):
    """The figure that the group is about, and whether a lower one is better."""
    rows = group.sound
    timed = all(text(row.cell, "cell", "part").startswith(("latency", "ping")) for row in rows)
    if timed and all(charts.P50.of(row) for row in rows):
        return charts.P50, True
    return (charts.BYTES if all(charts.BYTES.of(row) for row in rows) else charts.RATE), False


def _follows(key, other, rows):
    """Whether a parameter of those that a run chooses itself is told by another one."""
    of_other = {}
    return key in groups.FOLLOWING and all(
        of_other.setdefault(form.value_text(row.parameters.get(other)), row.parameters.get(key)) == row.parameters.get(key)
        for row in rows)


def _differences(group):
    rows = group.sound
    if len(rows) < 2:
        return []
    measure, low = measure_of(group)
    rows = [row for row in rows if measure.of(row)]
    found = []

    def add(key, among, rest):
        ordered = sorted(among, key=measure.of, reverse=not low)
        found.append(Difference(group, measure, key, ordered[0], ordered[-1], rest))
    for key in (key for key in group.varied if key not in NO_AXIS):
        # Others that follow from the parameter, as the operations in flight from the queues, may differ with it.
        rest = [k for k in group.varied if k != key and k not in COUNTS and not _follows(k, key, rows)]
        alike = {}
        for row in rows:
            alike.setdefault(tuple(form.value_text(row.parameters.get(k)) for k in rest), []).append(row)
        for among in alike.values():
            if len({form.value_text(row.parameters.get(key)) for row in among}) > 1:
                add(key, among, rest)
    if not found and len(rows) > 1 and not group.titled:
        add("", rows, [])
    return found


def _times(ratio):
    return f"{ratio:.2f}" if ratio < 1.2 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _value(key, row):
    shown = form.parameter(key, row.parameters.get(key))
    if key == "op":
        return shown.upper()
    return shown if key in NAMELESS or form.is_length(key) else f"{form.name(key)} {shown}"


def _said(difference, several_paths):
    d = difference
    latency = d.measure is charts.P50
    first, second = (d.slow, d.fast) if latency else (d.fast, d.slow)
    figures = f"{d.measure.said(first)} against {d.measure.said(second)}"
    where = [_value(key, d.fast) for key in d.rest if key != "checked" and form.parameter(key, d.fast.parameters.get(key)) != form.MISSING]
    at = f" at {', '.join(where[:NAMES])}" if where else ""
    if len(where) > NAMES:
        at += f" ({form.cells_named([first.number])} against {form.cells_named([second.number])})"
    path = f"{form.path_title(d.group.path)}: " if several_paths else ""
    if d.key:
        one, other = _value(d.key, first), _value(d.key, second)
    else:
        one, other = (form.cells_named([row.number]) for row in (first, second))
    if d.overlaps:
        why = "" if d.ratio < SAME else ": their intervals overlap"
        return f"{path}no difference is shown between {one} and {other}{at}{why} ({figures})"
    figures += f", {d.doubt}" if d.doubt else ""
    if d.key == "op" and not latency:
        return f"{path}{one}{at} is {_times(d.ratio)} times {other} ({figures})"
    return f"{path}{d.measure.title.lower()} of {one}{at} is {_times(d.ratio)} times that of {other} ({figures})"


def _what(row, group):
    """What a cell did: path, operation and size."""
    size = next((form.parameter(key, value) for key, value in row.parameters.items() if form.is_length(key)), "")
    return " ".join(filter(None, (form.path_title(group.path), text(row.cell, "cell", "op").upper(), f"at {size}" if size else "")))


def _of_parts(alone):
    """The figure of each part of one work, as its latency and its rate, from [(row, group)]; "" if they are more than that."""
    if len({_what(*one) for one in alone}) != 1 or not all(group.kind for _, group in alone):
        return ""
    figures = []
    for row, group in alone:
        measure, low = measure_of(group)
        figures.append(f"{'median latency ' if low else ''}{measure.said(row)} ({group.kind})"
                       if measure.of(row) else "")
    return f"{_what(*alone[0])}: {', '.join(figures)}" if all(figures) else ""


def _of_one(row, group):
    """The figure of the only cell."""
    rate, p50 = charts.RATE.of(row), charts.P50.of(row)
    figures = [measure.said(row) for measure in (charts.RATE, charts.BYTES) if measure.of(row)]
    interval = row.interval("ops_per_s")
    if rate and interval and interval[2]:
        low, high = (charts.RATE.said(row, end) for end in interval[:2])
        figures[0] += f" ({100 * interval[2]:.0f} % interval {low} to {high})"
    figures += [f"median latency {form.duration(p50)}"] if p50 else []
    what = _what(row, group)
    return f"{what}: {', '.join(figures)}" if figures else f"{what}: no figure was measured"


def _counted(rows, counts):
    """"cell 2 (5 corrupt), cell 4 (1 stale)"."""
    said = [f"cell {row.number} ({', '.join(f'{form.count(n)} {name}' for name, n in counts(row).items())})"
            for row in rows[:SAID]]
    return ", ".join(said) + (f" and {len(rows) - SAID} more" if len(rows) > SAID else "")


def _sum(row, of):
    counts = {}
    for cell in filter(None, row.cells):
        for name, n in of(cell).items():
            counts[name] = counts.get(name, 0) + (number(n) or 0)
    return counts


def _number(n, one, many):
    return f"{n} {one if n == 1 else many}"


def troubles(rows):
    """What went wrong, the worst first, as clauses. An operation that is late has failed, and its data is not wrong."""
    wrong = [row for row in rows if _sum(row, results.data_failures)]
    failed = [row for row in rows if row.verdict[0] == "failed" and row not in wrong]
    said = []
    if wrong:
        said.append(f"{_number(len(wrong), 'cell has', 'cells have')} data errors: "
                    f"{_counted(wrong, lambda row: _sum(row, results.data_failures))}")
    counted = [row for row in failed if _sum(row, results.error_counts)]
    if counted:
        said.append(f"{_number(len(counted), 'cell has', 'cells have')} errors: "
                    f"{_counted(counted, lambda row: _sum(row, results.error_counts))}")
    broken = [row for row in failed if row not in counted]
    if broken:
        said.append(f"{_number(len(broken), 'cell', 'cells')} failed: " +
                    form.listed([f"cell {row.number}" for row in broken[:SAID]] +
                                ([f"{len(broken) - SAID} more"] if len(broken) > SAID else [])))
    for kind, word in (("interrupted", "cut short"), ("skipped", "skipped")):
        cells = [row.number for row in rows if row.verdict[0] == kind]
        if cells:
            said.append(f"{_number(len(cells), 'cell was', 'cells were')} {word}")
    return said


def fault_clauses(loaded):
    """(what the demo's fault checks missed, or "", what they found, or "")."""
    found = [fault for result in loaded for fault in results.faults(result)]
    missed = list(filter(results.missed, found))
    if missed:
        listed = [f"{text(f, 'fault')} in {form.path_title(text(f, 'path'))} ({form.count(number(f, 'found'))} of "
                  f"{form.count(number(f, 'injected'))} found)" for f in missed[:SAID]]
        return f"{_number(len(missed), 'fault check', 'fault checks')} did not match: {', '.join(listed)}" + \
            (f" and {len(missed) - SAID} more" if len(missed) > SAID else ""), ""
    injected = sum(number(f, "injected") or 0 for f in found)
    return "", f"{form.count(injected)} faults were injected and every one was found" if injected else ""


def checked(rows):
    """What of the data was checked, as it is."""
    known = [row for row in rows if row.cell]
    if not known:
        return ""
    def verified(row):
        return [results.is_verified(cell) for cell in row.cells if cell]
    none = [row for row in known if not any(verified(row))]
    whole = [row for row in known if row.checked.startswith("all data") and all(verified(row))]
    part = [row for row in known if row not in none and row not in whole]
    if len(whole) == len(known):
        left = sum(number(cell, "verify", "unverifiable") or 0 for row in known for cell in filter(None, row.cells))
        every = "every byte checked" if all(row.verdict[0] == "ok" for row in known) else "all data that came back was checked"
        return every + (f" but {form.count(left)} of data not known to be written" if left else "")
    if len(none) == len(known):
        return "no data was checked"
    if not part:
        return f"the data of {len(none)} of {len(known)} cells was not checked"
    shares = {row.checked for row in part if all(verified(row))}
    if len(part) == len(known) and len(shares) == 1 and all(all(verified(row)) for row in part):
        return f"{shares.pop()} of the data checked"
    return f"of {len(part) + len(none)} of {_number(len(known), 'cell', 'cells')} " + \
        ("no data or " if none else "") + "only a part of the data was checked"


def devices(rows):
    words = {"model": "on a software model", "emulated": "on an emulated device", "hardware": "on hardware",
             "kernel": "through the kernel"}
    kinds = [text(cell, "device", "kind") for row in rows for cell in filter(None, row.cells)]
    names = {text(cell, "device", "name") for row in rows for cell in filter(None, row.cells)}
    said = [word for kind, word in words.items() if kind in kinds]
    if said == ["on hardware"] and len(names) == 1:
        return f"on {names.pop()}"
    return form.listed(said)


def hosts(loaded):
    """The machines that measured: their names, or the processor where the result does not say."""
    return list(dict.fromkeys(name for result in loaded for name in
                              [text(result.data, "environment", "host") or text(result.data, "environment", "cpu")] if name))


def when(loaded):
    """"2026-11-27 04:02 UTC"; of several results the first and the last."""
    dates = sorted(date for result in loaded for date in [text(result.data, "environment", "date_utc")] if date)
    if not dates:
        return ""
    first, last = (f"{date[:10]} {date[11:16]}" for date in (dates[0], dates[-1]))
    if first == last:
        return f"{first} UTC"
    return f"{first} to {last[11:] if last[:10] == first[:10] else last} UTC"


def _figures(found, several_paths):
    rows = [row for group in found for row in group.rows]
    sound = [(row, group) for group in found for row in group.sound]
    if len(rows) == 1:
        return _of_one(*sound[0]) if sound else ""
    differences = [d for group in found for d in _differences(group)]
    if differences:
        return _said(max(differences, key=lambda d: d.worth), several_paths)
    if not sound:
        return "no cell has figures that count" if rows else "no cell was measured"
    parts = _of_parts(sound) if len(sound) == len(found) else ""
    if parts:
        return parts
    paths = form.listed(dict.fromkeys(form.path_title(row.path) for row, _ in sound))
    return f"{_number(len(sound), 'cell', 'cells')} of {paths} ran to the end"


def sentence(loaded, found):
    """`found`: the groups of the results."""
    rows = sorted((row for group in found for row in group.rows), key=lambda row: row.order)
    missed, faults = fault_clauses(loaded)
    parts = [missed] if missed else []
    parts += troubles(rows)
    several_paths = len({group.path for group in found}) > 1
    parts += [part for part in (_figures(found, several_paths), faults, checked(rows)) if part]
    place = ", ".join(filter(None, (devices(rows), "on " + form.listed(hosts(loaded)) if hosts(loaded) else "",
                                    "at " + when(loaded) if when(loaded) else "")))
    parts += [place] if place else []
    whole = "; ".join(parts)
    return whole[:1].upper() + whole[1:] + "." if whole else "No cell was measured."
