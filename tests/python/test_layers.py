# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Parts of doorbell include only what lies below them, and library code names no options; what checks that finds
each way to break it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TABLE = """# Map

## The layers

| parts | what |
|---|---|
| `include/doorbell` | headers |
| `src/system` `src/report/result.hpp` | low |
| `src/report` | middle |
| `src/nvme` `include/doorbell/nvme` `src/cxi` | paths |

{exceptions}
## Another section

| `src/nvme` | not a row of the table |
"""


def layers(root):
    return subprocess.run([sys.executable, ROOT / "scripts" / "layers.py", root], capture_output=True, text=True, timeout=60)


class Layers(unittest.TestCase):
    def check(self, files, expected, exceptions=""):
        """`files`: path -> what it includes. `expected`: the findings, in the order of the paths."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            everything = {"docs/architecture.md": TABLE.format(exceptions=exceptions)}
            for path in ["include/doorbell/error.hpp", "include/doorbell/nvme/wire.hpp", "src/system/clock.hpp",
                         "src/report/result.hpp", "src/report/json.hpp", "src/nvme/bench.hpp", "src/cxi/bench.hpp"]:
                everything[path] = ""
            everything.update({path: f"#pragma once\n#include {what}\n" for path, what in files.items()})
            for path, text in everything.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            done = layers(root)
            self.assertEqual(done.stdout.splitlines(), expected, done.stderr)
            self.assertEqual(done.returncode, 2 if expected else 0)

    def test_this_tree(self):
        done = layers(ROOT)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_downwards(self):
        self.check({"src/nvme/a.cpp": '"report/json.hpp"', "src/nvme/b.cpp": "<doorbell/nvme/wire.hpp>",
                    "src/report/c.cpp": '"report/result.hpp"', "src/system/d.cpp": "<doorbell/error.hpp>",
                    "src/nvme/e.cpp": '"bench.hpp"', "src/nvme/f.cpp": "<vector>", "src/nvme/g.cpp": '"generated.inc"'}, [])

    def test_upwards(self):
        self.check({"src/system/clock.cpp": '"report/json.hpp"'},
                   ["src/system/clock.cpp:2: system includes src/report/json.hpp, which is above it"])
        self.check({"src/report/result.hpp": '"report/json.hpp"'},
                   ["src/report/result.hpp:2: report/result.hpp includes src/report/json.hpp, which is above it"])
        self.check({"include/doorbell/region.hpp": "<doorbell/nvme/wire.hpp>"},
                   ["include/doorbell/region.hpp:2: include/doorbell includes include/doorbell/nvme/wire.hpp, which is above it"])

    def test_beside(self):
        self.check({"src/cxi/a.cpp": '"nvme/bench.hpp"', "src/cxi/b.cpp": "<doorbell/nvme/wire.hpp>"},
                   ["src/cxi/a.cpp:2: cxi includes src/nvme/bench.hpp, which is beside it",
                    "src/cxi/b.cpp:2: cxi includes include/doorbell/nvme/wire.hpp, which is beside it"])

    def test_public_headers(self):
        self.check({"include/doorbell/nvme/loop.hpp": '"system/clock.hpp"'},
                   ["include/doorbell/nvme/loop.hpp:2: a public header includes src/system/clock.hpp, which is not installed"])

    def test_exceptions(self):
        exception = "| `cxi` -> `nvme` | for now |\n"
        self.check({"src/cxi/a.cpp": '"nvme/bench.hpp"'}, [], exception)
        self.check({}, ["docs/architecture.md:1: cxi no longer includes nvme: take the exception out"], exception)

    def test_options(self):
        named = '"json.hpp"\nconst char* const kTitle = "--engine dpdk";'
        finding = ":3: library code names an option: take its name from the command"
        self.check({"src/report/a.cpp": named}, ["src/report/a.cpp" + finding])
        self.check({"include/doorbell/a.hpp": '<vector>\nf(a, "--x");'}, ["include/doorbell/a.hpp" + finding])
        self.check({"src/nvme/cli/a.cpp": named, "src/nvme/fio.cpp": named, "src/nvme/b.cpp": "<vector>\n// \"--engine\"",
                    "src/nvme/c.cpp": '<vector>\nf("--", "a --b");'}, [])

    def test_a_folder_of_no_layer(self):
        self.check({"src/qdma/a.cpp": "<vector>"}, ["src/qdma/a.cpp:1: docs/architecture.md names no layer for it"])


if __name__ == "__main__":
    unittest.main()
