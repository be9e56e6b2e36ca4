# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Numbers and names as a person reads them. What comes from a file is plain text here; the templates escape it."""

import json
import re
import shlex

MISSING = "-"

KINDS = {
    "model": ("software model", "A software model on this machine's CPU or GPU: no figure here is a device's."),
    "emulated": ("emulated", "Someone else's software device: no figure here is a device's."),
    "hardware": ("hardware", "A physical device."),
    "kernel": ("kernel", "A file, block device or socket, through the kernel's own system calls."),
}

PATHS = {"nvme": "NVMe", "rdma": "RDMA", "cxi": "Cassini", "net": "Network streams", "qdma": "QDMA"}


def printable(value):
    return "".join(c if c.isprintable() or c in "\n\N{THIN SPACE}" else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def digits(value):
    """Four significant digits, three below 1, whole from a thousand on (as text.cpp)."""
    if value is None:
        return MISSING
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


def duration(ns):
    """A time in ns, with a unit of its own."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= unit * 0.9995:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.3g} ns"


def amount(value):
    """Bytes that were moved, in powers of ten."""
    if value is None:
        return MISSING
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{digits(value / unit)} {name}"
    return f"{count(value)} B"


def length(value):
    """Bytes of one operation: 4 KiB, 8000 B."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} B"


def value_text(value):
    return value if isinstance(value, str) else json.dumps(value)


def is_length(key):
    return key.endswith("_bytes") or key in ("size", "bytes")


def parameter(key, value):
    """A parameter's value; lengths in bytes with their binary unit."""
    if value is None:
        return MISSING
    if is_length(key) and isinstance(value, int) and not isinstance(value, bool):
        return length(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value_text(value)


def name(key):
    """A parameter's name without the unit that its values carry, in words."""
    for end in ("_bytes", "_ns"):
        if key.endswith(end) and key != end[1:]:
            key = key[:-len(end)]
    return key.replace("_", " ").replace("-", " ")


def path_title(path):
    return PATHS.get(path, path or "Other results")


def heading(*parts):
    """The parts as one heading. A part whose words another part has too is left out."""
    kept = []
    for part in filter(None, parts):
        words = set(re.findall(r"\w+", part.casefold()))
        if any(words <= others for others, _ in kept):
            continue
        kept = [(others, said) for others, said in kept if not others <= words] + [(words, part)]
    return ": ".join(said for _, said in kept)


def _cut(name, limit, head):
    """The first `head` characters and the last ones, with dots between."""
    return name if len(name) <= limit else name[:head] + "..." + name[len(name) - (limit - 3 - head):]


def _window(name, limit, start):
    return name if len(name) <= limit else f"...{name[start:start + limit - 6]}..."


def shortened(names, limit):
    """The names with at most `limit` characters, in one line of printable text, told apart wherever the whole ones are: cut in
    the middle, else further to one end or at both ends, else each with its number."""
    clean = [printable(name).replace("\n", " ") for name in names]
    room = limit - 3
    heads = sorted(range(room + 1), key=lambda head: abs(2 * head - room))
    cuts = [[_cut(name, limit, head) for name in clean] for head in heads[:1]]
    if len(set(cuts[0])) < len(set(names)):
        cuts += [[_cut(name, limit, head) for name in clean] for head in heads[1:]]
        cuts += [[_window(name, limit, start) for name in clean] for start in range(1, 200)]
    found = next((cut for cut in cuts if len(set(cut)) == len(set(names))), None)
    if found:
        return found
    numbers = {name: f" #{i}" for i, name in enumerate(dict.fromkeys(names), 1)}
    return [_cut(short, limit - len(numbers[name]), max(0, room - len(numbers[name]))) + numbers[name]
            for name, short in zip(names, clean)]


def listed(words, last="and"):
    """"a, b and c"."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def cells_named(numbers):
    """Cells by their numbers, in the page's order; neighbours as a range: "cells 1 to 4 and 7"."""
    runs = []
    for number in numbers:
        if runs and number.isdecimal() and runs[-1][-1].isdecimal() and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [word for run in runs
            for word in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]
    return f"cell{'' if len(numbers) == 1 else 's'} {listed(said)}"


def shell_word(word):
    """A word as a person types it in a shell; what no terminal shows, in a shell's notation for bytes."""
    if printable(word) == word and "\n" not in word and "\N{THIN SPACE}" not in word:
        return shlex.quote(word)
    escaped = "".join(chr(byte) if 0x20 <= byte < 0x7f and byte not in b"'\\" else f"\\x{byte:02x}"
                      for byte in word.encode("utf-8", "replace"))
    return f"$'{escaped}'"
