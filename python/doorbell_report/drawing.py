# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The parts that all pictures share: colours, axes, and how a figure becomes SVG or PNG.

A picture in the page takes its colours from the page's CSS variables, so that one picture suits light and dark. A picture
in a file of its own has the light colours on white.
"""

import dataclasses
import html
import io
import math
import re
import textwrap
import warnings

from . import form

try:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
    from matplotlib.transforms import ScaledTranslation
except ImportError:
    matplotlib = None

MISSING = "it has no charts, because the Debian package python3-matplotlib is not installed"  # said of a page

WIDTH = 4.4  # inches; one width for all, so that text has one size on the page, also on a phone
HEIGHT = 2.75

# Each series differs in colour, marker and dash: the picture must work in grey, too.
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
SERIES = len(MARKERS)


@dataclasses.dataclass(frozen=True)
class Palette:
    ink: str
    grid: str
    paper: str
    series: tuple
    good: str
    bad: str


# Colours that stand for CSS variables until the SVG is written.
PAGE = Palette("#010203", "#020304", "none", ("#030405", "#040506", "#050607", "#060708", "#070809", "#08090a"),
               "#090a0b", "#0a0b0c")
VARIABLES = {PAGE.ink: "var(--ink2)", PAGE.grid: "var(--line)", PAGE.good: "var(--good)", PAGE.bad: "var(--bad)",
             **{colour: f"var(--s{i})" for i, colour in enumerate(PAGE.series, 1)}}
PAPER = Palette("#3f474f", "#dfe3e8", "#ffffff", ("#0067a8", "#c24e00", "#00795a", "#9a4f86", "#946200", "#4d5560"),
                "#12733b", "#b3261e")


def available():
    return matplotlib is not None


def style(palette):
    return {
        "font.family": "sans-serif", "font.size": 9,
        "text.color": palette.ink, "axes.labelcolor": palette.ink, "axes.edgecolor": palette.grid,
        "xtick.color": palette.ink, "ytick.color": palette.ink, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "grid.color": palette.grid, "grid.linewidth": 0.6, "axes.axisbelow": True,
        "xtick.major.size": 0, "ytick.major.size": 0, "xtick.minor.size": 0, "ytick.minor.size": 0,
        # A rate may be small in its unit; its axis has the same figures as the table, without a power of ten beside them.
        "axes.formatter.limits": (-9, 12), "axes.formatter.useoffset": False,
        "lines.linewidth": 1.6, "lines.markersize": 4.5, "legend.frameon": False, "legend.fontsize": 8.5,
        "legend.handlelength": 2.6,
        # Text from a file is never a formula.
        "text.parse_math": False,
    }


@dataclasses.dataclass
class Picture:
    """A finished drawing. `alt` says in words what it shows, for those who do not see it."""
    name: str
    title: str
    alt: str
    figure: object
    note: str = ""
    hints: dict = dataclasses.field(default_factory=dict)  # whole names of what is cut, by the id that stand_for() gave the text

    def inline(self, serial):
        """For the page: SVG with the page's colours, and ids that no other picture has."""
        out = io.StringIO()
        with warnings.catch_warnings(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "doorbell"}):
            warnings.simplefilter("ignore")  # a glyph that the font does not have: the browser's has it
            FigureCanvasSVG(self.figure).print_svg(out, metadata={k: None for k in ("Date", "Creator", "Format", "Type")})
        svg = out.getvalue()
        svg = svg[svg.index("<svg"):]
        svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
        svg = self._with_hints(svg)
        # Nothing refers to a group, and a group without content draws nothing.
        svg = re.sub(r'<g id="[^"]*"/>', "", re.sub(r'<g id="[^"]*">', "<g>", svg))
        prefix = f"f{serial}-"
        svg = re.sub(r'\bid="', f'id="{prefix}', svg)
        svg = re.sub(r'href="#', f'href="#{prefix}', svg)
        svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
        for colour, variable in VARIABLES.items():
            svg = svg.replace(colour, variable)
        svg = re.sub(r"font: ([^;\"]*?) ?'[^;\"]*sans-serif[^;\"]*", r"font: \1 var(--font)", svg)
        # Two decimals of a coordinate are finer than any screen; text keeps its own.
        svg = re.sub(r'(?<=[ (]d=")[^"]*|(?<= [xy]=")[^"]*', lambda m: re.sub(r"(\d+\.\d{2})\d+", r"\1", m.group()), svg)
        svg = re.sub(r"\s*\n\s*", "\n", svg)
        opening = f'role="img" aria-label="{html.escape(form.printable(self.alt), quote=True)}"'
        svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
                     lambda m: f'<svg viewBox="{m.group(1)}" {opening} xmlns="http://www.w3.org/2000/svg" '
                               'xmlns:xlink="http://www.w3.org/1999/xlink">', svg, count=1)
        return svg.strip()

    def _with_hints(self, svg):
        for name, whole in self.hints.items():
            svg = svg.replace(f'<g id="{name}">', f"<g><title>{html.escape(form.printable(whole))}</title>")
        return svg

    def file(self, kind):
        """The bytes of an SVG or PNG file."""
        out = io.BytesIO() if kind == "png" else io.StringIO()
        with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": "doorbell"}):
            warnings.simplefilter("ignore")
            if kind == "png":
                self.figure.set_dpi(200)
                FigureCanvasAgg(self.figure).print_png(out)
            else:
                FigureCanvasSVG(self.figure).print_svg(out, metadata={"Date": None, "Title": form.printable(self.title),
                                                                      "Description": form.printable(self.alt)})
        return out.getvalue() if kind == "png" else self._with_hints(out.getvalue()).encode("utf-8", "replace")


def stand_for(labels, whole, axis):
    """Lets a text say, when pointed at, what it stands for, where that is more than its own words. `labels` are the texts of
    an axis. Returns a Picture's hints."""
    hints = {}
    for i, (label, name) in enumerate(zip(labels, whole)):
        if "".join(label.get_text().split()) != "".join(name.split()):
            label.set_gid(f"hint-{axis}-{i}")
            hints[f"hint-{axis}-{i}"] = name
    return hints


def wrapped(text, width):
    """Printable text in lines of at most `width` characters; a longer word is cut in two, never lost."""
    return "\n".join(textwrap.wrap(form.printable(text).replace("\n", " "), width, break_on_hyphens=False)) or ""


TITLE = 50  # characters of a title in a line
LEGEND = 48  # of a series' name
LABELS_BELOW = 0.42  # inches that an axis takes for its labels


def new_axes(palette, title, height=HEIGHT, rows=1, columns=1):
    """A figure with its title, in as many lines as that takes, and axes; a list of them if there are several, which share
    the lines of their rows."""
    title = wrapped(title, TITLE)
    figure = Figure(figsize=(WIDTH, height + 0.15 * title.count("\n")), layout="constrained")
    figure.patch.set_facecolor(palette.paper)
    figure.patch.set_visible(palette.paper != "none")
    # More than usual: ticks that the layout itself changes may have longer labels than those that it measured.
    figure.get_layout_engine().set(w_pad=0.1)
    made = figure.subplots(rows, columns, squeeze=False, sharey="row" if columns > 1 else False).flatten().tolist()
    for axes in made:
        axes.patch.set_visible(False)
    # Over the whole figure: over the axes alone it would be cut where labels take half of the width.
    figure.suptitle(title, x=0.015, ha="left", color=palette.ink, fontsize=9.5, fontweight="bold")
    return figure, made if len(made) > 1 else made[0]


def legend_label(text):
    """A series' name, whole."""
    return wrapped(text, LEGEND)


def legend_height(labels):
    """How much higher a figure is for a legend of these labels, beyond one line."""
    written = [legend_label(label).split("\n") for label in labels]
    columns = _columns(max((len(line) for lines in written for line in lines), default=0), len(labels))
    heights = sorted(map(len, written), reverse=True)
    return 0.17 * max(0, sum(heights[::columns]) - 1)


def _columns(longest, count):
    return max(1, min(count, 62 // (longest + 8), 4))


def legend(axes, middle=0.46, onto=None):
    """Below the axes, where it covers no data; of several axes that have the same series, below the lowest (`onto`). In as
    many columns as its labels leave room for."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    columns = _columns(max(len(line) for label in labels for line in label.split("\n")), len(labels))
    onto = onto or axes
    # In inches: a part of the axes' height would change while the layout looks for that height.
    below = onto.transAxes + ScaledTranslation(0, -LABELS_BELOW, onto.figure.dpi_scale_trans)
    onto.legend(handles, labels, loc="upper center", bbox_to_anchor=(middle, 0), bbox_transform=below, ncols=columns,
                borderaxespad=0.0, columnspacing=1.2)


def plain(value):
    """A round value of an axis, in digits alone."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def time_axis(axis):
    axis.set_major_formatter(FuncFormatter(lambda v, _: form.duration(v)))
    axis.set_minor_formatter(NullFormatter())


def round_steps(low, high, most=6):
    """Round values between two bounds for a logarithmic axis: 1-2-5 steps, or powers of ten."""
    ticks = [m * 10.0 ** e for e in range(-9, 20) for m in (1, 2, 5) if low <= m * 10.0 ** e <= high]
    if len(ticks) < 3:
        step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
        while (high - low) / step < 3:
            step /= 2
        ticks = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    if len(ticks) > most:
        powers = [10.0 ** e for e in range(-9, 20) if low <= 10.0 ** e <= high]
        ticks = powers if len(powers) > 2 else ticks
    while len(ticks) > most:
        ticks = ticks[::2]
    return ticks


def apart(low, high, most=6):
    """round_steps for labels side by side: one at the very edge would run into the other axis, and one that is close to
    the next into that."""
    room, kept = (high / low) ** (0.18 if most > 4 else 0.25), []
    for tick in round_steps(low, high, most):
        if tick > low * (high / low) ** 0.04 and (not kept or tick >= kept[-1] * room):
            kept.append(tick)
    return kept


def log_time(axes, which, most=6):
    """Round times as ticks of a logarithmic axis."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    ticks = apart(low, high, most) if which == "x" else round_steps(low, high, most)
    (axes.set_xticks if which == "x" else axes.set_yticks)(ticks)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    axis.set_minor_locator(NullLocator())
    time_axis(axis)


def category_axis(axes, values, key):
    """A logarithmic axis with the measured values as ticks, those left out that would touch."""
    axes.set_xscale("log", base=2)
    low, high = math.log2(values[0]), math.log2(values[-1])
    room = (high - low) / (7 if form.is_length(key) else 11)
    ticks = []
    for value in values:
        if not ticks or math.log2(value) - math.log2(ticks[-1]) >= room:
            ticks.append(value)
    labels = [form.length(v) if form.is_length(key) else f"{v:g}" for v in ticks]
    axes.set_xticks(ticks, labels)
    axes.xaxis.set_minor_locator(NullLocator())
    margin = max((high - low) * 0.06, 0.08)
    axes.set_xlim(2 ** (low - margin), 2 ** (high + margin))

