# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""What a page says besides figures: warnings with the cells that they are about, commands, the demo's fault checks."""

import os
import re

from . import form, results
from .results import items, members, number, text

# Options of a sweep for its own runs.
OF_THE_SWEEP = ("--json", "--csv", "--quiet")


def _words_of(row):
    """The words that a row's parameters consist of."""
    return {word for value in members(row.cell, "cell").values()
            for word in re.findall(r"[\w.-]+", form.value_text(value).casefold())}


def _named(title, rows):
    """The rows that a warning's beginning names: by their title, or by values of their parameters."""
    titled = [row for row in rows if text(row.cell, "cell", "title") == title]
    if titled:
        return titled
    words = set(re.findall(r"[\w.-]+", title.casefold())) - {"bytes"}
    # One word alone may be anything.
    return [row for row in rows if words <= _words_of(row)] if len(words) > 1 else []


def _split(line, rows):
    """(the rows that a warning of their result is about, or all; the warning without what names them)."""
    while ": " in line and len(rows) > 1:
        title, rest = line.split(": ", 1)
        found = _named(title, rows)
        if not found or len(found) == len(rows):
            break
        rows, line = found, rest
    return rows, line


def warnings(loaded, rows):
    """Each warning once, whatever figures stand in it, with its cells."""
    of_result = {}
    for row in rows:
        for result in row.results:
            of_result.setdefault(id(result), []).append(row)
    alike = {}  # by the warning without figures: {warning: rows}
    for result in loaded:
        own = of_result.get(id(result), [])
        for warning in dict.fromkeys(form.value_text(w) for w in items(result.data, "warnings")):
            found, line = _split(warning, own)
            alike.setdefault(re.sub(r"[0-9.]+", "#", line), {}).setdefault(line, []).extend(found)
    return [_said(lines, rows) for lines in alike.values()]


def _said(lines, rows):
    line, about = next(iter(lines.items()))
    about = set(about)
    others = {row for found in lines.values() for row in found} - about
    if len(rows) == 1 or not about:
        return line

    def named(chosen):
        return form.cells_named([row.number for row in sorted(chosen, key=lambda row: row.order)])
    if not others:
        return f"{line} ({'every cell' if len(about) == len(rows) else named(about)})"
    rest = "every other cell" if len(about | others) == len(rows) and len(others) > 2 else named(others)
    return f"{line} ({named(about)}; with other figures {rest})"


def command(result):
    """The command as a person types it, or "". The program has no folder, and a sweep's run none of the options that the
    sweep adds for itself."""
    words = [form.value_text(word) for word in items(result.data, "argv")]
    if not words:
        return ""
    words[0] = os.path.basename(words[0]) or words[0]
    if not result.run:
        return " ".join(map(form.shell_word, words))
    typed, skip = [], False
    for word in words:
        name, equals, value = word.partition("=")
        if skip or name in OF_THE_SWEEP:
            skip = not skip and name in ("--json", "--csv") and not equals
            continue
        # A value that begins with a dash, or is empty, needs the equals sign.
        split = equals and name.startswith("--") and value and not value.startswith("-")
        typed += [name, value] if split else [word]
    return " ".join(map(form.shell_word, typed))


def options(row):
    """Every option of a row's cell, without those of a sweep for its own runs."""
    own = {name[2:] for name in OF_THE_SWEEP} if row.sweep_cell else set()
    return {key: value for key, value in members(row.cell, "options").items() if key not in own}


def plan(loaded, plans):
    """The plan of a sweep in words, or ""."""
    found = next(iter(plans.values())) if len(plans) == 1 and all(result.run for result in loaded) else {}
    return f"sweep of doorbell {text(found, 'command')}, plan {text(found, 'name')}" if text(found, "command") else ""


def title(loaded, plans):
    """What a page is called that nobody gave a title."""
    if len(plans) == 1 and all(result.run for result in loaded):
        plan = next(iter(plans.values()))
        return text(plan, "title") or text(plan, "name") or "doorbell sweep"
    words = [form.value_text(word) for word in items(loaded[0].data, "argv")] if len(loaded) == 1 else []
    if not words:
        return "doorbell report"
    named = [os.path.basename(words[0])]
    for word in words[1:]:
        if not re.fullmatch("[a-z]+", word):
            break
        named.append(word)
    return " ".join(named)


def faults(loaded):
    """The demo's fault checks: (kinds, {path: {kind: check}}); None where there are none."""
    checks = {}
    for fault in (fault for result in loaded for fault in results.faults(result)):
        checks.setdefault(text(fault, "path"), {})[text(fault, "fault")] = fault
    return (list(dict.fromkeys(kind for of in checks.values() for kind in of)), checks) if checks else None


def mismatch(fault):
    return f"fault {text(fault, 'fault')} of the {form.path_title(text(fault, 'path'))} model: " \
           f"{form.count(number(fault, 'injected'))} injected, {form.count(number(fault, 'found'))} found as " \
           f"{text(fault, 'found_as') or 'nothing'}"
