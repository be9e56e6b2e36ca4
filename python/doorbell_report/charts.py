# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of a group of cells, each of which answers one question: how the throughput grows with the size, what
one more queue brings, where packets begin to be lost, where an operation's time goes, what it costs, what checking costs.
"""

import dataclasses

from . import drawing, figures, form, groups, histogram, pairs
from .results import at, items, members, number, text

# The subjects of parameters, in the order in which they are looked for. The first that varies is the group's main axis.
SUBJECTS = [
    ("size", "size", ("size_bytes", "io_bytes", "payload_bytes", "data_bytes")),
    ("queues", "queues", ("queues", "queue_pairs", "num_queues", "tx_queues", "channels", "num_qps")),
    ("cores", "cores", ("pairs", "threads", "cores")),
    ("batch", "batch", ("batch", "batch_packets", "batch_size", "workload_batch_bytes")),
    ("in flight", "operations in flight", ("in_flight",)),
]
MOST_ROWS = 40  # of a picture that has a line a cell
MOST_PANELS = 4
PUBLISHED = "published, other machine"


@dataclasses.dataclass
class Series:
    label: str
    rows: list


def _numeric(row, key):
    value = row.parameters.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None


def axes_of(group):
    """[(subject, title, key)] of the numeric parameters that vary, the main one first."""
    found = []
    for subject, title, keys in SUBJECTS:
        for key in keys:
            if key in group.varied and len({_numeric(row, key) for row in group.rows} - {None}) > 1:
                found.append((subject, title, key))
                break
    return found


def _text(row, key):
    return form.value_text(row.parameters.get(key))


def _split(rows, key, others):
    """{(values of the others, time): rows}: the same cell once more is of another series."""
    series = {}
    for row in rows:
        values, times = tuple(_text(row, other) for other in others), 0
        while any(_numeric(r, key) == _numeric(row, key) for r in series.get((values, times), [])):
            times += 1
        series.setdefault((values, times), []).append(row)
    return series


def _again(split):
    """How many rows are there more than once."""
    return sum(len(rows) for (_, times), rows in split.items() if times)


def series_over(group, key, rows):
    """The rows as series over the parameter `key`, each with at least two points. A parameter that follows from the
    others does not cut a series in two."""
    rows = [row for row in rows if _numeric(row, key) is not None]
    others = [k for k in group.varied if k != key]
    for other in [k for k in reversed(others) if k in groups.FOLLOWING]:
        fewer = [k for k in others if k != other]
        if _again(_split(rows, key, fewer)) == _again(_split(rows, key, others)):
            others = fewer
    split = _split(rows, key, others)
    found = []
    for of in split.values():
        if len(of) < 2:
            continue
        of.sort(key=lambda row: _numeric(row, key))
        found.append(Series("", of))
    shared = [k for k in others if len({_text(s.rows[0], k) for s in found}) == 1]
    others = [k for k in others if k not in shared]
    _name(group, found, others)
    return found, others


def _name(group, series, others):
    """Labels that tell the series apart by the parameters `others`."""
    without = [k for k in group.varied if k not in others]
    for s, label in zip(series, group.short_labels([s.rows[0] for s in series], without)):
        s.label = label


def _facets(group, series, others):
    """[(what the panel shows, series)]: panels of at most SERIES series, cut by the parameter that does it evenly."""
    if len(series) <= drawing.SERIES or not others:
        return [("", series)]
    def parts(key):
        cut = {}
        for s in series:
            cut.setdefault(_text(s.rows[0], key), []).append(s)
        return cut
    fitting = [key for key in others if max(len(p) for p in parts(key).values()) <= drawing.SERIES]
    key = min(fitting, key=lambda k: len(parts(k))) if fitting else \
        min(others, key=lambda k: max(len(p) for p in parts(k).values()))
    panels = []
    for of in parts(key).values():
        inside = [Series(s.label, s.rows) for s in of]
        _name(group, inside, [k for k in others if k != key])
        value = form.parameter(key, of[0].rows[0].parameters.get(key))
        panels.append((f"{form.name(key)} {value}", inside))
    return panels


@dataclasses.dataclass
class Measure:
    """The figure on the y axis."""
    title: str
    keys: tuple
    interval: str
    units: tuple

    def of(self, row):
        return row.figure(*self.keys)

    def interval_of(self, row):
        return row.interval(self.interval) if self.interval else None


@dataclasses.dataclass
class Own:
    """The figure that a plan compares with a published one, in the published unit."""
    title: str
    path: str
    scale: float
    units: tuple

    def of(self, row):
        value = row.own(self.path)
        return None if value is None else value * self.scale

    def interval_of(self, row):
        return row.own_interval(self.path, self.scale)


RATE = Measure("Rate", ("metrics", "ops_per_s"), "ops_per_s", form.RATE_UNITS)
BYTES = Measure("Throughput", ("metrics", "bytes_per_s"), "bytes_per_s", form.BYTE_RATE_UNITS)
TIME_UNITS = ((1e6, "ms"), (1e3, "us"), (1.0, "ns"))
P50 = Measure("Median latency", ("metrics", "latency_ns", "p50"), "p50_ns", TIME_UNITS)
CPU = Measure("CPU time an operation", ("cost", "cpu_ns_per_op"), "", TIME_UNITS)


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
        return Own("", text(self.table, "ours"), number(self.table, "ours_scale") or 1.0, ((1.0, self.unit),))

    @property
    def where(self):
        parts = []
        for key, values in members(self.table, "where").items():
            values = values if isinstance(values, list) else [values]
            parts.append(f"{key} {' or '.join(form.value_text(v) for v in values)}")
        return ", ".join(parts)

    def middle(self, row):
        """A mean or a single figure, with the lower and upper end of one standard deviation where that is known."""
        figures = self.figures.get(row.number, {})
        middle = next((v for key in ("mean", "value", "median", "p50") for v in [number(figures, key)] if v is not None), None)
        std = number(figures, "std")
        if middle is None:
            return None
        return (middle, middle - std, middle + std) if std else (middle, None, None)


def published_of(group, tables):
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


def _words(series, key, measure, factor, unit):
    parts = []
    for s in series:
        points = [(row, measure.of(row)) for row in s.rows if measure.of(row) is not None]
        if not points:
            continue
        def said(point):
            value = form.parameter(key, point[0].parameters[key])
            return (f"{form.digits(point[1] / factor)} {unit}" if unit else form.duration(point[1])) + f" at {value}"
        parts.append((f"{s.label}: " if s.label else "") + f"{said(points[0])} to {said(points[-1])}")
    return "; ".join(parts)


def lines(palette, name, title, series, key, measure, x_title, published=None, ideal=False):
    """A figure over a parameter, a line a series, with the interval of each median as a band."""
    values = [measure.of(row) for s in series for row in s.rows]
    known = [v for v in values if v is not None and v > 0]
    theirs = [found[0] for s in series for row in s.rows for found in [published and published.middle(row)]
              if found and found[0] > 0]
    xs = sorted({_numeric(row, key) for s in series for row in s.rows if measure.of(row)})
    if len(known) < 2 or len(xs) < 2:
        return None
    timed = measure.units is TIME_UNITS
    factor, unit = (1.0, "") if timed else form.unit_for(known + theirs, measure.units)
    figure, axes = drawing.new_axes(palette, title, drawing.HEIGHT + 0.16 * max(0, len(series) - 2))
    proportion = None
    for i, s in enumerate(series):
        points = [(_numeric(row, key), measure.of(row), measure.interval_of(row)) for row in s.rows if measure.of(row)]
        if not points:
            continue
        colour = palette.series[i % drawing.SERIES]
        axes.plot([p[0] for p in points], [p[1] / factor for p in points], color=colour,
                  marker=drawing.MARKERS[i % drawing.SERIES], linestyle=drawing.DASHES[i % drawing.SERIES],
                  label=drawing.clean(s.label) or "ours")
        band = [(x, low / factor, high / factor) for x, _, interval in points if interval for low, high, _ in [interval]]
        if band:
            axes.fill_between(*zip(*band), color=colour, alpha=0.16, linewidth=0)
            axes.vlines(*zip(*band), color=colour, linewidth=1.0)
        if ideal and proportion is None:
            x0, y0 = points[0][0], points[0][1] / factor
            proportion = [x0, points[-1][0]], [y0, y0 * points[-1][0] / x0]
        beside = [(_numeric(row, key), *found) for row in s.rows for found in [published and published.middle(row)]
                  if found and found[0] > 0]
        if beside:
            axes.plot([p[0] for p in beside], [p[1] / factor for p in beside], color=colour, linewidth=0.8, marker="x",
                      linestyle=(0, (1, 2)), markersize=6, markeredgewidth=1.4)
            ends = [(x, low / factor, high / factor) for x, _, low, high in beside if low is not None and low > 0]
            if ends:
                axes.vlines(*zip(*ends), color=colour, linewidth=0.8)
    if proportion:
        axes.plot(*proportion, color=palette.ink, linewidth=1.0, linestyle=(0, (1, 2)), label="in proportion")
    if theirs:
        axes.plot([], [], color=palette.ink, linewidth=0.8, linestyle=(0, (1, 2)), marker="x",
                  markeredgewidth=1.4, markersize=6, label=PUBLISHED)
    everything = known + theirs
    if max(everything) / min(everything) > 30:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_yticks(drawing.round_steps(low, high))
        axes.set_ylim(low, high)
        axes.yaxis.set_minor_locator(drawing.NullLocator())
        axes.yaxis.set_major_formatter(drawing.FuncFormatter(lambda v, _: f"{v:g}"))
    else:
        axes.set_ylim(bottom=0)
    if timed:
        drawing.time_axis(axes.yaxis)
    drawing.category_axis(axes, xs, key)
    axes.set_xlabel(x_title)
    axes.set_ylabel(unit)
    if len(series) > 1 or theirs or ideal:
        drawing.legend(axes)
    return drawing.Picture(name, title, f"{title}. " + _words(series, key, measure, factor, unit), figure)


def _row_axes(palette, title, rows, group, foot=0.62):
    """Axes with a line a row, the first on top."""
    figure, axes = drawing.new_axes(palette, title, max(1.5, 0.185 * len(rows) + foot))
    labels = group.short_labels(rows)
    axes.set_yticks(range(len(rows)), [drawing.clean(f"{row.number}. {label}", 44) for row, label in zip(rows, labels)],
                    fontsize=7.2)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(False, axis="y")
    return figure, axes


def _first(rows):
    """As many rows as a picture holds, and what to say of the rest."""
    note = f"The first {MOST_ROWS} of {len(rows)} cells; the table has all." if len(rows) > MOST_ROWS else ""
    return rows[:MOST_ROWS], note


def dots(palette, name, title, rows, group, measure, published=None):
    """One figure a cell, with its interval, for cells that no number orders."""
    rows, note = _first([row for row in rows if measure.of(row)])
    if len(rows) < 2:
        return None
    theirs = {row.number: found[0] for row in rows for found in [published and published.middle(row)]
              if found and found[0] > 0}
    timed = measure.units is TIME_UNITS
    factor, unit = (1.0, "") if timed else form.unit_for([measure.of(row) for row in rows], measure.units)
    figure, axes = _row_axes(palette, title, rows, group, 0.85 if theirs else 0.62)
    values = [measure.of(row) / factor for row in rows]
    axes.plot(values, range(len(rows)), linestyle="none", marker="o", color=palette.series[0], label="ours")
    ends = [(i, interval[0] / factor, interval[1] / factor) for i, row in enumerate(rows)
            for interval in [measure.interval_of(row)] if interval]
    if ends:
        axes.hlines(*zip(*ends), color=palette.series[0], linewidth=1.4)
    at_rows = [(theirs[row.number] / factor, i) for i, row in enumerate(rows) if row.number in theirs]
    if at_rows:
        axes.plot([x for x, _ in at_rows], [y for _, y in at_rows], linestyle="none", marker="x", markersize=6,
                  color=palette.ink, markeredgewidth=1.4, label=PUBLISHED)
    everything = values + [x for x, _ in at_rows]
    if max(everything) / min(everything) > 30:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xticks(drawing.apart(low, high, 4))
        axes.set_xlim(low, high)
        axes.xaxis.set_minor_locator(drawing.NullLocator())
        axes.xaxis.set_major_formatter(drawing.FuncFormatter(lambda v, _: f"{v:g}"))
    else:
        axes.set_xlim(left=0, right=max(everything) * 1.06)
        axes.locator_params(axis="x", nbins=5)
    if timed:
        drawing.time_axis(axes.xaxis)
    axes.set_xlabel(unit)
    if at_rows:
        axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.55 / figure.get_figheight()), ncols=2)
    words = "; ".join(f"{group.label(row) or row.number}: {form.duration(v) if timed else form.digits(v)}"
                      for row, v in zip(rows, values))
    return drawing.Picture(name, title, f"{title}{' in ' + unit if unit else ''}. {words}", figure, note)


def latency_ranges(palette, name, rows, group):
    """Median to 99th percentile a cell, with 99.9 % as a tick."""
    with_p50 = [row for row in rows if row.figure("metrics", "latency_ns", "p50")]
    rows, note = _first(with_p50)
    if len(rows) < 2:
        return None
    figure, axes = _row_axes(palette, "Latency: median to 99 %, tick at 99.9 %", rows, group)
    latency = {key: [row.figure("metrics", "latency_ns", key) for row in rows] for key in ("p50", "p99", "p99_9")}
    bars = [(i, p50, p99) for i, (p50, p99) in enumerate(zip(latency["p50"], latency["p99"])) if p99]
    if bars:
        axes.hlines(*zip(*bars), color=palette.series[0], linewidth=3.2, alpha=0.45)
    far = [(p999, i) for i, p999 in enumerate(latency["p99_9"]) if p999]
    if far:
        axes.plot(*zip(*far), marker="|", markersize=7, color=palette.series[1], markeredgewidth=1.6, linestyle="none")
    axes.plot(latency["p50"], range(len(rows)), linestyle="none", marker="o", color=palette.series[0])
    axes.set_xscale("log")
    drawing.log_time(axes, "x", 4)
    words = "; ".join(f"{group.label(row) or row.number}: {form.duration(row.figure('metrics', 'latency_ns', 'p50'))}"
                      for row in rows)
    return drawing.Picture(name, "Latency of each cell", f"Median latency of each cell. {words}", figure, note)


def latency_curves(palette, name, rows, group):
    """The percentiles of a few cells in one picture."""
    series = [(row, histogram.bins_of(members(row.cell, "metrics").get("latency_ns"))) for row in rows]
    series = [(row, bins) for row, bins in series if bins]
    if not 2 <= len(series) <= drawing.SERIES:
        return None
    figure, axes = drawing.new_axes(palette, "Latency by percentile", drawing.HEIGHT + 0.16 * len(series))
    named = [(group.label(row) or f"cell {row.number}", bins) for row, bins in series]
    figures.percentile_curves(axes, named, [(palette.series[i], drawing.DASHES[i]) for i in range(len(named))])
    drawing.legend(axes)
    words = "; ".join(f"{label}: median {histogram.percentile_in_words(bins, 50)}" for label, bins in named)
    return drawing.Picture(name, "Latency by percentile", f"Latency by percentile. {words}", figure)


def drop_curve(palette, name, group):
    """The share of packets that is lost at each offered rate."""
    points = {}
    for row in group.sound:
        offered = row.of_path("tx_gbps")
        lost = row.of_path("lost_percent")
        if offered and lost is not None and row.parameters.get("target_gbps"):
            label = group.label(row, without=("target_gbps",))
            points.setdefault(label, []).append((offered, lost))
    points = {label: sorted(of) for label, of in points.items() if len(of) > 1}
    if not points:
        return None
    kept = list(points.items())[:drawing.SERIES]
    figure, axes = drawing.new_axes(palette, "Packets lost at each offered rate", drawing.HEIGHT + 0.16 * len(kept))
    for i, (label, of) in enumerate(kept):
        axes.plot([p[0] for p in of], [p[1] for p in of], color=palette.series[i], marker=drawing.MARKERS[i],
                  linestyle=drawing.DASHES[i], label=drawing.clean(label) or "ours")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_yticks([0, 0.01, 0.1, 1, 10, 100], ["0", "0.01", "0.1", "1", "10", "100"])
    axes.set_ylim(-0.002, 100)
    axes.yaxis.set_minor_locator(drawing.NullLocator())
    axes.set_xlabel("offered, Gb/s")
    axes.set_ylabel("lost, %")
    if len(kept) > 1:
        drawing.legend(axes)
    def clear(of):
        whole = [x for x, lost in of if lost == 0]
        return f"no loss up to {form.digits(max(whole))} Gb/s" if whole else "loss at every rate"
    words = "; ".join(f"{label}: {clear(of)}" if label else clear(of) for label, of in kept)
    note = f"{len(kept)} of {len(points)} curves; the table has all." if len(points) > len(kept) else ""
    return drawing.Picture(name, "Drop curve", f"Packets lost at each offered rate. {words}", figure, note)


def substeps(palette, name, group):
    """Where an operation's time goes."""
    def parts(row):
        return {key: row.figure("substeps_ns", key) for key in members(row.cell, "substeps_ns")
                if key != "total" and row.figure("substeps_ns", key)}
    rows, note = _first([row for row in group.sound if len(parts(row)) > 1])
    if not rows:
        return None
    keys = list(dict.fromkeys(key for row in rows for key in parts(row)))[:drawing.SERIES]
    figure, axes = _row_axes(palette, "Steps of one operation", rows, group, 1.15)
    left = [0.0] * len(rows)
    hatches = ("", "//", "\\\\", "||", "--", "xx")  # lines: a dot is a thousand times as long in SVG
    for i, key in enumerate(keys):
        widths = [parts(row).get(key, 0.0) for row in rows]
        axes.barh(range(len(rows)), widths, left=left, height=0.66, color=palette.series[i], alpha=0.7, hatch=hatches[i],
                  edgecolor=palette.paper if palette.paper != "none" else palette.grid, linewidth=0.4,
                  label=form.name(key))
        left = [x + w for x, w in zip(left, widths)]
    drawing.time_axis(axes.xaxis)
    axes.locator_params(axis="x", nbins=5)
    axes.legend(loc="upper center", bbox_to_anchor=(0.35, -0.3 / max(1.0, figure.get_figheight() - 0.9)), ncols=3)
    words = "; ".join(f"{group.label(row) or 'one operation'}: " +
                      ", ".join(f"{form.name(k)} {form.duration(v)}" for k, v in parts(row).items()) for row in rows)
    return drawing.Picture(name, "Steps of one operation", f"Mean time of each step of an operation. {words}", figure, note)


def checking_pairs(group):
    """[(row without checks, row with)] of cells that differ in nothing but the verification."""
    without, pairs = {}, []
    def rest(row):
        options = {k: v for k, v in members(row.cell, "options").items() if k not in ("verify", "json", "csv", "quiet")}
        return form.value_text({"cell": at(row.cell, "cell"), "options": options, "device": at(row.cell, "device")})
    for row in group.sound:
        if row.checked == "nothing":
            without.setdefault(rest(row), row)
    for row in group.sound:
        if row.checked != "nothing" and rest(row) in without:
            pairs.append((without[rest(row)], row))
    return pairs


def checking(palette, name, group):
    """Throughput with checks as a share of that without."""
    pairs = [(plain, checked) for plain, checked in checking_pairs(group)
             if plain.figure("metrics", "ops_per_s") and checked.figure("metrics", "ops_per_s")]
    pairs, note = _first(pairs)
    if not pairs:
        return None
    shares = [100 * checked.figure("metrics", "ops_per_s") / plain.figure("metrics", "ops_per_s")
              for plain, checked in pairs]
    rows = [checked for _, checked in pairs]
    figure, axes = _row_axes(palette, "Rate with checks, in % of that without", rows, group)
    axes.barh(range(len(rows)), shares, height=0.6, color=palette.series[0], alpha=0.75)
    axes.axvline(100, color=palette.ink, linewidth=1.0)
    axes.set_xlim(0, max(105.0, max(shares) * 1.05))
    axes.locator_params(axis="x", nbins=6)
    words = "; ".join(f"{group.label(row) or row.number}: {share:.0f} %" for row, share in zip(rows, shares))
    return drawing.Picture(name, "Cost of checking", f"Rate with checks in percent of the rate without. {words}", figure, note)


def _over(palette, stem, group, subject, x_title, key):
    """The pictures over one parameter."""
    series, others = series_over(group, key, group.sound)
    drawn = []
    panels = _facets(group, series, others) if series else []
    for measure in (BYTES, P50) if subject == "size" else (RATE,):
        for i, (what, of) in enumerate(panels[:MOST_PANELS]):
            kept = of[:drawing.SERIES]
            title = f"{measure.title} against {x_title}" + (f": {what}" if what else "")
            picture = lines(palette, f"{stem}-{measure.title}-{subject}-{i}".lower().replace(" ", "-"), title, kept, key,
                            measure, x_title, ideal=subject in ("queues", "cores"))
            if picture and len(kept) < len(of):
                picture.note = f"{len(kept)} of {len(of)} series; the table has all."
            if picture and i == MOST_PANELS - 1 and len(panels) > MOST_PANELS:
                picture.note = f"{MOST_PANELS} of {len(panels)} pictures of this kind; the table has all cells."
            drawn.append(picture)
    return [p for p in drawn if p]


def beside(palette, stem, group, published):
    """Our figure and the published one, formed in the same way."""
    rows = [row for row in group.sound if row.number in published.figures]
    title = f"Published beside: {published.where or text(published.table, 'file')}"
    for subject, x_title, key in axes_of(group):
        series, _ = series_over(group, key, rows)
        if series and len(series) <= drawing.SERIES and sum(len(s.rows) for s in series) == len(rows):
            return lines(palette, stem, title, series, key, published.measure, x_title, published)
    return dots(palette, stem, title, rows, group, published.measure, published)


def of_group(group, tables, palette):
    """The pictures of a group, the most important first. `tables` are the published ones of each file of results."""
    if drawing.matplotlib is None:
        return []
    stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in f"{group.path} {group.kind}".strip()) or "unknown"
    rows = group.sound
    drawn = []
    with drawing.matplotlib.rc_context(drawing.style(palette)):
        if pairs.is_matrix(group):
            # Of pairs, only the matrix answers what one asks; a line for each of 90 is no picture.
            return pairs.heat_maps(palette, stem, group, RATE, BYTES, P50)
        shapes = set()
        for subject, title, key in axes_of(group):
            shape = tuple(_numeric(row, key) for row in rows)
            shape = tuple(shape.index(value) for value in shape)
            if shape not in shapes:  # what varies together is one question
                drawn += _over(palette, stem, group, subject, title, key)
            shapes.add(shape)
        if not drawn:
            drawn.append(dots(palette, f"{stem}-rate", "Rate of each cell", rows, group, RATE))
            drawn.append(dots(palette, f"{stem}-throughput", "Throughput of each cell", rows, group, BYTES))
        for i, table in enumerate(published_of(group, tables)):
            drawn.append(beside(palette, f"{stem}-published-{i}", group, table))
        drawn.append(drop_curve(palette, f"{stem}-drops", group))
        drawn.append(latency_curves(palette, f"{stem}-percentiles", rows, group) or
                     latency_ranges(palette, f"{stem}-latencies", rows, group))
        drawn.append(substeps(palette, f"{stem}-steps", group))
        axes = axes_of(group)
        cost = None
        if axes:
            series, _ = series_over(group, axes[0][2], rows)
            if 0 < len(series) <= drawing.SERIES:
                cost = lines(palette, f"{stem}-cpu", "CPU time an operation", series, axes[0][2], CPU, axes[0][1])
        drawn.append(cost or dots(palette, f"{stem}-cpu", "CPU time an operation", rows, group, CPU))
        drawn.append(checking(palette, f"{stem}-checking", group))
    return [picture for picture in drawn if picture]
