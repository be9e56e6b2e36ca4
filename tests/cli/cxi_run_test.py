#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""doorbell's own programs on `doorbell run cxi`: the driver for a card, with a Cassini that writes counts back on request."""

import json
import pathlib
import subprocess
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder

BENCH = [DOORBELL, "cxi", "--device", "cxi0"]
OPERATIONS = 120
WORK = ["--iterations", str(OPERATIONS), *TIMEOUTS]
RATE = ["--measure", "rate", "--size", "256", "--iterations", "2000"]


class OwnDriver(WithFolder):
    def setUp(self):
        super().setUp()
        self.report = self.folder / "report.json"
        self.command = self.on_cassini()

    def on_cassini(self, *arguments):
        return [DOORBELL, "run", "cxi", "--report-file", str(self.report), *arguments, "--", *BENCH]

    def cassini(self):
        return json.loads(self.report.read_text(encoding="utf-8"))

    def check(self, *arguments):
        document = self.result(*arguments, *WORK)
        for cell in document["cells"]:
            self.assertEqual(cell["device"], {"kind": "hardware", "name": "cxi0"})
            self.assertEqual((cell["verify"]["checked"], set(cell["errors"].values())), (cell["metrics"]["ops"], {0}))
        counts = self.cassini()
        self.assertEqual((counts["refused_operations"], counts["command_failures"], counts["dma_faults"],
                          counts["dropped_events"]), (0, 0, 0, 0))
        return document["cells"], counts

    def test_puts_and_gets_of_all_sizes(self):
        for op in ("put", "get"):
            for more, unrestricted in (([], 0), (["--unrestricted"], 8 * OPERATIONS)):
                cells, counts = self.check("--op", op, "--size", "0,8,2049,65536", *more)
                self.assertEqual([c["cell"]["size_bytes"] for c in cells], [0, 0, 8, 8, 2049, 2049, 65536, 65536])
                self.assertEqual((counts["puts"], counts["gets"]), (8 * OPERATIONS, 0) if op == "put" else (0, 8 * OPERATIONS))
                self.assertEqual(counts["unrestricted"], unrestricted)
                self.assertEqual(counts["bytes"], 2 * OPERATIONS * (8 + 2049 + 65536))

    def test_windows_batches_and_queues(self):
        for shape in (["--in-flight", "1", "--batch-size", "1"], ["--in-flight", "1024", "--batch-size", "1024"],
                      ["--in-flight", "100", "--batch-size", "7", "--num-queues", "3", "--threads", "2"]):
            cells, _ = self.check("--measure", "rate", "--size", "8,4096", *shape)
            self.assertEqual(cells[0]["metrics"]["ops"], OPERATIONS * cells[0]["cell"]["queue_pairs"])

    def test_data_in_the_command(self):
        for limit, more in (("224", []), ("192", ["--unrestricted"])):
            _, counts = self.check("--idc", limit, "--size", f"8,64,{limit}", *more)
            self.assertEqual(counts["idc_puts"], 6 * OPERATIONS)

    def test_faults_are_found(self):
        for kind, section, finding in (("corrupt", "verify", "corrupt"), ("stale", "verify", "missing"),
                                       ("duplicate", "verify", "duplicated"), ("drop", "errors", "timeout"),
                                       ("delay", "errors", "late"), ("error", "errors", "completion")):
            with self.subTest(kind):
                # An acknowledgement is late where it is held back for longer than all else may take here.
                times = {"drop": ["--timeout", "0.5", "--late-after", "50"],
                         "delay": ["--timeout", "60", "--late-after", "2"]}.get(kind, TIMEOUTS)
                self.command = self.on_cassini("--fault", f"{kind}=0.02", "--device", "cxi-model0:delay=3s")
                cell, = self.result(*RATE, *times, code=2)["cells"]
                done = self.cassini()["injected"][kind]
                self.assertGreater(done, 0)
                self.assertEqual(cell[section][finding], done)
                others = {**cell["errors"], **{k: cell["verify"][k] for k in ("corrupt", "stale", "missing", "duplicated")}}
                # Where an acknowledgement comes twice, one of an operation in flight seems to, whose data is then still to come,
                # or is coming.
                allowed = {finding, "missing", "corrupt"} if kind == "duplicate" else {finding}
                self.assertLessEqual({k for k, n in others.items() if n}, allowed)
                if kind == "error":
                    self.assertEqual(cell["cxi"]["completion_statuses"], {"UNDELIVERABLE": done})

    def test_a_put_that_is_lost_alone_is_missed(self):
        self.command = self.on_cassini("--fault", "drop=0.02")
        cell, = self.result("--measure", "latency", "--size", "8", "--iterations", "500", "--timeout", "0.5", code=2)["cells"]
        self.assertEqual(cell["errors"]["timeout"], 1)
        self.assertGreater(cell["verify"]["checked"], 0, "those before it")

    def test_two_processes_at_one_cassini(self):
        with subprocess.Popen([*self.on_cassini("--socket", str(self.folder / "cassini")), "--measure", "rate",
                               "--duration", "4", "--repeats", "1", *TIMEOUTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as first:
            while not pathlib.Path(self.folder / "cassini").exists():
                self.assertIsNone(first.poll())
            joined = self.folder / "joined.json"
            second = subprocess.run([DOORBELL, "run", "cxi", "--socket", str(self.folder / "cassini"), "--", *BENCH, "--op",
                                     "get", "--size", "64", *WORK, "--json", str(joined)], capture_output=True, text=True,
                                    timeout=90)
            out, err = first.communicate(timeout=90)
        self.assertEqual((first.returncode, second.returncode), (0, 0), out + err + second.stdout + second.stderr)
        for cell in self.valid(joined)["cells"]:
            self.assertEqual((cell["metrics"]["ops"], cell["verify"]["checked"]), (OPERATIONS, OPERATIONS))
        counts = self.cassini()
        self.assertEqual(counts["gets"], 2 * OPERATIONS, "they were the other run's")
        self.assertGreater(counts["puts"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
