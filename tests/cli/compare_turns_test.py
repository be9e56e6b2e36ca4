#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Two settings in turns (`doorbell compare -- ...`, --versus), and verdicts as JUnit XML, as a user meets them. Needs no hardware."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import harness
from harness import DOORBELL, TIMEOUTS, doorbell, long
from sweeps import WithFolder, needs_jinja, page_of

SHORT = ["--read-io", "30", "--write-io", "30", *TIMEOUTS]  # a run by count
END = r"; the data was right on both sides"


def junit(path):
    """[(name, what became of it, its type, its message)], read by a parser; the sums of the suite are right."""
    root = ElementTree.parse(path).getroot()
    suite, = root.findall("testsuite")
    cases = []
    for case in suite.findall("testcase"):
        assert case.get("classname") and case.get("name") and float(case.get("time")) >= 0
        ends = list(case)
        assert len(ends) <= 1
        cases.append((case.get("name"), ends[0].tag if ends else "passed",
                      ends[0].get("type") if ends else None, ends[0].get("message") if ends else None))
    for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(word)) == sum(end == tag for _, end, *_ in cases), (word, cases)
    assert int(suite.get("tests")) == len(cases)
    return cases


class InTurns(WithFolder):
    def setUp(self):
        super().setUp()
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        self.xml = self.folder / "out.xml"

    def tearDown(self):
        self.assertEqual(list(self.tmp.iterdir()), [], "nothing stays among the temporary files")
        super().tearDown()

    def compare(self, *arguments, code=0):
        done = doorbell("compare", *arguments, env={**os.environ, "TMPDIR": str(self.tmp)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def fake(self, name, rate):
        """A doorbell that only says how fast it is, and keeps the words that it is called with."""
        source = self.folder / "sample.json"
        if not source.exists():
            self.assertEqual(doorbell("nvme", *SHORT, "--quiet", "--json", source).returncode, 0)
        document = json.loads(source.read_text(encoding="utf-8"))
        document["cells"][0]["repeats"][0]["ops_per_s"] = rate
        result, path = self.folder / f"{name}.json", self.folder / name
        result.write_text(json.dumps(document), encoding="utf-8")
        path.write_text(f"#!/bin/sh\necho \"$@\" >> {path}-words\nexec cat {result}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def test_the_faster_setting_is_said_in_the_last_line(self):
        # One read at a time, and 64: many times as fast on any machine, however busy.
        done = self.compare("--json", self.json, "--junit", self.xml, "--time-limit", "10m", "--", "nvme", "--duration", "0.05",
                            *TIMEOUTS, "--", "nvme", "--duration", "0.05", "--batch-size", "64", *TIMEOUTS)
        self.assertRegex(done.stdout.splitlines()[-1], r"^B is faster than A by a factor of .* in ops_per_s \(.* at 95 %, "
                         r"\d+ runs of A and \d+ of B\); they differ in batch \(1 : 64\) and in_flight \(1 : 256\)" + END + "$")
        document = json.loads(self.json.read_text(encoding="utf-8"))
        turns = document["in_turns"]
        self.assertEqual((document["schema"], document["exit_code"], turns["complete"], turns["ended"]),
                         ("doorbell.compare/1", 0, True, "decided"))
        self.assertEqual(turns["sides"][0]["words"][-1], "--repeats=1")
        self.assertEqual(turns["sides"][0]["runs"], len(turns["sides"][0]["figures"][0]["ops_per_s"]))
        self.assertGreater(turns["sides"][1]["checked"], 0)
        self.assertEqual(turns["sentence"], done.stdout.splitlines()[-1])
        self.assertEqual([end for _, end, *_ in junit(self.xml)], ["passed"])
        first = done.stderr.splitlines()
        self.assertIn("at most 10 min", first[2])
        self.assertIn("--repeats=1  (not given: --repeats=1)", first[0])

    def test_the_slower_setting_is_3(self):
        slow, fast = ["--duration", "0.05", *TIMEOUTS], ["--duration", "0.05", "--batch-size", "64", *TIMEOUTS]
        done = self.compare("--quiet", "--junit", self.xml, "--time-limit", "10m", "--", "nvme", *fast, "--", *slow, code=3)
        self.assertEqual(done.stdout, "")
        self.assertIn("REGRESSION", done.stderr)
        self.assertIn("A is faster than B by a factor of", done.stderr.splitlines()[-1])
        (_, end, kind, _), = junit(self.xml)
        self.assertEqual((end, kind), ("failure", "regression"))

    def test_a_baseline_program(self):
        for rate, code, says in ((1e-3, 0, "B is faster than A by a factor of"), (1e15, 3, "A is faster than B by a factor of")):
            baseline = self.fake(f"baseline{code}", rate)
            done = self.compare("--baseline", baseline, "--time-limit", "10m", "--", "nvme", *SHORT, code=code)
            self.assertIn(says, done.stdout.splitlines()[-1])
            self.assertIn(f"A is run by {baseline}", done.stderr)
            words = pathlib.Path(f"{baseline}-words").read_text(encoding="utf-8").splitlines()
            self.assertEqual(words, [" ".join(["nvme", *SHORT, "--json=-", "--quiet"])] * 4)

    def test_wrong_data_is_said_first_on_either_side(self):
        good = SHORT
        bad = ["--write-io", "300", "--read-io", "300", "--fault", "corrupt=0.2", *TIMEOUTS]
        for a, b, side in ((good, bad, "B"), (bad, good, "A")):
            done = self.compare("--junit", self.xml, "--json", self.json, "--", "nvme", *a, "--", *b, code=2)
            self.assertRegex(done.stdout.splitlines()[0], rf"^FAILED: run 1 of {side} has errors, .* \d+ corrupt$")
            self.assertIn("failure", [end for _, end, *_ in junit(self.xml)])
            self.assertIn("data", [kind for _, _, kind, _ in junit(self.xml)])
            self.assertEqual(json.loads(self.json.read_text(encoding="utf-8"))["exit_code"], 2)
        self.assertIn("corrupt", self.compare("--quiet", "--", "nvme", *good, "--", *bad, code=2).stderr)

    def test_bad_options_are_found_before_anything_runs(self):
        for rest, says in ((["nvme", "--batchsize", "1", "--", "--batch-size", "2"], "A: doorbell nvme: unknown option '--batchsize'"),
                           (["nvme", "--", "nvme", "--batch-size", "0"], "B: doorbell nvme: --batch-size: 0 is not in"),
                           (["nvme", "--", "--sqpoll"], "B: --sqpoll: "),
                           (["nvme", "--json", "x", "--", "nvme"], "A: --json: "),
                           (["nvme", "--", "--infinite"], "B: --infinite: "),
                           (["nvme", "--batch-size", "1"], "B: its options are missing"),
                           (["nvme", "--", "rdma"], "B: it is doorbell rdma, and A is doorbell nvme"),
                           (["nvmee", "--", "--batch-size", "2"], "A: 'nvmee' is no command that measures"),
                           (["--batch-size", "1", "--", "nvme"], "A: no command is named")):
            done = self.compare("--junit", self.xml, "--", *rest, code=1)
            self.assertIn(says, done.stderr)
            self.assertNotIn("in turns, at most", done.stderr, "nothing has begun")
            self.assertEqual([end for _, end, *_ in junit(self.xml)], ["error"])
            self.xml.unlink()
        self.assertIn("did you mean 'nvme'?", self.compare("--", "nvmee", "--", code=1).stderr)
        for own, says in ((["--across", "batch-size"], "--across"), (["--metric", "x"], "--metric"), (["--min", "fast"], "--min"),
                          (["--baseline", "/absent"], "--baseline /absent"), (["a.json"], "cannot be compared with a setting"),
                          (["--time-limit", "0"], "--time-limit")):
            self.assertIn(says, self.compare(*own, "--", "nvme", *SHORT, "--", *SHORT, code=1).stderr)
        for own in (["--time-limit", "5"], ["--seed", "2"], ["--baseline", "/bin/sh"]):
            self.assertIn("two results are compared", self.compare(*own, "a", "b", code=1).stderr)
        self.assertIn("A is missing", self.compare(code=1).stderr)

    def test_a_count_by_any_of_its_names_is_one(self):
        self.compare("--json", self.json, "--time-limit", "1m", "--threshold", "1000", "--", "rdma", "--count", "20", "--size", "64",
                     *TIMEOUTS, "--", "--iterations", "20", "--size", "64", *TIMEOUTS)
        for side in json.loads(self.json.read_text(encoding="utf-8"))["in_turns"]["sides"]:
            self.assertEqual(side["chosen"], [], "no duration is added")

    def test_help_of_a_side(self):
        self.assertIn("Usage: doorbell nvme", self.compare("--", "nvme", "--help").stdout)

    def test_versus(self):
        done = doorbell("nvme", "--duration", "0.05", "--batch-size", "1", "--versus", "--batch-size 64", *TIMEOUTS, "--json", self.json)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("B is faster than A by a factor of", done.stdout.splitlines()[-1])
        a, b = json.loads(self.json.read_text(encoding="utf-8"))["in_turns"]["sides"]
        self.assertEqual(a["words"], ["nvme", "--duration", "0.05", "--batch-size", "1", *TIMEOUTS, "--repeats=1"])
        self.assertEqual(b["words"], ["nvme", "--duration", "0.05", *TIMEOUTS, "--batch-size", "64", "--repeats=1"])
        for more, says in (("batch-size 64", "'batch-size' is no option"), ("--batchsize 64", "did you mean '--batch-size'?"),
                           ("--batch-size '64", "has no end"), ("--json x", "B: --json")):
            done = doorbell("nvme", *SHORT, "--versus", more)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(says, done.stderr)
        bad = doorbell("nvme", "--write-io", "300", "--read-io", "300", *TIMEOUTS, "--versus=--fault corrupt=0.2")
        self.assertEqual(bad.returncode, 2, bad.stdout + bad.stderr)

    @long
    def test_every_path_can_be_a_side(self):
        for command, other in (("rdma", "--size=4KiB"), ("cxi", "--size=4KiB"), ("qdma", "--size=64KiB"), ("net", "--payload=1000")):
            done = doorbell("compare", "--json", self.json, "--quiet", "--time-limit", "1m", "--threshold", "1000", "--", command,
                            "--duration=0.02", *TIMEOUTS,
                            "--", "--duration=0.02", *TIMEOUTS, other)
            self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
            document = json.loads(self.json.read_text(encoding="utf-8"))
            self.assertEqual(document["not_comparable"], 0, command)
            self.assertGreater(document["in_turns"]["sides"][1]["checked"], 0)

    def test_ctrl_c_leaves_a_partial_comparison(self):
        command = [DOORBELL, "compare", "--json", self.json, "--junit", self.xml, "--", "nvme", "--duration", "30", *TIMEOUTS, "--",
                   "--duration", "30", *TIMEOUTS]
        with subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(self.tmp)}) as process:
            child = self.child_of(process)
            process.send_signal(signal.SIGINT)
            out, err = harness.end_of(process)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertTrue(out.splitlines()[-1].startswith("INTERRUPTED after 0 runs"), out)
        document = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual((document["exit_code"], document["in_turns"]["complete"]), (130, False))
        self.assertEqual([(end, kind) for _, end, kind, _ in junit(self.xml)], [("error", "interrupted")])
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists(), "the run has ended with it")

    def test_a_time_that_suffices_for_nothing(self):
        done = self.compare("--time-limit", "0.2", "--", "nvme", "--duration", "30", *TIMEOUTS, "--", "--duration", "30", code=1)
        self.assertIn("the time is over", done.stdout)

    @needs_jinja()
    def test_a_page(self):
        html = self.folder / "page.html"
        self.compare("--html", html, "--time-limit", "1m", "--metric", "ops_per_s,p50_ns", "--threshold", "1000", "--", "nvme", *SHORT, "--", *SHORT)
        self.assertIn("doorbell nvme --read-io 30", page_of(self, html))

    def test_absent_hardware_is_77_and_skipped(self):
        done = self.compare("--junit", self.xml, "--", "rdma", "--provider", "verbs", "--device", "no_such_device", "--", "--device",
                            "model", code=77)
        self.assertIn("SKIPPED: A cannot run here", done.stdout)
        self.assertEqual([end for _, end, *_ in junit(self.xml)], ["skipped"])


class Results(WithFolder):
    """Two results of one run each."""

    def run_of(self, name, *arguments):
        path = self.folder / f"{name}.json"
        done = doorbell("nvme", *arguments, *TIMEOUTS, "--quiet", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def with_rates(self, source, name, factor, p99_ns=None):
        document = json.loads(source.read_text(encoding="utf-8"))
        repeat = document["cells"][0]["repeats"][0]
        document["cells"][0]["repeats"] = [{**repeat, "ops_per_s": 1e5 * factor * (1 + i / 1000), "p99_ns": p99_ns}
                                           for i in range(7)]
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def compare(self, *arguments, code=0):
        done = doorbell("compare", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_a_large_factor_between_two_single_results(self):
        a = self.run_of("a", "--read-io", "30", "--write-io", "30")
        fast, slow = self.with_rates(a, "fast", 139), self.with_rates(a, "slow", 1)
        out = self.folder / "c.json"
        done = self.compare(fast, slow, "--json", out, code=3)
        self.assertIn("REGRESSION", done.stdout)
        self.assertIn("by repeats of too few processes", done.stdout)
        ratio, = json.loads(out.read_text(encoding="utf-8"))["cells"][0]["ratios"]
        self.assertEqual((ratio["basis"], ratio["verdict"], ratio["repeats_before"]), ("repeats", "regression", 7))
        self.assertIn("UNDECIDED", self.compare(slow, self.with_rates(a, "near", 0.7)).stdout)

    def test_undecided_may_fail(self):
        a = self.run_of("a", "--read-io", "30", "--write-io", "30")
        b, xml = self.run_of("b", "--read-io", "31", "--write-io", "30"), self.folder / "out.xml"
        self.compare(a, b, "--undecided", "pass", "--junit", xml)
        self.assertEqual([end for _, end, *_ in junit(xml)], ["skipped"])
        self.assertIn("counts as a failure", self.compare(a, b, "--undecided", "fail", "--junit", xml, code=3).stdout)
        self.assertEqual([(end, kind) for _, end, kind, _ in junit(xml)], [("failure", "undecided")])

    def test_demands(self):
        a = self.run_of("a", "--read-io", "30", "--write-io", "30")
        b, xml = self.with_rates(a, "b", 1, 5000), self.folder / "out.xml"
        for demand in (["--min", "100k ops"], ["--min", "99kIOPS"], ["--min", "1000"], ["--max-latency", "5us"],
                       ["--min", "0.1M", "--max-latency", "6us"]):
            self.assertIn("B has what is demanded in every cell", self.compare(b, b, *demand).stdout, demand)
        for demand, says in ((["--min", "200k"], "TOO SLOW"), (["--max-latency", "4us"], "TOO LATE"),
                             (["--min", "1TB/s"], "TOO SLOW")):
            self.assertIn(says, self.compare(b, b, *demand, "--junit", xml, code=3).stdout)
            self.assertEqual([(end, kind) for _, end, kind, _ in junit(xml)], [("failure", "demand")])
        for bad in ("fast", "-1", "0", "5 parsecs", "1k2"):
            self.assertIn("--min", self.compare(b, b, f"--min={bad}", code=1).stderr)

    def test_run_lengths_pair_and_are_named(self):
        a = self.run_of("a", "--duration", "0.05", "--repeats", "1")
        for more in (["--duration", "0.1", "--repeats", "2"], ["--read-io", "50", "--write-io", "50"]):
            done = self.compare(a, self.run_of("b", *more))
            self.assertIn("option duration_s", done.stdout)

    def test_the_hint_names_the_option_that_differs_alone(self):
        a, b = (self.run_of(name, "--read-io", "30", "--batch-size", batch) for name, batch in (("a", "1"), ("b", "8")))
        self.assertIn("--across batch-size compares them all the same", self.compare(a, b, code=1).stderr)
        self.compare(a, b, "--across", "batch-size")
        c = self.run_of("c", "--read-io", "30", "--batch-size", "8", "--num-queues", "2")
        self.assertNotIn("--across", self.compare(a, c, code=1).stderr)


class Junit(WithFolder):
    def setUp(self):
        super().setUp()
        self.xml = self.folder / "out.xml"

    def test_a_measuring_command(self):
        self.assertEqual(doorbell("rdma", "--iterations", "50", "--size", "64,128", *TIMEOUTS, "--junit", self.xml).returncode, 0)
        self.assertEqual([end for _, end, *_ in junit(self.xml)], ["passed"] * 4)
        done = doorbell("nvme", "--write-io", "300", "--read-io", "300", "--fault", "corrupt=0.2", *TIMEOUTS, "--junit", self.xml)
        self.assertEqual(done.returncode, 2)
        (_, end, kind, message), = junit(self.xml)
        self.assertEqual((end, kind), ("failure", "data"))
        self.assertRegex(message, r"^\d+ corrupt$")
        done = doorbell("rdma", "--provider", "verbs", "--device", "no_such_device", "--junit", self.xml)
        self.assertEqual(done.returncode, 77)
        self.assertEqual([end for _, end, *_ in junit(self.xml)], ["skipped"])

    def test_an_interrupted_one(self):
        code, out, err = self.interrupt("nvme", "--duration", "60", "--junit", str(self.xml))
        self.assertEqual(code, 130, out + err)
        self.assertIn(("error", "interrupted"), [(end, kind) for _, end, kind, _ in junit(self.xml)])

    def test_names_are_escaped(self):
        name = "file:/absent/<a href=\"x\">&'\33[31m\ufffe]]>"
        done = doorbell("nvme", "--controller", name, "--read-io", "5", "--junit", self.xml)
        self.assertEqual(done.returncode, 1, done.stdout)
        (_, end, kind, message), = junit(self.xml)
        self.assertEqual((end, kind), ("error", "usage or environment"))
        self.assertIn("<a href=\"x\">&'?[31m?]]>", message)

    def test_a_file_that_is_no_junit_file_is_kept(self):
        data = self.folder / "data"
        data.write_bytes(b"precious" * 1024)
        before = data.read_bytes()
        for arguments in (["--controller", f"file:{data}", "--read-io", "5"], ["--controller", "file:/absent/x"]):
            done = doorbell("nvme", *arguments, "--junit", data)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(data.read_bytes(), before)
        for bad in ("-", self.folder, self.folder / "absent" / "x"):
            self.assertIn("--junit", doorbell("nvme", *SHORT, "--junit", bad).stderr)
        done = doorbell("nvme", *SHORT, "--junit", self.json, "--json", self.json)
        self.assertEqual(done.returncode, 1)
        done = doorbell("nvme", *SHORT, "--junit", "/dev/full")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("OK", done.stdout)

    def test_a_sweep(self):
        plan = self.plan("name: a\ncommand: nvme\nrounds: 2\noptions: {write-io: 300, read-io: 300, timeout: 60, late-after: 50}\n"
                         "cells:\n  - {fault: corrupt=0.2}\n  - {batch-size: 2}\n")
        self.sweep("--junit", self.xml, plan=plan, code=2)
        self.assertEqual([(end, kind) for _, end, kind, _ in junit(self.xml)],
                         [("failure", "data"), ("passed", None)] * 2)
        self.assertIn("corrupt", junit(self.xml)[0][3])
        self.assertIn("cell 2 round 1 batch-size=2", junit(self.xml)[3][0])
        plan = self.plan("name: b\ncommand: rdma\noptions: {iterations: 20, timeout: 60, late-after: 50}\n"
                         "cells:\n  - {size: 64}\n  - {provider: verbs, device: no_such_device}\n")
        self.out = self.folder / "other"
        self.sweep("--junit", self.xml, plan=plan)
        self.assertEqual([end for _, end, *_ in junit(self.xml)], ["passed", "skipped"])
        self.assertIn("it is", doorbell("sweep", plan, "--out", self.out, "--junit", plan).stderr)


if __name__ == "__main__":
    unittest.main()
