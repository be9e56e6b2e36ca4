#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""The built program as a user meets it: texts, exit codes, and that the generated texts agree."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import DOORBELL, doorbell
from shells import bash

HELP_WIDTH = 80
# Programs with names of their own, whose pages and completion `doorbell` makes too.
PROGRAMS = ["cxi_gpu_loopback_bw", "doorbelld"]


def out(*arguments):
    done = doorbell(*arguments)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    assert done.stderr == "", (arguments, done.stderr)
    return done.stdout


def commands():
    """Names in `doorbell help`, in its order."""
    return re.findall(r"^  ([a-z][a-z-]*) {2,}\S", out("help"), re.MULTILINE)


def options_in_help(text):
    """Options at the beginning of a help line, aliases included."""
    own = re.findall(r"^  (?:   |-\w,) (--[a-z][a-z0-9-]*)", text, re.MULTILINE)
    return set(own) | also_in_help(text)


def also_in_help(text):
    """The other names that options go by."""
    lists = re.findall(r"\(also\s+(--[a-z0-9-]+(?:,\s+--[a-z0-9-]+)*)\)", text)
    return {name for names in lists for name in re.split(r",\s+", names)}


def options_in_man(roff):
    tags = re.findall(r"^\.TP\n(.*)$", roff, re.MULTILINE)
    plain = " ".join(tag for tag in tags).replace("\\-", "-")
    return set(re.findall(r"\\fB(--[a-z0-9-]+)\\fR", plain))


class Help(unittest.TestCase):
    def test_no_arguments_is_a_usage_error_with_a_short_help(self):
        done = doorbell()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("Usage: doorbell COMMAND", done.stderr)
        for name in commands():
            self.assertIn(name, done.stderr)

    def test_every_way_to_ask(self):
        text = out("help")
        self.assertEqual(text, out("--help"))
        self.assertEqual(text, out("-h"))
        for name in commands():
            page = out("help", name)
            self.assertEqual(page, out(name, "--help"))
            self.assertEqual(page, out(name, "-h"))
            self.assertIn(f"Usage: doorbell {name}", page)
            page = out("help", name, "all")
            self.assertEqual(page, out(name, "--help", "all"))
            self.assertEqual(page, out(name, "--help=all"))
            self.assertIn(f"Usage: doorbell {name}", page)
        self.assertEqual(out("help", "help"), text)
        self.assertEqual(out("help", "net", "link"), out("help", "net-link"))

    def test_the_help_of_a_path_is_one_screen_with_three_examples(self):
        for path in ("nvme", "rdma", "cxi", "qdma", "net"):
            page = out(path, "--help")
            self.assertLessEqual(len(page.splitlines()), 30, page)
            self.assertEqual(len(re.findall(r"(?m)^  doorbell ", page)), 3, page)
            self.assertIn(f"doorbell {path} --help all", page)
            self.assertTrue(options_in_help(page) < options_in_help(out(path, "--help", "all")))
            for wanted in ("64K = 65536", "64KB = 64000"):
                self.assertIn(wanted, page)

    def test_commands(self):
        for name in ("demo", "nvme", "rdma", "cxi", "list", "backends", "bind", "unbind", "doctor", "version", "man", "completion"):
            self.assertIn(name, commands())

    def test_lines_fit_and_end_cleanly(self):
        for text in [out("help")] + [out("help", name, *all_) for name in commands() for all_ in ((), ("all",))]:
            for line in text.splitlines():
                self.assertLessEqual(len(line), HELP_WIDTH, line)
                self.assertEqual(line, line.rstrip())
            self.assertTrue(text.isascii())

    def test_common_options_of_a_path(self):
        for path in ("nvme", "rdma", "cxi"):
            self.common_options(out(path, "--help", "all"))

    def common_options(self, text):
        for name in ("initiator", "gpu", "duration", "warmup", "repeats", "seed", "verify", "fault", "timeout",
                     "late-after", "json", "csv", "html", "details", "quiet", "help"):
            self.assertIn("--" + name, options_in_help(text))
        self.assertIn("--initiator cpu|gpu", text)
        self.assertIn("on|off|sample=P", text)
        self.assertIn("default 10 s", text)

    def test_examples_reach_no_real_machine(self):
        """Other machines have addresses that are kept for documentation, or words (scripts/lint.sh looks at the files)."""
        private = r"\b(10|192\.168|172\.(1[6-9]|2\d|3[01]))(\.\d+){2,3}\b|\bf[cd][0-9a-f]{2}:|\bfe80:"
        self.assertRegex("--connect 10.0.0.2", private)
        pages = [out("help")] + [text for name in commands() for text in (out("help", name, "all"), out("man", name))]
        for page in pages:
            self.assertNotRegex(page, private)

    def test_examples_are_last(self):
        text = out("help", "nvme")
        self.assertIn("\nExamples:\n", text)
        self.assertNotRegex(text.split("\nExamples:\n")[1], r"(?m)^\w.*:$")


class Refusals(unittest.TestCase):
    def refused(self, arguments, message, code=1):
        done = doorbell(*arguments)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr.splitlines()[0], "^" + message)

    def test_unknown_command(self):
        self.refused(["nvm"], r"doorbell: unknown command 'nvm'; did you mean 'nvme'\?$")
        self.refused(["dcotor"], r"doorbell: unknown command 'dcotor'; did you mean 'doctor'\?$")
        self.refused(["help", "nvm"], r"doorbell: unknown command 'nvm'; did you mean 'nvme'\?$")
        for word, meant in (("file", "nvme"), ("fio", "nvme"), ("tcp", "net"), ("iperf3", "net"), ("ib_write_bw", "rdma"),
                            ("cassini", "cxi"), ("v80", "qdma")):
            self.refused([word], rf"doorbell: unknown command '{word}'; did you mean '{meant}'\?$")
        self.refused(["qqqqqq"], r"doorbell: unknown command 'qqqqqq'$")
        self.refused(["--frob"], r"doorbell: unknown option '--frob'$")
        self.refused([""], r"doorbell: unknown command ''$")

    def test_unknown_option(self):
        self.refused(["nvme", "--bach-size", "3"],
                     r"doorbell nvme: unknown option '--bach-size'; did you mean '--batch-size'\?$")
        self.refused(["list", "--jsn"], r"doorbell list: unknown option '--jsn'; did you mean '--json'\?$")

    def test_values(self):
        self.refused(["nvme", "--batch-size", "0"], r"doorbell nvme: --batch-size: 0 is not in 1\.\.\d+$")
        self.refused(["nvme", "--batch-size", "4294967297"],
                     r"doorbell nvme: --batch-size: 4294967297 is not in 1\.\.\d+$")
        self.refused(["nvme", "--gpu", "4294967296"], r"doorbell nvme: --gpu: 4294967296 is not in 0\.\.1023$")
        self.refused(["nvme", "--timeout", "-1"], r"doorbell nvme: --timeout: -1 is not in ")
        self.refused(["nvme", "--initiator", "cup"],
                     r"doorbell nvme: --initiator: 'cup' is not one of cpu, gpu; did you mean 'cpu'\?$")
        self.refused(["nvme", "--fault", "dorp=0.1"], r"doorbell nvme: --fault: 'dorp' .*did you mean 'drop'\?$")
        self.refused(["nvme", "--json"], r"doorbell nvme: --json: needs a value \(FILE\)$")
        self.refused(["nvme", "--json="], r"doorbell nvme: --json: the value is empty$")
        self.refused(["nvme", "--seed", "1", "--seed=2"], r"doorbell nvme: --seed: given twice$")
        self.refused(["nvme", "now"], r"doorbell nvme: controller 'now': no back end knows this name")
        self.refused(["doctor", "--strict=1"], r"doorbell doctor: --strict: takes no value, but '1' is given$")

    def test_operands(self):
        self.refused(["completion"], r"doorbell completion: SHELL is missing$")
        self.refused(["completion", "ash"], r"doorbell completion: SHELL: 'ash' is not one of bash, zsh, fish; did you mean 'bash'\?$")
        self.refused(["man", "nvm"], r"doorbell man: COMMAND: 'nvm' is not one of .*; did you mean 'nvme'\?$")
        self.refused(["man", "nvme", "list"], r"doorbell man: unexpected argument 'list'$")

    def test_a_full_disk_is_not_success(self):
        with open("/dev/full", "w") as full:
            for arguments in (["help"], ["version"], ["list"], ["man"]):
                done = subprocess.run([DOORBELL, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, arguments)
                self.assertIn("No space left on device", done.stderr)


class Machine(unittest.TestCase):
    def test_version(self):
        self.assertRegex(out("version"), r"^doorbell \d+\.\d+\.\d+ \(.+ build, (GNU|Clang) [\d.]+.*\)\n$")
        self.assertEqual(out("version"), out("--version"))
        version = json.loads(out("version", "--json"))
        self.assertEqual(list(version), ["version", "git", "build", "compiler", "sanitizer"])

    def test_list(self):
        text = out("list")
        for title in ("GPUs", "NVMe controllers", "RDMA devices", "CXI", "Network interfaces", "Models"):
            self.assertIn(title, text)
        found = json.loads(out("list", "--json"))
        paths = list(dict.fromkeys(b["path"] for b in json.loads(out("backends", "--json"))["backends"]))
        self.assertEqual(paths[:3] + paths[-1:], ["nvme", "rdma", "cxi", "gpu"])
        self.assertEqual(list(found), ["gpus", *paths[:-1], "models"])
        self.assertIn({"name": "cxi-model0", "path": "cxi"}, [{k: m[k] for k in ("name", "path")} for m in found["models"]])
        self.assertIn({"name": "model", "path": "nvme"}, [{k: m[k] for k in ("name", "path")} for m in found["models"]])
        self.assertEqual(sorted(n["name"] for n in found["net"]),
                         sorted(n for n in os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net/" + n)))

    def test_list_of_one_kind(self):
        self.assertRegex(out("list", "models"), r"\AModels [^\n]*\n(  \S.*\n)+\Z")
        self.assertEqual(list(json.loads(out("list", "nvme", "--json"))), ["nvme"])

    def test_backends(self):
        self.assertIn("nvme", out("backends"))
        found = json.loads(out("backends", "--json"))["backends"]
        by_name = {(b["path"], b["backend"]): b for b in found}
        self.assertTrue(by_name[("nvme", "model")]["usable"])
        self.assertTrue(by_name[("cxi", "model")]["usable"])
        for name in ("cuda", "cuda-kernels", "hip", "hip-kernels"):
            self.assertIn(("gpu", name), by_name)
        for backend in found:
            self.assertTrue(backend["detail"], backend)

    def test_doctor(self):
        text = out("doctor")
        self.assertRegex(text, r"(?m)^\d+ ok, \d+ to know about \(WARN\), \d+ to fix \(FIX\)$")
        checks = json.loads(out("doctor", "--json"))["checks"]
        self.assertGreaterEqual(len(checks), 11)
        for check in checks:
            self.assertIn(check["level"], ("OK", "WARN", "FIX"))
            self.assertIn(check["check"], text)
            self.assertTrue(check["finding"], check)
            if check["level"] == "OK":
                self.assertIsNone(check["fix"])
            if check["level"] == "FIX":
                self.assertTrue(check["fix"], check)
        wanted = 1 if any(check["level"] == "FIX" for check in checks) else 0
        self.assertEqual(doorbell("doctor", "--strict").returncode, wanted)


class Man(unittest.TestCase):
    def pages(self):
        return [out("man")] + [out("man", name) for name in [*commands(), *PROGRAMS]]

    def test_every_option_is_in_help_man_and_completion(self):
        for name in commands():
            in_help = options_in_help(out("help", name, "all"))
            self.assertIn("--help", in_help)
            self.assertEqual(in_help, options_in_man(out("man", name)), name)
            offered = set(bash(name, "--"))
            self.assertTrue(offered <= in_help, offered - in_help)
            self.assertEqual(in_help - offered, also_in_help(out("help", name, "all")), name)

    def test_the_daemon_is_a_page_of_section_8(self):
        page = out("man", "doorbelld")
        self.assertRegex(page, r'(?m)^\.TH DOORBELLD 8 .*"System Administration"$')
        self.assertIn(".BR doorbelld (8)", out("man"))
        offered = set(bash("--", program="/usr/bin/doorbelld"))
        self.assertIn("--max-card-memory", offered)
        self.assertEqual(offered, options_in_man(page))
        self.assertEqual(bash("--log", "j", program="doorbelld"), ["journal"])
        binary = pathlib.Path(DOORBELL).with_name("doorbelld")
        if binary.exists():  # not where libuv or libsystemd is missing
            text = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertEqual(options_in_help(text), offered)

    def test_sections(self):
        for page in self.pages():
            titles = re.findall(r"^\.SH (.*)$", page, re.MULTILINE)
            self.assertEqual(titles[:2], ["NAME", "SYNOPSIS"])
            self.assertIn("EXIT STATUS", titles)
            self.assertEqual(titles[-1], "SEE ALSO")
            self.assertTrue(page.isascii())
            self.assertNotRegex(page, r"(?m)[ \t]$")
            self.assertNotIn("\n\n", page)

    @unittest.skipUnless(shutil.which("man"), "man-db is not installed")
    def test_lint(self):
        for page in self.pages():
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "-"], input=page.encode(),
                                  capture_output=True, timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, b""), page)

    def test_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            out("man", "--directory", folder)
            self.assertEqual(sorted(os.listdir(folder)),
                             sorted(["doorbell.1", "cxi_gpu_loopback_bw.1", "doorbelld.8"] +
                                    [f"doorbell-{name}.1" for name in commands()]))
            with open(os.path.join(folder, "doorbell-nvme.1")) as file:
                self.assertEqual(file.read(), out("man", "nvme"))
        done = doorbell("man", "--directory", "/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^doorbell man: /nonexistent/doorbell\.1: cannot be written\nhint: ")


if __name__ == "__main__":
    unittest.main()
