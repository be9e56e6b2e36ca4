# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Figures that others published for the cells of a sweep. They come from another machine, and mostly from another kind of
device: a picture shows them in a panel of their own, with an axis of its own, so that nobody sees a race."""

import dataclasses

from . import drawing, form, plots
from .results import items, members, number, text

OTHER = "published, other machine"


@dataclasses.dataclass
class Own:
    """The figure that a plan compares with a published one, in the published unit."""
    path: str
    scale: float

    def of(self, row):
        value = row.own(self.path)
        return None if value is None else value * self.scale

    def interval_of(self, row):
        return row.own_interval(self.path, self.scale)


@dataclasses.dataclass
class Published:
    """One published table of a sweep: {number of a row: figures}, in the table's unit."""
    table: dict
    figures: dict

    @property
    def unit(self):
        return text(self.table, "unit")

    @property
    def measure(self):
        return Own(text(self.table, "ours"), number(self.table, "ours_scale") or 1.0)

    @property
    def where(self):
        parts = []
        for key, values in members(self.table, "where").items():
            values = values if isinstance(values, list) else [values]
            parts.append(f"{key} {' or '.join(form.value_text(v) for v in values)}")
        return ", ".join(parts)

    def point(self, x, row):
        """A mean or a single figure, with the ends of one standard deviation where that is known; None without."""
        figures = self.figures.get(row.number, {})
        middle = next((v for key in ("mean", "value", "median", "p50") for v in [number(figures, key)] if v is not None), None)
        std = number(figures, "std")
        if middle is None or middle <= 0:
            return None
        return plots.Point(x, middle, middle - std, middle + std) if std and std < middle else plots.Point(x, middle)


def of_group(group, tables):
    """The published tables that have a row for one of the group's cells."""
    found = []
    for source, listed in tables.items():
        by_cell = {row.sweep_cell[1]: row for row in group.rows if row.sweep_cell and row.sweep_cell[0] == source}
        for table in listed:
            figures = {by_cell[cell].number: members(theirs, "figures") for theirs in items(table, "rows")
                       for cell in [number(theirs, "cell")] if cell in by_cell}
            if figures:
                found.append(Published(table, figures))
    return found


def _ours(rows):
    """What we measured on, for the head of our panel."""
    kinds = dict.fromkeys(text(row.cell, "device", "kind") for row in rows)
    return "ours: " + form.listed([form.KINDS.get(kind, (kind or "unknown device",))[0] for kind in kinds])


def _head(axes, words):
    axes.set_title(drawing.wrapped(words, 60), loc="left", fontsize=8)


def _lines(palette, name, title, series, key, published, x_title):
    """Ours above theirs; both over the same parameter."""
    measure = published.measure
    ours = [(s.label, plots.points_of(s.rows, key, measure)) for s in series]
    theirs = [(s.label, [p for row in s.rows for p in [published.point(plots.numeric(row, key), row)] if p]) for s in series]
    xs = sorted({p.x for _, points in ours + theirs for p in points})
    if len(xs) < 2 or not any(points for _, points in ours) or not any(points for _, points in theirs):
        return None
    figure, axes = drawing.new_axes(palette, title, 2 * drawing.HEIGHT - 0.5 + drawing.legend_height([s.label for s in series]),
                                    rows=2)
    for one, named, words in ((axes[0], ours, _ours([row for s in series for row in s.rows])), (axes[1], theirs, OTHER)):
        plots.draw_lines(one, palette, named, 1.0)
        plots.y_scale(one, [p.value for _, points in named for p in points], False)
        drawing.category_axis(one, xs, key)
        one.set_ylabel(published.unit)
        _head(one, words)
    axes[1].set_xlabel(x_title)
    if len(series) > 1:
        drawing.legend(axes[0], onto=axes[1])
    return figure


def _dots(palette, title, rows, group, published):
    """Ours to the left of theirs; both a line a cell."""
    measure = published.measure
    figure, axes, note = plots.row_axes(palette, title, rows, group, 0.85, columns=2)
    for one, points, words, colour, marker in (
            (axes[0], [plots.Point(i, measure.of(row), *((measure.interval_of(row) or (None, None))[:2]))
                       for i, row in enumerate(rows)], _ours(rows), palette.series[0], "o"),
            (axes[1], [p for i, row in enumerate(rows) for p in [published.point(i, row)] if p], OTHER, palette.ink, "x")):
        plots.draw_dots(one, palette, points, 1.0, False, colour, marker)
        one.locator_params(axis="x", nbins=3) if one.get_xscale() == "linear" else None
        one.set_xlabel(published.unit)
        one.set_title(drawing.wrapped(words, 17), loc="left", fontsize=8)
    return figure, note


def picture(palette, name, group, published, axes_of, series_over):
    """Our figure and the published one, formed in the same way, in panels that share no axis of figures."""
    measure = published.measure
    rows = [row for row in group.sound if row.number in published.figures and measure.of(row) and published.point(0, row)]
    if len(rows) < 2:
        return None
    title = "Ours and figures published for another machine"
    figure, notes = None, [f"Published: {text(published.table, 'file')}" + (f", {published.where}" if published.where else "") +
                           (f" ({text(published.table, 'note')})" if text(published.table, "note") else "") +
                           ". Each panel has a scale of its own."]
    for _, x_title, key in axes_of(group):
        series, _ = series_over(group, key, rows)
        if series and len(series) <= drawing.SERIES and sum(len(s.rows) for s in series) == len(rows):
            figure = _lines(palette, name, title, series, key, published, x_title)
            break
    if figure is None:
        rows, note = plots.first_rows(rows)
        figure, numbers = _dots(palette, title, rows, group, published)
        notes += [note, numbers]
    words = "; ".join(f"{group.label(row) or row.number}: ours {form.digits(measure.of(row))}, published "
                      f"{form.digits(published.point(0, row).value)}" for row in rows)
    return drawing.Picture(name, title, f"{title} in {published.unit}. {words}", figure,
                           form.printable(" ".join(filter(None, notes))))
