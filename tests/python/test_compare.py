# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The page of a comparison: its units, on what its verdicts rest, what B does not reach. Names that are too long for a
picture, there and in the heat map: none stands for two."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "python")]

from doorbell_report import charts, compare, drawing, form, groups, page, results  # noqa: E402
from samples import NEEDS_JINJA, NEEDS_MATPLOTLIB, Reader, cell, metrics, result, with_and_without  # noqa: E402


def ratio(metric="ops_per_s", **more):
    return {"metric": metric, "runs_before": 7, "runs_after": 6, "before": 1.5e6, "after": 3e6, "ratio": 2.0, "ci_low": 1.9, "ci_high": 2.1,
            "ci_level": 0.962, "basis": "runs", "repeats_before": None, "repeats_after": None, "verdict": "better", **more}


def by_repeats(**more):
    return ratio(**{"runs_before": 1, "runs_after": 1, "basis": "repeats", "repeats_before": 5, "repeats_after": 4, **more})


def compared(*ratios, operations=("packet",), name="net stream=tcp", **more):
    return {"schema": "doorbell.compare/1", "before": "a", "after": "b", "threshold_percent": 5.0, "exit_code": 0, "runs_before": 7,
            "runs_after": 6, "differences": [], "warnings": [],
            "cells": [{"cell": name, "operations": list(operations), "not_comparable": [], "ratios": list(ratios)}], **more}


def words_of(data, pictures=False):
    text = compare.render(data, "t", pictures)
    return Reader(re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)).words


@NEEDS_JINJA
class Comparison(unittest.TestCase):
    def test_units(self):
        figures = [ratio(), ratio("bytes_per_s"), ratio("p99_ns")]
        words = words_of(compared(*figures))
        for expected in ("1.5003.000Mpps", "0.001500.00300GB/s", "1\N{THIN SPACE}5003\N{THIN SPACE}000us", "1 Mpps is 10^6 packets/s"):
            self.assertIn(expected, words)
        self.assertNotRegex(words, "IOPS|MB/s|ops/s")
        for operations in (["operation"], []):
            self.assertIn("1\N{THIN SPACE}5003\N{THIN SPACE}000kIOPS", words_of(compared(*figures, operations=operations)))
        self.assertIn("1\N{THIN SPACE}5003\N{THIN SPACE}000k ops/s", words_of(compared(*figures, operations=["operation", "packet"])))

    def test_what_b_does_not_reach(self):
        unmet = [{"cell": "net stream=tcp", "metric": "ops_per_s", "figure": 3e6, "demanded": 4e6},
                 {"cell": "net stream=tcp", "metric": "p99_ns", "figure": None, "demanded": 5e3}]
        words = words_of(compared(ratio(), unmet=unmet))
        for expected in ("2 demands are not met", "net stream=tcp: ops_per_s of B is 3.000 Mpps, and at least 4.000 Mpps is demanded",
                         "net stream=tcp: p99_ns of B is not known, and at most 5.000 us is demanded"):
            self.assertIn(expected, words)
        self.assertNotIn("not met", words_of(compared(ratio())))

    def test_runs_are_what_a_verdict_rests_on(self):
        words = words_of(compared(ratio()))
        self.assertIn("The verdicts rest on 7 runs of A and 6 of B, each made on its own", words)
        self.assertIn("rests on", words)
        self.assertIn("7 and 6 runs", words)
        self.assertNotIn("repeats", words)

    def test_in_turns(self):
        for pictures in with_and_without():
            words = words_of(compared(ratio(), in_turns={"sentence": "B is faster than A"}), pictures)
            self.assertIn("B is faster than A.", words)
            self.assertIn("rest on 7 runs of A and 6 of B, taken in turns", words)
        for code, css in ((0, "lead"), (3, "lead bad")):
            self.assertIn(f'<p class="{css}">A is', compare.render(compared(in_turns={"sentence": "A is"}, exit_code=code), "t", False))

    def test_repeats_are_weaker(self):
        words = words_of(compared(ratio(), by_repeats(metric="p99_ns")))
        self.assertIn("1 of 2 rests only on the repeats inside too few runs. That is weaker", words)
        self.assertIn("5 and 4 repeats of 1 and 1 runs", words)
        self.assertIn("2 of 2 rest only on", words_of(compared(by_repeats(), by_repeats(metric="p99_ns"))))

    def test_no_interval_at_all(self):
        bare = ratio("p99_ns", ci_level=0, ci_low=2.0, ci_high=2.0, basis=None, verdict="undecided")
        self.assertIn("1 of 2 has too few runs for any interval.", words_of(compared(ratio(), bare)))

    @NEEDS_MATPLOTLIB
    def test_an_interval_of_repeats_is_dotted(self):
        for one, dotted in ((ratio(), False), (by_repeats(), True)):
            (picture,) = compare.pictures(compared(one), drawing.PAGE)
            (line,) = [line for line in picture.figure.axes[0].get_lines() if list(line.get_xdata()) == [1.9, 2.1]]
            self.assertEqual(line.get_linestyle() != "-", dotted)
            self.assertEqual("dotted where only repeats of few runs make it" in picture.note, dotted)
            self.assertEqual("by repeats" in picture.alt, dotted)


def shown_names(picture):
    """The names on an axis as they are drawn, and what each says when it is pointed at."""
    tree = xml.etree.ElementTree.fromstring(picture.file("svg"))
    space = "{http://www.w3.org/2000/svg}"
    return {group.find(f"{space}title").text for group in tree.iter(f"{space}g") if group.find(f"{space}title") is not None}


class Shortened(unittest.TestCase):
    def test_what_fits_stays(self):
        self.assertEqual(form.shortened(["a", "b" * 16, "a"], 16), ["a", "b" * 16, "a"])

    def test_the_middle_goes_first(self):
        self.assertEqual(form.shortened(["abcdefghijklmnopqrstuvwxyz"], 11), ["abcd...wxyz"])

    def test_no_two_are_alike(self):
        long = "a-name-of-a-machine-room-that-is-long."
        for names in ([f"node{i}.{long}{long}" for i in range(20)], [f"{long}{long}node{i}" for i in range(20)],
                      [f"{long}node{i}.{long}" for i in range(20)], [f"{'x' * 500}{i}{'y' * 500}" for i in range(120)],
                      [f"{i}{'x' * 500}{i % 2}" for i in range(30)], ["a\x01", "a\x02", "a\N{REPLACEMENT CHARACTER}"],
                      ["abcdefghijklmnopqrstuvwxyz", "abcdef...tuvwxyz", "abcdefzzzzzzzzzzzztuvwxyz"]):
            short = form.shortened(names, 16)
            self.assertEqual(len(set(short)), len(names), short)
            self.assertLessEqual(max(map(len, short)), 16)
        self.assertEqual(len(set(form.shortened(["x" * 40] * 2, 16))), 1, "the same name twice is one name")


@NEEDS_MATPLOTLIB
class Names(unittest.TestCase):
    def heat_map(self, hosts):
        made = []
        for a, source in enumerate(hosts):
            for b, target in enumerate(hosts):
                if a != b:
                    one = cell(path="net", operation="packet", net={}, metrics={**metrics(1000, [[64, 1000]]), "bytes_per_s": 1e9},
                               cell={"from_rank": a, "from_host": source, "to_rank": b, "to_host": target})
                    made.append(results.Result(f"f:{len(made)}", result([one]).data, "f",
                                               results.Run(len(made), 0, {}, 0, "exit", "", 1.0)))
        (group,) = groups.group(made)
        (picture,) = charts.of_group(group, {}, drawing.PAGE)
        return picture

    def test_hosts_that_differ_where_a_name_is_cut(self):
        hosts = [f"gpu-node-{i}.cluster-of-the-institute.example.com" for i in range(3)]
        picture = self.heat_map(hosts)
        (axes,) = picture.figure.axes
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            shown = [label.get_text() for label in labels]
            self.assertEqual(len(set(shown)), 3, shown)
            self.assertLessEqual(max(map(len, shown)), 16)
        self.assertEqual(shown_names(picture), set(hosts))
        svg = picture.inline(1)
        for host in hosts:
            self.assertEqual(svg.count(f"<title>{host}</title>"), 2, "on both axes")
            self.assertIn(host, picture.alt)

    def test_a_name_that_fits_has_no_title(self):
        self.assertEqual(shown_names(self.heat_map(["a", "b"])), set())

    def test_a_title_is_escaped(self):
        svg = self.heat_map([f"<script>{i}</script>&{'x' * 30}" for i in range(2)]).inline(1)
        self.assertNotIn("<script", svg)
        self.assertIn("<title>&lt;script&gt;0&lt;/script&gt;&amp;xxx", svg)

    def test_cells_that_differ_in_what_a_picture_cannot_hold(self):
        names = [f"net stream={'a' * 100}{i}{'b' * 100} y={i % 2}" for i in range(4)]
        data = compared()
        data["cells"] = [{**compared(ratio())["cells"][0], "cell": name} for name in names]
        (picture,) = compare.pictures(data, drawing.PAGE)
        shown = [label.get_text() for label in picture.figure.axes[0].get_yticklabels()]
        self.assertEqual(len(set(shown)), 4, shown)
        self.assertLessEqual(max(line.count("\n") for line in shown), 2)
        self.assertEqual(shown_names(picture), {name.removeprefix("net ") for name in names})

    def test_a_name_of_several_lines_is_whole(self):
        name = "nvme controller=model batch-size=16 lbas-per-io=8 num-queues=4"
        (picture,) = compare.pictures(compared(ratio(), name=name), drawing.PAGE)
        (label,) = picture.figure.axes[0].get_yticklabels()
        self.assertEqual(label.get_text().replace("\n", " "), name)

    def test_what_all_have_stays_where_names_would_be_alike(self):
        data = compared()
        data["cells"] = [{**compared(ratio())["cells"][0], "cell": name} for name in ("net a", "net net a")]
        shown = [label.get_text() for label in compare.pictures(data, drawing.PAGE)[0].figure.axes[0].get_yticklabels()]
        self.assertEqual(shown, ["net a", "net net a"])


@NEEDS_JINJA
class WithoutMatplotlib(unittest.TestCase):
    def test_the_page_and_a_line_say_so(self):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            (folder / "matplotlib.py").write_text("raise ImportError\n", encoding="utf-8")
            for name, document in (("one", result([cell()]).data), ("compared", compared(ratio()))):
                (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
                for options, missing in (([], True), (["--no-pictures"], False)):
                    out = folder / f"{name}.html"
                    done = subprocess.run([sys.executable, "-m", "doorbell_report", *options, f"{name}.json", "-o", str(out)], cwd=folder,
                                          capture_output=True, text=True, timeout=60, check=False,
                                          env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"})
                    said = "it has no charts, because the Debian package python3-matplotlib is not installed"
                    self.assertEqual((done.returncode, done.stderr), (0, f"doorbell_report: {out}: {said}\n" if missing else ""))
                    self.assertEqual(f"Of this page: {said}." in out.read_text(encoding="utf-8"), missing)

    def test_a_page_with_charts_says_nothing(self):
        self.assertNotIn("Of this page", page.render([result([cell()])], "t", drawing.available()))


if __name__ == "__main__":
    unittest.main()
