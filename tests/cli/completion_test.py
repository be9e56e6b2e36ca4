#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""What shells offer for the words of doorbell. Each shell that is installed is asked itself."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import shells
from harness import DOORBELL, doorbell

# (line, all that is offered for it), in any shell.
EXACT = [
    ("doorbell nv", ["nvme"]),
    ("doorbell help do", ["doctor"]),
    ("doorbell nvme --init", ["--initiator"]),
    ("doorbell nvme --initiator ", ["cpu", "gpu"]),
    ("doorbell nvme --verify s", ["sample=", "strict"]),
    ("doorbell nvme --fault dr", ["drop="]),
    ("doorbell nvme --seed ", []),
    ("doorbell nvme --rw ", ["randread", "randwrite", "read", "write"]),
    ("doorbell man nv", ["nvme"]),
    ("doorbell completion ", ["bash", "fish", "zsh"]),
    ("doorbell net ", ["link", "raw", "roce", "tcp", "udp"]),
    ("doorbell net u", ["udp"]),
    ("doorbell net --udp t", ["tcp"]),
    ("doorbell net udp t", []),  # a stream has been named
    ("doorbell net --duration 1 t", ["tcp"]),
    ("doorbell net link ", ["down", "up", "verify"]),
    ("doorbell net-link ", ["down", "up", "verify"]),
    ("doorbell net link --po", ["--ports"]),
    ("doorbell net link up --gso o", ["off", "on"]),
    ("doorbell qdma v", ["validate"]),
    ("doorbell help net ", ["all", "link"]),
    ("doorbell help net link ", ["all"]),
    ("doorbell nvme --device q", ["qemu", "qemu:"]),
    ("doorbell nvme --filename q", ["qemu", "qemu:"]),
    ("doorbell nvme q", ["qemu", "qemu:"]),
    ("doorbell rdma -d mod", ["model", "model:"]),
    ("doorbell cxi -d cxi-m", ["cxi-model0"]),
    ("doorbell qdma s", ["server:"]),
    ("doorbell net --link ve", ["veth", "veth:"]),
    ("doorbell net --provider io", ["ionic"]),
    ("doorbell net --engine af_x", ["af_xdp"]),
    ("doorbell reproduce daqiri-udp", ["daqiri-udp-pairs"]),
    ("doorbell sweep plans/nvme-m", ["plans/nvme-modes.yaml"]),
    ("doorbelld --log j", ["journal"]),
    ("cxi_gpu_loopback_bw -d cxi-m", ["cxi-model0"]),
]
# (line, some that are offered for it)
AMONG = [
    ("doorbell ", ["nvme", "net-link", "help"]),
    ("doorbell nvme --help ", ["all"]),
    ("doorbell nvme --dev", ["--device", "--device-engine"]),
    ("doorbell nvme -", ["-t", "--controller"]),
    ("doorbell nvme ", ["model", "qemu", "file:"]),
    ("doorbell reproduce ", ["all", "cxi", "daqiri", "qdma", "xio"]),
]
SHELLS = ["bash", "zsh", "fish"]


def needs(shell):
    return unittest.skipUnless(shutil.which(shell), shell + " is not installed")


def bash_words(line):
    """As bash splits a line: ':' and '=' are words."""
    return line.replace("=", " = ").replace(":", " : ").replace("  ", " ").split(" ")


def ask_bash(lines, cwd=None):
    return [shells.bash(*bash_words(line)[1:], program=bash_words(line)[0], cwd=cwd) for line in lines]


class EachShell:
    """The cases of a shell; `ask`: what it offers for each of some lines, in a folder."""

    def offers(self, line, cwd=None):
        return self.ask([line], cwd)[0]

    def test_lines(self):
        with tempfile.TemporaryDirectory() as empty:
            found = self.ask([line for line, _ in EXACT + AMONG], empty)
        self.assertEqual(len(found), len(EXACT + AMONG))
        for (line, wanted), offered in zip(EXACT, found):
            self.assertEqual(sorted(set(offered)), wanted, line)
        for (line, wanted), offered in zip(AMONG, found[len(EXACT):]):
            self.assertTrue(set(wanted) <= set(offered), (line, offered))

    def test_every_option_of_every_command(self):
        names = [name for name in shells.bash("") if name not in ("help", "--help", "--version")]
        for name, offered in zip(names, self.ask([f"doorbell {name} --" for name in names])):
            page = doorbell("help", name, "all").stdout
            options = set(re.findall(r"(?m)^  (?:   |-\w,) (--[a-z][a-z0-9-]*)", page))
            self.assertTrue(options, name)
            self.assertTrue(options <= {word.rstrip("=") for word in offered}, (name, options - set(offered)))

    def test_the_value_behind_an_equals_sign(self):
        end = [word.rsplit("=", 1)[-1] for word in self.offers("doorbell nvme --initiator=g")]
        self.assertEqual(end, ["gpu"])

    def test_the_last_item_of_a_list(self):
        offered = self.offers("doorbell nvme --fault corrupt=0.1,dr")
        self.assertEqual([word.rsplit(",", 1)[-1] for word in offered], ["drop="])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("disk.img", "result.json", "plan.yaml"):
                pathlib.Path(folder, name).touch()
            for line, wanted in (("nvme --json res", "result.json"), ("nvme di", "disk.img"), ("nvme file:di", "disk.img"),
                                 ("sweep pla", "plan.yaml"), ("reproduce pla", "plan.yaml"), ("compare A res", "result.json"),
                                 ("qdma server:res", "result.json")):
                offered = self.offers("doorbell " + line, folder)
                self.assertIn(wanted, [word.split(":")[-1] for word in offered], line)

    def test_the_shell_accepts_it(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([self.shell, "-n", shells.script(self.shell, folder)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_names_of_others_are_text(self):
        """A file's name is nothing that a shell runs, and what a terminal would obey is not offered."""
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root, "share/doorbell/plans")
            folder.mkdir(parents=True)
            names = ["plain.yaml", "a b.yaml", "$(touch owned).yaml", "`touch owned`;touch owned.yaml", "it's.yaml"]
            for name in [*names, "bell\x07.yaml", "new\nline.yaml", "\x1b[31mred.yaml"]:
                (folder / name).touch()
            program = pathlib.Path(root, "bin/doorbell")
            program.parent.mkdir()
            shutil.copy(DOORBELL, program)
            work = pathlib.Path(root, "work")
            work.mkdir()
            values = subprocess.run([program, "completion", self.shell, "--values", "sweep plan"], capture_output=True,
                                    text=True, check=True).stdout
            self.assertEqual(sorted(values.splitlines()), sorted(["*", *("plans/" + name for name in names)]))
            offered = self.offers(f"{program} sweep plans/", str(work))
            # As the shell reads what it puts in.
            if self.shell != "fish":  # which gives the name itself
                offered = [subprocess.run([self.shell, "-c", "printf %s " + word], capture_output=True, text=True, cwd=work,
                                          check=True).stdout for word in offered]
            self.assertEqual(sorted(offered), sorted("plans/" + name for name in names))
            self.assertEqual(os.listdir(work), [])


class Bash(EachShell, unittest.TestCase):
    shell, ask = "bash", staticmethod(ask_bash)

    def test_colons_and_equals_signs_that_are_words(self):
        self.assertEqual(shells.bash("nvme", "--initiator", "="), ["cpu", "gpu"])
        self.assertEqual(shells.bash("nvme", "--controller", "=", "q"), ["qemu", "qemu:"])
        self.assertEqual(shells.bash("nvme", "model", ":"), [])
        self.assertEqual(shells.bash("nvme", "--verify", "sample", "="), [])
        # Where the shell is set not to split there, whole words are replaced.
        self.assertEqual(shells.bash("nvme", "--initiator=g"), ["--initiator=gpu"])


@needs("zsh")
class Zsh(EachShell, unittest.TestCase):
    shell, ask = "zsh", staticmethod(shells.zsh)


@needs("fish")
class Fish(EachShell, unittest.TestCase):
    shell, ask = "fish", staticmethod(shells.fish)


class Values(unittest.TestCase):
    def values(self, asked):
        done = doorbell("completion", "bash", "--values", asked)
        self.assertEqual((done.returncode, done.stderr), (0, ""), asked)
        return done.stdout.splitlines()

    def test_all_spellings_of_an_option(self):
        wanted = self.values("nvme controller")
        self.assertIn("file:*", wanted)
        for spelling in ("--controller", "--device", "--filename"):
            self.assertEqual(self.values("nvme " + spelling), wanted)
        self.assertEqual(self.values("rdma -d"), self.values("rdma device"))

    def test_what_is_no_option_has_no_values(self):
        for asked in ("nvme", "nvme ", "nvme --", "nvme -", "nvme --nothing", "nothing --device", " ", "nvme --seed"):
            self.assertEqual(self.values(asked), [], asked)

    def test_interfaces_of_this_machine(self):
        """Two of them are a link; lo is one by itself."""
        names = sorted(name for name in os.listdir("/sys/class/net") if name != "lo" and os.path.isdir("/sys/class/net/" + name))
        pairs = [word for word in self.values("net --link") if "," in word]
        self.assertEqual({word.split(",")[0] for word in pairs}, set(names) if len(names) > 1 else set())
        self.assertEqual(pairs, self.values("net-link --ports"))


if __name__ == "__main__":
    unittest.main()
