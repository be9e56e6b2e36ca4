# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Helpers of the report's tests: results of a few cells, and reading a page."""

import copy
import html.parser
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

from doorbell_report import drawing, page, results, template  # noqa: E402

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
    data = {"schema": results.SCHEMA, "tool": {"name": "doorbell", "version": "0.1.0", "git": "abc", "build": "Release"},
            "argv": ["doorbell", "nvme"], "environment": {"cpu": "Example CPU", "gpu": []}, "complete": True,
            "stop_reason": "done", "exit_code": 0, "warnings": [], "cells": cells}
    data.update(changes)
    return results.Result("r.json", data)


def with_verify(**changes):
    whole = cell()
    whole["verify"].update(changes)
    return whole


class Reader(html.parser.HTMLParser):
    """Checks that tags nest, and collects ids, addresses and element names."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.addresses, self.elements, self.handlers = [], [], [], set(), []
        self.words, self.tags = "", []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"never closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self.tags.append((tag, dict(attributes)))
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


def render(*made, pictures=False, plans=None):
    return page.render(list(made), "a title", pictures, plans)


def with_and_without():
    """Whether pictures are drawn: both ways, where that is possible."""
    return sorted({False, drawing.available()})


def load_all(folder):
    loaded = results.load([str(folder)])
    return loaded, results.plans(loaded)


NEEDS_JINJA = unittest.skipUnless(template.available(), "python3-jinja2 is not installed")
NEEDS_MATPLOTLIB = unittest.skipUnless(template.available() and drawing.available(), "python3-matplotlib is not installed")
