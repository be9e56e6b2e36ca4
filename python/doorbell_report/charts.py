# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of a group of cells, each of which answers one question: how the throughput grows with the size, what
one more queue brings, where packets begin to be lost, where an operation's time goes, what it costs, what checking costs.
"""

from . import drawing, figures, form, groups, histogram, pairs, published
from .plots import BYTES, CPU, P50, RATE, Series, dots, first_rows, lines, numeric, row_axes  # noqa: F401
from .results import at, items, members, number, text

# The subjects of parameters, in the order in which they are looked for. The first that varies is the group's main axis.
SUBJECTS = [
    ("size", "size", ("size_bytes", "io_bytes", "payload_bytes", "data_bytes")),
    ("queues", "queues", ("queues", "queue_pairs", "num_queues", "tx_queues", "channels", "num_qps")),
    ("cores", "cores", ("pairs", "threads", "cores")),
    ("batch", "batch", ("batch", "batch_packets", "batch_size", "workload_batch_bytes")),
    ("in flight", "operations in flight", ("in_flight",)),
]
MOST_PANELS = 4


def axes_of(group):
    """[(subject, title, key)] of the numeric parameters that vary, the main one first."""
    found = []
    for subject, title, keys in SUBJECTS:
        for key in keys:
            if key in group.varied and len({numeric(row, key) for row in group.rows} - {None}) > 1:
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
        while any(numeric(r, key) == numeric(row, key) for r in series.get((values, times), [])):
            times += 1
        series.setdefault((values, times), []).append(row)
    return series


def _again(split):
    """How many rows are there more than once."""
    return sum(len(rows) for (_, times), rows in split.items() if times)


def series_over(group, key, rows):
    """The rows as series over the parameter `key`, each with at least two points. A parameter that follows from the
    others does not cut a series in two."""
    rows = [row for row in rows if numeric(row, key) is not None]
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
        of.sort(key=lambda row: numeric(row, key))
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


def latency_ranges(palette, name, rows, group):
    """Median to 99th percentile a cell, with 99.9 % as a tick."""
    with_p50 = [row for row in rows if row.figure("metrics", "latency_ns", "p50")]
    rows, note = first_rows(with_p50)
    if len(rows) < 2:
        return None
    figure, axes, numbers = row_axes(palette, "Latency: median to 99 %, tick at 99.9 %", rows, group)
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
    return drawing.Picture(name, "Latency of each cell", f"Median latency of each cell. {words}", figure,
                           " ".join(filter(None, (note, numbers))))


def latency_curves(palette, name, rows, group):
    """The percentiles of a few cells in one picture."""
    series = [(row, histogram.bins_of(members(row.cell, "metrics").get("latency_ns"))) for row in rows]
    series = [(row, bins) for row, bins in series if bins]
    if not 2 <= len(series) <= drawing.SERIES:
        return None
    labels = [f"{row.number}. {label}" if label else f"cell {row.number}"
              for (row, _), label in zip(series, group.short_labels([row for row, _ in series]))]
    figure, axes = drawing.new_axes(palette, "Latency by percentile", drawing.HEIGHT + drawing.legend_height(labels))
    named = [(label, bins) for label, (_, bins) in zip(labels, series)]
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
    figure, axes = drawing.new_axes(palette, "Packets lost at each offered rate", drawing.HEIGHT + drawing.legend_height([label for label, _ in kept]))
    for i, (label, of) in enumerate(kept):
        axes.plot([p[0] for p in of], [p[1] for p in of], color=palette.series[i], marker=drawing.MARKERS[i],
                  linestyle=drawing.DASHES[i], label=drawing.legend_label(label) or "ours")
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
    rows, note = first_rows([row for row in group.sound if len(parts(row)) > 1])
    if not rows:
        return None
    keys = list(dict.fromkeys(key for row in rows for key in parts(row)))[:drawing.SERIES]
    figure, axes, numbers = row_axes(palette, "Steps of one operation", rows, group, 1.15)
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
    return drawing.Picture(name, "Steps of one operation", f"Mean time of each step of an operation. {words}", figure,
                           " ".join(filter(None, (note, numbers))))


def checking_pairs(group):
    """[(row without checks, row with)] of cells that differ in nothing but the verification."""
    without, pairs = {}, []
    def rest(row):
        options = {k: v for k, v in members(row.cell, "options").items() if k not in ("verify", "json", "csv", "html", "quiet")}
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
    pairs, note = first_rows(pairs)
    if not pairs:
        return None
    shares = [100 * checked.figure("metrics", "ops_per_s") / plain.figure("metrics", "ops_per_s")
              for plain, checked in pairs]
    rows = [checked for _, checked in pairs]
    figure, axes, numbers = row_axes(palette, "Rate with checks, in % of that without", rows, group)
    axes.barh(range(len(rows)), shares, height=0.6, color=palette.series[0], alpha=0.75)
    axes.axvline(100, color=palette.ink, linewidth=1.0)
    axes.set_xlim(0, max(105.0, max(shares) * 1.05))
    axes.locator_params(axis="x", nbins=6)
    words = "; ".join(f"{group.label(row) or row.number}: {share:.0f} %" for row, share in zip(rows, shares))
    return drawing.Picture(name, "Cost of checking", f"Rate with checks in percent of the rate without. {words}", figure,
                           " ".join(filter(None, (note, numbers))))


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
            shape = tuple(numeric(row, key) for row in rows)
            shape = tuple(shape.index(value) for value in shape)
            if shape not in shapes:  # what varies together is one question
                drawn += _over(palette, stem, group, subject, title, key)
            shapes.add(shape)
        if not drawn:
            drawn.append(dots(palette, f"{stem}-rate", "Rate of each cell", rows, group, RATE))
            drawn.append(dots(palette, f"{stem}-throughput", "Throughput of each cell", rows, group, BYTES))
        for i, table in enumerate(published.of_group(group, tables)):
            drawn.append(published.picture(palette, f"{stem}-published-{i}", group, table, axes_of, series_over))
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
