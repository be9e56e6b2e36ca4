#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""--export prometheus: live figures over HTTP, valid in the format's own parser where that is installed."""

import json
import os
import re
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import DOORBELL, ROOT, TIMEOUTS, WithFolder, doorbell, end_of, wait_until

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="(?:[^"\\]|\\["\\n])*"(?:,[a-zA-Z_]\w*="(?:[^"\\]|\\["\\n])*")*\})? (\S+)$')
ABSENT = 77


def parsed(text):
    """Samples by (name, labels as text)."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.match(r"^# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+$", line), line
            continue
        match = SAMPLE.match(line)
        assert match, line
        key = (match[1], match[2] or "")
        assert key not in found, line
        found[key] = float(match[3])
    if text_string_to_metric_families is not None:
        families = list(text_string_to_metric_families(text))
        assert sum(len(f.samples) for f in families) == len(found), text
        for family in families:
            assert family.type in ("gauge", "counter", "histogram"), family
    return found


class Export(WithFolder):
    def start(self, *arguments):
        """A run that exports to a free port; its address."""
        process = subprocess.Popen([DOORBELL, *arguments, "--export", "prometheus=0", "--json", str(self.json), *TIMEOUTS],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        first = process.stderr.readline()
        if not first.startswith("figures at ") and process.wait(timeout=60) == ABSENT:
            self.skipTest(first)  # libmicrohttpd is not installed
        self.assertRegex(first, r"^figures at http://127\.0\.0\.1:\d+/metrics\n$")
        return process, first.split()[-1]

    def scrape(self, url):
        with urllib.request.urlopen(url, timeout=60) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return parsed(answer.read().decode())

    def scraped(self, url, name, least):
        def enough():
            samples = self.scrape(url)
            return samples if samples.get((name, ""), 0) >= least else None
        return wait_until(enough, f"{name} >= {least}")

    def test_an_endless_run(self):
        # Reading alone is one phase that does not end: what is seen comes from inside it.
        process, url = self.start("nvme", "--infinite", "--write-io", "0", "--read-io", "1", "--num-queues", "2",
                                  "--fault", "corrupt=0.01,error=0.01", "--verify", "strict")
        first = self.scraped(url, "doorbell_latency_seconds_count", 1000)
        self.assertEqual(first[("doorbell_run_info", next(k[1] for k in first if k[0] == "doorbell_run_info"))], 1)
        later = self.scraped(url, "doorbell_latency_seconds_count", first[("doorbell_latency_seconds_count", "")] + 1000)
        for key, value in first.items():
            if key[0].endswith(("_total", "_count", "_bucket")):
                self.assertGreaterEqual(later[key], value, key)
        rate = self.scraped(url, "doorbell_operations_per_second", 1)
        self.assertEqual(rate[("doorbell_bytes_total", "")], 512 * rate[("doorbell_operations_total", "")])
        self.assertGreater(later[("doorbell_errors_total", '{class="completion"}')], 0)
        self.assertGreater(later[("doorbell_latency_percentile_seconds", '{percentile="50"}')], 0)
        last = self.scrape(url)
        process.send_signal(signal.SIGINT)
        out, _ = end_of(process)
        self.assertEqual(process.returncode, 2, out)
        cell, = json.loads(self.json.read_text(encoding="utf-8"))["cells"]
        self.assertGreaterEqual(cell["metrics"]["ops"] + cell["errors"]["completion"],
                                last[("doorbell_operations_total", "")] - cell["errors"]["identity"])
        self.assertGreaterEqual(cell["errors"]["completion"], last[("doorbell_errors_total", '{class="completion"}')])
        with self.assertRaises((urllib.error.URLError, ConnectionError)):
            urllib.request.urlopen(url, timeout=5)

    def test_every_path_has_it(self):
        for path in list(json.loads(doorbell("list", "--json").stdout))[1:-1]:
            with self.subTest(path):
                # A path may leave parts of a run by time out; it gets on, or is over.
                process, url = self.start(path, "--duration", "30", "--repeats", "1", "--warmup", "0")
                samples = self.scraped(url, "doorbell_operations_total", 1)
                self.assertIn(f'command="{path}"', next(k[1] for k in samples if k[0] == "doorbell_run_info"))
                process.send_signal(signal.SIGINT)
                end_of(process)

    def test_every_path_goes_on_until_it_is_stopped(self):
        for path in list(json.loads(doorbell("list", "--json").stdout))[1:-1]:
            with self.subTest(path):
                process, url = self.start(path, "--infinite")
                first = self.scraped(url, "doorbell_operations_total", 1)
                done = first[("doorbell_operations_total", "")]
                later = self.scraped(url, "doorbell_operations_total", 2 * done + 1000)
                self.assertGreater(later[("doorbell_bytes_total", "")], first[("doorbell_bytes_total", "")])
                self.assertIsNone(process.poll())
                process.send_signal(signal.SIGINT)
                out, err = end_of(process)
                self.assertEqual(process.returncode, 130, out + err)
                result = self.valid()
                self.assertEqual((result["stop_reason"], len(result["cells"])), ("signal", 1))
                cell, = result["cells"]
                self.assertGreaterEqual(cell["metrics"]["ops"], done)
                self.assertEqual(len(cell["repeats"]), 1)

    def test_what_ends_by_itself_is_refused(self):
        for arguments in (["rdma", "--size", "64,128"], ["cxi", "--measure", "both"], ["qdma", "--iterations", "5"],
                          ["net", "--payload", "64,128"], ["net", "--mode", "sweep"], ["net", "--count", "5"],
                          ["rdma", "--duration", "5"], ["net", "--repeats", "2"]):
            done = doorbell(*arguments, "--infinite")
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn("--infinite", done.stderr)

    def test_refusals(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            for value, why in ((f"prometheus={port}", "in use"), ("prometheus=65536", "no port in 0..65535"),
                               ("prometheus=-1", "no port in 0..65535"), ("prometheus=x", "no port"), ("prometheus=", "no port"),
                               ("prometheus", "is not prometheus="), ("statsd=1", "is not prometheus="),
                               ("prometheus=192.0.2.1:1", "assign"), ("prometheus=1:2:3", "several colons")):
                done = doorbell("nvme", "--export", value, "--json", self.json)
                self.assertEqual((done.returncode, done.stdout), (1, ""), value)
                self.assertRegex(done.stderr, rf"^doorbell nvme: --export.*{why}", value)
                self.assertFalse(self.json.exists())

    def test_without_the_library(self):
        done = doorbell("nvme", "--export", "prometheus=0",
                        env={**os.environ, "DOORBELL_LIBMICROHTTPD": "/nonexistent/libmicrohttpd.so"})
        self.assertEqual((done.returncode, done.stdout), (ABSENT, ""))
        self.assertIn("install libmicrohttpd12", done.stderr)


class Texts(WithFolder):
    def test_page_and_dashboard_name_what_is_there(self):
        source = (ROOT / "src" / "export" / "prometheus.cpp").read_text(encoding="utf-8")
        names = {"doorbell_" + name for name in re.findall(r'out\.(?:family|one)\("([a-z_]+)"', source)}
        self.assertGreater(len(names), 6)
        page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"`(doorbell_[a-z_]+)", page)), names)
        board = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text(encoding="utf-8"))
        used = set()
        for panel in board["panels"]:
            for target in panel["targets"]:
                used |= set(re.findall(r"doorbell_[a-z_]+", target["expr"]))
        known = names | {name + "_bucket" for name in names}
        self.assertTrue(used and used <= known, used - known)
        self.assertEqual(len({p["id"] for p in board["panels"]}), len(board["panels"]))


if __name__ == "__main__":
    unittest.main()
