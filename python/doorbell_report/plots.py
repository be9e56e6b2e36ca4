# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The two forms that most pictures of a group have: a figure over a parameter, and one figure a cell."""

import dataclasses

from . import drawing, form, units

MOST_ROWS = 40  # of a picture that has a line a cell
MOST_VALUES = 25  # of the dots whose figures are written beside them
ROW_NAME = 32  # characters of a cell's name on a line


@dataclasses.dataclass
class Series:
    label: str
    rows: list


@dataclasses.dataclass
class Measure:
    """The figure on the y axis."""
    title: str
    keys: tuple
    interval: str
    quantity: str  # rate, volume or time

    @property
    def timed(self):
        return self.quantity == "time"

    def of(self, row):
        return row.figure(*self.keys)

    def interval_of(self, row):
        return row.interval(self.interval) if self.interval else None

    def unit(self, rows):
        """The unit of one group's rows, for pictures; that of times has no name, because each has its own."""
        return units.Unit("", 1.0) if self.timed else getattr(rows[0].units, self.quantity)

    def said(self, row, value=None):
        """The row's figure, or another one of its kind, with its unit."""
        value = self.of(row) if value is None else value
        return form.duration(value) if self.timed else self.unit([row]).said(value)


RATE = Measure("Rate", ("metrics", "ops_per_s"), "ops_per_s", "rate")
BYTES = Measure("Throughput", ("metrics", "bytes_per_s"), "bytes_per_s", "volume")
P50 = Measure("Median latency", ("metrics", "latency_ns", "p50"), "p50_ns", "time")
CPU = Measure("CPU time an operation", ("cost", "cpu_ns_per_op"), "", "time")


@dataclasses.dataclass
class Point:
    """A figure with the ends of what is known of it, None where nothing is."""
    x: float
    value: float
    low: float | None = None
    high: float | None = None


def numeric(row, key):
    value = row.parameters.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None


def points_of(rows, key, measure):
    return [Point(numeric(row, key), measure.of(row), *((measure.interval_of(row) or (None, None))[:2]))
            for row in rows if measure.of(row)]


def _words(series, key, measure):
    parts = []
    for s in series:
        rows = [row for row in s.rows if measure.of(row) is not None]
        if rows:
            ends = [f"{measure.said(row)} at {form.parameter(key, row.parameters[key])}" for row in (rows[0], rows[-1])]
            parts.append((f"{s.label}: " if s.label else "") + " to ".join(ends))
    return "; ".join(parts)


def y_scale(axes, values, timed):
    """From 0, or logarithmic where the figures are far apart."""
    if max(values) / min(values) > 30:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_yticks(drawing.round_steps(low, high))
        axes.set_ylim(low, high)
        axes.yaxis.set_minor_locator(drawing.NullLocator())
        axes.yaxis.set_major_formatter(drawing.FuncFormatter(lambda v, _: drawing.plain(v)))
    else:
        axes.set_ylim(bottom=0)
    if timed:
        drawing.time_axis(axes.yaxis)


def draw_lines(axes, palette, named, factor):
    """A line for each (label, points), with the interval of each figure as a band."""
    for i, (label, points) in enumerate(named):
        if not points:
            continue
        colour = palette.series[i % drawing.SERIES]
        axes.plot([p.x for p in points], [p.value / factor for p in points], color=colour,
                  marker=drawing.MARKERS[i % drawing.SERIES], linestyle=drawing.DASHES[i % drawing.SERIES],
                  label=drawing.legend_label(label) or "ours")
        band = [(p.x, p.low / factor, p.high / factor) for p in points if p.low is not None]
        if band:
            axes.fill_between(*zip(*band), color=colour, alpha=0.16, linewidth=0)
            axes.vlines(*zip(*band), color=colour, linewidth=1.0)


def lines(palette, name, title, series, key, measure, x_title, ideal=False):
    """A figure over a parameter, a line a series."""
    named = [(s.label, points_of(s.rows, key, measure)) for s in series]
    known = [p.value for _, points in named for p in points]
    xs = sorted({p.x for _, points in named for p in points})
    if len(known) < 2 or len(xs) < 2:
        return None
    timed, unit = measure.timed, measure.unit(series[0].rows)
    figure, axes = drawing.new_axes(palette, title, drawing.HEIGHT +
                                    drawing.legend_height([label for label, _ in named] + ["in proportion"] * ideal))
    draw_lines(axes, palette, named, unit.factor)
    first = next((points for _, points in named if points), [])
    if ideal and first:
        x0, y0 = first[0].x, first[0].value / unit.factor
        axes.plot([x0, first[-1].x], [y0, y0 * first[-1].x / x0], color=palette.ink, linewidth=1.0, linestyle=(0, (1, 2)),
                  label="in proportion")
    y_scale(axes, known, timed)
    drawing.category_axis(axes, xs, key)
    axes.set_xlabel(x_title)
    axes.set_ylabel(unit.name)
    if len(series) > 1 or ideal:
        drawing.legend(axes)
    return drawing.Picture(name, title, f"{title}. " + _words(series, key, measure), figure)


def row_names(rows, group):
    """(a name a row, whole: in as many lines as it takes, lines of the longest, what a note says of them). Names that would
    take more than three lines are numbers."""
    names = [drawing.wrapped(f"{row.number}. {label}" if label else f"cell {row.number}", ROW_NAME)
             for row, label in zip(rows, group.short_labels(rows))]
    longest = max(name.count("\n") + 1 for name in names)
    if longest <= 3:
        return names, longest, ""
    return [f"cell {row.number}" for row in rows], 1, "The table says what each cell is."


def row_axes(palette, title, rows, group, foot=0.62, columns=1):
    """Axes with a line a row, the first on top; several that share the rows if columns are asked for."""
    names, lines_of_name, note = row_names(rows, group)
    height = max(drawing.HEIGHT if len(rows) > 1 else 1.5, (0.075 + 0.112 * lines_of_name) * len(rows) + foot)
    figure, axes = drawing.new_axes(palette, title, height, columns=columns)
    first = axes[0] if columns > 1 else axes
    first.set_yticks(range(len(rows)), names, fontsize=7.2)
    first.set_ylim(len(rows) - 0.4, -0.6)
    for one in axes if columns > 1 else [axes]:
        one.grid(False, axis="y")
    return figure, axes, note


def first_rows(rows):
    """As many rows as a picture holds, and what to say of the rest."""
    note = f"The first {MOST_ROWS} of {len(rows)} cells; the table has all." if len(rows) > MOST_ROWS else ""
    return rows[:MOST_ROWS], note


def x_scale(axes, values, timed, room=1.0):
    """From 0, or logarithmic where the figures are far apart; `room` widens it for figures beside the dots."""
    if max(values) / min(values) > 30:
        axes.set_xscale("log")
        low, high = min(values), max(values)
        low, high = low / (high / low) ** 0.06, high * (high / low) ** (0.06 + 0.5 * room)
        axes.set_xlim(low, high)
        axes.set_xticks(drawing.apart(low, high, 4))
        axes.xaxis.set_minor_locator(drawing.NullLocator())
        axes.xaxis.set_major_formatter(drawing.FuncFormatter(lambda v, _: drawing.plain(v)))
    else:
        axes.set_xlim(left=0, right=max(values) * (1.06 + 0.55 * room))
        axes.locator_params(axis="x", nbins=4)
    if timed:
        drawing.time_axis(axes.xaxis)


def draw_dots(axes, palette, points, factor, timed, colour, marker="o"):
    """A dot for each point, whose x is its row; with the figure beside it if there are not too many."""
    axes.plot([p.value / factor for p in points], [p.x for p in points], linestyle="none", marker=marker, color=colour,
              **({"markersize": 6, "markeredgewidth": 1.4} if marker == "x" else {}))
    ends = [(p.x, p.low / factor, p.high / factor) for p in points if p.low is not None]
    if ends:
        axes.hlines(*zip(*ends), color=colour, linewidth=1.4)
    values = [end / factor for p in points for end in (p.value, p.low, p.high) if end]
    written = len(points) <= MOST_VALUES
    x_scale(axes, values, timed, 1.0 if written else 0.0)
    if written:
        for p in points:
            end = (p.value if p.high is None else max(p.high, p.value)) / factor
            axes.annotate(form.duration(p.value) if timed else form.digits(p.value / factor), (end, p.x), (5, 0),
                          textcoords="offset points", va="center", ha="left", fontsize=7.2)


def dots(palette, name, title, rows, group, measure):
    """One figure a cell, with its interval, for cells that no number orders."""
    rows, note = first_rows([row for row in rows if measure.of(row)])
    if len(rows) < 2:
        return None
    timed, unit = measure.timed, measure.unit(rows)
    points = [Point(i, measure.of(row), *((measure.interval_of(row) or (None, None))[:2])) for i, row in enumerate(rows)]
    figure, axes, numbers = row_axes(palette, title, rows, group)
    draw_dots(axes, palette, points, unit.factor, timed, palette.series[0])
    axes.set_xlabel(unit.name)
    return drawing.Picture(name, title, f"{title}{' in ' + unit.name if unit.name else ''}. " +
                           in_words(rows, group, points, unit.factor, timed),
                           figure, " ".join(filter(None, (note, numbers))))


def in_words(rows, group, points, factor, timed):
    return "; ".join(f"{group.label(row) or row.number}: {form.duration(p.value) if timed else form.digits(p.value / factor)}"
                     for row, p in zip(rows, points))
