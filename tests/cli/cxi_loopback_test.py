#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`cxi_gpu_loopback_bw` as a user meets it: its texts byte for byte, its exit codes, what it finds. Needs no hardware."""

import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from harness import DOORBELL, WithFolder, end_of, wait_for_cpu

PROGRAM = str(pathlib.Path(DOORBELL).with_name("cxi_gpu_loopback_bw"))
FAKE_LIBCXI = os.environ.get("FAKE_LIBCXI", "")
NAME = "cxi_gpu_loopback_bw"
NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
NO_LIBCXI = {"DOORBELL_LIBCXI": "/nonexistent/libcxi.so.1"}
SEPARATOR = "-" * 51 + "\n"
COLUMNS = SEPARATOR + "RDMA Size[B]      Writes  BW[Gb/s]  PktRate[Mpkt/s]\n"
ROW = re.compile(r"^ *(\d+)  +(\d+)  +(\d+\.\d\d)  +(\d+\.\d{6})$")
MODEL = ["-d", "cxi-model0", "--timeout", "60"]  # a busy machine is not an error
SMALL = ["-i", "2", "-n", "16", "-s", "4096"]


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if k not in ("DOORBELL_CXI", "POSIXLY_CORRECT")}
    return {**clean, "LC_ALL": "C", **more}


def run(*arguments, more=None, timeout=120):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=timeout,
                          env=environment(**(more or {})))


def header(device="cxi-model0", service=1, iterations=25, size=524288, puts=8192, duration=None, hugepages="Disabled"):
    test = f"Duration\nDuration         : {duration} seconds" if duration else \
        f"Iteration\nIterations       : {iterations}"
    return (SEPARATOR + "    CXI Loopback Bandwidth Test\n"
            f"Device           : {device}\n"
            f"Service ID       : {service}\n"
            "TX Mem           : System\n"
            "RX Mem           : System\n"
            f"Test Type        : {test}\n"
            f"Write Size (B)   : {size}\n"
            f"Cmds per iter    : {puts}\n"
            f"Hugepages        : {hugepages}\n")


class Case(WithFolder):
    def refused(self, arguments, message, stdout="", more=None):
        """It ends with 1, these are the first lines on standard error, and that is all on standard output."""
        done = run(*arguments, more=more)
        self.assertEqual(done.returncode, 1, (arguments, done.stdout, done.stderr))
        self.assertEqual(done.stderr[:len(message)], message, arguments)
        self.assertIn(done.stderr[len(message):len(message) + 1], ("\n", ""), (arguments, done.stderr))
        self.assertEqual(done.stdout, stdout, arguments)
        return done.stderr

    def table(self, done, head, rows=1):
        """The numbers of the rows; header, columns and separators are where they belong."""
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.startswith(head + COLUMNS), done.stdout)
        self.assertTrue(done.stdout.endswith("\n" + SEPARATOR), done.stdout)
        lines = done.stdout[len(head + COLUMNS):-len(SEPARATOR)].splitlines()
        self.assertEqual(len(lines), rows, done.stdout)
        numbers = []
        for line in lines:
            match = ROW.match(line)
            self.assertTrue(match, line)
            self.assertEqual(line, f"{match[1]:>12}  {match[2]:>10}  {match[3]:>8}  {match[4]:>15}")
            numbers.append((int(match[1]), int(match[2]), float(match[3]), float(match[4])))
        return numbers

    def assert_consistent(self, size, bandwidth, packets):
        """Both rates of a row imply the same time."""
        implied = bandwidth * 1000 / 8 / size * ((size - 1) // 2048 + 1)
        self.assertAlmostEqual(implied / packets, 1, delta=0.006 / max(bandwidth, 0.01) + 1e-5)


    def result(self, *arguments, code=0, more=None):
        done = run(*arguments, "--json", str(self.json), more=more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        document = self.valid()
        self.assertEqual(document["exit_code"], code)
        return document, done


class Texts(Case):
    def test_version(self):
        for option in ("-V", "--version", "--ver"):
            done = run(option)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"\Acxi_gpu_loopback_bw version: \d+\.\d+\.\d+\n\Z")
            self.assertEqual(done.stderr, "")

    def test_help(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("Usage: cxi_gpu_loopback_bw", "-d, --device", "-v, --svc-id", "-t, --tx-gpu", "-r, --rx-gpu",
                     "-g, --gpu-type", "-D, --duration", "-i, --iters", "-s, --size", "-n, --num-xfers", "--use-hp",
                     "-h, --help", "-V, --version"):
            self.assertIn(text, done.stdout)

    def test_options_that_getopt_refuses(self):
        for arguments, said in ((["--no-such"], "unrecognized option '--no-such'"), (["-x"], "invalid option -- 'x'"),
                                (["-s"], "option requires an argument -- 's'"),
                                (["--s", "1"], "option '--s' is ambiguous; possibilities: '--svc-id' '--size'")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"{PROGRAM}: {said}\n")
            self.assertEqual(done.stdout, run("--help").stdout)

    def test_each_refusal_in_its_words(self):
        for arguments, message in (
                (["-d", "hsn0"], "Device name must include cxi prefix (ex: cxi0): hsn0"),
                (["-d", "cxi"], "Device name must include cxi prefix (ex: cxi0): cxi"),
                (["-d", "cxiX"], "Invalid device name: X"),
                (["-d", "cxi-1"], "Invalid device name: -1"),
                (["-v", "0"], "Invalid svc_id: 0"),
                (["-v", "2147483648"], "Invalid svc_id: 2147483648"),
                (["-t", "256"], "Invalid src gpu device: 256"),
                (["-r", "-1"], "Invalid dest gpu device: -1"),
                (["-g", "ATI"], "Invalid gpu type: ATI. Must be AMD or NVIDIA"),
                (["-D", "0"], "Invalid duration: 0"),
                (["-D", "4294967296"], "Invalid duration: 4294967296"),
                (["-i", "0"], "Invalid iteration count: 0"),
                (["-i", "-1"], "Invalid iteration count: -1"),
                (["-s", "0"], "Invalid transfer size: 0"),
                (["-s", ""], "Invalid transfer size: "),
                (["-s", "4294967296"], "Invalid transfer size: 4294967296"),
                (["-s", "1:1024"], "Invalid transfer size: 1:1024"),
                (["-n", "0"], "Invalid list size: 0"),
                (["-n", "16383"], "Invalid list size: 16383"),
                (["-n", "65537"], "Invalid list size: 65537"),
                (["-n", "-65535"], "Invalid list size: -65535"),
                (["--use-hp", "4K"], "Invalid hugepage type: 4K. Must be 2M or 1G"),
                (["stray"], "Unexpected argument: stray"),
                (["--verify", "maybe"], "--verify: 'maybe' is not one of on, off"),
                (["-s", "0", "-n", "0"], "Invalid transfer size: 0"),
                (["-n", "0", "-s", "0"], "Invalid list size: 0"),
                (["-s", "0", "--use-hp", "1G", "-n", "16382"], "Invalid transfer size: 0")):
            with self.subTest(arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertEqual(done.stderr.splitlines()[0], f"{NAME}: {message}")

    def test_both_limits_of_the_size_are_taken(self):
        for size in ("1", "4294967295"):
            done = run("-s", size, "-d", "cxi0", more=NO_LIBCXI)
            self.assertEqual((done.returncode, done.stdout), (1, header("cxi0", size=size)), done.stderr)

    def test_files_that_cannot_be_written(self):
        done = run(*MODEL, *SMALL, "--json", "/nonexistent/folder/out.json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--json", done.stderr)


class HugePages(Case):
    def test_more_than_there_are(self):
        for size, name, page in (("2M", "2048kB", 2 << 20), ("1G", "1048576kB", 1 << 30)):
            control = f"/sys/kernel/mm/hugepages/hugepages-{name}/nr_hugepages"
            needed = 2 * -(-4294967295 // page)
            if not os.path.exists(control):
                message = f"{NAME}: Unable to open {control}: No such file or directory"
            else:
                with open(control.replace("nr_", "free_"), encoding="utf-8") as free:
                    if int(free.read()) >= needed:
                        self.skipTest("this machine has that many huge pages")
                message = f"{NAME}: Insufficient {size} huge pages. Need {needed} to run"
            self.refused([*MODEL, "--use-hp", size, "-s", "4294967295"], message)

    def test_where_they_are_there(self):
        control = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        if not control.exists() or int(control.read_text(encoding="utf-8")) < 2:
            self.skipTest("no 2 MiB huge pages are free")
        done = run(*MODEL, *SMALL, "--use-hp", "2m")
        self.table(done, header(iterations=2, size=4096, puts=16, hugepages="Enabled (2M - 2 pages)"))


class Devices(Case):
    def test_no_hardware(self):
        done = run("-d", "cxi0", more=NO_LIBCXI)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, header("cxi0"))
        self.assertTrue(done.stderr.startswith("Failed to open CXI device: "), done.stderr)
        self.assertIn("-d cxi-model0", done.stderr)
        self.assertIn("DOORBELL_CXI=model", done.stderr)

    def test_the_default_is_the_hardware(self):
        done = run(more=NO_LIBCXI)
        self.assertEqual((done.returncode, done.stdout), (1, header("cxi0")))

    def test_the_environment_names_the_model(self):
        done = run("-d", "cxi1", *SMALL, more={"DOORBELL_CXI": "model"})
        self.table(done, header("cxi-model1", iterations=2, size=4096, puts=16))
        self.assertEqual(done.stderr, f"{NAME}: DOORBELL_CXI=model: cxi1 is cxi-model1, the software model\n")
        done = run("-d", "cxi1", *SMALL, more={"DOORBELL_CXI": "modle"})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("DOORBELL_CXI=modle", done.stderr)

    def test_services(self):
        self.table(run(*MODEL, *SMALL, "-v", "2"), header(service=2, iterations=2, size=4096, puts=16))
        self.refused([*MODEL, *SMALL, "-v", "3"], "Failed to get service 3: No such file or directory",
                     stdout=header(service=3, iterations=2, size=4096, puts=16))

    def test_faults_are_for_models(self):
        self.refused(["-d", "cxi0", "--fault", "drop=1"],
                     f"{NAME}: --fault: cxi0 is not a model: faults cannot be injected into it")

    def test_a_libcxi_that_refuses(self):
        """Over a fake libcxi, which sets everything up and moves nothing."""
        if not FAKE_LIBCXI:
            self.skipTest("FAKE_LIBCXI is not set")
        head = header("cxi0", iterations=2, size=4096, puts=16)
        arguments = ["-d", "cxi0", *SMALL]

        def fake(fail):
            return {"DOORBELL_LIBCXI": FAKE_LIBCXI, "FAKE_CXI_FAIL": fail}
        for fail, message in (
                ("open_device=19", "Failed to open CXI device: No such device"),
                ("open_device=13", "Failed to open CXI device: Permission denied"),
                ("get_svc=22", "Failed to get service 1: Invalid argument")):
            with self.subTest(fail):
                self.refused(arguments, message, stdout=head, more=fake(fail))
        with self.subTest("map"):
            done = run(*arguments, more=fake("map=12"))
            self.assertEqual((done.returncode, done.stdout), (1, head + COLUMNS))
            self.assertTrue(done.stderr.startswith("Failed to map CXI buffer: Cannot allocate memory\n"), done.stderr)
        with self.subTest("silence"):
            done = run(*arguments, more=fake(""))
            self.assertEqual((done.returncode, done.stdout), (1, head + COLUMNS))
            self.assertEqual(done.stderr.splitlines()[0], "Timed out waiting for STATE_CHANGE event")


class Gpus(Case):
    def test_none(self):
        self.refused([*MODEL, "-t", "0"], f"{NAME}: Invalid GPU type or unable to find GPU libraries", more=NO_GPU)
        self.refused([*MODEL, "-r", "3"], f"{NAME}: Invalid GPU type or unable to find GPU libraries", more=NO_GPU)

    def test_a_type_without_gpus(self):
        for kind in ("NVIDIA", "amd"):
            done = run(*MODEL, *SMALL, "-t", "0", "-g", kind, more=NO_GPU)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"TX Mem           : GPU 0\nRX Mem           : System\nGPU Type         : {kind.upper()}\n",
                          done.stdout)
            self.assertTrue(done.stdout.endswith("Hugepages        : Disabled\n"), done.stdout)
            self.assertRegex(done.stderr, r"\A(Unable to open lib(cudart|amdhip64)\.so|No GPUs found)\n")

    def test_a_nic_that_is_missing_is_said_first(self):
        done = run("-d", "cxi0", "-t", "0", "-g", "NVIDIA", more={**NO_GPU, **NO_LIBCXI})
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("Failed to open CXI device: "), done.stderr)

    def test_the_type_alone_does_nothing(self):
        done = run(*MODEL, *SMALL, "-g", "AMD")
        self.table(done, header(iterations=2, size=4096, puts=16))

    def test_published_examples_with_gpus(self):
        probe = run(*MODEL, *SMALL, "-t", "255")
        found = re.search(r"Found (\d+) GPU\(s\)", probe.stdout)
        if not found:
            self.skipTest(f"no GPU: {probe.stderr.splitlines()[0]}")
        count = int(found[1])
        self.assertEqual((probe.returncode, probe.stderr.splitlines()[0]),
                         (1, f"GPU must be in the range: 0 to {count - 1}."))
        last = str(min(2, count - 1))
        for arguments, tx, rx, size in ((["-t", "0", "-r", last, "-s", "131072"], "GPU 0", f"GPU {last}", 131072),
                                        (["-t", last, "-s", "1048576"], f"GPU {last}", "System", 1048576),
                                        (["-r", "0", "-s", "4096"], "System", "GPU 0", 4096)):
            with self.subTest(arguments):
                done = run(*MODEL, *arguments, "-D", "1", "-n", "256")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(f"TX Mem           : {tx}\nRX Mem           : {rx}\nGPU Type         : ", done.stdout)
                self.assertIn(f"Found {count} GPU(s)\n{COLUMNS}", done.stdout)
                row = ROW.match(done.stdout.splitlines()[-2])
                self.assertEqual(int(row[1]), size)
                self.assert_consistent(size, float(row[3]), float(row[4]))


class Runs(Case):
    def test_the_first_published_example_made_smaller(self):
        done = run(*MODEL, "-i", "2", "-n", "64")
        self.assertEqual(done.stderr, "")
        (size, writes, bandwidth, packets), = self.table(done, header(iterations=2, puts=64))
        self.assertEqual((size, writes), (524288, 128))
        self.assertGreater(bandwidth, 0)
        self.assert_consistent(size, bandwidth, packets)

    def test_sizes_and_counts(self):
        for size, puts, iterations in ((1, 1, 1), (1, 16382, 3), (7, 100, 2), (2048, 3, 5), (2049, 3, 5), (65536, 65, 2),
                                       (3 << 20, 2, 1)):
            with self.subTest(size=size, puts=puts):
                done = run(*MODEL, "-i", str(iterations), "-n", str(puts), "-s", str(size))
                (shown, writes, _, _), = self.table(done, header(iterations=iterations, puts=puts, size=size))
                self.assertEqual((shown, writes), (size, puts * iterations))

    def test_numbers_in_other_bases(self):
        done = run(*MODEL, "-i", "0x2", "-n", "020", "-s", "0x1000")
        self.table(done, header(iterations=2, size=4096, puts=16))

    def test_a_duration(self):
        begin = time.monotonic()
        done = run(*MODEL, "-D", "1", "-n", "32", "-s", "4096", "-i", "3")
        self.assertGreater(time.monotonic() - begin, 1)
        (_, writes, _, _), = self.table(done, header(duration=1, size=4096, puts=32))
        self.assertEqual(writes % 32, 0)
        self.assertGreater(writes, 3 * 32)

    def test_a_long_duration_does_not_wrap(self):
        """5000 s are more microseconds than 32 bits hold: it must still be running after what is left of them."""
        with subprocess.Popen([PROGRAM, *MODEL, "-D", "4295", "-n", "16", "-s", "64"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment()) as process:
            try:
                process.wait(timeout=2.5)  # 4295 s are 32.7 ms beyond 2^32 us
                self.fail(f"it ended: {process.communicate()}")
            except subprocess.TimeoutExpired:
                pass
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("Duration         : 4295 seconds\n", out)

    def test_additions_change_no_line(self):
        plain = run(*MODEL[:2], *SMALL).stdout
        more = run(*MODEL, *SMALL, "--verify", "off", "--warmup", "0", "--repeats", "1", "--json", str(self.json)).stdout
        self.assertEqual(re.sub(r"\d+\.\d+", "", plain).split(), re.sub(r"\d+\.\d+", "", more).split())

    def test_the_whole_result(self):
        document, done = self.result(*MODEL, "-i", "4", "-n", "100", "-s", "10000")
        (_, writes, bandwidth, _), = self.table(done, header(iterations=4, size=10000, puts=100))
        cell, = document["cells"]
        self.assertEqual(document["stop_reason"], "done")
        self.assertEqual(cell["path"], "cxi")
        self.assertEqual(cell["device"], {"kind": "model", "name": "cxi-model0"})
        self.assertEqual(cell["initiator"]["kind"], "cpu")
        self.assertEqual(cell["metrics"]["ops"], writes)
        self.assertEqual(cell["metrics"]["bytes"], writes * 10000)
        self.assertAlmostEqual(cell["cxi"]["bits_per_s"] / 1e9, bandwidth, delta=0.006)
        self.assertEqual(cell["cxi"]["steady"]["iterations"], 4)
        self.assertEqual(set(cell["errors"].values()), {0})
        self.assertEqual(cell["verify"]["checked"], 101)
        # 1 iteration of warm-up, 4 timed, 4 steady, 100 single puts.
        self.assertEqual(cell["cxi"]["submitted"], 900 + 100)
        self.assertEqual(cell["model"]["puts"], 1000)
        self.assertEqual(cell["model"]["triggered_operations"], 9 + 100)
        self.assertEqual(cell["options"]["num_xfers"], 100)
        self.assertEqual(cell["options"]["size_bytes"], 10000)

    def test_json_to_standard_output_is_nothing_else(self):
        done = run(*MODEL, *SMALL, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.json.write_text(done.stdout, encoding="utf-8")
        self.assertEqual(self.valid()["cells"][0]["metrics"]["ops"], 32)

    def test_repeats(self):
        document, done = self.result(*MODEL, *SMALL, "--repeats", "6")
        self.assertRegex(done.stdout.splitlines()[-1], r"^Median of 6: \d+\.\d\d Gb/s \(")
        self.assertEqual(len([l for l in done.stdout.splitlines() if ROW.match(l)]), 6)
        cell, = document["cells"]
        self.assertEqual(len(cell["repeats"]), 6)
        self.assertIn("bytes_per_s", cell["spread"])

    def test_without_verification(self):
        document, _ = self.result(*MODEL, *SMALL, "--verify", "off", "--warmup", "0")
        cell, = document["cells"]
        self.assertEqual((cell["verify"]["mode"], cell["verify"]["checked"]), ("none", 0))
        self.assertEqual(cell["model"]["puts"], 2 * 2 * 16)


class Faults(Case):
    def failed(self, *arguments):
        """The result of a run that ends with 1, and what stands on standard error."""
        document, done = self.result("-d", "cxi-model0", *arguments, code=1)
        return document, done.stderr

    def test_corruption(self):
        document, err = self.failed("-i", "2", "-n", "64", "-s", "4096", "--fault", "corrupt=1", "--timeout", "60")
        self.assertTrue(err.startswith("Data mismatch: 65 of 65 checked writes: 65 corrupt, "), err)
        self.assertEqual(document["cells"][0]["verify"]["corrupt"], 65)
        self.assertEqual(document["stop_reason"], "done")

    def test_rare_corruption_is_found_where_puts_are_checked_singly(self):
        document, err = self.failed("-i", "1", "-n", "1000", "-s", "512", "--fault", "corrupt=0.02", "--timeout", "60")
        cell, = document["cells"]
        self.assertGreater(cell["verify"]["corrupt"], 3)
        self.assertLess(cell["verify"]["corrupt"], 80)
        self.assertIn("Data mismatch: ", err)

    def test_corruption_without_a_result_file(self):
        done = run("-d", "cxi-model0", *SMALL, "--fault", "corrupt=1", "--timeout", "60")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Data mismatch: ", done.stderr)
        self.assertIn(SEPARATOR, done.stdout)

    def test_stale_and_misplaced(self):
        document, _ = self.failed("-i", "1", "-n", "64", "-s", "512", "--fault", "stale=1", "--timeout", "60")
        self.assertEqual(document["cells"][0]["verify"]["missing"], 65)
        document, _ = self.failed("-i", "1", "-n", "64", "-s", "512", "--fault", "misplace=1", "--timeout", "60")
        self.assertEqual(document["cells"][0]["verify"]["missing"], 65)

    def test_a_lost_acknowledgement(self):
        begin = time.monotonic()
        document, err = self.failed("-i", "50", "-n", "100", "-s", "64", "--fault", "drop=0.002", "--timeout", "1")
        self.assertLess(time.monotonic() - begin, 20)
        lines = err.splitlines()
        self.assertEqual(lines[:3], ["Timed out waiting for TRIGGERED_OP event",
                                     "Failed to get initiator ACK TRIGGERED_OP event: Connection timed out",
                                     "Iteration failed: Connection timed out"])
        counter = re.fullmatch(r"counter: (\d+) acknowledged, 0 failed, threshold (\d+)", lines[3])
        self.assertTrue(counter, err)
        cell, = document["cells"]
        lost = int(counter[2]) - int(counter[1])
        self.assertEqual(lost, cell["model"]["injected"]["drop"])
        self.assertEqual(cell["errors"]["timeout"], lost)
        self.assertEqual(cell["cxi"]["acknowledgements"]["threshold"], int(counter[2]))
        self.assertEqual((document["stop_reason"], document["complete"]), ("timeout", False))

    def test_a_refused_put(self):
        document, err = self.failed("-i", "5", "-n", "64", "-s", "64", "--fault", "error=0.01", "--timeout", "5")
        self.assertEqual(err.splitlines()[:4], ["Unexpected event type: ACK (9) Expected TRIGGERED_OP",
                                                "event RC != RC_OK: UNDELIVERABLE",
                                                "Failed to get initiator ACK TRIGGERED_OP event: Input/output error",
                                                "Iteration failed: Input/output error"])
        cell, = document["cells"]
        self.assertEqual(cell["errors"]["completion"], cell["model"]["injected"]["error"])
        self.assertEqual(cell["cxi"]["completion_statuses"], {"UNDELIVERABLE": cell["errors"]["completion"]})
        self.assertEqual(document["stop_reason"], "error")

    def test_acknowledgements_that_come_twice(self):
        document, err = self.failed("-i", "5", "-n", "64", "-s", "65536", "--fault", "duplicate=0.05", "--timeout", "5")
        cell, = document["cells"]
        self.assertGreater(cell["verify"]["duplicated"], 0)
        self.assertEqual(cell["verify"]["duplicated"], cell["model"]["injected"]["duplicate"])
        # They end the wait for other writes too early, whose data is intact.
        for kind in ("corrupt", "missing", "stale", "misplaced"):
            self.assertEqual(cell["verify"][kind], 0, kind)
        self.assertIn("acknowledgements more than writes", err)

    def test_an_entry_that_is_disabled(self):
        done = run("-d", "cxi-model0:pte-disable=40", "-i", "5", "-n", "16", "-s", "64", "--timeout", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("event RC != RC_OK: PT_DISABLED\n", done.stderr)

    def test_a_read_pointer_that_sticks(self):
        done = run("-d", "cxi-model0:stuck-read=20", "-i", "1000", "-n", "8", "-s", "64", "--timeout", "1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stderr.splitlines()[:2], ["Failed to issue DMA command: No space left on device",
                                                        "Iteration failed: No space left on device"])

    def test_an_event_queue_without_room(self):
        done = run("-d", "cxi-model0:eq-full=1", *SMALL, "--timeout", "1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr.splitlines()[0], r"\ATimed out waiting for (LINK|TRIGGERED_OP) event\Z")

    def test_a_device_that_goes_away(self):
        document, err = self.failed("-i", "50", "-n", "100", "-s", "64", "--fault", "removal=0.001", "--timeout", "5")
        self.assertEqual(err.splitlines()[0], "The device went away")
        self.assertEqual(document["stop_reason"], "removed")

    def test_late_acknowledgements_are_waited_for(self):
        document, done = self.result("-d", "cxi-model0:delay=300ms", *SMALL, "--fault", "delay=0.05", "--timeout", "10")
        self.assertEqual(done.stderr, "")
        self.assertGreater(document["cells"][0]["model"]["injected"]["delay"], 0)


class Interrupt(Case):
    def interrupt(self, *arguments, times=1):
        command = [PROGRAM, "-d", "cxi-model0", *arguments, "--json", str(self.json)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment()) as process:
            # The column names come when everything has been set up.
            first = ""
            while "PktRate" not in first:
                line = process.stdout.readline()
                self.assertNotEqual(line, "", first)
                first += line
            wait_for_cpu(process, 0.2)
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            out, err = end_of(process)
        return process.returncode, first + out, err

    def test_the_partial_row(self):
        code, out, err = self.interrupt("-D", "3600", "-n", "32", "-s", "4096", "--timeout", "60")
        self.assertEqual((code, err), (130, ""))
        row = ROW.match(out.splitlines()[-2])
        self.assertTrue(row, out)
        self.assertGreater(int(row[2]), 0)
        document = self.valid()
        self.assertEqual((document["stop_reason"], document["complete"]), ("signal", False))
        self.assertEqual(document["cells"][0]["metrics"]["ops"], int(row[2]))

    def test_many_iterations(self):
        code, out, _ = self.interrupt("-i", "18446744073709551615", "-n", "8", "-s", "64", "--timeout", "60")
        self.assertEqual(code, 130)
        self.assertTrue(ROW.match(out.splitlines()[-2]), out)

    def test_bad_data(self):
        code, _, err = self.interrupt("-D", "3600", "-n", "32", "-s", "4096", "--fault", "corrupt=1", "--timeout", "60")
        self.assertEqual(code, 2)
        self.assertIn("Data mismatch", err)
        self.assertEqual(self.valid()["exit_code"], 2)

    def test_before_the_first_timed_iteration(self):
        code, out, _ = self.interrupt("-n", "4", "-s", "64", "--warmup", "1000000", "--timeout", "60", "-D", "3600")
        self.assertEqual(code, 130)
        self.assertEqual(out.splitlines()[-2].split(), ["64", "0", "0.00", "0.000000"])

    def test_twice(self):
        """An iteration that takes 20 s is given up when asked twice; its put is lost as far as the program knows."""
        code, _, _ = self.interrupt("-n", "2", "-s", "64", "--timeout", "60", "-D", "3600", times=2)
        self.assertEqual(code, 130)
        command = [PROGRAM, "-d", "cxi-model0:latency=20s", "-n", "2", "-s", "64", "--timeout", "60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment()) as process:
            while "PktRate" not in process.stdout.readline():
                pass
            wait_for_cpu(process, 0.3)  # it polls for the answer to its first put
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                time.sleep(1.2)  # sooner it is the same request
            out, errors = process.communicate(timeout=15)
        self.assertEqual(process.returncode, 2, out + errors)


if __name__ == "__main__":
    unittest.main()
