# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The HTML report: what it says, that it escapes, that it stands alone."""

import contextlib
import copy
import html.parser
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from doorbell_report import __main__ as command  # noqa: E402
from doorbell_report import figures, load, page  # noqa: E402

VOID = {"meta", "br", "hr", "img", "input", "link"}


def latency(bins):
    count = sum(c for _, c in bins)
    return {"count": count, "min": 1.0, "mean": 2.0, "std": 1.0, "p50": 9_000.0, "p90": None, "p95": None,
            "p99": 17_000.0, "p99_9": None, "p99_99": None, "max": 20_000.0, "bins": bins}


def metrics(ops, bins):
    return {"ops": ops, "bytes": ops * 4096, "elapsed_s": 0.5, "ops_per_s": ops / 0.5, "bytes_per_s": ops * 8192.0,
            "latency_ns": latency(bins)}


def cell(**changes):
    whole = {
        "path": "nvme", "cell": {"rw": "randrw", "block_bytes": 4096}, "options": {"seed": 7},
        "initiator": {"kind": "gpu", "gpu": 0}, "device": {"kind": "model", "name": "null"},
        "metrics": metrics(100_000, [[64, 10_000], [8192, 89_000], [16384, 1_000]]),
        "substeps_ns": {"build": 71.0, "total": None},
        "repeats": [{"seed": 7, "ops_per_s": 2e5, "bytes_per_s": 8e8, "mean_ns": 9e3, "p50_ns": 9e3, "p99_ns": None, "p99_9_ns": None,
                     "errors": 0}] * 7,
        "spread": {"ops_per_s": {"median": 2e5, "ci_low": 1.9e5, "ci_high": 2.1e5, "ci_level": 0.984375,
                                 "noisy": True, "outliers": [2]}},
        "verify": {"mode": "full", "checked": 100_000, "checked_bytes": 409_600_000, "unverifiable": 0, "corrupt": 0,
                   "misplaced": 0, "stale": 0, "duplicated": 0, "missing": 0, "first": []},
        "errors": {"completion": 0, "timeout": 0},
        "cost": {"cpu_user_s": 0.25, "cpu_system_s": 0.1, "cpu_ns_per_op": 31.25, "threads": [],
                 "gpu_sm_percent": None, "doorbells_per_op": 0.03, "polls_per_completion": None},
        "nvme": {"write": metrics(40_000, [[8192, 40_000]]), "read": metrics(60_000, [[4096, 60_000]]), "queues": 4},
    }
    whole.update(changes)
    return copy.deepcopy(whole)


def result(cells, **changes):
    data = {"schema": load.SCHEMA, "tool": {"name": "doorbell", "version": "0.1.0", "git": "abc", "build": "Release"},
            "argv": ["doorbell", "nvme"], "environment": {"cpu": "Example CPU", "gpu": []}, "complete": True,
            "stop_reason": "done", "exit_code": 0, "warnings": [], "cells": cells}
    data.update(changes)
    return load.Result("r.json", data)


def with_verify(**changes):
    whole = cell()
    whole["verify"].update(changes)
    return whole


class Reader(html.parser.HTMLParser):
    """Checks that tags nest, and collects ids, addresses and element names."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.addresses, self.elements, self.handlers = [], [], [], set(), []
        self.words = ""
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"never closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src", "xlink:href", "action", "srcset", "data"):
                self.addresses.append(value)
            if key.startswith("on"):
                self.handlers.append(key)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.words += data


def render(*results, drawing=False):
    return page.render(list(results), "a title", drawing)


class Page(unittest.TestCase):
    def test_says_what_was_measured(self):
        words = Reader(render(result([cell()]))).words
        for expected in ("a title", "nvme", "software model", "initiator GPU 0", "verified", "200.0\N{THIN SPACE}k",
                         "819.2", "9.000", "98.4 %", "noisy", "outlier: repeat 3", "Example CPU", "$ doorbell nvme",
                         "write", "read", "31.25 ns"):
            self.assertIn(expected, words)

    def test_single_operations_in_the_form_of_vendors(self):
        def of(unit):
            return {"min": 1.25 * unit, "mean": 2.5 * unit, "std": 0.5 * unit, "max": 7.75 * unit}
        single = {"count": 100, "latency_ns": of(1e3), "ops_per_s": of(1.0), "bytes_per_s": of(4e6)}
        whole = Reader(render(result([cell(path="rdma", rdma={"single_operation": single})]))).words
        for expected in ("single operations, all repeats", "latency, us", "7.750", "throughput, MB/s", "31.00"):
            self.assertIn(expected, whole)
        for without in (cell(), cell(path="rdma", rdma={"single_operation": None}), cell(path="rdma", rdma=[])):
            self.assertNotIn("single operations", Reader(render(result([without]))).words)

    def test_warnings_come_before_the_figures(self):
        busy = [result([cell()], warnings=[f"the machine is busy: load {n}.5"] if n else []) for n in range(3)]
        words = Reader(render(*busy)).words
        self.assertLess(words.index("the machine is busy: load 1.5 (2 of 3 results)"), words.index("p99.9 us"))
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
        for expected in ("FAILED: 3 corrupt, 1 timeout", "3 corrupt", "1 timeout", "corrupt at byte 0x1000"):
            self.assertIn(expected, words)

    def test_escapes_everything(self):
        evil = '<script>alert(1)</script>"\'&<img src=x onerror=alert(2)>'
        hostile = cell(path=evil, cell={evil: evil}, options={evil: evil}, device={"kind": evil, "name": evil},
                       initiator={"kind": evil, "gpu": None}, errors={evil: 3}, substeps_ns={evil: 1.0},
                       repeats=[{"seed": evil, "ops_per_s": 1e3}], spread={evil: {"median": 1.0}},
                       cost={"threads": [{"name": evil, "cpu_s": 1.0}]})
        hostile[evil] = {evil: metrics(5, [[8192, 5]]), "x": evil}
        hostile["verify"] = {"mode": evil, "checked": 1, "corrupt": 1,
                             "first": [{"kind": evil, "address": evil, "sequence": evil}]}
        data = result([hostile], argv=[evil], warnings=[evil], stop_reason=evil, complete=False, exit_code=0,
                      environment={"cpu": evil, evil: evil, "gpu": [{"name": evil, "driver": evil}]},
                      tool={"name": evil})
        data.name = evil
        for drawing in {False, figures.available()}:
            reader = Reader(page.render([data, data], evil, drawing))
            self.assertFalse({"script", "img"} & reader.elements)
            self.assertEqual(reader.handlers, [])
            self.assertIn("<script>alert(1)</script>", reader.words)

    def test_control_characters_do_not_pass(self):
        text = render(result([cell(device={"kind": "model", "name": "a\x1b[31m\x00\u202eb\ud800"})]))
        for character in "\x1b\x00\u202e\ud800":
            self.assertNotIn(character, text)

    def test_stands_alone(self):
        for drawing in {False, figures.available()}:
            text = render(result([cell(), cell()]), result([cell()]), drawing=drawing)
            reader = Reader(text)
            self.assertTrue(all(address.startswith("#") for address in reader.addresses), reader.addresses)
            self.assertFalse({"link", "script", "iframe", "object"} & reader.elements)
            for address in re.findall(r"https?://[^\"'\s)<]*", text):
                self.assertTrue(address.startswith("http://www.w3.org/"), address)  # names of XML dialects
            self.assertNotIn("@import", text)
            self.assertFalse(set(a[1:] for a in reader.addresses) - set(reader.ids))
            self.assertEqual(len(reader.ids), len(set(reader.ids)))
            self.assertIn("prefers-color-scheme: dark", text)

    def test_holes_do_not_stop_it(self):
        junk = [{}, {"path": None, "metrics": [], "verify": 3, "errors": [], "cost": "x", "repeats": {}, "spread": []},
                cell(metrics={"latency_ns": {"bins": [[1], "x", [-5, 3], [2, True], [3.5, 1], [2 ** 70, 1]]}}),
                cell(repeats=[None, 5, {}], spread={"ops_per_s": None}), cell(nvme={"write": {"latency_ns": {}}})]
        for drawing in {False, figures.available()}:
            Reader(page.render([result(junk), result([]), load.Result("x", {"schema": load.SCHEMA})], "t", drawing))

    def test_every_cell_can_be_reached_from_the_summary(self):
        reader = Reader(render(result([cell(), cell()]), result([cell()])))
        self.assertEqual([a for a in reader.addresses if a.startswith("#r")], ["#r0c0", "#r0c1", "#r1c0"])


@unittest.skipUnless(figures.available(), "python3-matplotlib is not installed")
class Pictures(unittest.TestCase):
    def test_three_a_cell(self):
        text = render(result([cell()]), drawing=True)
        self.assertEqual(text.count("<svg "), 3)
        self.assertEqual(text.count("<figure>"), 3)
        self.assertIn("write", re.search(r"<svg .*?</svg>", text, re.DOTALL).group(0))

    def test_take_their_colours_from_the_page(self):
        text = render(result([cell()]), drawing=True)
        for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL):
            self.assertIn("var(--s1)", svg)
            self.assertFalse(re.search(r"(fill|stroke): ?#(?!ffffff|none)", svg), "a fixed colour")

    def test_one_value_is_a_picture_too(self):
        for ns in (0, 1, 5, 127, 128, 10_000, 2 ** 34):
            one = cell(metrics=metrics(1, [[ns, 1]]), nvme={}, repeats=[])
            self.assertEqual(render(result([one]), drawing=True).count("<svg "), 2, ns)

    def test_are_the_same_for_the_same_data(self):
        pictures = [re.findall(r"<svg .*?</svg>", render(result([cell()]), drawing=True), re.DOTALL) for _ in range(2)]
        self.assertEqual(*pictures)


class ManyCells(unittest.TestCase):
    """Results of a sweep: one cell each, alike but for what was varied."""

    def results(self, count):
        made = []
        options = {f"option_{i}": f"a value {i}" for i in range(50)}
        environment = {"cpu": "Example CPU", "gpu": [], "kernel_cmdline": "x" * 2000}
        for i in range(count):
            one = cell(cell={"rw": "randrw", "batch": i}, options={**options, "batch_size": i})
            made.append(result([one], environment={**environment, "load_average": [i / 7]},
                               warnings=[f"the machine is busy: load average {i / 7:.2f}"] if i % 2 else []))
        return made

    def test_the_page_stays_small(self):
        for drawing in {False, figures.available()}:
            page_of_200 = render(*self.results(200), drawing=drawing)
            self.assertLess(len(page_of_200.encode()), 2_000_000)
            reader = Reader(page_of_200)
            self.assertEqual(len(reader.ids), len(set(reader.ids)))

    @unittest.skipUnless(figures.available(), "python3-matplotlib is not installed")
    def test_one_big_picture_and_a_small_one_a_cell(self):
        text = render(*self.results(page.MANY), drawing=True)
        self.assertEqual(text.count("<svg "), 1 + page.MANY)
        self.assertEqual(text.count('class="overview"'), 1)
        self.assertEqual(render(*self.results(page.MANY - 1), drawing=True).count("<svg "), 3 * (page.MANY - 1))
        Reader(text)

    def test_nothing_is_lost(self):
        made = self.results(page.MANY)
        made[3].data["environment"]["cpu"] = "Another CPU"
        made[4].data["cells"][0]["options"]["option_7"] = "something else"
        made[5].data["cells"][0]["options"].pop("option_8")
        words = Reader(render(*made)).words
        for expected in ("Another CPU", "something else", '"option_8": null', "as in cell 1, except", "31.25 ns",
                         f"{page.MANY}. nvme"):
            self.assertIn(expected, words)
        self.assertEqual(words.count("a value 9"), 1)

    def test_cells_without_figures_are_drawn_too(self):
        holes = [cell(metrics={}), cell(metrics=metrics(1, [[0, 1]])), cell(metrics={"ops_per_s": 0})] * 5
        for drawing in {False, figures.available()}:
            Reader(render(result(holes), drawing=drawing))
            Reader(render(result([cell(metrics={})] * 20), drawing=drawing))

    def test_escapes_everything(self):
        evil = '</pre><script>alert(1)</script>"'
        made = self.results(page.MANY)
        for i, one in enumerate(made):
            one.data["cells"][0]["options"] = {evil: evil + str(i)}
            one.data["cells"][0]["path"] = evil
            one.data["environment"] = {"cpu": evil + str(i), evil: i}
            one.data["warnings"] = [evil]
        for drawing in {False, figures.available()}:
            self.assertFalse({"script", "img"} & Reader(render(*made, drawing=drawing)).elements)


class Buckets(unittest.TestCase):
    def test_lower_bounds_are_their_own_bucket(self):
        for i in range(1857):
            self.assertEqual(figures.bucket_of(figures.lower_ns(i)), i)
            self.assertEqual(figures.bucket_of(figures.lower_ns(i + 1) - 1), i)

    def test_survival_counts_what_is_slower(self):
        self.assertEqual([above for above, _ in figures.survival([(1, 5), (2, 3), (9, 2)])], [5, 2, 0])

    def test_shares_add_up(self):
        for group in (1, 2, 8, 64):
            edges, shares = figures.coarse([(3, 5), (200, 3), (900, 2)], group, 900)
            self.assertAlmostEqual(sum(shares), 100)
            self.assertEqual(edges, sorted(edges))
            self.assertEqual(len(edges), len(shares) + 1)

    def test_a_long_thin_tail_is_left_out_and_said(self):
        tail = [(500, 1000), (510, 1000), (1500, 1)]
        self.assertEqual(figures.picture_end([("all", tail)]), (510, True))
        self.assertEqual(figures.picture_end([("all", [(500, 1000), (510, 1000)])]), (510, False))
        self.assertEqual(figures.picture_end([("all", [(500, 1000), (1500, 1000)])]), (1500, False))


class Verdicts(unittest.TestCase):
    def test_kinds(self):
        for expected, made in (("ok", result([cell()])), ("failed", result([with_verify(stale=1)])),
                               ("failed", result([cell(errors={"timeout": 2})])), ("failed", result([], exit_code=1)),
                               ("skipped", result([], exit_code=77)),
                               ("interrupted", result([cell()], complete=False, stop_reason="signal")),
                               ("unverified", result([with_verify(checked=0)]))):
            self.assertEqual(load.verdict(made)[0], expected)


class Command(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)

    def write(self, name, *documents):
        path = self.directory / name
        path.write_text("\n".join(json.dumps(d) for d in documents), encoding="utf-8")
        return str(path)

    def run_command(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            try:
                code = command.main(["--no-pictures", *arguments])
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
            self.assertEqual(out.read_text(encoding="utf-8").count('class="card"'), cells)
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
        limit, load.MAX_BYTES = load.MAX_BYTES, 100
        self.addCleanup(setattr, load, "MAX_BYTES", limit)
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


class FromTheProgram(unittest.TestCase):
    """Reads what report_test wrote."""

    def test_sample(self):
        directory = os.environ.get("DOORBELL_TEST_OUT")
        if not directory or not os.path.isdir(directory):
            self.skipTest("DOORBELL_TEST_OUT is not set")
        results = load.load([directory])
        self.assertEqual(len(results), 2)
        words = Reader(page.render(results, "t", figures.available())).words
        self.assertIn("FAILED: 3 corrupt, 1 timeout", words)
        self.assertIn("INTERRUPTED (partial, stopped by signal)", words)


if __name__ == "__main__":
    unittest.main()
