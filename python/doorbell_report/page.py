# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The contents of the page, as plain values; the templates lay them out, and escape whatever comes from a result file."""

from . import charts, conclusion, drawing, figures, form, groups, notes, published, results, units
from .results import at, items, members, number, text
from .template import Markup, render_template

# From here on a cell has a small picture and is folded, and the page says once what all cells have in common: 200
# cells with three pictures each would be 10 MB that take a minute.
MANY = 13

KIND_CSS = {"ok": "good", "unverified": "warn", "interrupted": "warn", "skipped": "neutral", "failed": "bad"}


# ---- tables: a head and rows of cells; most are figures, "t" is text, "p" text that may take several lines

def td(shown, css="", sort=None, href="", badge="", hint="", note=""):
    return {"text": shown, "css": css, "sort": sort, "href": href, "badge": badge, "hint": hint, "note": note}


def figure_td(value, unit=1.0):
    return td(form.shown(value, unit))


def table(caption, head, rows, sortable=False, wide=False):
    head = [title if isinstance(title, tuple) else (title, "") for title in head]
    return {"caption": caption, "head": head, "rows": rows, "sortable": sortable, "wide": wide}


def verdict_td(row):
    kind, line = row.verdict
    if kind == "ok" and row.noisy:
        return td("ok, noisy", "t", badge="warn", hint="(max - min) / median over the repeats is above 5 %")
    label = {"ok": "ok", "unverified": "not verified", "failed": "FAILED"}.get(kind, kind)
    return td(label, "t", badge=KIND_CSS[kind], hint=line + (f": {row.error}" if row.error else ""))


def overview(group):
    """The group's cells, only what varies as columns, one unit a column."""
    rows = group.rows
    rate, volume = group.units.rate, group.units.volume
    lossy = any(row.of_path("lost_percent") is not None for row in rows)
    varied = [key for key in group.varied if key != "checked"]
    columns = [("cell", [td(row.number, href=f"#{row.anchor}", sort=row.order) for row in rows]),
               (("verdict", "t"), list(map(verdict_td, rows)))]
    if "checked" in group.varied:
        columns.append((("checked", "t"), [td(row.checked, "t") for row in rows]))
    figures = [(rate.name, [figure_td(row.figure("metrics", "ops_per_s"), rate.factor) for row in rows]),
               ("\N{PLUS-MINUS SIGN} %", list(map(_half_td, rows))),
               (volume.name, [figure_td(row.figure("metrics", "bytes_per_s"), volume.factor) for row in rows])]
    figures += [(f"{name} us", [figure_td(row.figure("metrics", "latency_ns", key), 1e3) for row in rows])
                for name, key in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p99_9"))]
    if lossy:
        figures.append(("lost %", [figure_td(row.of_path("lost_percent")) for row in rows]))
    told = [((form.name(key), "" if _counts(group, key) else "t"), [_parameter_td(group, row, key) for row in rows])
            for key in varied]
    told += [((form.name(key), "t"), [td(form.parameter(key, row.planned.get(key)), "t") for row in rows]) for key in group.planned]
    # Figures are seen without scrolling: parameters for which there is no room left of them come behind them.
    room = TABLE_PX - sum(map(_width, columns + figures))
    before = 0
    while before < len(told) and _width(told[before]) <= room:
        room -= _width(told[before])
        before += 1
    columns += told[:before] + figures + told[before:]
    return table(f"{group.title}: every cell", [title for title, _ in columns],
                 [list(cells) for cells in zip(*(cells for _, cells in columns))], sortable=True, wide=True)


TABLE_PX = 1180  # of a page that is 1280 wide


def _width(column):
    """About how many pixels a column takes, in a wide font. A text that may take several lines has at least the width
    that the style sheet gives it, and that of its longest word."""
    title, cells = column
    head = title[0] if isinstance(title, tuple) else title

    def width(c):
        if c["css"] == "p":
            return max(170, 8.3 * max(map(len, c["text"].split()), default=0))
        return 8.3 * len(c["text"]) + 18 * bool(c["badge"])
    return 19 + max(8.0 * len(head), *map(width, cells))


def _half_td(row):
    interval, middle = row.interval("ops_per_s"), row.figure("metrics", "ops_per_s")
    return td(f"{50 * (interval[1] - interval[0]) / middle:.1f}" if interval and middle else form.MISSING)


def _counts(group, key):
    return all(isinstance(row.parameters.get(key), (int, float, type(None))) and
               not isinstance(row.parameters.get(key), bool) for row in group.rows)


def _parameter_td(group, row, key):
    value = row.parameters.get(key)
    shown = form.parameter(key, value)
    return td(shown, "" if _counts(group, key) else "p" if len(shown) > 24 else "t",
              sort=value if form.is_length(key) and isinstance(value, int) else None)


def published_tables(group, tables):
    """Ours beside theirs, in the published unit and at the published definition; no ratio is formed."""
    made = []
    for shown in published.of_group(group, tables):
        names = list(members(shown.table, "columns")) or \
            list(dict.fromkeys(k for f in shown.figures.values() for k in f))
        rows = [[td(row.number, href=f"#{row.anchor}", sort=row.order), td(group.label(row), "p"),
                 figure_td(shown.measure.of(row))] +
                [td(form.value_text(shown.figures[row.number].get(name)) if name in shown.figures[row.number]
                    else form.MISSING) for name in names]
                for row in group.rows if row.number in shown.figures]
        caption = f"Ours beside figures published for another machine: {text(shown.table, 'file')}"
        if shown.where:
            caption += f", {shown.where}"
        if text(shown.table, "note"):
            caption += f" ({text(shown.table, 'note')})"
        head = ["cell", ("what", "t"), f"ours, {shown.unit}"] + \
            [f"published {name}, {shown.unit}" for name in names]
        made.append((table(caption, head, rows), text(shown.table, "ours")))
    return made


# ---- one cell

LATENCIES = ("min", "mean", "std", "p50", "p90", "p99", "p99_9", "p99_99", "max")


def metrics_table(cell, units):
    populations = results.populations(cell)
    if len(populations) == 2 and populations[0][1] == populations[1][1]:
        populations = populations[:1]  # one part is all
    head = ["operations", "count", units.rate.name, units.volume.name, "time s"] + \
        [f"{name.replace('_', '.')} us" for name in LATENCIES]
    rows = [[td(name), td(form.count(number(m, "ops"))), figure_td(number(m, "ops_per_s"), units.rate.factor),
             figure_td(number(m, "bytes_per_s"), units.volume.factor), figure_td(number(m, "elapsed_s"))] +
            [figure_td(number(m, "latency_ns", key), 1e3) for key in LATENCIES] for name, m in populations]
    return table("Rate and latency", head, rows)


def verification(cell):
    v = members(cell, "verify")
    pairs = [("mode", text(v, "mode") or "unknown", ""),
             ("checked", f"{form.count(number(v, 'checked'))} operations ({form.amount(number(v, 'checked_bytes'))})", "")]
    pairs += _counts_of({name: number(v, name) for name in results.DATA_CLASSES})
    if number(v, "unverifiable"):
        pairs.append(("never written", form.count(number(v, "unverifiable")), ""))
    first = []
    for one in items(v, "first"):
        address = number(one, "address")
        first.append(f"{text(one, 'kind')} at byte {hex(address) if isinstance(address, int) else form.MISSING}, sequence "
                     f"{form.count(number(one, 'sequence'))} was due")
    return {"pairs": pairs, "first": first}


def errors(cell):
    return _counts_of(members(cell, "errors"))


def _counts_of(counts):
    """Each that occurred, and the others in one line."""
    found = [(name, form.value_text(n), "bad") for name, n in counts.items() if n not in (0, None)]
    none = [name for name, n in counts.items() if n in (0, None)]
    return found + ([(", ".join(none), "0", "")] if none else [])


def cost(cell):
    c = members(cell, "cost")
    pairs = [("CPU an operation", number(c, "cpu_ns_per_op"), "ns"), ("doorbells an operation", number(c, "doorbells_per_op"), ""),
             ("polls a completion", number(c, "polls_per_completion"), ""), ("CPU user", number(c, "cpu_user_s"), "s"),
             ("CPU kernel", number(c, "cpu_system_s"), "s"), ("GPU SM", number(c, "gpu_sm_percent"), "%")]
    pairs += [(f"thread {text(t, 'name')}", number(t, "cpu_s"), "s") for t in items(c, "threads")]
    return [(label, f"{form.digits(value)} {unit}".strip(), "") for label, value, unit in pairs if value is not None]


def substeps(cell):
    return [(form.name(name), f"{form.digits(number(ns))} ns", "") for name, ns in members(cell, "substeps_ns").items()
            if number(ns) is not None]


def _spread_unit(metric, units):
    if metric == "bytes_per_s":
        return units.volume.factor, f"throughput, {units.volume.name}"
    if metric == "ops_per_s":
        return units.rate.factor, f"rate, {units.rate.name}"
    if metric.endswith("_ns"):
        return 1e3, f"{metric[:-3].replace('_', '.')}, us"
    return 1.0, metric


def spread(cell, units):
    rows = []
    for metric, s in members(cell, "spread").items():
        unit, label = _spread_unit(metric, units)
        level = number(s, "ci_level")
        interval = f"{form.shown(number(s, 'ci_low'), unit)} to {form.shown(number(s, 'ci_high'), unit)} " \
                   f"({100 * level:.1f} %)" if level else form.MISSING
        flags = ["noisy"] if at(s, "noisy") is True else []
        odd = [str(i + 1) for i in items(s, "outliers") if isinstance(i, int)]
        if odd:
            flags.append("outlier: repeat " + ", ".join(odd))
        rows.append([td(label), figure_td(number(s, "median"), unit), td(interval),
                     *(figure_td(number(s, key), unit) for key in ("min", "max", "mean", "std")),
                     td(", ".join(flags), "t", badge="warn" if flags else "")])
    head = ["over the repeats", "median", "interval of the median", "min", "max",
            "mean", "std", ("remarks", "t")]
    return table("Spread over the repeats", head, rows) if rows else None


def repeats(cell, units):
    rows = [[td(str(i)), td(form.value_text(at(r, "seed"))), figure_td(number(r, "ops_per_s"), units.rate.factor),
             figure_td(number(r, "bytes_per_s"), units.volume.factor),
             *(figure_td(number(r, key), 1e3) for key in ("p50_ns", "p99_ns", "p99_9_ns")),
             td(form.count(number(r, "errors")))] for i, r in enumerate(items(cell, "repeats"), 1)]
    head = ["repeat", "seed", units.rate.name, units.volume.name, "p50 us", "p99 us", "p99.9 us", "errors"]
    return table("Every repeat", head, rows) if len(rows) > 1 else None


def rounds(row):
    if len(row.cells) < 2:
        return None
    body = []
    for result, cell in zip(row.results, row.cells):
        kind, line = results.verdict(result)
        body.append([td(str(result.run.round if result.run else form.MISSING)),
                     figure_td(number(cell, "metrics", "ops_per_s"), row.units.rate.factor),
                     figure_td(number(cell, "metrics", "bytes_per_s"), row.units.volume.factor),
                     *(figure_td(number(cell, "metrics", "latency_ns", key), 1e3) for key in ("p50", "p99", "p99_9")),
                     td("ok" if kind == "ok" else line, "t", badge=KIND_CSS[kind])])
    head = ["round", row.units.rate.name, row.units.volume.name, "p50 us", "p99 us", "p99.9 us", ("verdict", "t")]
    return table("Every round; what else is said of this cell is of the round whose rate is the median", head, body)


def single_operations(cell, units):
    """RDMA, CXI: the form in which vendors publish; rates are formed from each operation's latency."""
    single = members(cell, text(cell, "path"), "single_operation")
    rows = [[td(label), *(figure_td(number(single, key, figure), unit) for figure in ("min", "mean", "std", "max"))]
            for key in ("latency_ns", "ops_per_s", "bytes_per_s")
            for unit, label in [_spread_unit(key, units)] if members(single, key)]
    head = ["single operations, all repeats", "min", "mean", "std", "max"]
    return table("Single operations", head, rows) if rows else None


SHARED = {"path", "cell", "options", "initiator", "device", "metrics", "substeps_ns", "repeats", "spread", "verify",
          "errors", "cost"}


# Of the machine, what is another in each result; a page of many does not say it 200 times.
PASSING = {"date", "date_utc", "load average", "load_average", "runnable_threads", "memory_available_bytes", "cpu_current_hz",
           "clock read, ns", "clock_read_ns"}


class Said:
    """The facts said so far. In a page of many, those of an earlier cell or result are not said again: only what differs."""

    def __init__(self, many):
        self.many = many
        self.first = {}

    def of(self, title, value, place):
        """(the title with what it refers to, what is left to say), the latter None when nothing is."""
        if not self.many or title not in self.first:
            self.first.setdefault(title, (value, place))
            return title, value or None
        first, where = self.first[title]
        other = {k: v for k, v in value.items() if k not in first or first[k] != v}
        other.update({k: None for k in first if k not in value})
        if value and len(other) >= len(value):
            return title, value
        return f"{title}: as {where}" + (", except" if other else ""), other or None


def _own_figures(cell, said, place):
    """The figures that only this path reports, without the populations that are rows of the metrics already."""
    names = {name for name, _ in results.populations(cell)}
    found = []
    for key, value in cell.items():
        if key in SHARED or not isinstance(value, dict):
            continue
        rest = {k: v for k, v in value.items() if key != text(cell, "path") or k not in names}
        if rest:
            found.append(said.of(f"{key}: the path's own figures", rest, place))
    return found


class Book:
    """Makes the contexts of one page."""

    def __init__(self, loaded, plans, with_pictures, bits):
        self.loaded = loaded
        self.tables = {source: items(plan, "published") for source, plan in plans.items()}
        self.groups = groups.group(loaded, plans, bits)
        self.rows = [row for group in self.groups for row in group.rows]
        self.many = len(self.rows) >= MANY
        self.with_pictures = with_pictures
        self.said = Said(self.many)
        self.serial = 0
        commands = set(map(notes.command, loaded))
        self.one_command = commands.pop() if len(commands) == 1 else ""  # the page's head has it

    def picture(self, picture):
        self.serial += 1
        return {"svg": Markup(picture.inline(self.serial)), "note": picture.note}

    def cell(self, group, row):
        cell, place = row.cell, f"in cell {row.number}"
        kind, line = row.verdict
        failures = results.data_failures(cell)
        context = {
            "row": row, "kind": KIND_CSS[kind], "verdict": verdict_td(row), "line": line,
            "device_kind": text(cell, "device", "kind"),
            "initiator": groups.initiator(cell) if cell else "", "failures": failures,
            "error": row.error, "name": form.heading(form.path_title(group.path), group.kind, group.label(row)),
            "commands": [] if self.one_command else list(dict.fromkeys(filter(None, map(notes.command, row.results)))),
            "measured": bool(cell), "rounds": rounds(row),
        }
        if not cell:
            context["options"] = [(form.name(k), form.parameter(k, v), "") for k, v in {**row.parameters, **row.planned}.items()]
            return context
        pictures, small = [], None
        if self.many:
            small = figures.small_distribution(cell)
        elif self.with_pictures:
            pictures = [self.picture(p) for p in figures.of_cell(cell, drawing.PAGE, row.anchor, row.units.rate)]
        context.update(
            parameters=[("device", text(cell, "device", "name"))] * (text(cell, "device", "name") not in
                                                                     ("", text(cell, "device", "kind"))) +
            [(form.name(k), form.parameter(k, v)) for k, v in members(cell, "cell").items()],
            metrics=metrics_table(cell, row.units), pictures=pictures, small=small, verification=verification(cell),
            errors=errors(cell), cost=cost(cell), substeps=substeps(cell), spread=spread(cell, row.units),
            repeats=repeats(cell, row.units),
            single=single_operations(cell, row.units), verified=results.is_verified(cell),
            raw=[self.said.of(f"Every option of {group.title}", notes.options(row), place)] +
            _own_figures(cell, self.said, place))
        return context

    def tile(self, group):
        """The group at a glance: what was measured on what, the best figures, and whether it is sound."""
        def best(measure, choose):
            known = [row for row in group.sound if measure.of(row)]
            if not known:
                return None
            row = choose(known, key=measure.of)
            unit = units.of_times([measure.of(row)]) if measure.timed else measure.unit([row])
            return {"figure": unit.said(measure.of(row)), "row": row, "label": short[row.number]}
        short = {row.number: label for row, label in zip(group.rows, group.short_labels(group.rows))}
        checked = sum(number(c, "verify", "checked") or 0 for row in group.rows for c in row.cells if c)
        wrong = sum(sum(results.data_failures(c).values()) for row in group.rows for c in row.cells if c)
        return {
            "devices": sorted({text(c, "device", "kind") for row in group.rows for c in row.cells if c}),
            "initiators": sorted({groups.initiator(row.cell) for row in group.rows if row.cell}),
            "tally": _tally(group.rows), "checked": checked, "wrong": wrong, "count": len(group.rows),
            "best": [(title, found) for title, found in (
                ("highest rate", best(charts.RATE, max)),
                ("highest throughput", best(charts.BYTES, max)),
                ("lowest median latency", best(charts.P50, min)))
                if found]}

    def group(self, index, group):
        pictures = charts.of_group(group, self.tables, drawing.PAGE) if self.with_pictures and len(self.rows) > 1 else []
        out = sum(1 for row in group.rows if row.cell) - len(group.sound)
        return {
            "left_out": f"{out} cell{'' if out == 1 else 's'} with errors or cut short: in the table, not in the pictures." if out else "",
            "group": group, "id": f"g{index}", "whole": all(row.cell for row in group.rows), "tile": self.tile(group),
            "equal": [(form.name(k), form.parameter(k, v)) for k, v in group.equal.items() if v is not None],
            "pictures": [self.picture(p) for p in pictures], "overview": overview(group),
            "published": published_tables(group, self.tables),
            "cells": [self.cell(group, row) for row in group.rows]}

    def machines(self):
        def lasting(of):
            return {k: v for k, v in of.items() if not self.many or k not in PASSING}
        return [{"name": result.name, "verdict": results.verdict(result)[1],
                 "facts": self.said.of("The machine and the build", lasting(dict(provenance(result))), f"in {result.name}"),
                 "everything": self.said.of("Everything that was recorded", lasting(members(result.data, "environment")),
                                            f"in {result.name}")} for result in self.loaded]


# As the table of the command line says it, the worst first.
TALLIES = [("failed", "failed", "bad"), ("interrupted", "interrupted", "warn"), ("unverified", "not verified", "warn"),
           ("noisy", "noisy", "warn"), ("skipped", "skipped", "neutral"), ("ok", "ok", "good")]


def _tally(rows):
    kinds = ["noisy" if row.verdict[0] == "ok" and row.noisy else row.verdict[0] for row in rows]
    return [(kinds.count(kind), label, css) for kind, label, css in TALLIES if kinds.count(kind)]


def faults(loaded):
    """The demo's fault checks as a table, and each check that missed something."""
    found = notes.faults(loaded)
    if found is None:
        return None
    kinds, checks = found

    def cell(fault):
        if fault is None:
            return td("")
        injected, count = number(fault, "injected"), number(fault, "found")
        if results.missed(fault):
            return td(f"{form.count(count)}/{form.count(injected)}", badge="bad", hint=notes.mismatch(fault))
        return td(f"{form.count(count)}/{form.count(injected)}" if injected else form.MISSING)
    rows = [[td(form.path_title(path))] + [cell(of.get(kind)) for kind in kinds] for path, of in checks.items()]
    return {"table": table("Faults found / injected", ["model"] + kinds, rows),
            "missed": [notes.mismatch(fault) for of in checks.values() for fault in of.values() if results.missed(fault)]}


# ---- all results

ENVIRONMENT = [("date_utc", "date"), ("cpu", "CPU"), ("sockets", "sockets"), ("cores", "cores"),
               ("memory_bytes", "memory"), ("kernel", "kernel"), ("distribution", "distribution"),
               ("hypervisor", "hypervisor"), ("container", "container"), ("governor", "governor"),
               ("clocksource", "clock"), ("clock_read_ns", "clock read, ns"), ("load_average", "load average")]


def provenance(result):
    environment, tool = members(result.data, "environment"), members(result.data, "tool")
    pairs = [("tool", " ".join(form.value_text(tool.get(k)) for k in ("name", "version", "git", "build")
                               if tool.get(k) is not None))]
    for key, label in ENVIRONMENT:
        value = environment.get(key)
        if value is None:
            continue
        if key == "memory_bytes":
            value = form.amount(number(value))
        elif number(value) is not None:
            value = form.digits(value) if isinstance(value, float) else form.count(value)
        pairs.append((label, form.value_text(value)))
    gpus = [text(g, "name") + (f" ({text(g, 'driver')})" if text(g, "driver") else "")
            for g in items(environment, "gpu")]
    pairs.append(("GPU", ", ".join(gpus) or "none"))
    return pairs


def honesty(loaded):
    kinds = {text(cell, "device", "kind") for result in loaded for cell in result.cells}
    lines = []
    if kinds & {"model", "emulated"}:
        lines.append("Cells marked software model or emulated measure doorbell and software devices on this machine. "
                     "They say nothing about the speed of a physical device.")
    if any(not results.is_verified(cell) for result in loaded for cell in result.cells):
        lines.append("Cells marked not verified moved data that was not checked.")
    return lines


def machine(loaded):
    """The machine and the program in a line, as far as all results have the same."""
    def same(*keys):
        known = [at(result.data, *keys) for result in loaded if at(result.data, *keys) is not None]
        return form.value_text(known[0]) if len({form.value_text(value) for value in known}) == 1 else ""
    cores, host = same("environment", "cores"), form.listed(conclusion.hosts(loaded)) if loaded else ""
    parts = [host] if loaded else []
    if loaded and same("environment", "cpu") not in ("", host):
        parts.append(same("environment", "cpu"))
    if loaded and cores:
        parts.append(f"{cores} core{'' if cores == '1' else 's'}")
    if loaded and same("tool", "version"):
        parts.append(f"doorbell {same('tool', 'version')}" + (f" ({same('tool', 'git')})" if same("tool", "git") else ""))
    return ", ".join(filter(None, parts))


def render(loaded, title, with_pictures, plans=None, bits=None, lacks=""):
    """The whole page as text. `with_pictures` says whether matplotlib may be used; `plans` are those of the sweeps; `bits` is
    as groups.group() has it; `lacks` is what the page itself says of its missing charts."""
    book = Book(loaded, plans or {}, with_pictures, bits)
    made = [book.group(i, group) for i, group in enumerate(book.groups)]
    troubles = sorted(((group, cell) for group in made for cell in group["cells"] if cell["kind"] == "bad"),
                      key=lambda pair: pair[1]["row"].order)
    return render_template(
        "report.html.j2", title or notes.title(loaded, plans or {}), groups=made, many=book.many, kinds=form.KINDS,
        troubles=troubles, lead=conclusion.sentence(loaded, book.groups), tally=_tally(book.rows), honesty=honesty(loaded),
        warnings=notes.warnings(loaded, book.rows), faults=faults(loaded), machine=machine(loaded),
        when=conclusion.when(loaded), command=book.one_command, plan=notes.plan(loaded, plans or {}), machines=book.machines(), results=len(loaded),
        cells=len(book.rows), form=form, lacks=lacks,
        legend=units.legend([unit for group in book.groups for unit in (group.units.rate, group.units.volume)]))
