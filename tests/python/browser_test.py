# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The pages in a browser, as wide as a desktop and as a phone. Their pictures are kept under DOORBELL_SCREENSHOTS."""

import json
import os
import pathlib
import random
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import browser  # noqa: E402
import synthetic  # noqa: E402
from doorbell_report import compare, drawing, page, results, template  # noqa: E402

WIDTHS = {"desktop": 1280, "phone": 390}


def comparison():
    verdicts = ("regression", "better", "worse", "slightly better", "same", "undecided", "not comparable")
    long = "a-name-that-no-line-of-a-picture-holds-and-that-goes-on-" * 3
    cells = [{"cell": f"nvme controller=model batch-size={i} lbas-per-io=8" + f" media=file:/{long}{i}" * (i > 4), "operations": ["operation"],
              "unpaired": 0, "not_comparable": ["A: exit 2"] if i == 6 else [],
              "ratios": [{"metric": metric, "runs_before": 7, "runs_after": 7, "before": 1e5, "after": 1e5 * ratio, "ratio": ratio,
                          "ci_low": ratio * 0.97, "ci_high": ratio * 1.04, "ci_level": 0.962, "verdict": verdict,
                           **({"basis": "repeats", "repeats_before": 7, "repeats_after": 5} if i == 1 else {"basis": "runs"})}
                         for metric in ("ops_per_s", "p99_ns")]}
             for i, (verdict, ratio) in enumerate(zip(verdicts, (0.8, 1.3, 0.96, 1.03, 1.0, 0.99, 1.2)))]
    return {"schema": "doorbell.compare/1", "before": "results/<before>", "after": "results/after", "threshold_percent": 5.0,
            "exit_code": 3, "not_comparable": 1, "new_data_errors": 0, "only_before": ["a cell"], "only_after": [],
            "differences": [{"what": "build", "before": "abc", "after": "def", "cells": None}],
            "warnings": ["A: the machine is busy"], "cells": cells, "runs_before": 7, "runs_after": 7,
            "unmet": [{"cell": cells[-1]["cell"], "metric": "p99_ns", "figure": 2e5, "demanded": 1e5}]}


def between_hosts(ranks=8):
    """A sweep between ranks whose hosts have long names that differ at one place."""
    rng = random.Random(1)
    hosts = [f"gpu-node-{i}.cluster-of-the-institute.example.com" for i in range(ranks)]
    made = []
    for a in range(ranks):
        for b in range(ranks):
            if a != b:
                one = synthetic.cell(rng, "net", a * ranks + b)
                one["cell"] = {"stream": "raw", "payload_bytes": 8000, "from_rank": a, "from_host": hosts[a], "to_rank": b, "to_host": hosts[b]}
                made.append(synthetic.result([one]))
    return made


def demo():
    """A demo's result: cells that differ in all, with titles, and fault checks."""
    rng = random.Random(1)
    cells = [synthetic.cell(rng, path, i) for path, count in (("nvme", 3), ("rdma", 5), ("net", 4)) for i in range(count)]
    for i, one in enumerate(cells):
        one["cell"] = {"title": f"work number {i} in many words", **one["cell"], "pattern": f"one of a kind, {i}"}
    faults = [{"path": path, "fault": fault, "injected": 10 + i, "found": 10 + i - (path == "rdma" and fault == "stale"), "found_as": "itself"}
              for path in ("nvme", "rdma", "net") for i, fault in enumerate(
                  "drop delay error corrupt misplace stale duplicate reorder removal".split())]
    return {**synthetic.result(cells, code=2), "argv": ["/a/folder/bin/doorbell", "demo"], "faults": faults}


@unittest.skipUnless(browser.program(), "no Chromium is installed (package chromium-headless-shell)")
@unittest.skipUnless(template.available() and drawing.available(), "python3-jinja2 or python3-matplotlib is not installed")
class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        cls.kept = pathlib.Path(os.environ.get("DOORBELL_SCREENSHOTS") or folder)
        cls.kept.mkdir(parents=True, exist_ok=True)
        synthetic.write(folder / "many", 200)
        synthetic.write(folder / "few", 8, ("nvme", "rdma"))
        cls.pages = {}
        # Those that come with the sources have real figures, whose ranges nobody chose.
        kept = sorted(HERE.parents[1].glob("results/20??-??-??-*"))
        (folder / "demo").mkdir()
        (folder / "demo" / "result.json").write_text(json.dumps(demo()), encoding="utf-8")
        (folder / "pairs").mkdir()
        for i, made in enumerate(between_hosts()):
            (folder / "pairs" / f"{i:02}.json").write_text(json.dumps(made), encoding="utf-8")
        for name, sources in {"pairs": [folder / "pairs"], "many": [folder / "many"], "few": [folder / "few"], "kept": kept, "demo": [folder / "demo"]}.items():
            loaded = results.load(sources)
            cls.pages[name] = folder / f"{name}.html"
            cls.pages[name].write_text(page.render(loaded, "made-up cells", True, results.plans(loaded)), encoding="utf-8")
        cls.pages["compare"] = folder / "compare.html"
        cls.pages["compare"].write_text(compare.render(comparison(), "doorbell compare", True), encoding="utf-8")

    def test_nothing_is_wider_than_the_page_and_no_text_lies_over_another(self):
        for name, file in self.pages.items():
            for width in WIDTHS.values():
                with self.subTest(page=name, width=width):
                    found = browser.look(file, width)
                    self.assertEqual(found["client"], width)
                    self.assertLessEqual(found["scroll"], found["client"])
                    self.assertGreater(found["texts"], 50)
                    self.assertEqual(found["overlaps"][:8], [])
                    self.assertEqual(found["cut"], [])
                    self.assertEqual(found["holes"], [])
                    if width == WIDTHS["desktop"]:
                        self.assertEqual(found["hidden"], [])
                        self.assertEqual(found["p99"] > 0, name != "compare")

    def test_the_check_finds_what_it_looks_for(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad.html"
            bad.write_text('<!DOCTYPE html><html><head><meta name="viewport" content="width=device-width"></head><body>'
                           '<div style="width:2000px">wide</div><svg width="50" height="50"><text x="40" y="20">cut off</text></svg>'
                           '<div class="tiles" style="width:300px"><p style="width:100px">a tile</p></div>'
                           '<div class="overview scroll" style="width:99px;overflow-x:auto"><table><tr><th>p99 us '
                           '<div style="width:200px"></div></th></tr></table></div>'
                           '<p style="position:absolute;top:350px">one text</p>'
                           '<p style="position:absolute;top:352px">another</p></body></html>', encoding="utf-8")
            found = browser.look(bad, 390)
        self.assertGreater(found["scroll"], found["client"])
        self.assertEqual(len(found["overlaps"]), 1)
        self.assertEqual(found["cut"], ["cut off"])
        self.assertEqual(len(found["holes"]), 1)
        self.assertEqual(len(found["hidden"]), 1)

    def test_screenshots(self):
        for name, file in self.pages.items():
            for width_name, width in WIDTHS.items():
                for dark in (False, True) if name == "few" else (False,):
                    target = self.kept / f"{name}-{width_name}{'-dark' if dark else ''}.png"
                    browser.screenshot(file, target, width, 3000, dark)
                    self.assertGreater(target.stat().st_size, 20_000)

    def test_a_table_sorts(self):
        found = browser.look(self.pages["many"], 1280, script="""
          const found = {};
          const table = document.querySelector('table.sortable');
          const heads = [...table.tHead.rows[0].cells];
          const at = heads.findIndex(h => h.textContent.includes('GB/s'));
          const column = () => [...table.tBodies[0].rows].map(r => r.cells[at].textContent.trim());
          found.before = column();
          heads[at].querySelector('button').click();
          found.up = column();
          found.aria = heads[at].getAttribute('aria-sort');
          heads[at].querySelector('button').click();
          found.down = column();
          const size = heads.findIndex(h => h.textContent.trim() === 'size');
          heads[size].querySelector('button').click();
          found.sizes = [...new Set([...table.tBodies[0].rows].map(r => r.cells[size].textContent.trim()))];
        """)
        def figures(column):
            return [float(v.replace("\N{THIN SPACE}", "")) for v in column if v != "-"]
        self.assertEqual(figures(found["up"]), sorted(figures(found["before"])))
        self.assertEqual(figures(found["down"]), sorted(figures(found["before"]), reverse=True))
        self.assertEqual(found["aria"], "ascending")
        for column in (found["up"], found["down"]):
            self.assertEqual(set(column[len(figures(column)):]), {"-"}, "what is missing comes last")
        self.assertEqual(found["sizes"], ["64 B", "256 B", "1 KiB", "4 KiB", "64 KiB", "1 MiB"], "cells without a result have theirs from the plan")

    def test_a_link_to_a_cell_unfolds_it(self):
        script = "const found = {open: document.querySelectorAll('article details[open]').length, " \
                 "own: document.querySelector('#r3c0 > details').open};"
        self.assertEqual(browser.look(self.pages["many"], 1280, script=script), {"open": 0, "own": False})
        self.assertEqual(browser.look(self.pages["many"], 1280, script=script, hash_="#r3c0"), {"open": 1, "own": True})


if __name__ == "__main__":
    unittest.main()
