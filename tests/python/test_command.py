# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""python -m doorbell_report: what it reads, what it refuses, what it writes."""

import contextlib
import io
import json
import os
import pathlib
import resource
import signal
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

from doorbell_report import __main__ as command  # noqa: E402
from doorbell_report import drawing, results  # noqa: E402
from samples import NEEDS_JINJA, Reader, cell, result  # noqa: E402
import synthetic  # noqa: E402


@NEEDS_JINJA
class Command(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)

    def write(self, name, *documents):
        path = self.directory / name
        path.write_text("\n".join(json.dumps(d) for d in documents), encoding="utf-8")
        return str(path)

    def run_command(self, *arguments, pictures=False):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            try:
                code = command.main([*([] if pictures else ["--no-pictures"]), *arguments])
            except SystemExit as done:
                code = done.code
        return code, errors.getvalue()

    def test_files_lines_and_directories(self):
        one = self.write("one.json", result([cell()]).data)
        lines = self.write("lines.jsonl", result([cell()]).data, result([cell()]).data)
        self.write("other.json", {"not": "ours"})
        out = self.directory / "page.html"
        for names, cells in (([one], 1), ([lines], 2), ([one, lines], 3), ([str(self.directory)], 3)):
            self.assertEqual(self.run_command(*names, "-o", str(out)), (0, ""))
            self.assertEqual(out.read_text(encoding="utf-8").count('<article class="card"'), cells)
        self.assertEqual(sorted(os.listdir(self.directory)), ["lines.jsonl", "one.json", "other.json", "page.html"])

    def test_refuses_what_it_cannot_read(self):
        out = str(self.directory / "page.html")
        for name, message in ((self.write("other.json", {"not": "ours"}), "its schema is None"),
                              (str(self.directory / "absent.json"), "No such file"),
                              (self.write("text.json", "x"), "its schema is None")):
            code, errors = self.run_command(name, "-o", out)
            self.assertEqual(code, 1)
            self.assertIn(message, errors)
        (self.directory / "half.json").write_text('{"schema": "doorb', encoding="utf-8")
        code, errors = self.run_command(str(self.directory / "half.json"), "-o", out)
        self.assertEqual(code, 1)
        self.assertIn("not JSON", errors)
        self.assertFalse(os.path.exists(out))

    def test_what_is_no_regular_file_is_refused_at_once(self):
        out = str(self.directory / "page.html")
        fifo = self.directory / "fifo.json"
        os.mkfifo(fifo)
        for name in (str(fifo), "/dev/zero"):
            code, errors = self.run_command(name, "-o", out)
            self.assertEqual(code, 1)
            self.assertIn("not a regular file", errors)
        self.write("one.json", result([cell()]).data)
        self.assertEqual(self.run_command(str(self.directory), "-o", out)[0], 0, "of a directory it is left out")

    def test_a_file_beyond_the_limit_is_refused(self):
        one = self.write("one.json", result([cell()]).data)
        limit, results.MAX_BYTES = results.MAX_BYTES, 100
        self.addCleanup(setattr, results, "MAX_BYTES", limit)
        code, errors = self.run_command(one, "-o", str(self.directory / "page.html"))
        self.assertEqual(code, 1)
        self.assertIn("larger than 100 bytes", errors)

    def test_no_input_is_overwritten(self):
        one = self.write("one.json", result([cell()]).data)
        self.write("lines.jsonl", result([cell()]).data)
        before = pathlib.Path(one).read_bytes()
        os.symlink("one.json", self.directory / "soft")
        os.link(one, self.directory / "hard")
        for name in (one, str(self.directory / "soft"), str(self.directory / "hard"),
                     f"{self.directory}/../{self.directory.name}/one.json"):
            for source in (one, str(self.directory)):
                code, errors = self.run_command(source, "-o", name)
                self.assertEqual(code, 1)
                self.assertIn("which the report is made from", errors)
                self.assertEqual(pathlib.Path(one).read_bytes(), before)
        self.assertTrue((self.directory / "soft").is_symlink())

    def test_usage_errors_exit_with_one(self):
        self.assertEqual(self.run_command()[0], 1)
        self.assertEqual(self.run_command("--colour", "x", "-o", "y")[0], 1)
        one = self.write("one.json", result([cell()]).data)
        self.assertEqual(self.run_command(one, "-o", str(self.directory / "absent" / "page.html"))[0], 1)

    @unittest.skipUnless(drawing.available(), "python3-matplotlib is not installed")
    def test_pictures_alone(self):
        synthetic.write(self.directory / "in", 3, ("nvme",))
        for kind, start in (("png", b"\x89PNG\r\n"), ("svg", b"<?xml")):
            out = self.directory / kind
            self.assertEqual(self.run_command(str(self.directory / "in"), "-o", str(out), "--format", kind, pictures=True), (0, ""))
            names = sorted(os.listdir(out))
            self.assertIn(f"nvme-throughput-size-0.{kind}", names)
            self.assertIn(f"cell-1-latency-percentiles.{kind}", names)
            for name in names:
                data = (out / name).read_bytes()
                self.assertTrue(data.startswith(start), name)
                self.assertNotIn(b"var(--", data)
                if kind == "svg":
                    xml.etree.ElementTree.fromstring(data)
        for arguments in (("-o", "-"), ("-o", str(self.directory / "x"), "--no-pictures")):
            code, errors = self.run_command(str(self.directory / "in"), *arguments, "--format", "svg", pictures=True)
            self.assertEqual(code, 1)
            self.assertIn("writes pictures into a folder", errors)

    def test_a_sweeps_torn_end_is_left_out(self):
        synthetic.write(self.directory / "in", 4, ("rdma",))
        file = self.directory / "in" / "rdma" / "results.jsonl"
        file.write_text(file.read_text(encoding="utf-8")[:-200], encoding="utf-8")
        out = self.directory / "page.html"
        code, errors = self.run_command(str(file), "-o", str(out))
        self.assertEqual(code, 0)
        self.assertIn("the last line is torn", errors)
        self.assertEqual(out.read_text(encoding="utf-8").count('<article class="card"'), 3)
        lines = file.read_text(encoding="utf-8").split("\n")
        file.write_text("\n".join([lines[0], lines[3], lines[1]]), encoding="utf-8")
        self.assertEqual(self.run_command(str(file), "-o", str(out))[0], 1, "in the middle it is damage")

    def test_a_comparison_stands_alone(self):
        evil = '<script>"\u00e4'
        document = {"schema": "doorbell.compare/1", "before": evil, "after": evil, "threshold_percent": 5.0, "warnings": [evil],
                    "differences": [{"what": evil, "before": evil, "after": evil, "cells": 3}], "only_before": [evil],
                    "cells": [{"cell": f"{evil} {i}", "not_comparable": [evil], "ratios": [
                        {"metric": evil, "ratio": 0.9 + i / 10, "ci_low": 0.8, "ci_high": 1.2, "ci_level": 0.96, "verdict": evil},
                        {"metric": "p99_ns", "ratio": None, "verdict": "undecided"}]} for i in range(60)]}
        file = self.write("c.json", document)
        out = self.directory / "page.html"
        self.assertEqual(self.run_command(file, "-o", str(out), pictures=drawing.available())[0], 0)
        reader = Reader(out.read_text(encoding="utf-8"))
        self.assertEqual([t for t, _ in reader.tags].count("script"), 1)
        self.assertIn(evil, reader.words)
        one = self.write("one.json", result([cell()]).data)
        code, errors = self.run_command(file, one, "-o", str(out))
        self.assertEqual(code, 1)
        self.assertIn("give it alone", errors)
        for hollow in ({}, {"cells": [3, {"ratios": [None, {}]}]}, {"cells": [], "differences": [{}]}):
            file = self.write("hollow.json", {"schema": "doorbell.compare/1", **hollow})
            self.assertEqual(self.run_command(file, "-o", str(out), pictures=drawing.available()), (0, ""))

    def test_a_full_disk_leaves_the_old_page(self):
        one = self.write("one.json", result([cell()]).data)
        self.assertEqual(self.run_command(one, "-o", "/dev/full")[0], 1)
        out = self.directory / "page.html"
        out.write_text("the old page", encoding="utf-8")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
        try:
            code, errors = self.run_command(one, "-o", str(out))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        self.assertEqual(code, 1)
        self.assertIn("File too large", errors)
        self.assertEqual(out.read_text(encoding="utf-8"), "the old page")
        self.assertEqual(sorted(os.listdir(self.directory)), ["one.json", "page.html"])


if __name__ == "__main__":
    unittest.main()
