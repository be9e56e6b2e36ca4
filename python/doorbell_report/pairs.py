# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The all-pairs matrix of a sweep between ranks, as a heat map: which pair is slower than the others, and in which
direction."""

import statistics

from . import drawing, form, units
from .results import text

if drawing.matplotlib is not None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

ENDS = ("from", "to")
MOST_MAPS = 4
MOST_NUMBERS = 20  # ranks a side; of more, figures in the fields could not be read
NAME = 16  # characters of a name beside the map
SAID = 12  # pairs that the text alternative says one by one


def fold(parameters):
    """Puts rank and host of each end into one parameter: "node7:2"."""
    for end in ENDS:
        host, rank = parameters.pop(f"{end}_host", None), parameters.pop(f"{end}_rank", None)
        if rank is not None:
            parameters[end] = f"{form.value_text(host)}:{rank}"


def is_matrix(group):
    """Whether the cells of a group are pairs of ranks."""
    return all(all(isinstance(row.parameters.get(end), str) for end in ENDS) for row in group.rows) and \
        any(end in group.varied for end in ENDS)


def _ranks(rows):
    found = {row.parameters[end] for row in rows for end in ENDS}
    return sorted(found, key=lambda name: (int(name.rpartition(":")[2]), name))


def _names(ranks):
    """Hosts, without the rank where each host has one."""
    hosts = [rank.rpartition(":")[0] for rank in ranks]
    return hosts if len(set(hosts)) == len(hosts) else ranks


def _contrast(colour):
    """Black or white, whichever is easier to read on it (relative luminance as WCAG has it)."""
    def linear(c):
        return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
    luminance = sum(weight * linear(c) for weight, c in zip((0.2126, 0.7152, 0.0722), colour))
    return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"


def _words(title, unit, known, failed):
    parts = [f"{title} in {unit}."]
    def said(pair):
        (source, target), value = pair
        return f"{source} to {target} {value}"
    if known:
        ordered = sorted(known, key=lambda item: item[2])
        shown = [((a, b), label) for a, b, _, label in ordered]
        middle = statistics.median(value for _, _, value, _ in known)
        parts.append(f"Lowest: {said(shown[0])}; highest: {said(shown[-1])}; median {form.digits(middle)}.")
        if len(known) <= SAID:
            parts.append("Every pair: " + "; ".join(said(((a, b), label)) for a, b, _, label in known) + ".")
    if failed:
        parts.append("No figure: " + "; ".join(f"{a} to {b}" for a, b in failed[:SAID]) +
                     (f" and {len(failed) - SAID} more" if len(failed) > SAID else "") + ".")
    return " ".join(parts)


def heat_map(palette, name, title, rows, sound, measure):
    """Rows of a picture are the ranks that send, columns those that listen. The colour is in proportion to the figure:
    a scale that began at the lowest one would make noise look like a difference."""
    values = {(row.parameters["from"], row.parameters["to"]): measure.of(row) for row in rows if row in sound}
    known = [v for v in values.values() if v is not None]
    if not known:
        return None
    ranks = _ranks(rows)
    whole = _names(ranks)
    names = dict(zip(ranks, whole))
    # Fields have no room for a unit each, so that of times depends on the greatest.
    unit = units.of_times(known) if measure.timed else measure.unit(rows)
    side = min(0.44, 3.4 / len(ranks))
    figure, axes = drawing.new_axes(palette, title, max(1.9, side * len(ranks) + 1.0))
    scale, largest = colormaps["cividis"], max(known) or 1.0
    said, failed = [], []
    small = 8 if len(ranks) <= 8 else 6.5 if len(ranks) <= 12 else 5
    for row in rows:
        ends = row.parameters["from"], row.parameters["to"]
        x, y = ranks.index(ends[1]), ranks.index(ends[0])
        value = values.get(ends)
        if value is None:
            failed.append((names[ends[0]], names[ends[1]]))
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="none", edgecolor=palette.bad, hatch="//",
                                     linewidth=0.6))
            continue
        colour = scale(value / largest)
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=palette.grid, linewidth=0.6))
        label = form.digits(value / unit.factor)
        said.append((names[ends[0]], names[ends[1]], value / unit.factor, label))
        if len(ranks) <= MOST_NUMBERS:
            axes.text(x, y, label, ha="center", va="center", fontsize=small, color=_contrast(colour[:3]))
    places = range(len(ranks))
    labels = form.shortened(whole, NAME)
    long = max(map(len, labels)) * len(ranks) > 36
    axes.set_xticks(places, labels, fontsize=7.5, rotation=90 if long else 0)
    axes.set_yticks(places, labels, fontsize=7.5)
    hints = {**drawing.stand_for(axes.get_xticklabels(), whole, "x"), **drawing.stand_for(axes.get_yticklabels(), whole, "y")}
    axes.set_xlim(-0.5, len(ranks) - 0.5)
    axes.set_ylim(len(ranks) - 0.5, -0.5)
    axes.grid(False)
    axes.set_ylabel("from")
    hatched = ", hatched: no figure" if failed else ""
    axes.set_xlabel(f"to   ({unit.name}, {'dark is fast' if measure.timed else 'dark is slow'}{hatched})")
    note = f"{len(failed)} of {len(rows)} pairs have no figure; the table says why." if failed else ""
    if len(ranks) > MOST_NUMBERS:
        note = "The table has the figures. " + note
    return drawing.Picture(name, title, _words(title, unit.name, said, failed), figure, note.strip(), hints)


def heat_maps(palette, stem, group, rate, throughput, latency):
    """A heat map for each combination of what else varies."""
    timed = any(text(row.cell, "cell", "part").startswith(("latency", "ping")) for row in group.rows)
    has_bytes = any(throughput.of(row) for row in group.sound)
    measure = latency if timed else throughput if has_bytes else rate
    parts = {}
    for row in group.rows:
        rest = tuple(form.value_text(row.parameters.get(key)) for key in group.varied if key not in ENDS)
        parts.setdefault(rest, []).append(row)
    labels = group.short_labels([of[0] for of in parts.values()], without=ENDS)
    drawn = []
    for i, (label, of) in enumerate(list(zip(labels, parts.values()))[:MOST_MAPS]):
        title = f"{measure.title} of each pair" + (f": {label}" if label else "")
        drawn.append(heat_map(palette, f"{stem}-pairs-{i}", title, of, group.sound, measure))
    if len(parts) > MOST_MAPS and drawn[-1]:
        drawn[-1].note = f"{MOST_MAPS} of {len(parts)} matrices; the table has all pairs. {drawn[-1].note}".strip()
    return [picture for picture in drawn if picture]
