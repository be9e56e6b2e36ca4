# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The page. Whatever comes from a result file passes through esc() on its way in."""

import datetime
import html
import json
import re
import shlex

from . import figures, load, style
from .load import at, items, members, number, text

MISSING = '<span class="none">-</span>'

# From here on a page has one picture of all cells and a small one a cell, and says once what all have in common:
# 200 cells with three pictures each would be 10 MB that take a minute.
MANY = 13

KINDS = {
    "model": ("software model", "A software model on this machine's CPU or GPU: no figure here is a device's."),
    "emulated": ("emulated", "Someone else's software device: no figure here is a device's."),
    "hardware": ("hardware", "A physical device."),
    "kernel": ("kernel", "A file or block device, through the kernel's own system calls."),
}


def printable(value):
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def esc(value):
    return html.escape(printable(value), quote=True)


def tag(name, content, css="", **attributes):
    extra = f' class="{css}"' if css else ""
    extra += "".join(f' {key}="{esc(value)}"' for key, value in attributes.items())
    return f"<{name}{extra}>{content}</{name}>"


def badge(label, kind, hint=""):
    return tag("span", esc(label), f"badge {kind}", **({"title": hint} if hint else {}))


# ---- numbers

def digits(value):
    """Four significant digits, three below 1, whole from a thousand on (as text.cpp)."""
    if value is None:
        return None
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 999.95:
        return f"{value:,.0f}".replace(",", "\N{THIN SPACE}")
    for limit, pattern in ((99.995, ".1f"), (9.9995, ".2f"), (0.9995, ".3f")):
        if size >= limit:
            return format(value, pattern)
    return format(value, "#.3g")


def shown(value, unit=1.0):
    return MISSING if value is None else digits(value / unit)


def count(value):
    return MISSING if value is None else f"{value:,}".replace(",", "\N{THIN SPACE}")


def rate(value):
    """(figure, prefix) of operations per second."""
    if value is None:
        return MISSING, ""
    for unit, prefix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= unit:
            return digits(value / (1e3 if prefix == "k" else unit)), prefix
    return digits(value), ""


def iops(value):
    figure, prefix = rate(value)
    return f"{figure}\N{THIN SPACE}{prefix}" if prefix else figure


def size(value):
    if value is None:
        return MISSING
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{digits(value / unit)} {name}"
    return f"{count(value)} B"


# ---- tables

def row(cells, header=False, css=""):
    """Cells are HTML; a (HTML, class) pair carries a class."""
    out = ""
    for cell in cells:
        content, cell_css = cell if isinstance(cell, tuple) else (cell, "")
        out += tag("th" if header else "td", content, cell_css, **({"scope": "col"} if header else {}))
    return tag("tr", out, css)


def table(head, rows, css=""):
    return tag("div", tag("table", tag("thead", row(head, header=True)) + tag("tbody", "".join(rows)), css), "scroll")


def facts(pairs, css="facts"):
    """A list of label and HTML; pairs without a value are left out."""
    return tag("dl", "".join(tag("div", tag("dt", esc(k)) + tag("dd", v)) for k, v in pairs if v not in (None, "")),
               css)


def value_text(value):
    return value if isinstance(value, str) else json.dumps(value)


def parameters(cell):
    return [(key, value_text(value)) for key, value in members(cell, "cell").items()]


def chips(cell):
    shown_parameters = "".join(tag("span", f"{esc(k)} {tag('b', esc(v))}", "chip") for k, v in parameters(cell))
    return tag("div", shown_parameters, "chips") if shown_parameters else ""


def raw(title, value):
    # JSON is full of quotes, and outside attributes they need no escape.
    return tag("details", tag("summary", esc(title)) +
               tag("pre", html.escape(printable(json.dumps(value, indent=2)), quote=False)))


# ---- what was measured on, by whom, and checked how

def device_badge(cell):
    kind = text(cell, "device", "kind")
    label, hint = KINDS.get(kind, (kind or "unknown device", ""))
    return badge(label, f"kind-{kind}" if kind in KINDS else "neutral", hint)


def initiator(cell):
    gpu = number(cell, "initiator", "gpu")
    kind = text(cell, "initiator", "kind").upper() or "?"
    return f"{kind} {gpu}" if gpu is not None else kind


def verify_badge(cell):
    failed = load.data_failures(cell)
    mode = text(cell, "verify", "mode")
    if failed:
        return badge(", ".join(f"{n} {name}" for name, n in failed.items()), "bad")
    if not load.is_verified(cell):
        return badge("not verified", "warn", "Nobody checked the data: it may be anything.")
    return badge("verified" if mode == "full" else f"verified, {mode}", "good")


def errors_badge(cell):
    counts = load.error_counts(cell)
    if not counts:
        return tag("span", "none", "none")
    return badge(", ".join(f"{n} {name}" for name, n in counts.items()), "bad")


# ---- the summary

SUMMARY = [("path", ""), ("device", ""), ("initiator", ""), ("parameters", ""), ("IOPS", "n"), ("MB/s", "n"),
           ("p50 us", "n"), ("p99 us", "n"), ("p99.9 us", "n"), ("data", ""), ("errors", "")]


def summary_row(cell, anchor, number_of_it):
    latency = members(cell, "metrics", "latency_ns")
    chosen = " ".join(f"{k}={v}" for k, v in parameters(cell))
    return row([
        tag("a", f"{number_of_it}. {esc(text(cell, 'path') or '?')}", href=f"#{anchor}"),
        device_badge(cell),
        esc(initiator(cell)),
        (esc(chosen), "params"),
        (iops(number(cell, "metrics", "ops_per_s")), "n"),
        (shown(number(cell, "metrics", "bytes_per_s"), 1e6), "n"),
        *((shown(number(latency, key), 1e3), "n") for key in ("p50", "p99", "p99_9")),
        verify_badge(cell),
        errors_badge(cell),
    ])


def summary(results):
    rows, shown_cells = [], 0
    for r, result in enumerate(results):
        if len(results) > 1:
            rows.append(tag("tr", tag("td", esc(result.name), colspan=len(SUMMARY)), "group"))
        for c, cell in enumerate(result.cells):
            shown_cells += 1
            rows.append(summary_row(cell, f"r{r}c{c}", shown_cells))
    return table([(name, css) for name, css in SUMMARY], rows, "summary") if rows else \
        tag("p", "No cell was measured.", "note")


# ---- one cell

METRICS = [("", ""), ("ops", "n"), ("IOPS", "n"), ("MB/s", "n"), ("elapsed s", "n"), ("min us", "n"), ("mean us", "n"),
           ("std us", "n"), ("p50 us", "n"), ("p90 us", "n"), ("p99 us", "n"), ("p99.9 us", "n"), ("p99.99 us", "n"),
           ("max us", "n")]


def metrics_table(cell):
    rows = []
    for name, metrics in load.populations(cell):
        latency = members(metrics, "latency_ns")
        rows.append(row([
            (esc(name), "head"),
            (count(number(metrics, "ops")), "n"),
            (iops(number(metrics, "ops_per_s")), "n"),
            (shown(number(metrics, "bytes_per_s"), 1e6), "n"),
            (shown(number(metrics, "elapsed_s")), "n"),
            *((shown(number(latency, key), 1e3), "n")
              for key in ("min", "mean", "std", "p50", "p90", "p99", "p99_9", "p99_99", "max")),
        ]))
    return table(METRICS, rows)


def verification(cell):
    v = members(cell, "verify")
    pairs = [("mode", esc(text(v, "mode") or "unknown")),
             ("checked", f"{count(number(v, 'checked'))} I/Os ({size(number(v, 'checked_bytes'))})")]
    pairs += [(name, tag("b", count(number(v, name)), "bad") if number(v, name) else count(number(v, name)))
              for name in load.DATA_CLASSES]
    if number(v, "unverifiable"):
        pairs.append(("never written", count(number(v, "unverifiable"))))
    first = "".join(
        tag("li", f"{esc(text(o, 'kind'))} at byte {esc(hex(address)) if isinstance(address, int) else MISSING}, "
                  f"sequence {count(number(o, 'sequence'))} was due")
        for o in items(v, "first") for address in [number(o, "address")])
    return facts(pairs) + (tag("ul", first, "first") if first else "")


def errors(cell):
    pairs = [(name, tag("b", esc(value_text(n)), "bad") if number(n) else esc(value_text(n)))
             for name, n in members(cell, "errors").items()]
    return facts(pairs) if pairs else tag("p", "none recorded", "note")


def cost(cell):
    c = members(cell, "cost")
    pairs = [("CPU per op", f"{shown(number(c, 'cpu_ns_per_op'))} ns"),
             ("doorbells per op", shown(number(c, "doorbells_per_op"))),
             ("polls per completion", shown(number(c, "polls_per_completion"))),
             ("CPU user", f"{shown(number(c, 'cpu_user_s'))} s"),
             ("CPU kernel", f"{shown(number(c, 'cpu_system_s'))} s"),
             ("GPU SM", f"{shown(number(c, 'gpu_sm_percent'))} %" if number(c, "gpu_sm_percent") is not None else "")]
    pairs += [(f"thread {text(t, 'name')}", f"{shown(number(t, 'cpu_s'))} s") for t in items(c, "threads")]
    return facts(pairs)


def substeps(cell):
    pairs = [(name.replace("_", " "), f"{shown(number(ns))} ns") for name, ns in members(cell, "substeps_ns").items()
             if number(ns) is not None]
    return facts(pairs) if pairs else ""


def spread_unit(metric):
    if metric == "bytes_per_s":
        return 1e6, "throughput, MB/s"
    if metric == "ops_per_s":
        return 1.0, "IOPS"
    if metric.endswith("_ns"):
        return 1e3, f"{metric[:-3].replace('_', '.')}, us"
    return 1.0, metric


def spread(cell):
    rows = []
    for metric, s in members(cell, "spread").items():
        unit, label = spread_unit(metric)
        level = number(s, "ci_level")
        interval = MISSING
        if level:
            interval = f"{shown(number(s, 'ci_low'), unit)} to {shown(number(s, 'ci_high'), unit)} " \
                       f"({100 * level:.1f} %)"
        flags = badge("noisy", "warn", "(max - min) / median is above 5 %") if at(s, "noisy") is True else ""
        odd = [str(i + 1) for i in items(s, "outliers") if isinstance(i, int)]
        if odd:
            flags += badge("outlier: repeat " + ", ".join(odd), "neutral", "Further than 3 scaled MAD from the median")
        rows.append(row([(esc(label), "head"), (shown(number(s, "median"), unit), "n"), (interval, "n"),
                         *((shown(number(s, key), unit), "n") for key in ("min", "max", "mean", "std")), flags]))
    head = [("over the repeats", ""), ("median", "n"), ("interval of the median", "n"), ("min", "n"), ("max", "n"),
            ("mean", "n"), ("std", "n"), ("", "")]
    return table(head, rows) if rows else ""


def repeats(cell):
    rows = [row([(str(i), "head"), (esc(value_text(at(r, "seed"))), "n"), (iops(number(r, "ops_per_s")), "n"),
                 (shown(number(r, "bytes_per_s"), 1e6), "n"),
                 *((shown(number(r, key), 1e3), "n") for key in ("p50_ns", "p99_ns", "p99_9_ns")),
                 (count(number(r, "errors")), "n")])
            for i, r in enumerate(items(cell, "repeats"), 1)]
    if not rows:
        return ""
    head = [("repeat", ""), ("seed", "n"), ("IOPS", "n"), ("MB/s", "n"), ("p50 us", "n"), ("p99 us", "n"),
            ("p99.9 us", "n"), ("errors", "n")]
    return tag("details", tag("summary", f"Every repeat ({len(rows)})") + table(head, rows))


SHARED = {"path", "cell", "options", "initiator", "device", "metrics", "substeps_ns", "repeats", "spread", "verify",
          "errors", "cost"}


def own_figures(cell, sheet, place):
    """What only this path reports, without the populations that are rows of the metrics already."""
    names = {name for name, _ in load.populations(cell)}
    out = ""
    for key, value in cell.items():
        if key in SHARED or not isinstance(value, dict):
            continue
        rest = {k: v for k, v in value.items() if key != text(cell, "path") or k not in names}
        if rest:
            out += sheet.raw(f"{key}: the path's own figures", rest, place)
    return out


def single_operations(cell):
    """RDMA, CXI: the form in which vendors publish; rates are formed from each operation's latency."""
    single = members(cell, text(cell, "path"), "single_operation")
    rows = [row([(esc(label), "head"), *((shown(number(single, key, figure), unit), "n")
                                         for figure in ("min", "mean", "std", "max"))])
            for key, label, unit in (("latency_ns", "latency, us", 1e3), ("ops_per_s", "IOPS", 1.0),
                                     ("bytes_per_s", "throughput, MB/s", 1e6)) if members(single, key)]
    head = [("single operations, all repeats", ""), ("min", "n"), ("mean", "n"), ("std", "n"), ("max", "n")]
    return table(head, rows) if rows else ""


def panel(title, content):
    return tag("section", tag("h4", title) + content, "panel") if content else ""


def since(first, value):
    """(what of `value` is other than in `first`, whether anything is the same)."""
    other = {k: v for k, v in value.items() if k not in first or first[k] != v}
    return other, len(other) < len(value)


class Sheet:
    """What a page's cells and results share: its artist, and what was said before, in a page of many cells."""

    def __init__(self, results, artist):
        self.artist = artist
        self.many = sum(len(result.cells) for result in results) >= MANY
        self.said = {}

    def raw(self, title, value, place):
        """`value` as JSON, in a page of many without what the first of its kind said already."""
        if not self.many or title not in self.said:
            self.said.setdefault(title, (value, place))
            return raw(title, value)
        first, where = self.said[title]
        other, common = since(first, value)
        missing = [k for k in first if k not in value]
        label = f"{title}: as {where}" + (", except" if other or missing else "")
        if not common:
            return raw(title, value)
        return raw(label, {**other, **{k: None for k in missing}}) if other or missing else tag("p", esc(label), "note")

    def facts(self, pairs, place):
        """Label and HTML, in a page of many without the pairs that the first result has, too."""
        first, where = self.said.setdefault("facts", (dict(pairs), place))
        if not self.many or where == place:
            return facts(pairs, "facts wide")
        other, _ = since(first, dict(pairs))
        return tag("p", esc(f"as {where}" + (", except" if other else "")), "note") + facts(other.items(), "facts wide")

    def pictures(self, cell):
        if not self.artist:
            return ""
        if self.many:
            return figures.small_distribution(cell)
        drawn = "".join(tag("figure", svg) for svg in self.artist.of_cell(cell))
        return tag("div", drawn, "pictures") if drawn else ""


def cell_card(cell, anchor, sheet, place):
    title = tag("h3", f"{esc(text(cell, 'path') or '?')} {tag('span', esc(text(cell, 'device', 'name')), 'device')}")
    badges = tag("div", device_badge(cell) + badge(f"initiator {initiator(cell)}", "neutral") + verify_badge(cell) +
                 (badge("errors: " + ", ".join(load.error_counts(cell)), "bad") if load.error_counts(cell) else ""),
                 "badges")
    return tag("article", title + badges + chips(cell) + metrics_table(cell) +
               sheet.pictures(cell) +
               tag("div", panel("Verification", verification(cell)) + panel("Errors", errors(cell)) +
                   panel("Cost", cost(cell)) + panel("Steps of one operation", substeps(cell)), "panels") +
               single_operations(cell) + spread(cell) + repeats(cell) +
               sheet.raw("Every option", members(cell, "options"), place) + own_figures(cell, sheet, place),
               "card", id=anchor)


# ---- one result

ENVIRONMENT = [("date_utc", "date"), ("cpu", "CPU"), ("sockets", "sockets"), ("cores", "cores"),
               ("memory_bytes", "memory"), ("kernel", "kernel"), ("distribution", "distribution"),
               ("hypervisor", "hypervisor"), ("container", "container"), ("governor", "governor"),
               ("clocksource", "clock"), ("clock_read_ns", "clock read, ns"), ("load_average", "load average")]


def provenance(result, sheet):
    environment = members(result.data, "environment")
    tool = members(result.data, "tool")
    pairs = [("tool", esc(" ".join(value_text(tool.get(k)) for k in ("name", "version", "git", "build")
                                   if tool.get(k) is not None)))]
    for key, label in ENVIRONMENT:
        value = environment.get(key)
        if value is None:
            continue
        if key == "memory_bytes":
            pairs.append((label, size(number(value))))
        elif number(value) is not None:
            pairs.append((label, shown(number(value)) if isinstance(value, float) else count(value)))
        else:
            pairs.append((label, esc(value_text(value))))
    gpus = [text(g, "name") + (f" ({text(g, 'driver')})" if text(g, "driver") else "")
            for g in items(environment, "gpu")]
    pairs.append(("GPU", esc(", ".join(gpus)) if gpus else "none"))
    return sheet.facts(pairs, f"in {result.name}")


def command_line(result):
    return shlex.join(value_text(word) for word in items(result.data, "argv"))


def warning_list(results):
    """Each warning once, whatever numbers stand in it, before the figures that it is about."""
    found = {}
    for result in results:
        for warning in items(result.data, "warnings"):
            line = value_text(warning)
            found.setdefault(re.sub(r"[0-9.]+", "#", line), []).append(line)
    lines = "".join(tag("li", esc(lines[0] if len(results) == 1 else f"{lines[0]} ({len(lines)} of {len(results)} "
                                  "results)")) for lines in found.values())
    return tag("ul", lines, "warnings") if lines else ""


def result_section(result, index, sheet, first_cell):
    kind, line = load.verdict(result)
    css = {"ok": "good", "unverified": "warn", "interrupted": "warn", "skipped": "neutral"}.get(kind, "bad")
    warnings = "".join(tag("li", esc(value_text(w))) for w in items(result.data, "warnings"))
    return tag(
        "section",
        tag("h2", esc(result.name)) +
        tag("p", esc(line), f"verdict {css}") +
        tag("pre", f'<span class="prompt">$</span> {esc(command_line(result))}', "argv") +
        (tag("ul", warnings, "warnings") if warnings else "") +
        tag("details", tag("summary", "The machine and the build") + provenance(result, sheet) +
            sheet.raw("Everything that was recorded", members(result.data, "environment"), f"in {result.name}"),
            **({} if sheet.many and index else {"open": "open"})) +
        "".join(cell_card(cell, f"r{index}c{c}", sheet, f"in cell {first_cell + c}")
                for c, cell in enumerate(result.cells)),
        "result", id=f"r{index}")


# ---- the page

def honesty(results):
    kinds = {text(cell, "device", "kind") for result in results for cell in result.cells}
    lines = []
    if kinds & {"model", "emulated"}:
        lines.append("Cells marked <b>software model</b> or <b>emulated</b> measure doorbell and software devices on "
                     "this machine. They say nothing about the speed of a physical device.")
    if any(not load.is_verified(cell) for result in results for cell in result.cells):
        lines.append("Cells marked <b>not verified</b> moved data that nobody checked.")
    return "".join(tag("p", line, "note") for line in lines)


def render(results, title, drawing):
    """The whole page as text. `drawing` says whether matplotlib may be used."""
    artist = figures.Artist() if drawing else None
    sheet = Sheet(results, artist)
    cells = sum(len(result.cells) for result in results)
    made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    kinds = [load.verdict(result)[0] for result in results]
    tally = "".join(badge(f"{kinds.count(kind)} {label}", css) for kind, label, css in (
        ("ok", "ok", "good"), ("unverified", "ok, not all verified", "warn"), ("failed", "failed", "bad"),
        ("interrupted", "interrupted", "warn"), ("skipped", "skipped", "neutral")) if kinds.count(kind))
    plural = "" if len(results) == 1 else "s"
    body = tag("header", tag("h1", esc(title)) +
               tag("p", f"{len(results)} result{plural}, {cells} cell{'' if cells == 1 else 's'}, page made {made}",
                   "sub") + tag("div", tally, "badges"))
    overview = artist.of_all([cell for result in results for cell in result.cells]) if artist and sheet.many else ""
    sections, first_cell = "", 1
    for i, result in enumerate(results):
        sections += result_section(result, i, sheet, first_cell)
        first_cell += len(result.cells)
    body += tag("main", honesty(results) + warning_list(results) +
                (tag("figure", overview, "overview") if overview else "") + summary(results) + sections)
    body += tag("footer", "1 MB/s is 10<sup>6</sup> bytes/s. A percentile with fewer than 10 operations above it is "
                          "not shown. Metrics and pictures are those of the median repeat.")
    return ("<!DOCTYPE html>\n"
            '<html lang="en"><head><meta charset="utf-8">'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{esc(title)}</title><style>{style.CSS}</style></head>\n<body>{body}</body></html>\n")
