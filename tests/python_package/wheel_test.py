# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The wheel in DIST: its contents, that it needs no compiler, and that making it leaves the source tree clean."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).parents[2]
WHEEL, = pathlib.Path(os.environ["DIST"]).glob("doorbell-*.whl")


class Wheel(unittest.TestCase):
    def test_it_has_the_packages_whole(self):
        with zipfile.ZipFile(WHEEL) as archive:
            there = {name for name in archive.namelist() if name.startswith(("doorbell/", "doorbell_report/")) and name[-1] != "/"}
        here = {str(path.relative_to(SOURCE / "python")) for package in ("doorbell", "doorbell_report")
                for path in (SOURCE / "python" / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        made = there - here
        self.assertEqual(here - there, set())
        self.assertEqual({re.sub(r"\..*\.so$", ".so", name) for name in made}, {"doorbell/_native.so", "doorbell/_native.pyi"})

    def test_its_version_is_doorbells(self):
        version = re.search(r"^project\(doorbell VERSION ([0-9.]+) ", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]
        self.assertTrue(WHEEL.name.startswith(f"doorbell-{version}-"), WHEEL.name)

    def test_it_says_which_libc_it_needs(self):
        tag = re.search(r"-manylinux_2_(\d+)_", WHEEL.name)
        self.assertIsNotNone(tag, WHEEL.name)
        self.assertLessEqual(int(tag[1]), 36)

    def test_the_source_tree_is_clean(self):
        listed = subprocess.run(["git", "-C", str(SOURCE), "status", "--porcelain", "--ignored", "--untracked-files=all", "--",
                                 "python", "src/python", "*.egg-info", "_skbuild"], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            self.skipTest("this is no git checkout")
        made = [line for line in listed.stdout.splitlines() if line.startswith("!!") and "__pycache__" not in line]
        self.assertEqual(made, [])


class Fresh(unittest.TestCase):
    def test_a_bare_environment_without_a_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", f"{folder}/v"], check=True, timeout=120)
            python = f"{folder}/v/bin/python"
            alone = {"PATH": f"{folder}/v/bin", "HOME": folder, "CC": "/bin/false", "CXX": "/bin/false"}
            # The registry's settings of this machine are needed to reach it.
            alone |= {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")}
            done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", str(WHEEL)],
                                  env=alone, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode != 0 and "numpy" in done.stderr:
                self.skipTest("pip cannot install numpy")
            self.assertEqual(done.returncode, 0, done.stderr)
            program = ("import doorbell, doorbell.nvme, doorbell_report\n"
                       "print(doorbell.run('nvme', duration=0.1, progress=False).verdict)\n"
                       "with doorbell.nvme.open() as disk:\n    disk.write(0, b'doorbell' * 64)\n    print(bytes(disk.read(0, 1)[:8]))\n")
            said = subprocess.run([python, "-c", program], env=alone, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((said.stdout, said.stderr), ("OK\nb'doorbell'\n", ""))


if __name__ == "__main__":
    unittest.main()
