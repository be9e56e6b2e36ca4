# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The HTML report: what it says, that it escapes, that it stands alone."""

import base64
import copy
import hashlib
import os
import pathlib
import re
import sys
import tempfile
import unittest

from result_schema import tool

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

from doorbell_report import charts, drawing, groups, histogram, page, pairs, results  # noqa: E402
from samples import (  # noqa: E402
    NEEDS_JINJA, NEEDS_MATPLOTLIB, Reader, cell, load_all, metrics, render, result, with_and_without, with_verify)
import synthetic  # noqa: E402


@NEEDS_JINJA
class Page(unittest.TestCase):
    def test_says_what_was_measured(self):
        words = Reader(render(result([cell()]))).words
        for expected in ("a title", "NVMe", "software model", "initiator GPU 0", "200.0", "kIOPS", "0.819", "GB/s", "9.000",
                         "98.4 %", "noisy", "outlier: repeat 3", "Example CPU", "$ doorbell nvme", "write", "read",
                         "31.25 ns", "100\N{THIN SPACE}000 operations checked, none wrong"):
            self.assertIn(expected, words)

    def test_single_operations_in_the_form_of_vendors(self):
        def of(unit):
            return {"min": 1.25 * unit, "mean": 2.5 * unit, "std": 0.5 * unit, "max": 7.75 * unit}
        single = {"count": 100, "latency_ns": of(1e3), "ops_per_s": of(1.0), "bytes_per_s": of(4e6)}
        whole = Reader(render(result([cell(path="rdma", rdma={"single_operation": single})]))).words
        for expected in ("single operations, all repeats", "latency, us", "7.750", "rate, kIOPS", "0.00775", "throughput, GB/s", "0.0310"):
            self.assertIn(expected, whole)
        for without in (cell(), cell(path="rdma", rdma={"single_operation": None}), cell(path="rdma", rdma=[])):
            self.assertNotIn("single operations", Reader(render(result([without]))).words)

    def test_warnings_come_before_the_figures(self):
        busy = [result([cell()], warnings=[f"the machine is busy: load {n}.5"] if n else []) for n in range(3)]
        words = Reader(render(*busy)).words
        self.assertLess(words.index("the machine is busy: load 1.5 (cell 2; with other figures cell 3)"), words.index("p99.9 us"))
        one = Reader(render(result([cell()], warnings=["hot"]))).words
        self.assertLess(one.index("hot"), one.index("p99.9 us"))

    def test_labels_are_honest(self):
        words = Reader(render(result([cell(device={"kind": "emulated", "name": "rxe"})]))).words
        self.assertIn("nothing about the speed of a physical device", words)
        hardware = Reader(render(result([cell(device={"kind": "hardware", "name": "ssd"})]))).words
        self.assertNotIn("nothing about the speed", hardware)
        blind = Reader(render(result([with_verify(mode="none", checked=0)]))).words
        self.assertIn("not verified", blind)
        self.assertIn("OK, but not all data was verified", blind)

    def test_failures_are_named(self):
        bad = with_verify(corrupt=3, first=[{"kind": "corrupt", "address": 4096, "sequence": 41}])
        bad["errors"]["timeout"] = 1
        words = Reader(render(result([bad], exit_code=2))).words
        for expected in ("1 cell failed", "FAILED: 3 corrupt, 1 timeout", "3 corrupt", "corrupt at byte 0x1000", "3 wrong"):
            self.assertIn(expected, words)
        self.assertLess(words.index("1 cell failed"), words.index("p99.9 us"))

    def test_a_large_sequence_keeps_its_digits(self):
        bad = with_verify(corrupt=1, first=[{"kind": "corrupt", "address": 0, "sequence": "5764607523034234893"}])
        words = Reader(render(result([bad], exit_code=2))).words.replace("\N{THIN SPACE}", " ")
        self.assertIn("sequence 5 764 607 523 034 234 893 was due", words)

    def test_a_figure_with_errors_is_no_best_one(self):
        bad = with_verify(corrupt=3)
        bad["metrics"]["ops_per_s"] = 9e9
        words = Reader(render(result([cell()]), result([bad], exit_code=2))).words
        self.assertNotIn("9\N{THIN SPACE}000\N{THIN SPACE}000 kIOPS", words)
        self.assertIn("200.0 kIOPS", words)

    def test_escapes_everything(self):
        evil = '<script>alert(1)</script>"\'&<img src=x onerror=alert(2)>{{ 7 * 7 }} \u00e4\u4e2d\U0001f600 $x^2$'
        hostile = cell(path=evil, cell={evil: evil, "size_bytes": 4096}, options={evil: evil}, device={"kind": evil, "name": evil},
                       initiator={"kind": evil, "gpu": None}, errors={evil: 3}, substeps_ns={evil: 1.0, evil + "2": 2.0},
                       repeats=[{"seed": evil, "ops_per_s": 1e3}] * 2, spread={evil: {"median": 1.0}},
                       cost={"cpu_ns_per_op": 3.0, "threads": [{"name": evil, "cpu_s": 1.0}]})
        hostile[evil] = {evil: metrics(5, [[8192, 5]]), "x": evil}
        hostile["verify"] = {"mode": evil, "checked": 1, "corrupt": 0,
                             "first": [{"kind": evil, "address": evil, "sequence": evil}]}
        other = copy.deepcopy(hostile)
        other["cell"] = {evil: evil + "other", "size_bytes": 8192}
        other["errors"] = hostile["errors"] = {evil: 0}
        failed = cell(path=evil, errors={evil: 3})
        made = result([hostile, other, failed], argv=[evil], warnings=[evil], stop_reason=evil, complete=True, exit_code=0,
                      environment={"cpu": evil, evil: evil, "gpu": [{"name": evil, "driver": evil}]},
                      tool={"name": evil})
        made.name = made.source = evil
        made.run = results.Run(0, 0, {evil: evil}, 0, "exit", evil, 1.0)
        lost = results.Result(evil, {"complete": False, "exit_code": 139, "stop_reason": evil}, evil,
                              results.Run(7, 0, {evil: evil}, 139, evil, evil, 1.0))
        plan = {"title": evil, "name": evil, "published": [{"file": evil, "where": {evil: [evil]}, "note": evil, "unit": evil,
                "columns": {evil: evil}, "ours": evil, "rows": [{"cell": 0, "figures": {evil: 1.0, "mean": 2.0}}]}]}
        for pictures in with_and_without():
            text = page.render([made, made, lost, copy.deepcopy(lost)], evil, pictures, {evil: plan})
            reader = Reader(text)
            self.assertEqual([t for t, _ in reader.tags].count("script"), 1, "only the page's own")
            self.assertNotIn("img", reader.elements)
            self.assertEqual(reader.handlers, [])
            self.assertIn("<script>alert(1)</script>", reader.words)
            self.assertIn("{{ 7 * 7 }}", reader.words)
            self.assertIn("\u00e4\u4e2d\U0001f600", reader.words)
            self.assertEqual(text.count("</script>"), 1)
        if drawing.available():
            self.assertGreater(text.count("<svg "), 6)

    def test_control_characters_do_not_pass(self):
        text = render(result([cell(device={"kind": "model", "name": "a\x1b[31m\x00\u202eb\ud800"})]),
                      pictures=drawing.available())
        for character in "\x1b\x00\u202e\ud800":
            self.assertNotIn(character, text)

    def test_stands_alone(self):
        for pictures in with_and_without():
            text = render(result([cell(), cell()]), result([cell()]), pictures=pictures)
            reader = Reader(text)
            self.assertTrue(all(address.startswith("#") for address in reader.addresses), reader.addresses)
            self.assertFalse({"link", "iframe", "object"} & reader.elements)
            for address in re.findall(r"https?://[^\"'\s)<]*", text):
                self.assertTrue(address.startswith("http://www.w3.org/"), address)  # names of XML dialects
            self.assertNotIn("@import", text)
            self.assertFalse(set(a[1:] for a in reader.addresses) - set(reader.ids))
            self.assertEqual(len(reader.ids), len(set(reader.ids)))
            self.assertIn("prefers-color-scheme: dark", text)

    def test_only_the_pages_own_script_may_run(self):
        text = render(result([cell()]))
        allowed = re.search(r"script-src '(sha256-[^']*)'", text).group(1)
        script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertEqual(allowed, f"sha256-{digest}")
        self.assertIn("default-src 'none'", text)

    def test_holes_do_not_stop_it(self):
        junk = [{}, {"path": None, "metrics": [], "verify": 3, "errors": [], "cost": "x", "repeats": {}, "spread": []},
                cell(metrics={"latency_ns": {"bins": [[1], "x", [-5, 3], [2, True], [3.5, 1], [2 ** 70, 1]]}}),
                cell(repeats=[None, 5, {}], spread={"ops_per_s": None}), cell(nvme={"write": {"latency_ns": {}}})]
        for pictures in with_and_without():
            Reader(page.render([result(junk), result([]), results.Result("x", {"schema": results.SCHEMA})], "t", pictures))

    def test_every_cell_can_be_reached_from_its_table(self):
        reader = Reader(render(result([cell(), cell()]), result([cell()])))
        for anchor in ("r0c0", "r0c1", "r1c0"):
            self.assertIn(f"#{anchor}", reader.addresses)
            self.assertIn(anchor, reader.ids)

    def test_a_screen_reader_finds_its_way(self):
        for pictures in with_and_without():
            tags = Reader(render(result([cell(), cell(cell={"rw": "read", "block_bytes": 512})]), pictures=pictures)).tags
            heads = [attributes for tag, attributes in tags if tag == "th"]
            self.assertTrue(all(a.get("scope") in ("col", "row") for a in heads))
            names = [tag for tag, _ in tags]
            self.assertEqual(names.count("table"), names.count("caption"))
            for attributes in (a for tag, a in tags if tag == "svg"):
                self.assertEqual(attributes.get("role"), "img")
                self.assertGreater(len(attributes.get("aria-label", "")), 20)
            levels = [int(tag[1]) for tag in names if re.fullmatch("h[1-6]", tag)]
            self.assertEqual(levels.count(1), 1)
            self.assertTrue(all(b - a <= 1 for a, b in zip(levels, levels[1:])), levels)

    def test_html5lib_finds_nothing(self):
        try:
            import html5lib
        except ImportError:
            self.skipTest("python3-html5lib is not installed")
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(folder, 15)
            made, plans = load_all(folder)
        for pictures in with_and_without():
            for text in (render(result([cell()]), pictures=pictures), render(*made, pictures=pictures, plans=plans)):
                parser = html5lib.HTMLParser(namespaceHTMLElements=False)
                parser.parse(text)
                self.assertEqual([e for e in parser.errors if e[1] != "unknown"], [])


@NEEDS_MATPLOTLIB
class Pictures(unittest.TestCase):
    def test_three_a_cell(self):
        text = render(result([cell()]), pictures=True)
        self.assertEqual(text.count("<svg "), 3)
        self.assertIn("write", re.search(r"<svg .*?</svg>", text, re.DOTALL).group(0))

    def test_take_their_colours_from_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(folder, 26, ("nvme", "net"))
            made, plans = load_all(folder)
        for text in (render(result([cell()]), pictures=True), render(*made, pictures=True, plans=plans)):
            for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL):
                self.assertFalse(re.search(r"(fill|stroke): ?#(?!ffffff|none)", svg), "a fixed colour")

    def test_one_value_is_a_picture_too(self):
        for ns in (0, 1, 5, 127, 128, 10_000, 2 ** 34):
            one = cell(metrics=metrics(1, [[ns, 1]]), nvme={}, repeats=[])
            self.assertEqual(render(result([one]), pictures=True).count("<svg "), 2, ns)

    def test_beyond_the_buckets_say_no_more_than_is_known(self):
        slow = cell(metrics=metrics(60, [[2 ** 34, 60]]), nvme={}, repeats=[])
        self.assertIn("median 17.2 s or more", render(result([slow]), pictures=True))

    def test_are_the_same_for_the_same_data(self):
        pictures = [re.findall(r"<svg .*?</svg>", render(result([cell()]), pictures=True), re.DOTALL) for _ in range(2)]
        self.assertEqual(*pictures)

    def titles(self, path, cells, change=None):
        records = synthetic.sweep(path, cells)
        if change:
            change(records)
        made = [results.Result("r", r["result"], "f/results.jsonl", results.Run(r["cell"], 0, {}, 0, "exit", "", 1.0))
                for r in records if r["result"]]
        (group, *_) = groups.group(made)
        return {p.title: p for p in charts.of_group(group, {"f/results.jsonl": synthetic.plan(path, cells)["published"]}, drawing.PAGE)}

    def test_each_question_has_its_picture(self):
        drawn = self.titles("nvme", 48)
        for title in ("Throughput against size", "Median latency against size", "Rate against queues",
                      "Latency of each cell", "Steps of one operation", "CPU time an operation"):
            self.assertTrue(any(title in t for t in drawn), f"{title}: {list(drawn)}")
        self.assertIn("Ours and figures published for another machine", drawn)
        self.assertIn("Drop curve", self.titles("net", 24))

    def test_published_figures_share_no_axis_with_ours(self):
        title = "Ours and figures published for another machine"
        for which, change in (("y", None), ("x", self.without_sizes)):
            drawn = self.titles("rdma", 12, change)[title]
            axes = drawn.figure.axes
            self.assertEqual([a.get_title(loc="left").replace("\n", " ") for a in axes],
                             ["ours: software model", "published, other machine"])
            theirs = {round(2.0 + size / 20000, 6) for size in synthetic.SIZES}
            def shown(of, which):
                return {round(float(v), 6) for line in of.get_lines() for v in getattr(line, f"get_{which}data")()}
            self.assertFalse(shown(axes[0], which) & theirs)
            self.assertLessEqual(shown(axes[1], which), theirs)
            self.assertGreater(len(shown(axes[1], which)), 3)
            self.assertNotEqual(*(getattr(a, f"get_{which}lim")() for a in axes))
            self.assertIn("reference/theirs.csv, table single or batched, device a drive (on a real device)", drawn.note)

    @staticmethod
    def without_sizes(records):
        """What no number orders."""
        for r in records:
            if r["result"]:
                swept = r["result"]["cells"][0]["cell"]
                r["result"]["cells"][0]["cell"] = {"op": swept["op"], "name": f"n{r['cell']}"}

    def test_a_long_name_is_written_whole(self):
        name = "a name of many words that no line of a legend can hold, with " + "x" * 70
        def rename(records):
            for r in records:
                if r["result"]:
                    r["result"]["cells"][0]["cell"]["provider"] += name
        for picture in self.titles("rdma", 48, rename).values():
            svg = re.sub(r"\s+", "", "".join(re.findall(r"<text[^>]*>([^<]*)<", picture.inline(1))))
            self.assertNotIn("...", svg, picture.title)
            if "mlx5" in svg:
                self.assertIn(name.replace(" ", ""), svg)

    def test_a_dot_has_its_figure(self):
        made = [cell(cell={"way": w}, spread={}, metrics={**metrics(100, [[64, 100]]), "ops_per_s": rate})
                for w, rate in (("a", 1234.0), ("b", 2345.0))]
        (group,) = groups.group([result(made)])
        svg = next(p for p in charts.of_group(group, {}, drawing.PAGE) if p.title == "Rate of each cell").inline(1)
        for figure in ("1.234", "2.345"):
            self.assertIn(f">{figure}<", svg)

    def test_a_text_alternative_has_the_figures(self):
        drawn = self.titles("net", 24)["Drop curve"]
        self.assertIn("no loss up to 30.00 Gb/s", drawn.alt)

    def test_the_cost_of_checking(self):
        def halve(records):
            for plain, checked in zip(records[:6:2], records[1:6:2]):
                for r, mode, rate in ((plain, "none", 1e6), (checked, "full", 5e5)):
                    one = r["result"]["cells"][0]
                    one["cell"] = {"io_bytes": 512 * (1 + r["cell"] // 2)}
                    one["options"] = {"verify": mode}
                    one["metrics"]["ops_per_s"] = rate
                    one["verify"].update(mode=mode, checked=0 if mode == "none" else 5, corrupt=0, stale=0)
                    r["result"].update(exit_code=0)
            del records[6:]
        drawn = self.titles("nvme", 6, halve)["Cost of checking"]
        self.assertIn("50 %", drawn.alt)

    def test_what_failed_is_not_drawn(self):
        def break_all(records):
            for r in records:
                if r["result"]:
                    r["result"]["cells"][0]["errors"]["timeout"] = 1
        self.assertEqual(self.titles("nvme", 12, break_all), {})

    def test_markers_and_dashes_differ_like_colours(self):
        for values in (drawing.MARKERS, drawing.DASHES, drawing.PAGE.series, drawing.PAPER.series):
            self.assertEqual(len(set(map(str, values))), drawing.SERIES)


def between(source, target, rate, **more):
    """A cell of a sweep between ranks, each on a host of its own."""
    return cell(path="net", cell={"stream": "tcp", "from_rank": source, "from_host": f"node{source}", "to_rank": target,
                                  "to_host": f"node{target}", **more},
                metrics={**metrics(1000, [[64, 1000]]), "bytes_per_s": rate}, net={})


@NEEDS_JINJA
class Pairs(unittest.TestCase):
    """The all-pairs matrix of a sweep between ranks."""

    def matrix(self, ranks, lost=(), streams=("tcp",)):
        made = []
        pairs = [(stream, a, b) for stream in streams for a in range(ranks) for b in range(ranks) if a != b]
        for i, (stream, a, b) in enumerate(pairs):
            options = {"stream": stream, "from-rank": a, "from-host": f"node{a}", "to-rank": b, "to-host": f"node{b}"}
            failed = (a, b) in lost
            data = {"complete": False, "exit_code": 1} if failed else \
                result([between(a, b, 1e9 * (1 + a + b / 10), stream=stream)]).data
            made.append(results.Result(f"f:{i}", data, "f", results.Run(
                i, 0, options, 1 if failed else 0, "exit", "rank 2 has gone" if failed else "", 1.0)))
        return made

    def maps(self, *arguments, **more):
        (group,) = groups.group(self.matrix(*arguments, **more))
        return charts.of_group(group, {}, drawing.PAGE)

    @NEEDS_MATPLOTLIB
    def test_one_heat_map_with_every_figure(self):
        (drawn,) = self.maps(3)
        self.assertEqual(drawn.title, "Throughput of each pair")
        svg = drawn.inline(1)
        for a in range(3):
            for b in range(3):
                self.assertEqual(svg.count(f">{1 + a + b / 10:.3f}<"), 1 if a != b else 0, (a, b))
        self.assertIn("Lowest: node0 to node1 1.100; highest: node2 to node1 3.100; median 2.100.", drawn.alt)
        self.assertIn("node1 to node2 2.200", drawn.alt)

    @NEEDS_MATPLOTLIB
    def test_a_pair_that_failed_is_marked_and_named(self):
        (drawn,) = self.maps(3, lost={(0, 2), (2, 0)})
        self.assertIn("No figure: node0 to node2; node2 to node0.", drawn.alt)
        self.assertEqual(drawn.note, "2 of 6 pairs have no figure; the table says why.")
        self.assertNotIn(">1.200<", drawn.inline(1))

    @NEEDS_MATPLOTLIB
    def test_a_map_for_each_of_what_else_varies(self):
        self.assertEqual([p.title for p in self.maps(2, streams=("tcp", "udp"))],
                         ["Throughput of each pair: tcp", "Throughput of each pair: udp"])

    @NEEDS_MATPLOTLIB
    def test_many_ranks_have_no_figures_in_the_fields(self):
        (drawn,) = self.maps(21)
        self.assertIn("The table has the figures.", drawn.note)
        self.assertNotIn("Every pair", drawn.alt)

    def test_figures_can_be_read_on_their_colours(self):
        def luminance(rgb):
            return sum(w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
                       for w, c in zip((0.2126, 0.7152, 0.0722), rgb))
        for grey in range(0, 101, 5):
            back = luminance([grey / 100] * 3)
            front = 0.0 if pairs._contrast([grey / 100] * 3) == "#000000" else 1.0
            self.assertGreaterEqual((max(back, front) + 0.05) / (min(back, front) + 0.05), 4.5, grey)

    def test_the_table_has_both_ends_and_can_be_sorted(self):
        made = self.matrix(3, lost={(0, 2)})
        text = render(*made)
        table = text[text.index("every cell"):]
        self.assertRegex(text, r'<table class="sortable"><caption><span>Network streams: every cell')
        for words in (">from<", ">to<", "node2:2", "rank 2 has gone"):
            self.assertIn(words, table)


@NEEDS_JINJA
class Groups(unittest.TestCase):
    def rows_of(self, *cells):
        return groups.group([result([c]) for c in cells])

    def test_only_what_varies_is_a_column(self):
        (group,) = self.rows_of(*(cell(cell={"rw": "read", "batch": n}, options={"seed": n, "batch_size": n}) for n in (1, 2)))
        self.assertEqual(group.varied, ["batch"])
        self.assertEqual(group.equal["rw"], "read")
        words = Reader(render(*(result([cell(cell={"rw": "read", "batch": n})]) for n in (1, 2)))).words
        self.assertRegex(words, r"In all cells: rw\s+read")

    def test_an_option_that_no_parameter_tells_is_one(self):
        (group,) = self.rows_of(*(cell(cell={"a": 1}, options={"json": str(n), "backend": "x" * n}) for n in (1, 2)))
        self.assertEqual(group.varied, ["backend"])

    def test_paths_and_parts_are_groups(self):
        made = self.rows_of(cell(), cell(path="rdma", cell={"part": "rate"}), cell(path="rdma", cell={"part": "latency"}))
        self.assertEqual([g.title for g in made], ["NVMe", "RDMA: rate", "RDMA: latency"])

    def test_rounds_are_one_row(self):
        made = [results.Result(f"f:{n}", result([cell(metrics={"ops_per_s": 100.0 + n})]).data, "f",
                               results.Run(0, n, {}, 0, "exit", "", 1.0)) for n in range(7)]
        (group,) = groups.group(made)
        (row,) = group.rows
        self.assertEqual(row.figure("metrics", "ops_per_s"), 103.0)
        self.assertEqual(row.interval("ops_per_s"), (100.0, 106.0, 0.984375))
        self.assertIn("Every round", Reader(render(*made)).words)

    def test_the_interval_of_a_median(self):
        for n, ranks, level in ((5, (1, 5), 0.9375), (7, (1, 7), 0.984375), (9, (2, 8), 0.9609375), (12, (3, 10), 0.9614258)):
            low, high, found = groups.median_interval(list(range(1, n + 1)))
            self.assertEqual((low, high), ranks)
            self.assertAlmostEqual(found, level, 5)
        self.assertEqual(groups.median_interval([3.0, 1.0]), (1.0, 3.0, 0.0))

    def test_the_worst_round_is_the_verdict(self):
        made = [results.Result(f"f:{n}", data, "f", results.Run(0, n, {}, code, ended, "", 1.0))
                for n, (data, code, ended) in enumerate([(result([cell()]).data, 0, "exit"),
                                                         ({"complete": False, "exit_code": 139}, 139, "signal")])]
        (group,) = groups.group(made)
        self.assertEqual(group.rows[0].verdict, ("failed", "FAILED: ended by signal"))
        self.assertEqual(group.sound, [])


@NEEDS_JINJA
class ManyCells(unittest.TestCase):
    """A sweep of 200 cells of all paths, some of which went wrong, each in a way of its own."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(folder, 200)
            cls.loaded, cls.plans = load_all(folder)

    def test_what_it_is_made_from_has_the_schemas_form(self):
        validator = tool().validator_of(tool().SCHEMA)
        if validator is None:
            self.skipTest("python3-jsonschema is not installed")
        for made in self.loaded[::7]:
            if made.cells:
                validator.validate(made.data)

    def test_the_page_stays_small(self):
        text = render(*self.loaded, pictures=drawing.available(), plans=self.plans)
        self.assertLess(len(text.encode()), 2_000_000)
        reader = Reader(text)
        self.assertEqual(len(reader.ids), len(set(reader.ids)))
        self.assertFalse(set(a[1:] for a in reader.addresses) - set(reader.ids))
        self.assertEqual(text.count('<article class="card"'), 200)

    def test_each_way_to_go_wrong_is_said(self):
        words = Reader(render(*self.loaded, plans=self.plans)).words
        for expected in ("30 failed", "10 interrupted", "10 skipped", "10 cells have data errors: cell 6 (3 corrupt, 1 stale)", "FAILED: 3 corrupt, 1 stale", "FAILED: 1 timeout",
                         "FAILED: ended by signal", "segmentation fault", "the device is not here", "INTERRUPTED (partial",
                         "This cell left no result", "reference/theirs.csv", "published mean, us"):
            self.assertIn(expected, words)

    def test_nothing_is_lost(self):
        made = copy.deepcopy(self.loaded[:40])
        whole = [r for r in made if r.cells]
        whole[3].data["environment"]["cpu"] = "Another CPU"
        whole[4].data["cells"][0]["options"]["option_7"] = "something else"
        whole[5].data["cells"][0]["options"].pop("option_8")
        words = Reader(render(*made)).words
        for expected in ("Another CPU", "something else", '"option_8": null', ", except"):
            self.assertIn(expected, words)
        self.assertLessEqual(words.count("its value 9"), 2, "once a group")

    def test_cells_without_figures_are_drawn_too(self):
        holes = [cell(metrics={}), cell(metrics=metrics(1, [[0, 1]])), cell(metrics={"ops_per_s": 0})] * 5
        for pictures in with_and_without():
            Reader(render(result(holes), pictures=pictures))
            Reader(render(result([cell(metrics={})] * 20), pictures=pictures))


class Buckets(unittest.TestCase):
    def test_lower_bounds_are_their_own_bucket(self):
        for i in range(1857):
            self.assertEqual(histogram.bucket_of(histogram.lower_ns(i)), i)
            self.assertEqual(histogram.bucket_of(histogram.lower_ns(i + 1) - 1), i)

    def test_survival_counts_what_is_slower(self):
        self.assertEqual([above for above, _ in histogram.survival([(1, 5), (2, 3), (9, 2)])], [5, 2, 0])

    def test_shares_add_up(self):
        for group in (1, 2, 8, 64):
            edges, shares = histogram.coarse([(3, 5), (200, 3), (900, 2)], group, 900)
            self.assertAlmostEqual(sum(shares), 100)
            self.assertEqual(edges, sorted(edges))
            self.assertEqual(len(edges), len(shares) + 1)

    def test_a_long_thin_tail_is_left_out_and_said(self):
        tail = [(500, 1000), (510, 1000), (1500, 1)]
        self.assertEqual(histogram.picture_end([("all", tail)]), (510, True))
        self.assertEqual(histogram.picture_end([("all", [(500, 1000), (510, 1000)])]), (510, False))
        self.assertEqual(histogram.picture_end([("all", [(500, 1000), (1500, 1000)])]), (1500, False))


class Verdicts(unittest.TestCase):
    def test_kinds(self):
        for expected, made in (("ok", result([cell()])), ("failed", result([with_verify(stale=1)])),
                               ("failed", result([cell(errors={"timeout": 2})])), ("failed", result([], exit_code=1)),
                               ("skipped", result([], exit_code=77)),
                               ("interrupted", result([cell()], complete=False, stop_reason="signal")),
                               ("unverified", result([with_verify(checked=0)]))):
            self.assertEqual(results.verdict(made)[0], expected)


class FromTheProgram(unittest.TestCase):
    """Reads what report_test wrote."""

    def test_sample(self):
        directory = os.environ.get("DOORBELL_TEST_OUT")
        if not directory or not os.path.isdir(directory):
            self.skipTest("DOORBELL_TEST_OUT is not set")
        loaded = results.load([directory])
        self.assertEqual(len(loaded), 2)
        words = Reader(page.render(loaded, "t", drawing.available())).words
        self.assertIn("FAILED: 3 corrupt, 1 timeout", words)
        self.assertIn("INTERRUPTED (partial, stopped by signal)", words)


if __name__ == "__main__":
    unittest.main()
