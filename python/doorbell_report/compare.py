# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The page of a comparison (schema doorbell.compare/1): what differs, and the ratio of each figure with its interval."""

from . import drawing, form, page, plots, results, template, units
from .results import items, number, text

MOST = 45  # ratios of one picture
NAME_LINES = 3  # that a cell's name takes beside its ratio at most
ALONE = "the only cell"
REPEATS = (0, (1, 1.2))  # the line of an interval that repeats make

# verdict: (words, colour, marker, css)
VERDICTS = {
    "regression": ("REGRESSION", "bad", "v", "bad"),
    "better": ("better", "good", "^", "good"),
    "worse": ("worse, within the threshold", 1, "D", "neutral"),
    "slightly better": ("better, within the threshold", 2, "s", "neutral"),
    "same": ("same", 0, "o", "neutral"),
    "undecided": ("undecided", "ink", "x", "warn"),
    "not comparable": ("not comparable", "ink", "P", "warn"),
}


def only(names, output):
    """The comparison, if the first of the names is one; then there must be no other."""
    found = results.comparison(names[0])
    if found is None:
        return None
    if len(names) > 1:
        raise results.Unreadable(f"{names[0]}: it is a comparison, which has a page of its own; give it alone")
    results.files_of(names, output)
    return found


def _shorten(data):
    """Leaves in the cells' names only the words that tell them apart. Returns what all have, and the shortened."""
    names = [text(cell, "cell") for cell in items(data, "cells")]
    words = [name.split(" ") for name in names]
    common = [word for word in dict.fromkeys(words[0]) if all(word in of for of in words)] if len(names) > 1 else []
    short = [" ".join(word for word in of if word not in common) for of in words]
    if len(set(short)) < len(set(names)):
        common, short = [], names
    cells = [{**cell, "cell": name or ALONE} for cell, name in zip(items(data, "cells"), short) if isinstance(cell, dict)]
    return " ".join(common), {**data, "cells": cells}


def _ratios(data):
    """[(label of the cell, ratio)] of what both sides have."""
    return [(text(cell, "cell"), ratio) for cell in items(data, "cells") for ratio in items(cell, "ratios")
            if number(ratio, "ratio")]


def by_repeats(ratio):
    """Whether the interval is that of repeats inside too few runs: it says nothing of what differs between processes."""
    return text(ratio, "basis") == "repeats"


def _words(ratio):
    return VERDICTS.get(text(ratio, "verdict"), (text(ratio, "verdict"), "ink", "x", "warn"))


def _picture(palette, metric, listed, part, threshold):
    title = f"{metric}: B / A" + (f", part {part + 1}" if part else "")
    with drawing.matplotlib.rc_context(drawing.style(palette)):
        whole = [label for label, _ in listed]
        names = [drawing.wrapped(name, plots.ROW_NAME) for name in form.shortened(whole, NAME_LINES * plots.ROW_NAME - 8)]
        lines = max(name.count("\n") + 1 for name in names)
        figure, axes = drawing.new_axes(palette, title, (0.073 + 0.112 * lines) * len(listed) + 1.05 +
                                        0.15 * len({text(r, "verdict") for _, r in listed}))
        seen = set()
        for i, (_, ratio) in enumerate(listed):
            words, colour, marker, _ = _words(ratio)
            colour = getattr(palette, colour) if isinstance(colour, str) else palette.series[colour]
            middle, low, high = (number(ratio, key) for key in ("ratio", "ci_low", "ci_high"))
            if number(ratio, "ci_level") and low and high:
                axes.plot([low, high], [i, i], color=colour, linewidth=1.6, linestyle=REPEATS if by_repeats(ratio) else "-")
            axes.plot([middle], [i], color=colour, marker=marker, linestyle="none", label=None if words in seen else words)
            seen.add(words)
        axes.axvline(1, color=palette.ink, linewidth=1.0)
        if threshold is not None:
            axes.axvspan(1 / (1 + threshold), 1 + threshold, color=palette.ink, alpha=0.1, linewidth=0)
        axes.set_yticks(range(len(listed)), names, fontsize=7.2)
        hints = drawing.stand_for(axes.get_yticklabels(), whole, "y")
        axes.set_ylim(len(listed) - 0.4, -0.6)
        axes.grid(False, axis="y")
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        low, high = min(low, 0.9), max(high, 1.1)
        axes.set_xlim(low, high)
        axes.set_xticks(_ticks(low, high))
        axes.xaxis.set_minor_locator(drawing.NullLocator())
        axes.xaxis.set_major_formatter(drawing.FuncFormatter(lambda v, _: f"{v:g}"))
        drawing.legend(axes, 0.2)
    said = "; ".join(f"{label}: {number(r, 'ratio'):.3g}, {_words(r)[0]}" + (" by repeats" if by_repeats(r) else "")
                     for label, r in listed)
    band = f" The band is the threshold of {100 * threshold:g} %." if threshold is not None else ""
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in f"compare-{metric}-{part}")
    note = "Each ratio with its interval"
    note += ", dotted where only repeats of few runs make it" if any(by_repeats(ratio) for _, ratio in listed) else ""
    note += f"; the grey band is the threshold of {100 * threshold:g} %." if threshold is not None else "."
    return drawing.Picture(name, title, f"Ratio B to A of {metric}, with its interval. {said}.{band}", figure, note, hints)


def _ticks(low, high):
    """Round ratios: the finest steps that cover the range."""
    for ticks in ([0.9, 0.95, 1, 1.05, 1.1], [0.8, 0.9, 1, 1.1, 1.25], [0.5, 0.6, 0.8, 1, 1.25, 1.6, 2],
                  [0.25, 0.5, 1, 2, 4], [0.1, 0.2, 0.5, 1, 2, 5, 10], [0.01, 0.1, 1, 10, 100]):
        if low >= ticks[0] * 0.97 and high <= ticks[-1] * 1.03:
            return [tick for tick in ticks if low <= tick <= high]
    return drawing.round_steps(low, high)


def pictures(data, palette):
    """One a metric, or several where there are many cells."""
    _, data = _shorten(data)
    by_metric = {}
    for label, ratio in _ratios(data):
        by_metric.setdefault(text(ratio, "metric"), []).append((label, ratio))
    threshold = number(data, "threshold_percent")
    threshold = None if threshold is None else threshold / 100
    return [_picture(palette, metric, listed[i:i + MOST], i // MOST, threshold)
            for metric, listed in by_metric.items() for i in range(0, len(listed), MOST)]


def _unit(metric, rate):
    """The unit of a metric's figures; `rate` is that of rates."""
    return {"ops_per_s": rate, "bytes_per_s": units.BYTES}.get(metric, units.TIME if metric.endswith("_ns") else units.NONE)


def _rests_on(ratio):
    """On what the verdict of a ratio rests."""
    runs = f"{form.count(number(ratio, 'runs_before'))} and {form.count(number(ratio, 'runs_after'))} runs"
    if not by_repeats(ratio):
        return runs
    return f"{form.count(number(ratio, 'repeats_before'))} and {form.count(number(ratio, 'repeats_after'))} repeats of {runs}"


def _rate(data):
    return units.rate(operation for cell in items(data, "cells") for operation in items(cell, "operations"))


def _table(data, rate):
    rows = []
    for cell in items(data, "cells"):
        ratios = items(cell, "ratios") or [None]
        why = "; ".join(form.value_text(reason) for reason in items(cell, "not_comparable"))
        for ratio in ratios:
            metric = text(ratio, "metric")
            unit = _unit(metric, rate)
            level = number(ratio, "ci_level")
            words, _, _, css = _words(ratio) if ratio else VERDICTS["not comparable"]
            verdict = page.td(words + (f": {why}" if why else ""), "t", badge=css)
            low, high = number(ratio, "ci_low"), number(ratio, "ci_high")
            interval = f"{low:.3f} to {high:.3f} ({100 * level:.1f} %)" if level and low is not None and high is not None \
                else form.MISSING
            rows.append([
                page.td(text(cell, "cell"), "p"), verdict, page.td(metric or form.MISSING, "t"),
                page.td(form.MISSING if number(ratio, "ratio") is None else f"{number(ratio, 'ratio'):.3f}"), page.td(interval),
                page.figure_td(number(ratio, "before"), unit.factor), page.figure_td(number(ratio, "after"), unit.factor),
                page.td(unit.name, "t"), page.td(_rests_on(ratio) if ratio else form.MISSING, "t")])
    head = ["cell", ("verdict", "t"), ("metric", "t"), "B / A", "interval", "A", "B", ("unit", "t"), ("rests on", "t")]
    return page.table("Every figure", head, rows, sortable=True, wide=True)


def _basis(data):
    """On what the verdicts rest, in sentences, the weakest part last."""
    before, after = (form.count(number(data, key)) for key in ("runs_before", "runs_after"))
    taken = "taken in turns, so that whatever else the machine did affected both alike" if results.at(data, "in_turns") else \
        "each made on its own: what changed between the two is part of the ratio"
    said = [f"The verdicts rest on {before} run{'' if before == '1' else 's'} of A and {after} of B, {taken}."]
    ratios = [ratio for _, ratio in _ratios(data)]
    weak = sum(map(by_repeats, ratios))
    if weak:
        said.append(f"{weak} of {len(ratios)} rest{'s' if weak == 1 else ''} only on the repeats inside too few runs. That is weaker: the "
                    "repeats of a process agree for reasons that the next process does not share, so only a large factor counts.")
    none = sum(1 for ratio in ratios if not number(ratio, "ci_level"))
    if none:
        said.append(f"{none} of {len(ratios)} {'has' if none == 1 else 'have'} too few runs for any interval.")
    return " ".join(said)


def _unmet(data, rate):
    """What B had to reach and did not, a line each; the names of cells are whole."""
    lines = []
    for one in items(data, "unmet"):
        metric = text(one, "metric")
        unit = _unit(metric, rate)
        bound = "at most" if metric.endswith("_ns") else "at least"
        figure = number(one, "figure")
        lines.append(f"{text(one, 'cell')}: {metric} of B is {'not known' if figure is None else unit.said(figure)}, "
                     f"and {bound} {unit.said(number(one, 'demanded'))} is demanded")
    return lines


def _differences(data):
    rows = [[page.td(text(d, "what"), "p"), page.td(text(d, "before"), "p"), page.td(text(d, "after"), "p"),
             page.td("all" if number(d, "cells") is None else form.count(number(d, "cells")))]
            for d in items(data, "differences")]
    head = ["what", ("A", "t"), ("B", "t"), "cells"]
    return page.table("What differs besides the figures", head, rows) if rows else None


def render(data, title, with_pictures, lacks=""):
    common, data = _shorten(data)
    tally = {}
    for cell in items(data, "cells"):
        for ratio in items(cell, "ratios"):
            words, _, _, css = _words(ratio)
            tally[words, css] = tally.get((words, css), 0) + 1
    for key, what, css in (("new_data_errors", "with data errors that A does not have", "bad"),
                           ("not_comparable", "not sound on both sides", "warn")):
        if number(data, key):
            tally[f"cell{'' if number(data, key) == 1 else 's'} {what}", css] = number(data, key)
    order = ("bad", "warn", "good", "neutral")
    rate = _rate(data)
    drawn = pictures(data, drawing.PAGE) if with_pictures else []
    return template.render_template(
        "compare.html.j2", title, before=text(data, "before") or "A", after=text(data, "after") or "B",
        tally=sorted(((n, words, css) for (words, css), n in tally.items()), key=lambda t: order.index(t[2])),
        differences=_differences(data), warnings=[form.value_text(w) for w in items(data, "warnings")],
        pictures=[{"svg": template.Markup(p.inline(i)), "note": p.note} for i, p in enumerate(drawn)], table=_table(data, rate),
        lead=text(data, "in_turns", "sentence"), bad=bool(number(data, "exit_code")), basis=_basis(data), unmet=_unmet(data, rate),
        legend=units.legend([rate, units.BYTES]), lacks=lacks,
        threshold=number(data, "threshold_percent"), common=common,
        across=[form.value_text(option) for option in items(data, "across")],
        only_before=[form.value_text(c) for c in items(data, "only_before")],
        only_after=[form.value_text(c) for c in items(data, "only_after")])
