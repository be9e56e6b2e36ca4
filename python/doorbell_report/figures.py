# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of one cell: its latency distribution, its percentiles, its repeats."""

import math

from . import drawing, form, histogram
from .results import items, members, number, populations


def _strokes(names, palette):
    """(colour, dash) a series; "all" beside parts is drawn in ink."""
    if names == ["all"]:
        return [(palette.series[0], "-")]
    return [(palette.ink, "-") if name == "all" else
            (palette.series[i % drawing.SERIES], drawing.DASHES[i % drawing.SERIES]) for i, name in enumerate(names)]


def _percentiles_in_words(series):
    return "; ".join(f"{name}: median {histogram.percentile_in_words(bins, 50)}, 99th percentile "
                     f"{histogram.percentile_in_words(bins, 99)}" for name, bins in series)


def latency_histogram(series, palette, name):
    figure, axes = drawing.new_axes(palette, "Latency distribution")
    limit, beyond = histogram.picture_end(series)
    span = limit - min(bins[0][0] for _, bins in series) + 1
    group = next((g for g in (1, 2, 4, 8, 16, 32) if span / g <= 56), 64)
    for (label, bins), (colour, dash) in zip(series, _strokes([n for n, _ in series], palette)):
        if label == "all" and len(series) > 1:
            continue  # the parts add up to it
        edges, shares = histogram.coarse(bins, group, limit)
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
        axes.stairs(shares, edges, color=colour, linewidth=1.4, linestyle=dash, label=drawing.legend_label(label))
    axes.set_xscale("log")
    drawing.log_time(axes, "x")
    if beyond:
        axes.set_xlabel("the slowest 0.5 % or fewer lie to the right of the picture")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("operations, %")
    if len(series) > 1:
        axes.legend()
    return drawing.Picture(f"{name}-latency-distribution", "Latency distribution",
                           "Share of operations by latency. " + _percentiles_in_words(series), figure)


PERCENTILES = [(0, "0"), (-math.log10(0.5), "50"), (1, "90"), (2, "99"), (3, "99.9"), (4, "99.99"), (5, "99.999"),
               (6, "99.9999")]


def percentile_curves(axes, series, strokes):
    """Latency by percentile, the tail stretched; dotted where fewer than ten operations lie above."""
    longest = 1.0
    for (label, bins), (colour, dash) in zip(series, strokes):
        total = sum(count for _, count in bins)
        x, y = [0.0], [histogram.lower_ns(bins[0][0]) or 0.5]
        tail_x, tail_y = [], []
        for above, middle in histogram.survival(bins):
            place = math.log10(total / max(above, 1))
            (x if above >= 10 else tail_x).append(place)
            (y if above >= 10 else tail_y).append(max(middle, 0.5))
        longest = max(longest, math.log10(total))
        stroke = {"color": colour, "linewidth": 1.1 if label == "all" and len(series) > 1 else 1.6}
        # Neighbours that no eye tells apart are one point.
        kept = [i for i in range(len(x)) if i in (0, len(x) - 1) or x[i] - x[i - 1] > 0.002 or y[i] / y[i - 1] > 1.02]
        axes.plot([x[i] for i in kept], [y[i] for i in kept], label=drawing.legend_label(label), drawstyle="steps-pre",
                  linestyle=dash, **stroke)
        axes.plot(x[-1:] + tail_x, y[-1:] + tail_y, linestyle=(0, (1, 1.6)), drawstyle="steps-pre", **stroke)
    axes.set_yscale("log")
    drawing.log_time(axes, "y")
    marks = [mark for mark in PERCENTILES if mark[0] <= longest + 0.05]
    axes.set_xticks([x for x, _ in marks], [label for _, label in marks])
    axes.set_xlim(0, longest)
    axes.set_xlabel("percentile (dotted: fewer than 10 operations above)")


def latency_percentiles(series, palette, name):
    figure, axes = drawing.new_axes(palette, "Latency by percentile")
    percentile_curves(axes, series, _strokes([n for n, _ in series], palette))
    if len(series) > 1:
        axes.legend()
    return drawing.Picture(f"{name}-latency-percentiles", "Latency by percentile",
                           "Latency by percentile. " + _percentiles_in_words(series), figure)


def repeats(cell, palette, name, rate):
    rates = [number(r, "ops_per_s") for r in items(cell, "repeats")]
    known = [rate for rate in rates if rate is not None]
    if len(known) < 2 or max(known) <= 0:
        return None
    factor, unit = rate.factor, rate.name
    figure, axes = drawing.new_axes(palette, "Throughput of each repeat")
    axes.bar(range(1, len(rates) + 1), [(rate or 0) / factor for rate in rates], color=palette.series[0], alpha=0.75,
             width=0.62)
    median = number(cell, "spread", "ops_per_s", "median")
    low, high, level = (number(cell, "spread", "ops_per_s", key) for key in ("ci_low", "ci_high", "ci_level"))
    if median is not None:
        axes.axhline(median / factor, color=palette.ink, linewidth=1.2, label="median")
    if low is not None and high is not None and level:
        axes.axhspan(low / factor, high / factor, color=palette.ink, alpha=0.13, linewidth=0,
                     label=f"{100 * level:.1f} % interval")
    axes.set_xticks(range(1, len(rates) + 1) if len(rates) <= 15 else [1, len(rates)])
    axes.grid(False, axis="x")
    axes.set_ylim(0, 1.28 * max(known) / factor)
    axes.set_ylabel(unit)
    axes.set_xlabel("repeat")
    if median is not None:
        axes.legend(ncols=2, loc="upper left")
    words = ", ".join(form.digits(rate / factor) for rate in known)
    return drawing.Picture(f"{name}-repeats", "Throughput of each repeat",
                           f"Throughput of each repeat in {unit}: {words}", figure)


def of_cell(cell, palette, name, rate):
    """The pictures that a cell has the data for; `rate` is the unit of its rates."""
    drawn = []
    with drawing.matplotlib.rc_context(drawing.style(palette)):
        series = [(part, histogram.bins_of(metrics.get("latency_ns"))) for part, metrics in populations(cell)]
        series = [(part, bins) for part, bins in series if bins]
        if len(series) == 2 and series[1][0] == "all" and series[0][1] == series[1][1]:
            series = series[:1]  # one part is all
        if series:
            drawn.append(latency_histogram(series, palette, name))
            drawn.append(latency_percentiles(series, palette, name))
        drawn.append(repeats(cell, palette, name, rate))
    return [picture for picture in drawn if picture]


def small_distribution(cell):
    """(SVG path, text) of the latency distribution without axes, for pages of many cells: some hundred bytes."""
    bins = histogram.bins_of(members(cell, "metrics").get("latency_ns"))
    if not bins:
        return None
    limit, beyond = histogram.picture_end([("all", bins)])
    span = limit - bins[0][0] + 1
    edges, shares = histogram.coarse(bins, max(1, math.ceil(span / 48)), limit)
    low, high = math.log10(edges[0]), math.log10(edges[-1])
    scale = 240 / (high - low) if high > low else 240
    top = max(shares)
    path = "M0 32"
    for left, right, share in zip(edges, edges[1:], shares):
        path += f"L{(math.log10(left) - low) * scale:.0f} {32 - 30 * share / top:.0f}" \
                f"H{(math.log10(right) - low) * scale:.0f}"
    label = f"Share of operations by latency, {form.duration(edges[0])} to {form.duration(edges[-1])}" + \
            (", without the slowest 0.5 %" if beyond else "")
    return path + "V32Z", label
