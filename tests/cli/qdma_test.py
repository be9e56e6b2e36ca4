#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell qdma`, `qdma validate` and `qdma tune` as a user meets them: command lines, cells, refusals, faults, Ctrl-C. Needs no
hardware."""

import json
import os
import signal
import subprocess
import time
import unittest

from harness import DOORBELL, TIMEOUTS, WithFolder, doorbell, end_of, long, wait_for_cpu

SMALL = ["--iterations", "50", "--size", "4KiB", *TIMEOUTS]
# Its time passes only as bytes move, so that rates do not depend on this machine.
COUNTED = "model:bandwidth=1G,clock=counted"


def run(*arguments, **more):
    return doorbell("qdma", *arguments, **more)


def hold_for(process, seconds):
    """It does not run for so long."""
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


class Qdma(WithFolder):
    command = [DOORBELL, "qdma"]

    def test_runs_and_verifies_puts_and_gets(self):
        for op in ("put", "get"):
            for memory in ("ddr", "hbm", "hbm-high"):
                cells = self.result("--op", op, "--memory", memory, "--size", "1,4097,300000", "--iterations", "20",
                                    *TIMEOUTS)["cells"]
                self.assertEqual([c["cell"]["size_bytes"] for c in cells], [1, 1, 4097, 4097, 300000, 300000])
                for cell in cells:
                    self.assertEqual(cell["path"], "qdma")
                    self.assertEqual(cell["device"]["kind"], "model")
                    self.assertEqual((cell["cell"]["op"], cell["cell"]["memory"]), (op, memory))
                    self.assertEqual((cell["metrics"]["ops"], cell["verify"]["checked"]), (20, 20))
                    self.assertEqual(set(cell["errors"].values()), {0})

    def test_everything_is_read_back_whatever_ends_the_run(self):
        for arguments in (["--duration", "0.2", "--repeats", "2", "--warmup", "0"], ["--iterations", "3000"]):
            cell, = self.result("--size", "64KiB", "--measure", "rate", "--in-flight", "4", *arguments, *TIMEOUTS)["cells"]
            self.assertEqual(cell["verify"]["unverifiable"], 0)
            self.assertGreaterEqual(cell["verify"]["checked"], cell["metrics"]["ops"])

    def test_both_channels_and_one(self):
        for arguments, used in ((["--channels", "0"], [True, False]), (["--channels", "1"], [False, True]),
                                (["--channels", "both"], [True, True]), (["--policy", "channel1"], [False, True]),
                                (["--policy", "v80-compat", "--memory", "hbm"], [True, False]),
                                (["--policy", "v80-compat", "--memory", "hbm-high"], [False, True]),
                                (["--memory", "hbm"], [True, True]), (["--memory", "hbm", "--hbm-routing", "by-half"], [True, False])):
            cell, = self.result("--size", "1MiB", "--measure", "latency", "--iterations", "4", *arguments, *TIMEOUTS)["cells"]
            moved = [c["host_to_card_bytes"] > 0 for c in cell["model"]["channels"]]
            self.assertEqual(moved, used, arguments)

    def test_a_stripe_that_a_transfer_has_no_room_for_leaves_no_channel_idle(self):
        for arguments in (["--stripe", "64Ki"], ["--stripe", "4096", "--op", "get", "--memory", "hbm"], ["--stripe", "200Ki"]):
            cell, = self.result("--size", "256KiB", "--measure", "latency", "--iterations", "3", *arguments, *TIMEOUTS)["cells"]
            way = "card_to_host_bytes" if "get" in arguments else "host_to_card_bytes"
            self.assertEqual([c[way] for c in cell["model"]["channels"]], [3 * (128 << 10)] * 2, arguments)

    def test_two_channels_are_twice_one(self):
        """The second requirement of the path, by the model's own clock."""

        def rate(*arguments):
            cell, = self.result("--device", COUNTED, "--measure", "latency", "--size", "16MiB", "--iterations", "3",
                                *arguments, *TIMEOUTS)["cells"]
            return cell["model"]["card_clock_bytes_per_s"]

        for op in ("put", "get"):
            one = rate("--op", op, "--channels", "0")
            self.assertAlmostEqual(one / 1e9, 1, delta=0.02)
            self.assertGreaterEqual(rate("--op", op) / one, 1.97)
            self.assertGreaterEqual(rate("--op", op, "--memory", "hbm") / one, 1.97)
            self.assertLessEqual(rate("--op", op, "--memory", "hbm", "--policy", "v80-compat") / one, 1.02)

    @long
    def test_the_cards_clock_counts_what_overlaps_once(self):
        """Several descriptors, several in flight, several parts of a transfer: both channels' 2 GB/s, no more and no less."""
        for op in ("put", "get"):
            for arguments in (["--num-queues", "4"], ["--num-queues", "4", "--in-flight", "4", "--batch-size", "2"],
                              ["--stripe", "64Ki", "--measure", "latency"], ["--stripe", "64Ki", "--in-flight", "8"]):
                cells = self.result("--device", COUNTED, "--op", op, "--size", "4MiB", "--iterations", "8", *arguments, *TIMEOUTS)["cells"]
                for cell in cells:
                    rate = cell["model"]["card_clock_bytes_per_s"]
                    self.assertAlmostEqual(rate / 2e9, 1, delta=0.05, msg=(op, arguments, cell["cell"]["part"]))

    def test_the_cards_own_time_is_not_longer_than_the_time_around_it(self):
        for op in ("put", "get"):
            for cell in self.result("--op", op, "--size", "4KiB,256KiB", "--num-queues", "4", "--iterations", "200", "--repeats", "3",
                                    *TIMEOUTS)["cells"]:
                self.assertGreaterEqual(cell["model"]["card_clock_bytes_per_s"], cell["metrics"]["bytes_per_s"], cell["cell"])

    def test_processor_time_and_the_time_that_it_is_counted_in(self):
        for arguments, code in (([], 0), (["--fault", "drop=0.05", "--deadline", "0.3"], 2)):
            for cell in self.result("--num-queues", "2", *SMALL, *arguments, code=code)["cells"]:
                cost = cell["cost"]
                self.assertGreaterEqual(cost["elapsed_s"], cell["metrics"]["elapsed_s"])
                for thread in cost["threads"]:
                    self.assertLessEqual(thread["cpu_s"], cost["elapsed_s"], cost)

    def test_many_large_transfers_on_a_slow_model_are_not_late(self):
        """Eight of 4 MiB in flight at 100 MB/s: the last one takes longer than the limit of any single operation."""
        limits = ["--timeout", "0.3", "--late-after", "0.1"]
        cell, = self.result("--device", "model:bandwidth=50M", "--size", "4MiB", "--in-flight", "8", "--measure", "rate", "--iterations", "8",
                            *limits)["cells"]
        self.assertEqual(set(cell["errors"].values()), {0})
        # A deadline that was given is what it says.
        cell, = self.result("--device", "model:bandwidth=50M", "--size", "4MiB", "--in-flight", "8", "--measure", "rate", "--iterations", "8",
                            *limits, "--deadline", "0.1", code=2)["cells"]
        self.assertGreater(cell["qdma"]["completion_statuses"]["ETIMEDOUT"], 0)

    def test_a_short_run_of_gets_does_not_fill_for_longer(self):
        """A place for each of 65536 gets, one after the other and each delayed, would be hours."""
        cell, = self.result("--device", "model:delay=10ms", "--fault", "delay=1", "--op", "get", "--size", "4KiB", "--measure", "latency",
                            "--duration", "0.05", "--repeats", "2", "--warmup", "0", "--late-after", "0.001", "--timeout", "60",
                            code=2)["cells"]
        self.assertGreaterEqual(cell["verify"]["checked"], cell["metrics"]["ops"])
        self.assertEqual((cell["verify"]["corrupt"], cell["verify"]["stale"], cell["verify"]["misplaced"]), (0, 0, 0))
        self.assertLess(cell["model"]["channels"][0]["host_to_card_bytes"] + cell["model"]["channels"][1]["host_to_card_bytes"], 65536 * 4096)

    def test_several_descriptors(self):
        cell, = self.result("--num-queues", "3", "--measure", "rate", *SMALL)["cells"]
        self.assertEqual((cell["cell"]["queue_pairs"], cell["metrics"]["ops"]), (3, 150))

    def test_bad_input(self):
        for option, value in (("--op", "atomic"), ("--size", "0"), ("--size", "3GiB"), ("--num-queues", "0"),
                              ("--in-flight", "x"), ("--device", "model:speed=1"), ("--memory", "pdi"),
                              ("--ring-size-index", "16"), ("--starting-offset", "1"), ("--starting-offset", "32Gi"),
                              ("--in-flight", "300")):
            done = run(option, value)
            self.assertEqual(done.returncode, 1, f"{option} {value}: {done.stdout}{done.stderr}")
            self.assertIn("doorbell qdma: ", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertIn("--policy", run("--channels", "0", "--policy", "balanced").stderr)
        self.assertIn("--stripe", run("--policy", "v80-compat", "--stripe", "64Ki").stderr)
        self.assertIn("--device model", run("--device", "server:/nowhere", "--fault", "drop=0.1").stderr)
        self.assertIn("--fault delay: with clock=counted", run("--device", COUNTED, "--fault", "delay=0.1").stderr)

    def test_an_error_names_what_was_typed_and_its_range(self):
        for arguments, said in ((["--batch-size", "1024", "--size", "4KiB"], "--batch-size: 1024 is not in 1..256"),
                                (["--size", "0"], "--size: 0 is not in 1..2147483647"),
                                (["--size", "3GiB"], "1..2147483647"),
                                (["--starting-offset", "34359730176", "--size", "1MiB"],
                                 "--starting-offset, --size, --in-flight, --num-queues: the last transfer ends at byte"),
                                (["--device", "nope"], "--device nope: no back end")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 1, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertIn("doorbell qdma: ", done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_batch_alone_needs_no_window(self):
        cell, = self.result("--batch-size", "128", "--measure", "rate", *SMALL)["cells"]
        self.assertEqual((cell["cell"]["batch"], cell["cell"]["in_flight"]), (128, 256))

    def test_the_echo_has_options_of_the_command_only(self):
        cell, = self.result("--measure", "latency", *SMALL)["cells"]
        self.assertEqual(cell["options"]["batch_size"], 1)
        self.assertNotIn("signal_every", cell["options"])

    def test_a_card_that_is_not_here(self):
        done = run("--device", "kernel:/dev/slash_qdma_ctl7")
        self.assertIn(done.returncode, (1, 77), done.stderr)
        self.assertIn("slash_qdma_ctl7", done.stderr)

    def test_faults_end_with_2(self):
        common = ["--size", "4KiB", "--measure", "rate", "--iterations", "1000"]
        for fault, op, found in (("corrupt", "get", "corrupt"), ("misplace", "get", "misplaced"), ("stale", "put", "stale")):
            cell, = self.result("--fault", f"{fault}=0.02", "--op", op, *common, *TIMEOUTS, code=2)["cells"]
            injected = cell["model"]["injected"][fault]
            self.assertGreater(injected, 0)
            wrong = {k: cell["verify"][k] for k in ("corrupt", "misplaced", "stale", "missing")}
            self.assertEqual((wrong[found], sum(wrong.values())), (injected, injected), fault)
        cell, = self.result("--fault", "error=0.02", *common, *TIMEOUTS, code=2)["cells"]
        self.assertEqual(cell["errors"]["completion"], cell["model"]["injected"]["error"])
        self.assertEqual(sum(cell["qdma"]["completion_statuses"].values()), cell["errors"]["completion"])
        cell, = self.result("--fault", "drop=0.02", *common, *TIMEOUTS, "--deadline", "0.5", code=2)["cells"]
        self.assertEqual(cell["qdma"]["completion_statuses"], {"ETIMEDOUT": cell["model"]["injected"]["drop"]})

    def test_a_part_that_an_error_ended_is_not_complete(self):
        document = self.result("--fault", "error=0.02", "--size", "4KiB", "--measure", "rate", "--iterations", "1000", *TIMEOUTS,
                               code=2)
        self.assertEqual((document["stop_reason"], document["complete"]), ("error", False))
        self.assertLess(document["cells"][0]["metrics"]["ops"], 1000)

    def test_tails_have_the_class_of_their_units(self):
        cell, = self.result("--fault", "stale=0.05", "--size", "1000", "--measure", "rate", "--iterations", "300", *TIMEOUTS,
                            code=2)["cells"]
        self.assertGreater(cell["verify"]["stale"], 0)
        self.assertEqual((cell["verify"]["stale"], cell["verify"]["corrupt"]), (cell["model"]["injected"]["stale"], 0))

    def test_a_deadline_of_a_transfer_is_its_own_error(self):
        for limit in (["--deadline", "0.2", *TIMEOUTS], ["--timeout", "5"]):
            cell, = self.result("--fault", "drop=1", "--measure", "latency", "--size", "4KiB", *limit, code=2)["cells"]
            self.assertEqual(cell["qdma"]["completion_statuses"], {"ETIMEDOUT": 1}, limit)

    def test_a_removed_card_is_injected_and_found_once(self):
        document = self.result("--fault", "removal=0.05", "--measure", "rate", *SMALL, code=2)
        self.assertEqual(document["stop_reason"], "removed")
        cell = document["cells"][-1]
        self.assertEqual((cell["model"]["injected"]["removal"], cell["errors"]["removal"]), (1, 1))

    @long
    def test_time_in_which_it_is_stopped_is_no_timeout(self):
        """Stopped for longer than --timeout; which transfer is under way then is chance."""
        work = (["--size", "4MiB", "--num-queues", "2", "--measure", "rate"],
                ["validate", "-j", "2", "--buffer-size", "64Ki", "--ddr-only", "--phase", "duplex"],
                ["tune", "--smallest", "64Ki", "--largest", "64Ki"])
        for arguments in work:
            path = self.folder / "stopped.json"
            process = subprocess.Popen([DOORBELL, "qdma", *arguments, "--duration", "600", "--warmup", "0", "--repeats", "1",
                                        "--timeout", "0.4", "--late-after", "100", "--json", path],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for_cpu(process, 0.3)
                hold_for(process, 2)
                wait_for_cpu(process, 0.6)
                process.send_signal(signal.SIGINT)
                process.wait(timeout=120)
            finally:
                process.kill()
                process.wait()
            for cell in json.loads(path.read_text())["cells"]:
                self.assertEqual({k: n for k, n in cell["errors"].items() if n}, {}, arguments)

    def test_ctrl_c_leaves_a_valid_partial_result(self):
        code, _, err = self.interrupt("--measure", "rate", "--duration", "3600", "--warmup", "0", "--size", "64KiB")
        self.assertEqual(code, 130, err)
        document = self.valid()
        self.assertFalse(document["complete"])
        self.assertEqual(document["stop_reason"], "signal")
        self.assertGreater(document["cells"][0]["metrics"]["ops"], 0)


class Validate(WithFolder):
    command = [DOORBELL, "qdma", "validate"]
    few = ["-j", "2", "--buffer-size", "256Ki", *TIMEOUTS]

    def test_all_phases(self):
        cells = self.result(*self.few)["cells"]
        phases = [(c["cell"]["memory"], c["cell"]["phase"], c["cell"]["channels"]) for c in cells]
        one = [("integrity", "auto (balanced)"), ("read", "auto (balanced)"), ("write", "auto (balanced)"),
               ("duplex", "auto (balanced)"), ("duplex", "same channel"), ("duplex", "crossed")]
        self.assertEqual(phases, [(m, *p) for m in ("HBM", "DDR", "HBM+DDR") for p in one])
        for cell in cells:
            self.assertEqual(set(cell["errors"].values()), {0})
            self.assertGreater(cell["verify"]["checked"], 0)
            for fact in ("host", "kernel", "numa_node", "iommu_group", "link_speed", "link_width"):
                self.assertIn(fact, cell["host"])
            if cell["cell"]["phase"] == "integrity":
                self.assertEqual([p["verdict"] for p in cell["qdma"]["places"]], ["ok"] * 4)
            # A call's doorbells and polls are the driver's: not counted is not none.
            self.assertEqual((cell["cost"]["doorbells_per_op"], cell["cost"]["polls_per_completion"]), (None, None))
            for count in ("sq_doorbells_per_op", "cq_doorbells_per_op", "register_writes_per_op", "empty_polls"):
                self.assertNotIn(count, cell["qdma"])

    def test_the_most_threads(self):
        """Twice as many places, each with two queue pairs, are all that the card has."""
        for more in ([], ["--phase", "gpu-write"]):
            if more:
                os.environ["DOORBELL_LIBCUDA"] = os.environ["FAKE_CUDA"]
                self.addCleanup(os.environ.pop, "DOORBELL_LIBCUDA")
            cells = self.result("-j", "64", "--buffer-size", "16Ki", "--ddr-only", *more, *TIMEOUTS)["cells"]
            self.assertEqual(cells[-1]["metrics"]["ops"], 64 if more else 128)
            self.assertEqual(cells[-1]["verify"]["checked"], 64 if more else 128)

    def test_more_than_half_of_the_most_threads(self):
        """The queue pairs of one phase are free for the next, in each memory and in both together."""
        cells = self.result("-j", "33", "--buffer-size", "4Ki", *TIMEOUTS)["cells"]
        self.assertEqual(len(cells), 18)
        for cell in cells:
            self.assertEqual(set(cell["errors"].values()), {0})

    def test_late_transfers_of_integrity_are_printed(self):
        """What decides the exit code stands in the cell and in its lines."""
        late = ["-d", "model:latency=300ms", "-j", "1", "--buffer-size", "4Ki", "--ddr-only", "--phase", "integrity", "--late-after",
                "0.01", "--timeout", "60"]
        cells = self.result(*late, code=2)["cells"]
        self.assertEqual((cells[0]["errors"]["late"], cells[0]["verify"]["checked"]), (4, 2))
        done = doorbell("qdma", "validate", *late)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("    2/2 OK\n    4 late\n", done.stdout)

    @long
    def test_time_in_which_it_is_stopped_makes_nothing_late(self):
        """Stopped for longer than --late-after, again and again."""
        path = self.folder / "stopped.json"
        process = subprocess.Popen([*self.command, "-j", "2", "--buffer-size", "64Ki", "--ddr-only", "--phase", "write", "--duration", "600",
                                    "--warmup", "0", "--repeats", "1", "--timeout", "60", "--late-after", "2", "--json", path],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(2):
                wait_for_cpu(process, 0.3)
                hold_for(process, 3)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
        finally:
            process.kill()
            process.wait()
        for cell in json.loads(path.read_text())["cells"]:
            self.assertEqual({k: n for k, n in cell["errors"].items() if n}, {})

    def test_large_transfers_of_a_slow_model_are_not_late(self):
        """Eight of 4 MiB at 100 MB/s take longer than the limit of any single operation."""
        limits = ["--timeout", "0.3", "--late-after", "0.1"]
        cells = self.result("-d", "model:bandwidth=50M", "-j", "4", "--buffer-size", "4Mi", "--ddr-only", "--phase", "write", *limits)["cells"]
        self.assertEqual(set(cells[0]["errors"].values()), {0})
        # Small ones have no more time than the options say.
        document = self.result("-d", "model:bandwidth=50k", "-j", "1", "--buffer-size", "64Ki", "--ddr-only", *limits, code=2)
        self.assertGreater(document["cells"][0]["errors"]["timeout"], 0)

    def test_gpu_memory_on_a_driver_without_a_gpu(self):
        """After the phases that write new data to the same places."""
        os.environ["DOORBELL_LIBCUDA"] = os.environ["FAKE_CUDA"]
        self.addCleanup(os.environ.pop, "DOORBELL_LIBCUDA")
        cells = self.result(*self.few, "--gpu-memory", "--gpu-chunk", "64Ki")["cells"]
        of_gpu = [(c["cell"]["memory"], c["cell"]["phase"]) for c in cells if c["cell"]["phase"].startswith("gpu")]
        self.assertEqual(of_gpu, [(m, p) for m in ("HBM", "DDR") for p in ("gpu-read", "gpu-write")])
        for cell in cells:
            self.assertEqual(set(cell["errors"].values()), {0})
            if cell["cell"]["phase"].startswith("gpu"):
                self.assertGreater(cell["qdma"]["copy_engine_bytes_per_s"], 0)
                self.assertEqual(cell["verify"]["checked"], 2)
        faulty = self.result(*self.few, "--ddr-only", "--phase", "gpu-read", "--fault", "corrupt=1", code=2)
        self.assertGreater(faulty["cells"][-1]["verify"]["corrupt"], 0)

    def test_says_what_will_run(self):
        timed = ["-j", "1", "--buffer-size", "4Ki", "--ddr-only", "--warmup", "0", "--repeats", "1", "--duration", "0.01"]
        for arguments, line in ((timed, "5 cells, each 1 repeat of 0.01 s, about 0.2 s"),
                                ([*timed, "--verify", "off"], "5 cells, each 1 repeat of 0.01 s, about 0.05 s"),
                                ([*timed, "--phase", "read"], "1 repeat of 0.01 s, about 0.04 s"),
                                (["-j", "1", "--buffer-size", "4Ki", "--phase", "integrity"],
                                 "all places are written and read once")):
            self.assertEqual(run("validate", *arguments, *TIMEOUTS).stderr.splitlines()[0], line)
        by_count = run("validate", "-j", "1", "--buffer-size", "4Ki", *TIMEOUTS).stderr.splitlines()[0]
        self.assertRegex(by_count, "^15 cells, each 1 repeat of 1 transfer of 4096 bytes by each thread, about ")

    def test_the_lines(self):
        done = doorbell("qdma", "validate", *self.few, "--ddr-only")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("Testing DDR data integrity (4 buffers", "    4/4 OK", "Testing DDR read bandwidth (2 threads", "    Read:",
                     "    Write:", "    Total:", " GB/s", "10^9", "same channel", "crossed", "ring size index 0 (2049 entries)"):
            self.assertIn(line, done.stdout)

    def test_duplex_by_the_cards_clock(self):
        """Reading and writing together, on one channel and crossed, is each at its own rate: full duplex."""
        cells = self.result("-d", COUNTED, "-j", "1", "--buffer-size", "8Mi", "--ddr-only", *TIMEOUTS)["cells"]
        rate = {(c["cell"]["phase"], c["cell"]["channels"]): c["qdma"]["by_card_clock"]["total_bytes_per_s"]
                for c in cells if c["cell"]["phase"] != "integrity"}
        read = rate["read", "auto (balanced)"]
        self.assertGreaterEqual(read, 1.97e9)
        for layout in ("same channel", "crossed"):
            self.assertGreaterEqual(rate["duplex", layout] / 1e9, 1.9, layout)
        self.assertGreaterEqual(rate["duplex", "auto (balanced)"] / read, 1.9)

    def test_no_rate_by_the_cards_clock_is_above_what_the_card_lets_through(self):
        """Also of several threads, whose transfers may follow each other where the machine is busy."""
        cells = self.result("-d", "model:bandwidth=1G,link=1500M,clock=counted", "-j", "2", "--buffer-size", "2Mi",
                            "--bandwidth-iterations", "3", *TIMEOUTS)["cells"]
        self.assertEqual(len(cells), 18)
        for cell in cells:
            if cell["cell"]["phase"] == "integrity":
                continue
            rates = cell["qdma"]["by_card_clock"]
            for way in ("read", "write"):
                self.assertLessEqual(rates[way + "_bytes_per_s"], 1.5001e9, cell["cell"])
            self.assertLessEqual(rates["total_bytes_per_s"], 3.001e9, cell["cell"])
            self.assertGreaterEqual(rates["total_bytes_per_s"], 1.49e9 if cell["cell"]["phase"] != "duplex" else 1.9e9, cell["cell"])

    def test_one_phase_and_both_memories_together(self):
        for phase, layouts in (("integrity", 1), ("read", 1), ("write", 1), ("duplex", 3)):
            cells = self.result(*self.few, "--phase", phase, "--together-only")["cells"]
            self.assertEqual([(c["cell"]["memory"], c["cell"]["phase"]) for c in cells], [("HBM+DDR", phase)] * layouts)
            for cell in cells:
                self.assertGreater(cell["verify"]["checked"], 0)
        for only in ("--ddr-only", "--hbm-only"):
            done = doorbell("qdma", "validate", *self.few, "--together-only", only)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("--together-only", done.stderr)

    def test_what_a_phase_needs_is_told_if_it_fails(self):
        """Reads find what was written before them; where that is wrong, there is a cell that says so."""
        cells = self.result(*self.few, "--ddr-only", "--phase", "read", "--fault", "corrupt=1", code=2)["cells"]
        self.assertEqual(cells[0]["cell"]["phase"], "integrity")
        self.assertGreater(cells[0]["verify"]["corrupt"], 0)

    def test_knobs(self):
        cells = self.result("-j", "1", "--buffer-size", "64Ki", "--offset", "1Mi", "--starting-offset", "2Mi", "--hbm-only",
                            "--mm-channel", "0,1", "--ring-size-index", "9", "--bandwidth-iterations", "3",
                            "--channel-allocation", "paired", "--channel-region-stride", "8Gi", *TIMEOUTS)["cells"]
        self.assertEqual([c["cell"]["phase"] for c in cells], ["integrity", "read", "write", "duplex"])
        places = [p["address"] for p in cells[0]["qdma"]["places"]]
        self.assertEqual(places, [0x4000000000 + (2 << 20), 0x4000000000 + (2 << 20) + (8 << 30)])
        self.assertEqual((cells[1]["metrics"]["ops"], cells[1]["cell"]["ring_entries"], cells[1]["cell"]["channels"]), (3, 1537, "0,1"))

    def test_repeats_and_duration(self):
        cells = self.result(*self.few, "--ddr-only", "--bandwidth-duration", "0.02", "--repeats", "4")["cells"]
        self.assertEqual([len(c["repeats"]) for c in cells], [1, 4, 4, 4, 4, 4])

    def test_wrong_data_ends_with_2(self):
        for fault in ("corrupt=0.3", "misplace=0.3", "stale=0.3"):
            document = self.result(*self.few, "--ddr-only", "--fault", fault, code=2)
            wrong = sum(c["verify"][k] for c in document["cells"] for k in ("corrupt", "misplaced", "stale", "missing"))
            self.assertGreater(wrong, 0, fault)
        done = doorbell("qdma", "validate", *self.few, "--ddr-only", "--fault", "corrupt=1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("DDR3: FAIL (corrupt)", done.stdout)
        self.assertIn("    0/4 OK, 4 FAIL", done.stdout)

    def test_every_call_is_checked_or_said_not_to_be(self):
        """One transfer in many is wrong: the last ones of a measurement alone would not show it."""
        for fault in ("corrupt=0.02", "stale=0.05"):
            cells = self.result(*self.few, "--ddr-only", "--bandwidth-iterations", "200", "--fault", fault, code=2)["cells"]
            wrong = sum(c["verify"]["corrupt"] + c["verify"]["stale"] for c in cells if c["cell"]["phase"] != "integrity")
            self.assertGreater(wrong, 5, fault)
            for cell in cells[1:]:
                jobs = cell["cell"]["threads"]
                calls = cell["qdma"]["calls"]
                self.assertEqual((calls["measured"], calls["measured_checked"], calls["others_checked"]), (200 * jobs, jobs, 199 * jobs))
                self.assertEqual(cell["metrics"]["ops"], 200 * jobs)
        done = doorbell("qdma", "validate", *self.few, "--ddr-only", "--bandwidth-iterations", "3", "--phase", "read")
        self.assertIn("    Calls:  6 measured, data of 2 checked; 4 more made and checked\n", done.stdout)
        done = doorbell("qdma", "validate", *self.few, "--ddr-only", "--phase", "write", "--verify", "off")
        self.assertIn("    Calls:  2 measured, data of 0 checked; 0 more made and checked\n", done.stdout)

    def test_bad_input(self):
        for arguments, word in ((["--buffer-size", "5000"], "4096"), (["--bandwidth-duration", "-1"], "--bandwidth-duration"), (["--buffer-size", "1Gi"], "--buffer-size"),
                                (["--buffer-size", "1Mi", "--offset", "512Ki"], "--offset"), (["--ddr-only", "--hbm-only"], "exclude"),
                                (["-j", "65"], "1..64"), (["--mm-channel", "2"], "--mm-channel"),
                                (["--mm-channel", "0,1,0"], "--mm-channel"), (["--starting-offset", "40Gi"], "--starting-offset"),
                                (["--buffer-size", "1Mi", "--starting-offset", "32Gi"], "has 34359738368"),
                                (["--channel-region-stride", "1Gi"], "paired"), (["--gpu-chunk", "5000"], "--gpu-chunk"),
                                (["--together-only", "--gpu-memory"], "--together-only")):
            done = doorbell("qdma", "validate", *arguments)
            self.assertEqual(done.returncode, 1, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_ctrl_c_leaves_a_valid_partial_result(self):
        command = [*self.command, *self.few, "--bandwidth-duration", "3600", "--warmup", "0", "--json", str(self.json)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_for_cpu(process, 0.5)
            process.send_signal(signal.SIGINT)
            _, err = end_of(process)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(self.valid()["stop_reason"], "signal")


class Tune(WithFolder):
    command = [DOORBELL, "qdma", "tune"]

    def test_a_card_whose_calls_cost_nothing_pays_at_once(self):
        """A channel of 50 MB/s: every size takes so long that two channels are twice as fast, on any machine."""
        document = self.result("--device", "model:bandwidth=50M", "--smallest", "512Ki", "--largest", "1Mi", "--iterations", "2",
                               "--repeats", "6", *TIMEOUTS)
        last = document["cells"][-1]
        # Where processors are few the shorter calls' interval may say nothing.
        self.assertIn(last["tune"]["smallest_split_bytes"], (512 << 10, 1 << 20))
        self.assertEqual(last["tune"]["break_even"], "found")
        self.assertEqual(last["tune"]["largest_measured_bytes"], 1 << 20)
        self.assertAlmostEqual(last["tune"]["interval_level"], last["beside"]["ops_per_s_ratio"]["ci_level"])
        self.assertEqual([c["cell"]["way"] for c in document["cells"]], ["split", "whole"] * 2)
        for cell in document["cells"]:
            self.assertGreater(cell["verify"]["checked"], 0)
        ratio = last["beside"]["ops_per_s_ratio"]
        self.assertGreater(ratio["median"], 1.5)

    def test_says_what_will_run(self):
        small = ["--smallest", "8Ki", "--largest", "16Ki", "--warmup", "0", "--repeats", "2"]
        timed = run("tune", *small, "--duration", "0.01", *TIMEOUTS).stderr.splitlines()[0]
        self.assertEqual(timed, "2 ways in turns, 2 cells, each 2 repeats of 0.01 s, about 0.2 s")
        by_count = run("tune", *small, "--iterations", "3", *TIMEOUTS).stderr.splitlines()[0]
        self.assertRegex(by_count, "^2 ways in turns, 2 cells, each 2 repeats of 3 calls, about ")

    def test_few_repeats_say_no_break_even(self):
        """Their intervals are of 75 % at most, however far apart the two ways are."""
        few = ["--device", "model:bandwidth=50M", "--smallest", "512Ki", "--largest", "512Ki", "--iterations", "2", *TIMEOUTS]
        for repeats, level in ((1, 0), (3, 0.75)):
            last = self.result(*few, "--repeats", str(repeats))["cells"][-1]
            self.assertIsNone(last["tune"]["smallest_split_bytes"])
            self.assertAlmostEqual(last["tune"]["interval_level"], level)
            self.assertEqual(last["tune"]["break_even"], "unknown")
        self.assertIn("break-even: cannot say: 3 repeats give intervals of 75.0 %", doorbell("qdma", "tune", *few, "--repeats", "3").stdout)
        one = doorbell("qdma", "tune", *few, "--repeats", "1").stdout
        self.assertIn("break-even: cannot say: one repeat gives no interval", one)
        self.assertNotIn("(0.0 %)", one)

    def test_a_link_that_one_channel_fills_never_pays(self):
        """Both channels share what one can carry, so that a split call is not faster; a part that it ends sooner is noise."""
        done = doorbell("qdma", "tune", "--device", "model:bandwidth=50M,link=50M", "--smallest", "256Ki", "--largest", "256Ki",
                        "--iterations", "2", "--repeats", "6", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"keep transfers whole|break-even: --smallest-split 262144")
        self.assertIn("262144", done.stdout)

    def test_every_call_is_checked(self):
        few = ["--smallest", "8Ki", "--largest", "8Ki", "--repeats", "2", "--iterations", "200", *TIMEOUTS]
        for fault, op, found in (("corrupt", "get", "corrupt"), ("stale", "put", "stale")):
            cells = self.result("--op", op, "--fault", f"{fault}=0.02", *few, code=2)["cells"]
            injected = cells[-1]["model"]["injected"][fault]
            self.assertGreater(injected, 0)
            self.assertEqual(sum(c["verify"][found] for c in cells), injected, fault)
            for cell in cells:
                self.assertGreaterEqual(cell["verify"]["checked"], 400)
        done = doorbell("qdma", "tune", *few)
        self.assertRegex(done.stdout, "the data of every call that succeeded was checked: [0-9]+ calls")
        self.assertIn("no call was checked", doorbell("qdma", "tune", *few, "--verify", "off").stdout)

    def test_bad_input(self):
        for arguments, word in ((["--smallest", "12Ki"], "power of two"), (["--smallest", "1Mi", "--largest", "8Ki"], "--largest"),
                                (["--op", "both"], "--op")):
            done = doorbell("qdma", "tune", *arguments)
            self.assertEqual(done.returncode, 1, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
