#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell cxi` as a user meets it: command lines, cells, refusals, faults, Ctrl-C. Needs no hardware."""

import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder, doorbell

SMALL = ["--iterations", "200", *TIMEOUTS]


def run(*arguments, **more):
    return doorbell("cxi", *arguments, **more)


class Cxi(WithFolder):
    command = [DOORBELL, "cxi"]

    def test_no_arguments_run_and_verify(self):
        done = run("--details", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("cxi-model0", "software model", "op=put", "part=latency", "part=rate", "size_bytes=1024", "verified"):
            self.assertIn(word, done.stdout)

    def test_puts_gets_and_data_in_the_command(self):
        for arguments, op, counter in ((["--op", "put"], "put", "puts"), (["--op", "get"], "get", "gets"),
                                       (["--idc", "224"], "put", "idc_puts")):
            cells = self.result(*arguments, "--size", "0,8,224", *SMALL)["cells"]
            self.assertEqual([c["cell"]["size_bytes"] for c in cells], [0, 0, 8, 8, 224, 224])
            for cell in cells:
                self.assertEqual(cell["path"], "cxi")
                self.assertEqual(cell["device"], {"kind": "model", "name": "cxi-model0"})
                self.assertEqual((cell["cell"]["op"], cell["options"]["op"]), (op, op))
                self.assertEqual(cell["metrics"]["ops"], 200)
                self.assertEqual(cell["verify"]["checked"], 200)
                self.assertEqual(cell["model"][counter], 200)
                self.assertEqual(set(cell["errors"].values()), {0})

    def test_unrestricted_and_one_offset(self):
        for cell in self.result("--unrestricted", "--size", "0,4096", *SMALL)["cells"]:
            self.assertEqual(cell["model"]["unrestricted"], 200)
            self.assertTrue(cell["options"]["unrestricted"])
        cell, = self.result("--offsets", "one", "--verify", "off", "--measure", "rate", *SMALL)["cells"]
        self.assertEqual((cell["options"]["offsets"], cell["cell"]["offsets"], cell["verify"]["checked"]), ("one", "one", 0))
        self.assertIn("--verify off", run("--offsets", "one").stderr)
        self.assertIn("0..192", run("--unrestricted", "--idc", "193").stderr)

    def test_several_queues(self):
        cell, = self.result("--num-queues", "3", "--measure", "rate", "--size", "64", *SMALL)["cells"]
        self.assertEqual((cell["cell"]["queue_pairs"], cell["metrics"]["ops"]), (3, 600))

    def test_a_kernels_code_is_the_device(self):
        for arguments, counter in (([], "puts"), (["--op", "get", "--unrestricted"], "gets"), (["--idc", "64"], "idc_puts")):
            cells = self.result("--device-engine", "kernel-on-cpu", "--size", "64,70000", *arguments, *SMALL)["cells"]
            self.assertEqual([c["device"]["name"] for c in cells], ["cxi-model0:engine=kernel-on-cpu"] * 4)
            self.assertEqual(cells[0]["options"]["device_engine"], "kernel-on-cpu")
            for cell in cells:
                self.assertEqual((cell["metrics"]["ops"], cell["verify"]["checked"]), (200, 200))
                self.assertEqual(set(cell["errors"].values()), {0})
            self.assertEqual(cells[0]["model"][counter], 200)
        cell, = self.result("--device-engine", "kernel-on-cpu", "--device", "cxi-model3:overhead=44", "--num-queues", "3",
                            "--measure", "rate", *SMALL)["cells"]
        self.assertEqual(cell["device"]["name"], "cxi-model3:overhead=44,engine=kernel-on-cpu")
        self.assertEqual(cell["metrics"]["ops"], 600)

    def test_counts_on_request(self):
        device = "cxi-model0:write-back=on-request"
        for arguments in ([], ["--op", "get", "--unrestricted"], ["--device-engine", "kernel-on-cpu"], ["--num-queues", "3"]):
            for cell in self.result("--device", device, "--size", "8,4096", *arguments, *SMALL)["cells"]:
                self.assertEqual(cell["metrics"]["ops"], cell["verify"]["checked"])
                self.assertEqual(set(cell["errors"].values()), {0})
        for engine in ("cpu", "kernel-on-cpu"):
            cell, = self.result("--device", device, "--device-engine", engine, "--fault", "drop=0.02", "--measure", "rate",
                                "--iterations", "2000", "--timeout", "0.5", "--late-after", "50", code=2)["cells"]
            self.assertEqual(cell["errors"]["timeout"], cell["model"]["injected"]["drop"])
        self.assertIn("write-back", run("--device", "cxi-model0:write-back=never").stderr)

    def test_a_kernels_code_carries_faults_out(self):
        common = ["--device-engine", "kernel-on-cpu", "--size", "256", "--measure", "rate", "--iterations", "2000"]
        cell, = self.result("--fault", "corrupt=0.02", *common, *TIMEOUTS, code=2)["cells"]
        self.assertEqual(cell["verify"]["corrupt"], cell["model"]["injected"]["corrupt"])
        cell, = self.result("--fault", "drop=0.02", *common, "--timeout", "0.5", code=2)["cells"]
        self.assertEqual(cell["errors"]["timeout"], cell["model"]["injected"]["drop"])

    def test_who_can_have_a_kernel_as_device(self):
        for arguments, why in (
            (["--device-engine", "gpu"], "CPU threads are the initiators"),
            (["--device-engine", "gpu", "--device", "cxi0"], "--device-engine"),
            (["--device-engine", "quantum"], "--device-engine"),
            (["--device", "cxi-model0:engine=fast"], "engine"),
        ):
            done = run(*arguments)
            self.assertEqual(done.returncode, 1, (arguments, done.stdout, done.stderr))
            self.assertIn(why, done.stderr)

    def test_bad_input(self):
        for option, value in (("--op", "atomic"), ("--size", "3GiB"), ("--idc", "225"), ("--num-queues", "0"),
                              ("--in-flight", "x"), ("--device", "cxi-model0:speed=1")):
            done = run(option, value)
            self.assertEqual(done.returncode, 1, f"{option} {value}: {done.stdout}{done.stderr}")
            self.assertIn("doorbell cxi: ", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertIn("--idc", run("--op", "get", "--idc", "8").stderr)
        self.assertIn("--device cxi-model0", run("--device", "cxi0", "--fault", "drop=0.1").stderr)

    def test_a_card_that_is_not_here(self):
        done = run("--device", "cxi7")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("libcxi", done.stderr)
        self.assertIn("--device cxi7", done.stderr)

    def test_faults_end_with_2(self):
        common = ["--size", "256", "--measure", "rate", "--iterations", "2000"]
        cell, = self.result("--fault", "corrupt=0.02", *common, *TIMEOUTS, code=2)["cells"]
        self.assertEqual(cell["verify"]["corrupt"], cell["model"]["injected"]["corrupt"])
        cell, = self.result("--fault", "error=0.02", "--device", "cxi-model0:nack=52", *common, *TIMEOUTS, code=2)["cells"]
        self.assertGreater(cell["cxi"]["completion_statuses"]["ADDR_OUT_OF_RANGE"], 0)
        document = self.result("--fault", "drop=0.02", *common, "--timeout", "0.5", code=2)
        self.assertEqual(document["stop_reason"], "timeout")
        cell, = document["cells"]
        self.assertEqual(cell["errors"]["timeout"], cell["model"]["injected"]["drop"])

    def test_a_removed_device_is_injected_and_found_once(self):
        for measure in ("latency", "both"):
            document = self.result("--fault", "removal=0.05", "--measure", measure, "--size", "64", *SMALL, code=2)
            self.assertEqual(document["stop_reason"], "removed")
            cell = document["cells"][-1]
            self.assertEqual((cell["model"]["injected"]["removal"], cell["errors"]["removal"]), (1, 1), measure)

    def test_a_time_below_the_clocks_resolution_ends(self):
        for cell in self.result("--size", "64", "--warmup", "0.0000000001", *SMALL)["cells"]:
            self.assertEqual(cell["metrics"]["ops"], 200)

    def test_ctrl_c_leaves_a_valid_partial_result(self):
        code, _, err = self.interrupt("--measure", "rate", "--duration", "3600", "--warmup", "0")
        self.assertEqual(code, 130, err)
        document = self.valid()
        self.assertFalse(document["complete"])
        self.assertEqual(document["stop_reason"], "signal")
        self.assertGreater(document["cells"][0]["metrics"]["ops"], 0)


if __name__ == "__main__":
    unittest.main()
