#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell run rdma`: what it sets, passes on and refuses; the library's symbols and settings."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from pair import DOORBELL, VERBS, Pair, needs, run, under_loss  # noqa: E402

SYMBOLS = pathlib.Path(__file__).resolve().parents[3] / "src" / "rdma" / "dropin" / "symbols.txt"


def exported(library):
    """The default versions of a library's symbols, as a set of (version, name)."""
    done = subprocess.run(["readelf", "--dyn-syms", "--wide", library], capture_output=True, text=True, check=True)
    found = set()
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) > 7 and fields[6] != "UND" and (match := re.fullmatch(r"(\w+)@@(IBVERBS_\w+(?:\.\d+)?)", fields[7])):
            found.add((match[2], match[1]))
    return found


class Library(unittest.TestCase):
    def setUp(self):
        needs("readelf")

    def listed(self):
        lines = [line.split() for line in SYMBOLS.read_text(encoding="ascii").splitlines() if line.startswith("IBVERBS")]
        return {(line[0], line[1]) for line in lines}

    def test_exports_what_is_listed(self):
        self.assertEqual(exported(f"{VERBS}/libibverbs.so.1"), self.listed())

    def test_lists_what_the_system_s_exports(self):
        """A newer rdma-core shows as a difference: its providers may need more."""
        found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False, env={**os.environ, "PATH": os.environ["PATH"] + ":/sbin:/usr/sbin"})
        match = re.search(r"libibverbs\.so\.1 .*x86-64.*=> (\S+)", found.stdout)
        if not match:
            self.skipTest("the system has no libibverbs.so.1")
        system = exported(match[1])
        private = {version for version, _ in system if "PRIVATE" in version}
        if private != {"IBVERBS_PRIVATE_34"}:
            self.skipTest(f"the system's has another private interface: {private}")
        self.assertEqual({one for one in system if "PRIVATE" in one[0]}, {one for one in self.listed() if "PRIVATE" in one[0]})
        self.assertLessEqual(self.listed(), system)


class Command(unittest.TestCase):
    def test_passes_the_exit_code_and_the_words_on(self):
        done = run("sh", "-c", 'echo "$0 $1"; exit 7', "--one", "two words")
        self.assertEqual((done.returncode, done.stdout), (7, "--one two words\n"))

    def test_a_program_of_this_folder_is_no_operand(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "program").write_text("#!/bin/sh\nexit 5\n", encoding="ascii")
            os.chmod(pathlib.Path(folder, "program"), 0o755)
            self.assertEqual(run("./program", cwd=folder).returncode, 5)

    def test_sets_the_settings(self):
        options = ["--devices", "3", "--port", "4800", "--carrier", "udp", "--fault", "drop=0.1,delay=0.2", "--seed", "9"]
        done = run("env", options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("DOORBELL_VERBS"))
        self.assertEqual(values["DOORBELL_VERBS_DEVICES"], "3")
        self.assertEqual(values["DOORBELL_VERBS_PORT"], "4800")
        self.assertEqual(values["DOORBELL_VERBS_CARRIER"], "udp")
        self.assertEqual(values["DOORBELL_VERBS_FAULTS"], "drop=0.1,delay=0.2")
        self.assertEqual(values["DOORBELL_VERBS_SEED"], "9")

    def test_prints_them_for_a_shell(self):
        text = subprocess.run([DOORBELL, "run", "rdma", "--devices", "2", "--print-environment"], capture_output=True,
                              text=True, check=True).stdout
        done = subprocess.run(["sh", "-c", text + 'echo "$DOORBELL_VERBS_DEVICES"'], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "2\n")

    def test_its_devices_are_listed(self):
        done = run(DOORBELL, "list", "rdma", "--json", options=["--devices", "2"])
        self.assertEqual([one["name"] for one in json.loads(done.stdout)["rdma"]], ["doorbell0", "doorbell1"], done.stderr)

    def sysfs(self, *words, options=()):
        """What a program sees, or a skip where it may have no mount namespace."""
        done = run(*words, options=["--sysfs", *options])
        if done.returncode == 77:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_sysfs_shows_them(self):
        ports = "/sys/class/infiniband/doorbell{}/ports/1"
        shown = self.sysfs("sh", "-c", f"ls /sys/class/infiniband; cat {ports.format(1)}/gids/0 {ports.format(0)}/state; cd /sys/class/infiniband/doorbell0;"
                           "ls device/net; cat device/net/lo/mtu", options=["--devices", "2", "--address", "127.78.3.1"])
        self.assertEqual(shown.splitlines()[:5], ["doorbell0", "doorbell1", "0000:0000:0000:0000:0000:ffff:7f4e:0302", "4: ACTIVE", "lo"])
        self.assertEqual(shown.splitlines()[5], pathlib.Path("/sys/class/net/lo/mtu").read_text(encoding="ascii").strip())
        # The rest is as it was, and nobody else sees it.
        self.assertEqual(self.sysfs("ls", "/sys/class/net").split(), sorted(os.listdir("/sys/class/net")))
        self.assertFalse(pathlib.Path("/sys/class/infiniband/doorbell0").exists())

    def test_sysfs_is_what_the_library_says(self):
        needs("ibv_devinfo")
        options = ["--address", "127.78.3.3"]
        said = run("ibv_devinfo", "-v", options=options).stdout
        gid = self.sysfs("cat", "/sys/class/infiniband/doorbell0/ports/1/gids/0", options=options).strip()
        as_address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(gid.replace(":", "")))
        self.assertIn(f"{as_address}, RoCE v2", said)

    def test_sysfs_devices_are_listed_once(self):
        shown = json.loads(self.sysfs(DOORBELL, "list", "rdma", "--json"))["rdma"]
        self.assertEqual([(one["name"], one["driver"], one["ports"][0]["link_layer"]) for one in shown],
                         [("doorbell0", "doorbell's libibverbs", "Ethernet")])

    def test_refuses(self):
        for words, said in ((["--address", "1.2.3", "--", "true"], "1.2.3"), (["--sysfs", "--print-environment"], "--sysfs"),
                            (["--sysfs", "--address", "192.0.2.1", "--", "true"], "192.0.2.1"), (["--port", "0", "--", "true"], "1..65535"),
                            (["--seed", "1", "--", "true"], "--seed"), ([], "PROGRAM"),
                            (["--", "no-such-program-here"], "no-such-program-here")):
            done = subprocess.run([DOORBELL, "run", "rdma", *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(said, done.stderr)


class Devices(unittest.TestCase):
    def setUp(self):
        needs("ibv_devices")

    def test_as_many_as_asked_for(self):
        done = run("ibv_devices", options=["--devices", "3"])
        self.assertEqual(re.findall(r"doorbell\d", done.stdout), ["doorbell0", "doorbell1", "doorbell2"])

    def test_none_where_a_setting_is_wrong(self):
        for variable, value in (("DEVICES", "17"), ("ADDRESS", "here"), ("PORT", "70000"), ("CARRIER", "pigeon"),
                                ("MTU", "1000"), ("SEED", "-1")):
            env = {**os.environ, "LD_LIBRARY_PATH": VERBS, f"DOORBELL_VERBS_{variable}": value}
            done = subprocess.run(["ibv_devices"], capture_output=True, text=True, env=env, check=False)
            self.assertNotIn("doorbell0 ", done.stdout)
            said = done.stderr.splitlines()
            self.assertEqual(len([line for line in said if line.startswith("doorbell verbs:")]), 1, done.stderr)
            self.assertIn(f"DOORBELL_VERBS_{variable} is '{value}'", done.stderr)

    def test_an_address_that_is_not_here(self):
        done = run("ibv_devinfo", options=["--address", "192.0.2.1"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("192.0.2.1", done.stderr)

    def test_the_mtu_that_is_asked_for(self):
        done = run("ibv_devinfo", options=["--mtu", "512"])
        self.assertRegex(done.stdout, r"active_mtu:\s+512")


class Reports(unittest.TestCase):
    def setUp(self):
        needs("ibv_rc_pingpong")

    def test_text_and_json(self):
        words = ["ibv_rc_pingpong", "-d", "doorbell0", "-g", "0", "-c", "-n", "50", "-s", "3000"]
        pair = Pair(words, options=["--report"])
        self.assertEqual(pair.codes, [0, 0], pair.text())
        for said in pair.said:
            self.assertRegex(said, r"doorbell verbs: doorbell0 RC queue pair \d+ to \d+ of 127\.77\.\d+\.\d+: .*send 50 \(150000 bytes\)")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "report.jsonl")
            pair = under_loss(words, ["--report-file", str(file), "--fault", "drop=0.05"], file)
            self.assertEqual(pair.codes, [0, 0], pair.text())
            lines = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
        self.assertEqual(len(lines), 2)
        again = 0
        for line in lines:
            [queue_pair] = line["queue_pairs"]
            self.assertEqual(queue_pair["messages_sent"], {"send": 50})
            self.assertEqual(queue_pair["bytes_sent"], {"send": 150000})
            again += queue_pair["retransmitted_packets"]
        self.assertGreater(again, 0)


class CompletionFaults(unittest.TestCase):
    """Of a program that checks each payload when its completion comes: doorbell's own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name, "faults.log")

    def bench(self, fault):
        done = run(DOORBELL, "rdma", "--provider", "verbs", "--device", "doorbell0", "--size", "4096", "--measure", "rate",
                   "--in-flight", "1", "--batch-size", "1", "--iterations", "500", "--timeout", "60", "--json", "-",
                   options=["--fault", fault, "--fault-log", self.log])
        self.assertEqual(done.returncode, 2, done.stderr)
        return json.loads(done.stdout)["cells"][0], self.log.read_text(encoding="ascii").splitlines()

    def test_an_error_ends_the_run(self):
        cell, log = self.bench("error=0.02")
        self.assertEqual(cell["rdma"]["completion_statuses"]["remote operation error"], 1)
        self.assertEqual(len(log), 1)
        self.assertIn("error completion of request", log[0])

    def test_data_that_came_after_the_completion_are_missing(self):
        cell, log = self.bench("early=0.05")
        self.assertEqual(sum(cell["errors"].values()), 0)
        self.assertGreater(cell["verify"]["missing"], 0)
        # One that is late by more than the fault is found in its place.
        self.assertLessEqual(cell["verify"]["missing"], len(log))
        self.assertTrue(all("early completion of request" in line for line in log), log)


if __name__ == "__main__":
    unittest.main()
