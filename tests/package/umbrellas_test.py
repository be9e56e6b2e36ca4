#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The public headers as their users find them: each is reached from an umbrella, they are few, and the example in the
head of each umbrella compiles. Environment: INCLUDE, a folder with doorbell/ in it, CXX.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PATHS = ("nvme", "rdma", "cxi", "net", "qdma")
# run.hpp runs the benches; doorbell.h is for C programs.
ENTRIES = [f"doorbell/{path}.hpp" for path in PATHS] + ["doorbell/run.hpp", "doorbell.h", "doorbell/doorbell.h"]
MOST = 50
INCLUDED = re.compile(r"^\s*#\s*include\s*<(doorbell[^>]*)>", re.MULTILINE)


def headers(include):
    return {str(p.relative_to(include)) for p in include.rglob("*") if p.suffix in (".h", ".hpp")}


def unreached(include):
    """The headers that no entry includes, directly or through others."""
    there = headers(include)
    waiting = [e for e in ENTRIES if e in there]
    reached = set(waiting)
    while waiting:
        for name in INCLUDED.findall((include / waiting.pop()).read_text(encoding="utf-8")):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return sorted(there - reached)


def example(text):
    """The code in the comment at the head of a header: the lines that are indented in it."""
    head = text.split("#pragma once")[0]
    return [line[5:] for line in head.splitlines() if line.startswith("//   ")]


class Umbrellas(unittest.TestCase):
    include = pathlib.Path(os.environ.get("INCLUDE", "include"))

    def test_each_header_is_reached(self):
        self.assertEqual(unreached(self.include), [])

    def test_headers_are_few(self):
        self.assertLessEqual(len(headers(self.include)), MOST)

    def test_each_path_has_an_umbrella(self):
        for path in PATHS:
            self.assertIn(f"doorbell/{path}.hpp", headers(self.include))

    def test_examples_compile(self):
        for path in PATHS:
            with self.subTest(path):
                code = example((self.include / f"doorbell/{path}.hpp").read_text(encoding="utf-8"))
                self.assertGreater(len(code), 3)
                source = "\n".join([f"#include <doorbell/{path}.hpp>", "#include <chrono>", "using namespace doorbell;",
                                    "int main() {", *code, "}"])
                done = subprocess.run(
                    [os.environ.get("CXX", "g++"), "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused",
                     "-I", self.include, "-fsyntax-only", "-x", "c++", "-"],
                    input=source, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


class Finding(unittest.TestCase):
    """What is wrong is found."""

    def test_a_header_that_nothing_includes(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {"nvme.hpp": "#include <doorbell/a.hpp>\n", "a.hpp": "#  include <doorbell/b.hpp>\n",
                               "b.hpp": "", "c.hpp": "#include <doorbell/nvme.hpp>\n",
                               "d.hpp": "// #include <doorbell/c.hpp>\n"}.items():
                (root / "doorbell").mkdir(exist_ok=True)
                (root / "doorbell" / name).write_text(text, encoding="utf-8")
            self.assertEqual(unreached(root), ["doorbell/c.hpp", "doorbell/d.hpp"])


if __name__ == "__main__":
    unittest.main()
