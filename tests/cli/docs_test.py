#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""What the documents say can be typed: their command lines, options, plans and links. Nothing that they show is carried out."""

import functools
import json
import pathlib
import re
import shlex
import subprocess
import unittest

from harness import DOORBELL, ROOT, WithFolder

PROGRAMS = ("doorbell", "doorbelld", "cxi_gpu_loopback_bw")
UNKNOWN = "--no-such-option"
SWEEPS = ("sweep", "reproduce")  # these have --list, which starts nothing
PATHS = ("nvme", "rdma", "cxi", "net", "qdma")
SECTIONS = ["What it is for", "First command", "Options by task", "What it means", "How to check it on hardware", "Limits"]
MEASURING = {*PATHS, "qdma-validate", "qdma-tune"}
DOCUMENTS = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "SECURITY.md"])


def program(name):
    return str(pathlib.Path(DOORBELL).with_name(name)) if name != "doorbell" else DOORBELL


def is_built(name):
    """doorbelld is left out where libsystemd is absent."""
    return pathlib.Path(program(name)).exists()


def run(words, folder=None):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder, stdin=subprocess.DEVNULL)


def blocks(text):
    """Literal blocks, as lists of lines: those between fences that name no language, and indented ones."""
    fenced, indented, language = [], [], None
    for line in text.splitlines():
        if mark := re.fullmatch(r" *```(\w*) *", line):
            if language is None:
                language, fenced = mark[1], []
            else:
                if language in ("", "sh", "console"):
                    yield fenced
                language = None
        elif language is not None:
            fenced.append(line)
        elif line.startswith("    ") and not re.match(r" *([-*|]|\d+\.) ", line):
            indented.append(line)
        elif indented and line.strip():
            yield indented
            indented = []
    yield indented


def simple_commands(line):
    """The words of each command of a shell's line, without comments and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    lexer.commenters, lexer.whitespace_split = "#", True
    command, redirected = [], False
    for word in lexer:
        if set(word) <= set("<>"):
            redirected = True
        elif set(word) <= set(";&|"):
            yield command
            command = []
        elif redirected:
            redirected = False
        else:
            command.append(word)
    yield command


def ours(words):
    """From the name of a program of ours on, if it is what these words start."""
    for at, word in enumerate(words):
        if "=" not in word and word.rpartition("/")[2] in PROGRAMS:
            before = words[:at]
            free = before[:1] in (["mpirun"], ["ip"]) or all(w in ("sudo", "do", "time") or "=" in w for w in before)
            return [word.rpartition("/")[2], *words[at + 1:]] if free else None
    return None


def command_lines(text):
    for block in blocks(text):
        prompts = any(line.lstrip().startswith("$ ") for line in block)  # then the rest is output
        lines, joined = [], ""
        for line in block:
            joined += line.strip()
            if joined.endswith("\\"):
                joined = joined[:-1] + " "
                continue
            lines.append(joined)
            joined = ""
        for line in lines:
            if prompts and not line.startswith("$ "):
                continue
            try:
                commands = [ours(words) for words in simple_commands(line.removeprefix("$ "))]
            except ValueError:  # a quote without its other: no line of a shell
                continue
            yield from filter(None, commands)


@functools.cache
def table(command):
    """Of a command's options, as its help has them: which take a value, by any of their names, how letters and other names are
    spelled out, and which one a word without a name is the value of."""
    name, *words = command.split()
    text = run([program(name), *words, "--help", *(["all"] if name == "doorbell" else [])]).stdout.partition("\nExamples:\n")[0]
    takes_value, full, bare = {}, {}, re.search(r"^Usage: .* \[([A-Z]+)\]$", text, re.M)
    operand = bare and bare[1].lower()
    for letter, name, value, about in re.findall(r"^ {2,6}(?:-(\w), )?--([\w-]+)( \S+)?(.*(?:\n {20,}.*)*)", text, re.M):
        more = [n for names in re.findall(r"\(also\s([^)]*)\)", about) for n in re.findall(r"--?([\w-]+)", names)]
        for spelling in (name, *more):
            takes_value[spelling] = bool(value)
        full |= dict.fromkeys([letter, *more], name)
        if bare and value.strip() == bare[1]:
            operand = name
    return takes_value, full, operand


@functools.cache
def commands():
    """The commands of doorbell, those of two words first."""
    return sorted(re.findall(r"^  ([a-z-]+) {2,}\S", run([DOORBELL, "help"]).stdout, re.M), key=len, reverse=True)


def command_of(words):
    """The command that these words of doorbell name, and the words behind it; a command of two words is written either way."""
    for name in commands():
        for form in ([name], name.split("-", 1)):
            if words[:len(form)] == form:
                return name, words[len(form):]
    return None, words


def as_plan(name, words):
    """A sweep's plan of one cell that does the same."""
    takes_value, full, operand = table("doorbell " + name)
    options, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            word = f"--{operand}={word}"
        if not word.startswith("--"):
            word, value = "--" + full[word[1]], word[2:].removeprefix("=")
            rest = [value, *rest] if value else rest
        key, equals, value = word[2:].partition("=")
        options[full.get(key, key)] = value if equals else rest.pop(0) if takes_value[key] else True
    for own in ("json", "csv", "junit", "versus", "quiet", "export", "daqiri-csv", "details"):  # the sweep's, or no matter of a cell
        options.pop(own, None)
    return {"name": "documents", "command": name, "options": options}


def why_not(words, folder):
    """What is wrong with a command line, or None."""
    name, *rest = words
    if name == "doorbell" and rest[:1] in (["help"], ["man"], ["--version"], []):
        done = run([DOORBELL, *rest])
        return None if done.returncode == 0 or not rest else done.stderr
    # The words are read from left to right, and before anything is done: only the last of them may be refused.
    # A program that the line starts is another's to check.
    own = rest.index("--") if name == "doorbell" and rest[0] == "run" and "--" in rest else len(rest)
    done = run([program(name), *rest[:own], UNKNOWN], folder)
    first = done.stderr.partition("\n")[0]
    if done.returncode != 1 or not re.search(f"(unknown|unrecognized) option '{UNKNOWN}'$", first):
        return first or f"exit code {done.returncode}"
    if name != "doorbell":
        return None
    command, rest = command_of(rest)
    if command in SWEEPS:
        return listed(command, rest, folder)
    if command in MEASURING:
        (folder / "plan.yaml").write_text(json.dumps(as_plan(command, rest)), encoding="utf-8")
        done = run([DOORBELL, "sweep", "plan.yaml", "--list"], folder)
        return None if done.returncode == 0 else done.stderr
    return None


def listed(command, words, folder):
    """The cells of a plan that comes with the program; one of the reader's own is taken for right."""
    plan = next((w for w in words if w.startswith("plans/")), None)
    if command == "sweep" and plan is None:
        return None
    if plan and not (ROOT / plan).is_file():
        return plan + " does not exist"
    for own in ("--html", "--out"):
        if own in words:
            at = words.index(own)
            words = words[:at] + words[at + 2:]
    done = run([DOORBELL, command, *(str(ROOT / w) if w == plan else w for w in words if w not in ("--list", "--resume")),
                "--list"], folder)
    return None if done.returncode == 0 else done.stderr


class CommandLines(WithFolder):
    def test_every_line_is_one_that_the_program_takes(self):
        for document in DOCUMENTS:
            for words in command_lines(document.read_text(encoding="utf-8")):
                with self.subTest(document.name, line=shlex.join(words)):
                    if not is_built(words[0]):
                        self.skipTest(words[0] + " is not built")
                    self.assertIsNone(why_not(words, self.folder))

    def test_each_path_shows_some(self):
        for path in PATHS:
            lines = list(command_lines((ROOT / "docs" / f"{path}.md").read_text(encoding="utf-8")))
            self.assertGreater(len([line for line in lines if line[1:2] == [path]]), 3, path)

    def test_what_is_wrong_is_found(self):
        for line, why in (("doorbell nvme --bloksise 4096", "unknown option '--bloksise'"),
                          ("doorbell net sctp", "sctp"),
                          ("doorbell net tcp -l 64K --rss addresses", "--rss"),
                          ("doorbell nvme --read-io many", "'many' is not a whole number"),
                          ("sudo doorbell rdma --op wrte", "'wrte' is not one of"),
                          ("doorbell nvme --controller model:colour=red", "unknown key 'colour'"),
                          ("doorbell nvme --queue-length 16 --in-flight 500", "--in-flight: 500 is not in"),
                          ("doorbell net --stream tcp --rss addresses", "--rss"),
                          ("doorbell qdma validate -j 2 --bufer-size 4Mi", "unknown option '--bufer-size'"),
                          ("doorbell nvm --read-io 1", "unknown command 'nvm'"),
                          ("doorbell help nvm", "nvm"),
                          ("doorbell sweep plans/no-such.yaml --list", "plans/no-such.yaml does not exist"),
                          ("doorbell sweep plans/nvme-modes.yaml --only colour=red", "colour"),
                          ("doorbell reproduce nothing", "nothing"),
                          ("doorbell bind --force 0000:01:00.0", "unknown option '--force'"),
                          ("doorbelld --card model --sock /tmp/x", "--sock"),
                          ("cxi_gpu_loopback_bw -i many", "Invalid iteration count")):
            if not is_built(line.split()[0].replace("sudo", "doorbell")):
                continue
            for text in (f"```\n{line}\n```\n", f"```\n$ {line}   # why\noutput\n```\n", f"Text.\n\n    {line}\n\nText.\n"):
                with self.subTest(text):
                    found = [why_not(words, self.folder) for words in command_lines(text)]
                    self.assertEqual(len(found), 1)
                    self.assertIn(why, found[0] or "")

    def test_what_is_no_command_of_ours(self):
        for line in ("ninja -C build doorbell", "tests/gpu/nvme.sh build/bin/doorbell OUT all", "./before nvme --read-io 1M",
                     "echo 'it is"):
            self.assertEqual(list(command_lines(f"```\n{line}\n```\n")), [], line)
        text = "```\n$ doorbell list > a.txt && sudo build/bin/doorbell nvme \\\n    --read-io 5   # five\ndoorbell out\n```\n"
        self.assertEqual(list(command_lines(text)), [["doorbell", "list"], ["doorbell", "nvme", "--read-io", "5"]])


class Pages(unittest.TestCase):
    def test_a_path_has_its_sections_in_order(self):
        for path in PATHS:
            text = re.sub(r"```.*?```", "", (ROOT / "docs" / f"{path}.md").read_text(encoding="utf-8"), flags=re.S)
            self.assertEqual(re.findall(r"^## (.*)$", text, re.M)[:len(SECTIONS)], SECTIONS, path)

    def test_an_option_that_a_page_names_exists(self):
        if not all(map(is_built, PROGRAMS)):
            self.skipTest("doorbelld is not built, and the documents name its options")
        known = {name for command in [*(f"doorbell {c}" for c in commands()), *PROGRAMS[1:]] for name in table(command)[0]}
        self.assertTrue({"read-io", "socket-group", "rx-gpu"} <= known, known)
        for document in sorted(ROOT.glob("docs/*.md")):
            if document.name in ("architecture.md", "sweep.md", "testing.md"):
                continue  # they name options of other programs
            text = document.read_text(encoding="utf-8")
            for span in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S)):
                if not re.match(r"--|(doorbelld?|cxi_gpu_loopback_bw) ", span):
                    continue  # of another program
                for name in re.findall(r"(?<![\w-])--([a-z][\w-]+)", span):
                    with self.subTest(document.name, span=span):
                        self.assertIn(name, known)

    def test_links_lead_somewhere(self):
        def anchors(text):
            titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
            return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}

        for document in [*DOCUMENTS, *ROOT.glob("docs/history/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
            text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.S)
            for link in re.findall(r"\]\(([^)\s]+)\)", text):
                if "://" in link:
                    continue
                file, _, anchor = link.partition("#")
                target = document.parent / file if file else document
                with self.subTest(document.name, link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target.read_text(encoding="utf-8")))


if __name__ == "__main__":
    unittest.main()
