#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Checks which parts of doorbell include which, against the table "The layers" in docs/architecture.md, and
that library code names no option of a command.

Usage: layers.py [ROOT]
Prints a line for each include that the table does not allow, and for each text that begins as an option does
in a file that is not a command's. Exit code: 0, or 2 with findings.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".cpp", ".hpp", ".cu"}
ROOTS = ("include", "src")
OPTION = re.compile(r'"--[a-z]')
# Texts of these files are options of a program that they start: path -> program.
COMMAND_LINES = {
    "src/net/dpdk/plugin/eal.cpp": "DPDK",
    "src/net/dpdk/testpmd.cpp": "dpdk-testpmd",
    "src/net/bench/iperf3.cpp": "iperf3",
    "src/nvme/fio.cpp": "fio",
    "src/sweep/cells.cpp": "doorbell",
    "src/sweep/process.cpp": "doorbell",
    "src/sweep/ranks/run_pair.cpp": "doorbell",
}


class Layers:
    """The table: folders (or single files) with their rows, and the exceptions below it."""

    def __init__(self, text):
        section = re.search(r"^## The layers$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if section is None:
            raise SystemExit('docs/architecture.md has no section "The layers"')
        self.parts = {}  # path -> (row, name of the part)
        self.exceptions = set()  # (part, part)
        row = 0
        for line in section.group(1).splitlines():
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if not line.startswith("|") or len(cells) < 2:
                continue
            names = re.findall(r"`([^`]+)`", cells[0])
            if not names:
                continue
            if "->" in cells[0]:
                self.exceptions.add((names[0], names[1]))
                continue
            row += 1
            for name in names:
                # A part is a folder of src/ with the public headers of the same name.
                self.parts[name] = (row, re.sub("^(src|include/doorbell)/", "", name))

    def part(self, path):
        """(row, part) of a file, by the longest entry that it lies in; None for a file of no layer."""
        for candidate in [path, *path.parents]:
            if str(candidate) in self.parts:
                return self.parts[str(candidate)]
        return None


def included(root, path, text):
    """(line, path) for each include of a file of this repository. Generated files are none."""
    for m in INCLUDE.finditer(text):
        # <> names what users have installed, "" what lies in src/ or beside the file.
        places = ["include"] if m[1] == "<" else ["src", path.parent, "include"]
        for place in places:
            target = pathlib.PurePath(place) / m[2]
            if (root / target).is_file():
                yield text.count("\n", 0, m.start()) + 1, target
                break


def option_names(path, text):
    """A finding for each text of library code that begins as an option does."""
    if "cli" in path.parts or str(path) in COMMAND_LINES:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if OPTION.search(line.split("//")[0]):
            yield f"{path}:{number}: library code names an option: take its name from the command"


def findings(root, layers):
    used = set()
    for path in sorted(p.relative_to(root) for top in ROOTS for p in (root / top).rglob("*") if p.suffix in SOURCES):
        own = layers.part(path)
        if own is None:
            yield f"{path}:1: docs/architecture.md names no layer for it"
            continue
        text = (root / path).read_text(encoding="utf-8")
        yield from option_names(path, text)
        for line, target in included(root, path, text):
            other = layers.part(target)
            if other is None:
                continue  # told where that file itself is looked at
            if path.parts[0] == "include" and target.parts[0] != "include":
                yield f"{path}:{line}: a public header includes {target}, which is not installed"
            elif other[1] != own[1] and other[0] >= own[0]:
                if (own[1], other[1]) in layers.exceptions:
                    used.add((own[1], other[1]))
                    continue
                where = "beside" if other[0] == own[0] else "above"
                yield f"{path}:{line}: {own[1]} includes {target}, which is {where} it"
    for own, other in sorted(layers.exceptions - used):
        yield f"docs/architecture.md:1: {own} no longer includes {other}: take the exception out"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[1])
    layers = Layers((root / "docs/architecture.md").read_text(encoding="utf-8"))
    found = list(findings(root, layers))
    print("\n".join(found), end="\n" if found else "")
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
