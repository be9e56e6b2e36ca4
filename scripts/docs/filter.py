#!/usr/bin/python3 -IS
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Doxygen's input filter: prints a header or a page as Doxygen has to read it. Usage: filter.py FILE

Of a header, the comment at its head documents the file, that of an umbrella its path; what a namespace holds is put into
the group of its path. Of a page, each heading gets the name that links use, and links to other pages lead to their pages
here. Lines keep their numbers, so that Doxygen's messages name the right ones.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A group is what a program includes for one purpose: its name, its title, the header whose head says what it is for.
GROUPS = (
    ("nvme", "NVMe", "nvme.hpp"),
    ("rdma", "RDMA", "rdma.hpp"),
    ("cxi", "CXI (HPE Slingshot)", "cxi.hpp"),
    ("net", "Network streams", "net.hpp"),
    ("qdma", "QDMA (AMD V80)", "qdma.hpp"),
    ("run", "A run as a call", "run.hpp"),
    ("c", "C interface", "doorbell.h"),
    ("c_qdma", "C interface of a QDMA card", "qdma/slash_qdma.h"),
    ("rma", "One-sided operations", "rma/types.hpp"),
    ("pattern", "Test pattern", "pattern.hpp"),
    ("memory", "Memory and errors", "region.hpp"),
    ("gpu", "GPUs and warps", "gpu.hpp"),
)
OF_FILE = {"pattern_unit.hpp": "pattern", "address_space.hpp": "memory", "error.hpp": "memory", "config.hpp": "gpu",
           "warp.hpp": "gpu", "memory_order.hpp": "gpu"}
HEADS = {head: (name, title) for name, title, head in GROUPS}
# Doxygen takes what begins so for the address of a page.
NO_URL = re.compile(r"\bfile:(?=\w|/)")
MAIN_PAGE = "docs/library.md"
MORE_PAGES = ("SECURITY.md", "CONTRIBUTING.md")


def group_of(header):
    """The group of a header, by its path below include/doorbell."""
    if header in HEADS:
        return HEADS[header][0]
    return OF_FILE.get(header) or header.partition("/")[0]


def as_blocks(lines, include):
    """Lines of a head comment without their marks; those that are indented become a block of code, of which `include`, if
    it is not empty, is the first line."""
    out = list(lines)
    at = 0
    while at < len(out):
        end = at
        while end < len(out) and (out[end].startswith("  ") or (out[end] == "" and end > at)):
            end += 1
        while end > at and out[end - 1] == "":
            end -= 1
        if end == at:
            at += 1
            continue
        # The text, an empty line, the code: there is a line for each command.
        out[at - 2] += " @code{.cpp}"
        out[at - 1] = include
        out[at:end] = [line[2:] for line in out[at:end]]
        out[end - 1] += " @endcode"
        at, include = end, ""
    return out


def rules(line, goes_on):
    """A line of a comment, with its rules set off; one that begins a line within a comment begins a paragraph."""
    if not line.lstrip().startswith("///"):
        # A word of another language that Doxygen reads with the same rules: before a space it would be no name.
        return re.sub(r"\blocal (?==)", "local", line)
    line = NO_URL.sub("%file:", line)
    line = re.sub(r"(?<=[.)] )(Thread rule|Threads|Errors|Ownership|Source): ", r"<b>\1:</b> ", line)
    return re.sub(r"^(\s*/// )(Thread rule|Threads|Errors|Ownership|Source): ",
                  r"\1<p><b>\2:</b> " if goes_on else r"\1<b>\2:</b> ", line)


def header(text, name):
    lines = text.splitlines()
    group = group_of(name)
    c = name.endswith(".h")
    once = lines.index("#pragma once")
    # The two lines of the licence and the empty one make room for the commands.
    if name in HEADS:
        lines[:3] = [f"@defgroup {group} {HEADS[name][1]}", "", ""]
        lines[once] += " /** @file"
        lines[once + 1] = f"@ingroup {group}" + " */"
    else:
        lines[:3] = ["@file", f"@ingroup {group}", ""]
    head = [re.sub(r"^(// ?|/\* ?| \* ?)", "", line).removesuffix("*/") for line in lines[3:once]]
    more = [f"@ref {page_name(pathlib.Path(p))}" for p in pages() if re.match(rf"docs/{group}[.-]", p)]
    if name in HEADS and more:
        head[-1] += " @see " + ", ".join(more)
    head = [""] * 3 + as_blocks(head, f"#include <doorbell/{name}>" if name in HEADS else "")
    for at in range(once):
        lines[at] = "///" + (" " + head[at] if head[at] else " " + lines[at] if at < 3 and lines[at] else "")
    if c:
        last = max(i for i, line in enumerate(lines) if line.startswith("#include"))
        lines[last] += f" /** @addtogroup {group}"
        lines[last + 1] = "@{ */"
        lines.append("/** @} */")
    else:
        for at, line in enumerate(lines):
            if re.match(r"namespace doorbell[\w:]* \{$", line) and lines[at + 1] == "":
                lines[at] += f" /** @addtogroup {group}"
                lines[at + 1] = "@{ */"
            elif re.match(r"\}  // namespace doorbell[\w:]*$", line):
                lines[at] = "/** @} */ " + line
    for at, line in enumerate(lines):
        lines[at] = rules(line, at > 0 and re.match(r"\s*///", lines[at - 1]) is not None)
    return "\n".join(lines) + "\n"


# --- pages ---------------------------------------------------------------------------------------------------

def anchor(title):
    """The name of a heading in links, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def page_name(path):
    """The name of a page, by its path in the tree."""
    return "page_" + re.sub(r"\W", "_", str(path.with_suffix("")))


def pages():
    """All pages but the main one, the paths' first."""
    paths = [str(p.relative_to(ROOT)) for name, *_ in GROUPS for ending in (".md", "-*.md")
             for p in sorted(ROOT.glob(f"docs/{name}{ending}"))]
    others = [*sorted(ROOT.glob("docs/*.md")), *(ROOT / name for name in MORE_PAGES), *sorted(ROOT.glob("docs/history/*.md"))]
    found = [str(p.relative_to(ROOT)) for p in others]
    return paths + [name for name in found if name not in (*paths, MAIN_PAGE)]


@functools.cache
def is_page(path):
    return str(path) == MAIN_PAGE or str(path) in pages()


def link(page, text, target):
    """A link of `page`, as Doxygen reads it; the text alone, with the file, if it leads out of the pages."""
    if "://" in target:
        return f"[{text}]({target})"
    file, _, heading = target.partition("#")
    path = (ROOT / page.parent / file).resolve().relative_to(ROOT) if file else page
    if not is_page(path):
        plain = str(path)
        return text if plain in text.strip("`") else f"{text} (`{plain}`)"
    text = text.replace("`", "")  # a link has no other type
    if heading:
        return f"[{text}](@ref {page_name(path)}-{heading})"
    return f"[{text}](@ref {'index' if str(path) == MAIN_PAGE else page_name(path)})"


@functools.cache
def public_headers():
    folder = ROOT / "include/doorbell"
    return {str(p.relative_to(folder)): p for p in folder.rglob("*.h*")}


def header_link(span):
    """A code span that names a public header leads to what it is the entry of, or to its page."""
    name = span.strip("`").removeprefix("include/").removeprefix("doorbell/")
    if name not in public_headers():
        return f"`{span}`" if "'" in span else span  # of a single mark, an apostrophe would be the end
    return f"[{span.strip('`')}](@ref {HEADS[name][0] if name in HEADS else 'doorbell/' + name})"


def prose(page, text):
    """A page's text, of any number of lines: links, code spans, and what Doxygen would take for a command of its own."""
    out = []
    # Stars beside a code span would stay stars.
    text = re.sub(r"\*\*(.+?)\*\*", lambda bold: f"<b>{bold[1]}</b>" if "`" in bold[1] else bold[0], text, flags=re.S)
    for part in re.split(r"(\[(?:[^\]\[]|\[[^\]]*\])*\]\([^)\s]+\)[.,;:)]*|`[^`]+`)", text):
        if part.startswith("["):
            words, target, behind = re.fullmatch(r"\[(.*)\]\((\S+?)\)([.,;:)]*)", part, re.S).groups()
            # Its words have to be in one line here; the next one begins behind them, and never with a full stop.
            one = link(page, words.replace("\n", " "), target) + behind + "\n" * words.count("\n")
            out.append(part if target.startswith("images/") else one)
        elif part.startswith("`"):
            out.append(header_link(part))
        else:
            out.append(re.sub(r"([@\\])(?=\w)", r"\\\1", part))
    return NO_URL.sub("%file:", "".join(out))


def page(text, path):
    lines, waiting, fenced = [], [], False

    def written():
        """The text so far: a link may go on in the next line."""
        if waiting:
            lines.append(prose(path, "\n".join(waiting)))
            waiting.clear()

    for number, line in enumerate(text.splitlines()):
        title = re.match(r"(#+) (.*)$", line)
        if line.lstrip().startswith("```"):
            written()
            fenced = not fenced
            lines.append(line)
        elif fenced or line.startswith("    "):
            written()
            lines.append(line)
        elif line == "PAGES":
            written()
            lines.append("\n".join(f"- @subpage {page_name(pathlib.Path(name))}" for name in pages()))
        elif title:
            written()
            name = page_name(path) + ("" if len(title[1]) == 1 and number == 0 else "-" + anchor(title[2]))
            plain = title[2].replace("`", "")  # a title has no other type
            lines.append(line if number == 0 and str(path) == MAIN_PAGE else f"{title[1]} {plain} {{#{name}}}")
        else:
            waiting.append(line)
    written()
    return "\n".join(lines) + "\n"


def main(arguments):
    path = pathlib.Path(arguments[0]).resolve()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        sys.stdout.write(page(text, path.relative_to(ROOT)))
    else:
        sys.stdout.write(header(text, str(path).rpartition("/include/doorbell/")[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
