# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The schema accepts what the program writes and refuses what it must never write."""

import contextlib
import copy
import importlib.util
import io
import json
import os
import pathlib
import tempfile
import unittest

from result_schema import tool


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


@unittest.skipUnless(importlib.util.find_spec("jsonschema"), "python3-jsonschema is not installed")
class Schema(unittest.TestCase):
    def setUp(self):
        sample = pathlib.Path(os.environ.get("DOORBELL_TEST_OUT", ""), "sample.json")
        if not sample.is_file():
            self.skipTest("DOORBELL_TEST_OUT is not set")
        self.sample = json.loads(sample.read_text(encoding="utf-8"))
        self.validate = tool()

    def check(self, *texts, name="r.json"):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, name)
            path.write_text("\n".join(texts), encoding="utf-8")
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                code = self.validate.main([str(path)])
            return code, output.getvalue()

    def test_accepts_the_sample(self):
        self.assertEqual(self.check(json.dumps(self.sample))[0], 0)

    def test_fault_checks_are_whole(self):
        whole = {"path": "nvme", "fault": "drop", "injected": 3, "found": 2, "found_as": "timeouts"}
        for check, code in ((whole, 0), ({**whole, "found": -1}, 2), ({**whole, "more": 1}, 2),
                            ({k: v for k, v in whole.items() if k != "found"}, 2)):
            with self.subTest(check=check):
                self.assertEqual(self.check(json.dumps({**self.sample, "faults": [check]}))[0], code)

    def test_accepts_a_large_integer_as_its_digits(self):
        cell = ("cells", 0)
        for path in ((*cell, "repeats", 0, "seed"), (*cell, "verify", "first", 0, "sequence")):
            for value, code in (("18446744073709551615", 0), (18446744073709551615, 0), ("9007199254740992", 0), ("12", 2),
                                ("09007199254740992", 2), ("-9007199254740992", 2), ("9007199254740992.5", 2)):
                with self.subTest(path=path, value=value):
                    document = copy.deepcopy(self.sample)
                    put(document, path, value)
                    self.assertEqual(self.check(json.dumps(document))[0], code)

    def test_refuses_wrong_values(self):
        cell = ("cells", 0)
        for path, value in (
                (("schema",), "doorbell.results/2"), (("exit_code",), "0"), (("complete",), "true"),
                (("stop_reason",), "bored"), (("argv",), "doorbell nvme"), (("cells",), {}), (("extra",), 1),
                (("tool", "name"), "other"), (("environment", "kernel"), 6), (("environment", "cgroup"), {}),
                ((*cell, "path"), "NVMe"), ((*cell, "device", "kind"), "real"), ((*cell, "device", "name"), ""),
                ((*cell, "initiator", "kind"), "dpu"), ((*cell, "initiator", "gpu"), None),
                ((*cell, "metrics", "ops"), 1.5), ((*cell, "metrics", "ops"), -1), ((*cell, "metrics", "ops"), None),
                ((*cell, "metrics", "ops_per_s"), "1e6"), ((*cell, "metrics", "iops"), 1),
                ((*cell, "metrics", "latency_ns", "p50"), "-"), ((*cell, "metrics", "latency_ns", "bins"), [[1]]),
                ((*cell, "metrics", "latency_ns", "bins"), [[1, 0]]), ((*cell, "substeps_ns", "build"), "71"),
                ((*cell, "repeats", 0, "seed"), "7"), ((*cell, "spread", "ops_per_s", "ci_level"), 98.4),
                ((*cell, "verify", "mode"), "partly"), ((*cell, "verify", "corrupt"), None),
                ((*cell, "verify", "first", 0, "address"), "0x1000"), ((*cell, "errors", "timeout"), None),
                ((*cell, "cost", "threads"), [{"name": "a"}]), ((*cell, "power"), 71.5)):
            with self.subTest(path=path, value=value):
                document = copy.deepcopy(self.sample)
                put(document, path, value)
                self.assertEqual(self.check(json.dumps(document))[0], 2)

    def test_every_shared_key_is_required(self):
        def remove_each(document, path, keep=()):
            place = self.sample
            for key in path:
                place = place[key]
            for key in place:
                if key in keep:
                    continue
                changed = copy.deepcopy(document)
                target = changed
                for step in path:
                    target = target[step]
                del target[key]
                with self.subTest(path=path, key=key):
                    self.assertEqual(self.check(json.dumps(changed))[0], 2)

        remove_each(self.sample, ())
        remove_each(self.sample, ("cells", 0), keep=("nvme", "power", "operation"))
        for part in ("metrics", "verify", "cost", "device", "initiator"):
            remove_each(self.sample, ("cells", 0, part))
        # Results that were written before there was a step of its own for the payload stay valid.
        remove_each(self.sample, ("cells", 0, "substeps_ns"), keep=("payload",))
        remove_each(self.sample, ("cells", 0, "metrics", "latency_ns"))
        remove_each(self.sample, ("cells", 0, "repeats", 0))

    def test_refuses_what_json_does_not_know(self):
        for text in ('{"schema": NaN}', '{"a": 1, "a": 2}', "{", "", "[]"):
            code, output = self.check(text)
            self.assertEqual(code, 2, text)
        self.assertIn("INVALID", output)

    def test_reads_lines(self):
        line = json.dumps(self.sample)
        self.assertEqual(self.check(line, "", line, name="r.jsonl")[0], 0)
        self.assertEqual(self.check(line, "{}", name="r.jsonl")[0], 2)

    def test_an_absent_file_is_an_error(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(self.validate.main(["/absent/r.json"]), 1)


if __name__ == "__main__":
    unittest.main()
