# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures as inline SVG. Colours are CSS variables of the page, so that one picture suits light and dark."""

import io
import math
import re

from .load import items, members, number, populations

try:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter
except ImportError:
    matplotlib = None

# Colours that stand for CSS variables until the SVG is written.
INK = "#010203"
GRID = "#020304"
SERIES = ["#030405", "#040506", "#050607", "#060708"]
VARIABLES = {INK: "var(--ink2)", GRID: "var(--line)",
             **{colour: f"var(--s{i})" for i, colour in enumerate(SERIES, 1)}}

STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "doorbell", "font.family": "sans-serif", "font.size": 9,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GRID, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": GRID,
    "grid.linewidth": 0.6, "axes.axisbelow": True, "xtick.major.size": 0, "ytick.major.size": 0,
    "xtick.minor.size": 0, "ytick.minor.size": 0, "lines.linewidth": 1.6, "legend.frameon": False,
    "legend.fontsize": 8.5, "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
}


def available():
    return matplotlib is not None


# ---- the histogram's buckets: 64 an octave, 1 ns wide below 128 (include/doorbell/histogram.hpp)

def lower_ns(index):
    if index < 128:
        return index
    shift = (index >> 6) - 1
    return (64 + (index & 63)) << shift


def bucket_of(ns):
    if ns < 128:
        return ns
    shift = ns.bit_length() - 7
    return (shift + 1) * 64 + ((ns >> shift) & 63)


def bins_of(latency):
    """[(bucket, count)] in order; entries that are no bin are left out."""
    found = []
    for entry in items(latency, "bins"):
        if isinstance(entry, list) and len(entry) == 2 and all(
                isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2 ** 64 for v in entry) and entry[1]:
            found.append((bucket_of(entry[0]), entry[1]))
    return sorted(found)


def coarse(bins, group, limit):
    """(edges in ns, share in percent) with `group` neighbouring buckets in one bar, up to bucket `limit`."""
    first, last = bins[0][0] // group, min(bins[-1][0], limit) // group
    total = sum(count for _, count in bins)
    shares = [0.0] * (last - first + 1)
    for bucket, count in bins:
        if bucket // group <= last:
            shares[bucket // group - first] += 100.0 * count / total
    edges = [max(lower_ns(i * group), 0.5) for i in range(first, last + 2)]
    return edges, shares


def picture_end(series, fraction=0.005):
    """(last bucket to draw, whether operations lie beyond it): the slowest 0.5 % of each series are left out
    when they would take more than a third of the picture."""
    def cut(bins):
        allowed = fraction * sum(count for _, count in bins)
        kept = list(bins)
        while len(kept) > 1 and kept[-1][1] <= allowed:
            allowed -= kept.pop()[1]
        return kept[-1][0]

    first = min(bins[0][0] for _, bins in series)
    last = max(bins[-1][0] for _, bins in series)
    limit = max(cut(bins) for _, bins in series)
    return (limit, True) if limit - first < 0.67 * (last - first) else (last, False)


def survival(bins):
    """[(operations slower than this bucket, the bucket's middle in ns)] for each bucket."""
    above = sum(count for _, count in bins)
    points = []
    for bucket, count in bins:
        above -= count
        points.append((above, (lower_ns(bucket) + lower_ns(bucket + 1) - 1) / 2))
    return points


# ---- drawing

def _svg(figure, label, serial):
    out = io.StringIO()
    FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Several pictures share one page, and an id may occur there only once.
    prefix = f"f{serial}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r"font: ([^;\"]*?) ?'[^;\"]*sans-serif[^;\"]*", r"font: \1 var(--font)", svg)
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
                 rf'<svg viewBox="\1" role="img" aria-label="{label}" '
                 r'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">', svg, count=1)
    return svg.strip()


def _axes(title):
    figure = Figure(figsize=(4.4, 2.75), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    axes.set_title(title, color=INK)
    return figure, axes


def _time(ns):
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= unit * 0.9995:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.3g} ns"


def _time_axis(axis):
    axis.set_major_formatter(FuncFormatter(lambda v, _: _time(v)))
    axis.set_minor_formatter(NullFormatter())


def _time_ticks(low, high):
    """Round times between two bounds: 1-2-5 steps, thinned to about six."""
    ticks = [m * 10.0 ** e for e in range(-1, 20) for m in (1, 2, 5) if low <= m * 10.0 ** e <= high]
    if len(ticks) < 3:
        step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
        while (high - low) / step < 3:
            step /= 2
        ticks = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    while len(ticks) > 6:
        ticks = ticks[::2]
    return ticks


def _colours(names):
    """Parts take the series colours; "all" beside parts is drawn in ink."""
    if names == ["all"]:
        return [SERIES[0]]
    return [INK if name == "all" else SERIES[i % len(SERIES)] for i, name in enumerate(names)]


def _plain(name):
    return name.replace("$", r"\$")


def latency_histogram(series, serial):
    figure, axes = _axes("Latency distribution")
    limit, beyond = picture_end(series)
    span = limit - min(bins[0][0] for _, bins in series) + 1
    group = next((g for g in (1, 2, 4, 8, 16, 32) if span / g <= 56), 64)
    for (name, bins), colour in zip(series, _colours([name for name, _ in series])):
        if name == "all" and len(series) > 1:
            continue  # the parts add up to it
        edges, shares = coarse(bins, group, limit)
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.25)
        axes.stairs(shares, edges, color=colour, linewidth=1.4, label=_plain(name))
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    # A label at the very edge would run into the other axis.
    axes.set_xticks([t for t in _time_ticks(low, high) if t > low * (high / low) ** 0.04])
    axes.set_xlim(low, high)
    if beyond:
        axes.set_xlabel("the slowest 0.5 % or fewer lie to the right of the picture")
    _time_axis(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("operations, %")
    if len(series) > 1:
        axes.legend()
    return _svg(figure, "Share of operations by latency", serial)


def latency_percentiles(series, serial):
    figure, axes = _axes("Latency by percentile")
    longest = 1.0
    for (name, bins), colour in zip(series, _colours([name for name, _ in series])):
        total = sum(count for _, count in bins)
        x, y = [0.0], [lower_ns(bins[0][0]) or 0.5]
        tail_x, tail_y = [], []
        for above, middle in survival(bins):
            at = math.log10(total / max(above, 1))
            (x if above >= 10 else tail_x).append(at)
            (y if above >= 10 else tail_y).append(max(middle, 0.5))
        longest = max(longest, math.log10(total))
        style = {"color": colour, "linewidth": 1.1 if name == "all" and len(series) > 1 else 1.6}
        axes.plot(x, y, label=_plain(name), drawstyle="steps-pre", **style)
        # Fewer than ten operations lie above these points: shown, but not to be relied on.
        axes.plot(x[-1:] + tail_x, y[-1:] + tail_y, linestyle=":", drawstyle="steps-pre", **style)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_yticks(_time_ticks(low, high))
    axes.set_ylim(low, high)
    _time_axis(axes.yaxis)
    marks = [(0, "0"), (-math.log10(0.5), "50"), (1, "90"), (2, "99"), (3, "99.9"), (4, "99.99"),
             (5, "99.999"), (6, "99.9999")]
    marks = [mark for mark in marks if mark[0] <= longest + 0.05]
    axes.set_xticks([x for x, _ in marks], [label for _, label in marks])
    axes.set_xlim(0, longest)
    axes.set_xlabel("percentile (dotted: fewer than 10 operations above)")
    if len(series) > 1:
        axes.legend()
    return _svg(figure, "Latency by percentile", serial)


def repeats(cell, serial):
    rates = [number(r, "ops_per_s") for r in items(cell, "repeats")]
    known = [rate for rate in rates if rate is not None]
    if not known or max(known) <= 0:
        return None
    unit, prefix = next(((u, p) for u, p in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if max(known) >= u), (1, ""))
    figure, axes = _axes("Throughput of each repeat")
    axes.bar(range(1, len(rates) + 1), [(rate or 0) / unit for rate in rates], color=SERIES[0], alpha=0.75, width=0.62)
    median = number(cell, "spread", "ops_per_s", "median")
    low, high = (number(cell, "spread", "ops_per_s", key) for key in ("ci_low", "ci_high"))
    level = number(cell, "spread", "ops_per_s", "ci_level")
    if median is not None:
        axes.axhline(median / unit, color=INK, linewidth=1.2, label="median")
    if low is not None and high is not None and level:
        axes.axhspan(low / unit, high / unit, color=INK, alpha=0.13, linewidth=0,
                     label=f"{100 * level:.1f} % interval")
    axes.set_xticks(range(1, len(rates) + 1) if len(rates) <= 15 else [1, len(rates)])
    axes.grid(False, axis="x")
    axes.set_ylim(0, 1.28 * max(known) / unit)
    axes.set_ylabel(f"{prefix}IOPS")
    axes.set_xlabel("repeat")
    if median is not None:
        axes.legend(ncols=2, loc="upper left")
    return _svg(figure, "Throughput of each repeat", serial)


def small_distribution(cell):
    """The latency distribution without axes, for pages of many cells: some hundred bytes, drawn by hand."""
    bins = bins_of(members(cell, "metrics").get("latency_ns"))
    if not bins:
        return ""
    limit, beyond = picture_end([("all", bins)])
    span = limit - bins[0][0] + 1
    edges, shares = coarse(bins, max(1, math.ceil(span / 48)), limit)
    low, high = math.log10(edges[0]), math.log10(edges[-1])
    scale = 240 / (high - low) if high > low else 240
    top = max(shares)
    path = "M0 32"
    for left, right, share in zip(edges, edges[1:], shares):
        path += f"L{(math.log10(left) - low) * scale:.0f} {32 - 30 * share / top:.0f}" \
                f"H{(math.log10(right) - low) * scale:.0f}"
    label = f"Share of operations by latency, {_time(edges[0])} to {_time(edges[-1])}" + \
            (", without the slowest 0.5 %" if beyond else "")
    return f'<figure class="small"><svg viewBox="0 0 240 33" role="img" aria-label="{label}"><path d="{path}V32Z" ' \
           f'fill="var(--s1)"/></svg><figcaption>{label}</figcaption></figure>'


def overview(cells, serial):
    """Throughput and latency of every cell in one picture, in the order of the summary."""
    rates = [number(cell, "metrics", "ops_per_s") for cell in cells]
    latencies = {key: [number(cell, "metrics", "latency_ns", key) for cell in cells] for key in ("p50", "p99")}
    known = [rate for rate in rates if rate is not None and rate > 0]
    if not known:
        return ""
    unit, prefix = next(((u, p) for u, p in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if max(known) >= u), (1, ""))
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    figure.patch.set_alpha(0)
    upper, lower = figure.subplots(2, sharex=True)
    places = range(1, len(cells) + 1)
    for axes, title in ((upper, "Throughput of each cell"), (lower, "Latency of each cell")):
        axes.patch.set_alpha(0)
        axes.set_title(title, color=INK)
        axes.set_xlim(0.4, len(cells) + 0.6)
    upper.vlines(places, 0, [(rate or 0) / unit for rate in rates], color=SERIES[0], alpha=0.75,
                 linewidth=max(1.0, min(8.0, 480 / len(cells))))
    upper.set_ylim(bottom=0)
    upper.set_ylabel(f"{prefix}IOPS")
    drawn = [(key, [value if value and value > 0 else math.nan for value in values])
             for key, values in latencies.items() if any(value and value > 0 for value in values)]
    for (key, values), colour in zip(drawn, (SERIES[0], SERIES[1])):
        lower.plot(places, values, linestyle="none", marker="o", markersize=3, color=colour, label=key)
    if drawn:
        lower.set_yscale("log")
        low, high = lower.get_ylim()
        lower.set_yticks(_time_ticks(low, high))
        lower.set_ylim(low, high)
        lower.legend(ncols=2)
    _time_axis(lower.yaxis)
    lower.set_xlabel("cell, as numbered in the table")
    return _svg(figure, "Throughput and latency of every cell", serial)


class Artist:
    """Draws the pictures of one page; counts them, because each needs ids of its own."""

    def __init__(self):
        self.serial = 0

    def _next(self):
        self.serial += 1
        return self.serial

    def of_all(self, cells):
        """One SVG of all cells, or ""."""
        with matplotlib.rc_context(STYLE):
            return overview(cells, self._next())

    def of_cell(self, cell):
        """The SVGs that this cell has the data for."""
        drawn = []
        with matplotlib.rc_context(STYLE):
            series = [(name, bins_of(metrics.get("latency_ns"))) for name, metrics in populations(cell)]
            series = [(name, bins) for name, bins in series if bins]
            if series:
                drawn.append(latency_histogram(series, self._next()))
                drawn.append(latency_percentiles(series, self._next()))
            drawn.append(repeats(cell, self._next()))
        return [svg for svg in drawn if svg]
