#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell rdma` as a user meets it: command lines, cells, refusals, faults, Ctrl-C. Needs no hardware."""

import csv
import json
import os
import resource
import signal
import subprocess
import time
import unittest

import harness
from harness import DOORBELL, TIMEOUTS, doorbell, long

SMALL = ["--iterations", "200", *TIMEOUTS]
VENDORS = ("mlx5", "bnxt", "ionic", "ernic")


def run(*arguments, **more):
    return doorbell("rdma", *arguments, **more)


class WithFolder(harness.WithFolder):
    command = [DOORBELL, "rdma"]

    def assert_clean(self, cell, ops):
        """Every operation was done, none of them wrong, each checked."""
        self.assertEqual(cell["metrics"]["ops"], ops)
        self.assertGreaterEqual(cell["verify"]["checked"], ops)
        for kind in ("corrupt", "misplaced", "stale", "duplicated", "missing", "unverifiable"):
            self.assertEqual(cell["verify"][kind], 0, kind)
        self.assertEqual(set(cell["errors"].values()), {0})


class Runs(WithFolder):
    def test_a_kernels_code_is_the_nic(self):
        for provider in VENDORS:
            r = self.result("--provider", provider, "--device-engine", "kernel-on-cpu", "--size", "64,70000", *SMALL)
            self.assertEqual([c["device"]["name"] for c in r["cells"]], ["model:engine=kernel-on-cpu"] * 4)
            for cell in r["cells"]:
                self.assert_clean(cell, 200)

    def test_who_can_have_a_kernel_as_nic(self):
        for arguments, why in (
            (["--device-engine", "gpu"], "CPU threads are the initiators"),
            (["--device-engine", "gpu", "--device", "mlx5_0", "--provider", "verbs"], "--device-engine"),
            (["--device-engine", "quantum"], "--device-engine"),
            (["--device", "model:engine=fast"], "engine"),
        ):
            done = run(*arguments)
            self.assertEqual(done.returncode, 1, (arguments, done.stdout, done.stderr))
            self.assertIn(why, done.stderr)

    def test_no_arguments_run_and_verify(self):
        done = run("--details", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("provider=mlx5", "part=latency", "part=rate", "size_bytes=1024", "p50", "verified"):
            self.assertIn(word, done.stdout)

    def test_a_range_of_sizes_has_two_cells_each(self):
        r = self.result("--provider", "bnxt", "--size", "256:1MiB", "--iterations", "20", *TIMEOUTS)
        self.assertTrue(r["complete"])
        self.assertEqual(r["stop_reason"], "done")
        sizes = [256 << i for i in range(13)]
        keys = [(c["cell"]["size_bytes"], c["cell"]["part"]) for c in r["cells"]]
        self.assertEqual(keys, [(s, part) for s in sizes for part in ("latency", "rate")])
        for cell in r["cells"]:
            self.assert_clean(cell, 20)
            self.assertEqual(cell["metrics"]["bytes"], 20 * cell["cell"]["size_bytes"])
            self.assertEqual(cell["cell"]["provider"], "bnxt")
            self.assertEqual(cell["device"]["kind"], "model")
            self.assertEqual(cell["initiator"]["kind"], "cpu")
            self.assertEqual(cell["model"]["writes"], 20)
            self.assertEqual(cell["options"]["size"], cell["cell"]["size_bytes"])

    def test_sizes_as_given(self):
        def sizes(text):
            cells = self.result("--size", text, "--measure", "rate", "--iterations", "10", *TIMEOUTS)["cells"]
            return [c["cell"]["size_bytes"] for c in cells]
        self.assertEqual(sizes("0,64,4KiB"), [0, 64, 4096])
        self.assertEqual(sizes("100:600"), [100, 128, 256, 512, 600])
        self.assertEqual(sizes("4KiB,1:4,7"), [4096, 1, 2, 4, 7])
        self.assertEqual(sizes("33:33"), [33])

    @long
    def test_every_operation_in_every_format(self):
        counters = {"write": "writes", "write-imm": "writes_with_immediate", "read": "reads", "send": "sends",
                    "send-imm": "sends_with_immediate", "fetch-add": "fetch_adds",
                    "compare-swap": "compare_swaps"}
        for provider in VENDORS:
            for op, counter in counters.items():
                with self.subTest(f"{provider} {op}"):
                    size = [] if op in ("fetch-add", "compare-swap") else ["--size", "1,333"]
                    for cell in self.result("--provider", provider, "--op", op, *size, *SMALL)["cells"]:
                        # The word that atomics walk through is checked once more at the end.
                        self.assert_clean(cell, 200)
                        self.assertEqual(cell["cell"]["op"], op)
                        self.assertEqual(cell["model"][counter], 200)

    def test_write_with_immediate_between_two_queue_pairs(self):
        for way in (["--op", "write-imm"], ["--write-imm"]):
            cells = self.result("--provider", "ionic", *way, "--size", "0,64,4KiB", "--connection", "pair",
                                *SMALL)["cells"]
            self.assertEqual(len(cells), 6)
            for cell in cells:
                self.assert_clean(cell, 200)
                self.assertEqual((cell["cell"]["op"], cell["cell"]["connection"]), ("write-imm", "pair"))
                self.assertEqual(cell["model"]["writes_with_immediate"], 200)

    def test_atomics_one_after_the_other(self):
        cell, = self.result("--op", "fetch-add", "--measure", "latency", "--iterations", "10000", *TIMEOUTS)["cells"]
        self.assert_clean(cell, 10000)
        self.assertEqual(cell["cell"]["size_bytes"], 8)
        self.assertEqual(cell["cell"]["in_flight"], 1)

    def test_what_the_rate_part_is_told(self):
        cell, = self.result("--measure", "rate", "--size", "512", "--num-qps", "4", "--batch-size", "8",
                            "--in-flight", "24", "--signal-every", "3", "--threads", "2", *SMALL)["cells"]
        self.assert_clean(cell, 4 * 200)
        for key, value in {"queue_pairs": 4, "batch": 8, "in_flight": 24, "signal_every": 3,
                           "connection": "self", "queue_memory": "host", "data_memory": "host",
                           "target_memory": "host", "inlined": False, "part": "rate"}.items():
            self.assertEqual(cell["cell"][key], value, key)
        self.assertEqual(cell["rdma"]["sq_doorbells_per_op"], 25 / 200)

    def test_a_completion_for_every_request(self):
        # Completion queues wrap many times while each has no more room than the window needs.
        for provider in VENDORS:
            with self.subTest(provider):
                cell, = self.result("--provider", provider, "--measure", "rate", "--size", "64", "--signal-every", "1",
                                    "--iterations", "100000", "--timeout", "10", "--late-after", "9")["cells"]
                self.assert_clean(cell, 100000)
                self.assertEqual(cell["model"]["cq_overflows"], 0)

    def test_copies_that_two_threads_share(self):
        for measure in ("latency", "rate"):
            with self.subTest(measure):
                cell, = self.result("--device", "model:copy-threads=2", "--measure", measure, "--size", "512Ki,1Mi",
                                    "--iterations", "200", "--timeout", "10", "--late-after", "9")["cells"][:1]
                self.assert_clean(cell, 200)

    def test_inlined_payloads(self):
        for provider, most in (("mlx5", 828), ("bnxt", 96), ("ionic", 32)):
            cells = self.result("--provider", provider, "--inline", str(most), "--size", f"1,13,{most},{most + 1}",
                                "--measure", "rate", *SMALL)["cells"]
            self.assertEqual([c["cell"]["inlined"] for c in cells], [True, True, True, False])
            for cell in cells:
                self.assert_clean(cell, 200)

    def test_the_form_in_which_vendors_publish(self):
        latency, rate = self.result("--size", "4KiB", *SMALL)["cells"]
        single = latency["rdma"]["single_operation"]
        self.assertEqual(single["count"], 200)
        for quantity in ("latency_ns", "ops_per_s", "bytes_per_s"):
            least, mean, most = (single[quantity][k] for k in ("min", "mean", "max"))
            self.assertTrue(0 < least <= mean <= most, (quantity, single[quantity]))
        self.assertAlmostEqual(single["ops_per_s"]["min"] * single["latency_ns"]["max"] / 1e9, 1, places=6)
        self.assertEqual(single["latency_ns"]["mean"], latency["metrics"]["latency_ns"]["mean"])
        self.assertNotIn("single_operation", rate["rdma"])

    def test_the_ceiling_beside_large_payloads(self):
        small, large = self.result("--size", "1KiB,1MiB", "--measure", "rate", "--iterations", "50",
                                   *TIMEOUTS)["cells"]
        self.assertNotIn("ceiling", small["rdma"])
        self.assertGreater(large["rdma"]["ceiling"]["bytes_per_s"], 0)
        self.assertAlmostEqual(large["rdma"]["ceiling"]["share_fraction"] * large["rdma"]["ceiling"]["bytes_per_s"],
                               large["metrics"]["bytes_per_s"], delta=1)

    def test_substeps(self):
        cell, = self.result("--size", "64", "--measure", "rate", "--substep-timing", *SMALL)["cells"]
        steps = cell["substeps_ns"]
        # Payloads take time of this thread only where no other processor checks them.
        for step in ("build", "sq_doorbell", "cq_poll", "total"):
            self.assertIsNotNone(steps[step], step)
        self.assertLessEqual(steps["build"] + steps["sq_doorbell"] + steps["cq_poll"], steps["total"])

    def test_a_time_below_the_clocks_resolution_ends(self):
        for cell in self.result("--size", "64", "--warmup", "0.0000000001", *SMALL)["cells"]:
            self.assert_clean(cell, 200)

    def test_a_duration_is_every_parts(self):
        for measure in ("both", "ping-pong"):
            for cell in self.result("--size", "64", "--measure", measure, "--duration", "0.2", "--repeats", "1",
                                    "--iterations", "1", *TIMEOUTS)["cells"]:
                self.assertGreater(cell["metrics"]["ops"], 1, cell["cell"]["part"])

    def test_cells_before_an_error_are_kept(self):
        def small():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        if subprocess.run([DOORBELL, "version"], preexec_fn=small, capture_output=True).returncode != 0:
            self.skipTest("a sanitizer needs more addresses")
        # The second size does not fit into what this process may have.
        arguments = ["--size", "64,1GiB", "--in-flight", "4", "--measure", "rate", *SMALL, "--json", str(self.json)]
        for fault, code in (([], 1), (["--fault", "corrupt=0.2"], 2)):  # damaged data is worse
            done = run(*arguments, *fault, preexec_fn=small)
            self.assertEqual(done.returncode, code, done.stderr)
            r = self.valid(self.json)
            self.assertEqual([c["cell"]["size_bytes"] for c in r["cells"]], [64])
            self.assertEqual(r["cells"][0]["metrics"]["ops"], 200)
            self.assertEqual((r["stop_reason"], r["complete"], r["exit_code"]), ("error", False, code))
            self.assertIn("memory", r["warnings"][-1])

    def test_what_a_later_cell_cannot_do_is_refused_at_once(self):
        done = run("--provider", "ernic", "--inline", "32", "--size", "64,32", *SMALL, "--json", str(self.json))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("doorbell rdma: --inline: ", done.stderr)
        self.assertFalse(self.json.exists())

    def test_nothing_succeeded_nothing_was_fast(self):
        for measure in ("both", "ping-pong"):
            for cell in self.result("--fault", "error=1", "--measure", measure, "--size", "64", *SMALL, code=2)["cells"]:
                self.assertEqual(cell["metrics"]["ops"], 0)
                self.assertIsNone(cell["metrics"]["latency_ns"]["mean"])
                self.assertIsNone(cell["metrics"]["latency_ns"]["p50"])
                self.assertEqual(cell["metrics"]["latency_ns"]["bins"], [])

    def test_a_duration_with_repeats(self):
        r = self.result("--measure", "rate", "--duration", "0.1", "--warmup", "0.05", "--repeats", "3", *TIMEOUTS)
        self.assertEqual(len(r["cells"][0]["repeats"]), 3)
        self.assertTrue(r["complete"])

    def test_the_model_s_keys(self):
        spec = "model:mtu=1024,latency=2ms"
        cell, = self.result("--device", spec, "--size", "4KiB", "--measure", "latency", "--iterations", "20",
                            *TIMEOUTS)["cells"]
        self.assertEqual(cell["model"]["packets"], 80)
        self.assertGreaterEqual(cell["metrics"]["latency_ns"]["min"], 2e6)
        cell, = self.result("--device", "model:loss=0.05", "--size", "64KiB", "--measure", "rate", "--ack-timeout",
                            "8", "--iterations", "300", *TIMEOUTS)["cells"]
        self.assert_clean(cell, 300)
        self.assertGreater(cell["model"]["retransmissions"], 0)
        cell, = self.result("--device", "model:rnr=1", "--op", "send", "--size", "64", "--measure", "latency",
                            "--iterations", "20", *TIMEOUTS)["cells"]
        self.assert_clean(cell, 20)
        self.assertEqual(cell["model"]["rnr_naks"], 20)

    def test_verification_can_be_left_out_and_says_so(self):
        done = run("--verify", "off", "--size", "64", *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("NOT verified", done.stdout)
        cell, = self.result("--verify", "sample=0.1", "--measure", "rate", "--iterations", "5000", "--size", "64",
                            *TIMEOUTS)["cells"]
        self.assertTrue(300 < cell["verify"]["checked"] < 700, cell["verify"])

    def test_one_offset(self):
        cell, = self.result("--offsets", "one", "--verify", "off", "--measure", "rate", "--size", "4096", *SMALL)["cells"]
        self.assertEqual((cell["options"]["offsets"], cell["cell"]["offsets"], cell["verify"]["checked"]), ("one", "one", 0))
        self.assertIn("--verify off", run("--offsets", "one").stderr)

    def test_ping_pong(self):
        for op in "write", "send":
            cell, = self.result("--measure", "ping-pong", "--op", op, "--size", "1000", "--iterations", "50", *TIMEOUTS)["cells"]
            self.assertEqual((cell["cell"]["part"], cell["cell"]["in_flight"], cell["cell"]["connection"]), ("ping-pong", 1, "pair"))
            self.assertEqual(cell["metrics"]["ops"], 50)
            self.assertEqual(cell["verify"]["checked"], 100)  # messages and answers
            self.assertGreater(cell["metrics"]["latency_ns"]["min"], 0)
        damaged = run("--measure", "ping-pong", "--size", "1000", "--fault", "corrupt=0.2", "--iterations", "200", *TIMEOUTS)
        self.assertEqual(damaged.returncode, 2, damaged.stdout + damaged.stderr)
        for options, why in ((("--op", "read"), "write or send"), (("--size", "0"), "--size"), (("--initiator", "gpu"), "--measure"),
                             (("--offsets", "one", "--verify", "off"), "--offsets")):
            done = run("--measure", "ping-pong", *options)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn(why, done.stderr)


class Outputs(WithFolder):
    def test_json_to_standard_output_is_nothing_else(self):
        done = run("--size", "64,128", *SMALL, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["cells"]), 4)
        path = self.folder / "stdout.json"
        path.write_text(done.stdout, encoding="utf-8")
        self.valid(path)

    def test_csv_has_a_row_for_each_cell_and_repeat(self):
        path = self.folder / "out.csv"
        done = run("--size", "64,128", "--repeats", "2", *SMALL, "--csv", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        self.assertEqual(len(rows), 8)
        self.assertEqual({row["path"] for row in rows}, {"rdma"})
        self.assertEqual([row["cell_index"] for row in rows], [str(i // 2) for i in range(8)])

    def test_quiet(self):
        done = run("--size", "64", *SMALL, "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Refusals(WithFolder):
    """Each names its option; nothing is run and no file is written."""

    def refused(self, option, *arguments, code=1):
        with self.subTest(" ".join(arguments)):
            done = run(*arguments, "--json", str(self.json))
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(f"doorbell rdma: {option}", done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertFalse(self.json.exists())
            return done.stderr

    def test_sizes(self):
        for text in ("1x", "-1", "", "1,,2", "1:2:3", "3GiB", "2147483648", "1:3GiB", "64:"):
            self.refused("--size", "--size", text)
        self.assertIn("more to less", self.refused("--size", "--size", "4096:256"))
        for op in ("fetch-add", "compare-swap"):
            self.assertIn("8 bytes", self.refused("--size", "--op", op, "--size", "16"))
            self.refused("--size", "--op", op, "--size", "8:64")
        self.assertEqual(run("--op", "fetch-add", "--size", "8", *SMALL).returncode, 0)

    def test_queues(self):
        self.refused("--in-flight", "--in-flight", "4", "--batch-size", "8")
        self.refused("--in-flight", "--in-flight", "64", "--device", "model:sq=32")
        self.refused("--in-flight", "--op", "send", "--in-flight", "4", "--batch-size", "4", "--device", "model:rq=4")
        # Only what arrives takes receives.
        self.assertEqual(run("--op", "write", "--in-flight", "4", "--batch-size", "4", "--device", "model:rq=1", *SMALL).returncode, 0)
        self.refused("--in-flight", "--in-flight", "1025")
        self.refused("--batch-size", "--batch-size", "0")
        self.refused("--signal-every", "--signal-every", "0")
        self.refused("--num-qps", "--num-qps", "0")
        self.refused("--num-qps", "--num-qps", "257")

    def test_inline(self):
        self.refused("--inline", "--provider", "ernic", "--inline", "32", "--size", "16")
        self.refused("--inline", "--provider", "mlx5", "--inline", "829", "--size", "16")
        self.refused("--inline", "--provider", "bnxt", "--inline", "97", "--size", "16")
        self.refused("--inline", "--provider", "ionic", "--inline", "33", "--size", "16")
        self.refused("--inline", "--device", "model:max-inline=16", "--inline", "17", "--size", "16")
        for op in ("read", "fetch-add", "compare-swap"):
            self.refused("--inline", "--op", op, "--inline", "8")

    def test_memory(self):
        self.refused("--queue-mem", "--queue-mem", "vram")

    def test_operations(self):
        self.refused("--write-imm", "--write-imm", "--op", "read")
        self.refused("--op", "--op", "rite")
        self.refused("--measure", "--measure", "all")
        self.refused("--path-mtu", "--path-mtu", "300")
        self.refused("--retry-count", "--retry-count", "8")
        self.refused("--iterations", "--iterations", "0")

    def test_devices(self):
        self.refused("--device model", "--device", "model:foo=1")
        self.refused("--device model", "--device", "model:mtu=300")
        self.refused("--device model", "--device", "model:loss=2")
        self.refused("--device model", "--device", "model:mtu=512,mtu=512")
        self.refused("--provider verbs", "--provider", "verbs")
        self.refused("--provider", "--provider", "mlx6")
        # A vendor's queues on a device that is not the model.
        self.refused("--provider bnxt", "--provider", "bnxt", "--device", "no_such_nic", code=77)

    def test_a_verbs_device_that_is_not_there(self):
        done = run("--provider", "verbs", "--device", "no_such_nic")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        # The option that says which; where there is no libibverbs, that comes first.
        self.assertRegex(done.stderr, "--device no_such_nic: |libibverbs")
        self.assertNotIn("rdma: --provider", done.stderr)

    def test_initiators(self):
        self.refused("--initiator", "--provider", "verbs", "--device", "rxe0", "--initiator", "gpu")
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
        done = run("--initiator", "gpu", env=environment)
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertTrue(done.stderr.strip())

    def test_faults_and_others(self):
        self.refused("--fault", "--provider", "verbs", "--device", "rxe0", "--fault", "drop=0.1")
        self.assertIn("corrupt", self.refused("--fault", "--fault", "corupt=0.1"))
        self.refused("--fault", "--fault", "corrupt=2")
        self.refused("--verify", "--verify", "maybe")
        self.assertIn("--size", self.refused("", "--szie", "5"))
        for arguments in (["--no-such-option"], ["model", "stray"]):
            self.assertEqual(run(*arguments).returncode, 1, arguments)
        self.assertEqual(run("--json", "/nonexistent/folder/out.json").returncode, 1)

    def test_two_processes_need_a_device_that_both_reach(self):
        done = run("--listen", "18515")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("doorbell rdma: --listen: a model", done.stderr)
        self.refused("--connect", "--connect", "localhost")
        self.refused("--connection", "--provider", "verbs", "--device", "rxe0", "--connect", "localhost",
                     "--connection", "pair")
        done = run("--provider", "verbs", "--device", "rxe0", "--listen", "18515", "--size", "64")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("doorbell rdma: --size", done.stderr)


class Faults(WithFolder):
    WINDOW = ["--measure", "rate", "--size", "1KiB", "--in-flight", "32", "--batch-size", "8", "--signal-every", "1",
              "--iterations", "3000", "--seed", "5", *TIMEOUTS]

    def test_each_kind_is_found_and_counted(self):
        # Every buffer is marked before its transfer: what was not written there is missing.
        where = {"corrupt": "corrupt", "stale": "missing", "duplicate": "duplicated"}
        for provider in VENDORS:
            for kind, verdict in where.items():
                with self.subTest(f"{kind} on {provider}"):
                    cell, = self.result(*self.WINDOW, "--provider", provider, "--fault", f"{kind}=0.01",
                                        code=2)["cells"]
                    injected = cell["model"]["injected"][kind]
                    self.assertGreater(injected, 0)
                    self.assertEqual(cell["verify"][verdict], injected)
                    self.assertEqual(cell["metrics"]["ops"], 3000)

    def test_misplaced_data(self):
        cell, = self.result(*self.WINDOW, "--fault", "misplace=0.01", code=2)["cells"]
        injected = cell["model"]["injected"]["misplace"]
        self.assertGreater(injected, 0)
        # Missing where it belongs, unless another stray lies there; misplaced where it lies, unless that buffer's
        # own data came later. A buffer that a stray changes while it is read is neither whole nor a stranger's.
        found = cell["verify"]
        self.assertGreater(found["missing"], 0)
        self.assertGreaterEqual(found["missing"] + found["misplaced"] + found["corrupt"], injected)
        self.assertLessEqual(found["missing"], injected)
        self.assertLess(found["corrupt"], found["missing"])

    def test_reads_and_sends_too(self):
        for op in ("read", "send", "write-imm"):
            with self.subTest(op):
                cell, = self.result(*self.WINDOW, "--op", op, "--fault", "corrupt=0.01", code=2)["cells"]
                self.assertGreater(cell["model"]["injected"]["corrupt"], 0)
                self.assertEqual(cell["verify"]["corrupt"], cell["model"]["injected"]["corrupt"])

    def test_a_failed_request_flushes_what_is_behind_it(self):
        for provider in VENDORS:
            with self.subTest(provider):
                r = self.result(*self.WINDOW, "--provider", provider, "--fault", "error=0.01", code=2)
                cell, = r["cells"]
                statuses = cell["rdma"]["completion_statuses"]
                self.assertEqual(statuses["remote operation error"], 1)
                self.assertEqual(cell["errors"]["completion"], sum(statuses.values()))
                self.assertEqual(cell["rdma"]["submitted"], cell["metrics"]["ops"] + sum(statuses.values()))

    def test_a_queue_pair_is_connected_again_for_the_next_repeat(self):
        r = self.result(*self.WINDOW, "--repeats", "4", "--fault", "error=0.002", code=2)
        self.assertEqual(len(r["cells"][0]["repeats"]), 4)

    def test_a_completion_that_later_ones_imply(self):
        window = self.WINDOW[:-len(TIMEOUTS)]
        cell, = self.result(*window, "--fault", "drop=0.005", "--timeout", "3", "--late-after", "2.9", code=2)["cells"]
        self.assertGreater(cell["errors"]["skipped"], 0)
        # Nothing implies the very last one, if it is that which was dropped.
        last = 1 if cell["errors"]["timeout"] else 0
        self.assertEqual(cell["errors"]["skipped"] + last, cell["model"]["injected"]["drop"])

    def test_a_completion_that_never_comes_ends_by_the_deadline(self):
        begin = time.monotonic()
        r = self.result("--measure", "latency", "--size", "64", "--iterations", "3000", "--fault", "drop=0.01",
                        "--timeout", "1", "--late-after", "0.9", code=2)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual(r["stop_reason"], "timeout")
        self.assertFalse(r["complete"])
        cell, = r["cells"]
        self.assertEqual(cell["errors"]["timeout"], 1)
        self.assertEqual(cell["model"]["injected"]["drop"], 1)

    def test_reordering_is_legal(self):
        cell, = self.result(*self.WINDOW, "--num-qps", "2", "--fault", "reorder=0.05")["cells"]
        self.assertGreater(cell["model"]["injected"]["reorder"], 0)
        self.assert_clean(cell, 6000)

    def test_a_removed_device(self):
        r = self.result(*self.WINDOW, "--fault", "removal=0.005", code=2)
        self.assertEqual(r["stop_reason"], "removed")
        self.assertEqual(r["cells"][0]["errors"]["removal"], 1)

    def test_atomics_that_were_given_up_are_no_corruption(self):
        r = self.result("--op", "fetch-add", "--measure", "rate", "--in-flight", "32", "--batch-size", "8",
                        "--iterations", "3000", "--seed", "5", *TIMEOUTS, "--fault", "removal=0.005", code=2)
        self.assertEqual(r["stop_reason"], "removed")
        cell, = r["cells"]
        self.assertGreater(cell["errors"]["aborted"], 0)
        self.assertEqual(cell["verify"]["corrupt"], 0)

    def test_retries_that_run_out(self):
        cell, = self.result("--device", "model:loss=1", "--size", "64", "--measure", "latency", "--ack-timeout", "8",
                            "--retry-count", "2", "--iterations", "5", *TIMEOUTS, code=2)["cells"]
        self.assertEqual(cell["rdma"]["completion_statuses"], {"transport retry counter exceeded": 1})
        cell, = self.result("--device", "model:rnr=5", "--op", "send", "--size", "64", "--measure", "latency",
                            "--rnr-retry", "2", "--iterations", "5", "--repeats", "5", *TIMEOUTS, code=2)["cells"]
        # Also where the receive's flush is seen before the request's own completion.
        self.assertEqual(list(cell["rdma"]["completion_statuses"]), ["RNR retry counter exceeded"])


class Interrupt(WithFolder):
    def test_leaves_a_valid_partial_result(self):
        for which in (signal.SIGINT, signal.SIGTERM):
            code, out, err = self.interrupt("--measure", "rate", "--size", "256,1KiB", "--duration", "3600",
                                            "--warmup", "0", "--num-qps", "2", which=which)
            self.assertEqual(code, 130, err)
            r = self.valid(self.json)
            self.assertFalse(r["complete"])
            self.assertEqual(r["stop_reason"], "signal")
            cell, = r["cells"]  # the second size is not begun
            self.assertGreater(cell["metrics"]["ops"], 0)
            self.assertEqual(set(cell["errors"].values()), {0})
            self.assertIn("p50", out)

    def test_a_slow_device(self):
        code, _, err = self.interrupt("--device", "model:latency=200ms", "--measure", "latency",
                                      "--iterations", "100000")
        self.assertEqual(code, 130, err)
        self.assertEqual(self.valid(self.json)["stop_reason"], "signal")


if __name__ == "__main__":
    unittest.main()
