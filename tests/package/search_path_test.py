#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Where the built programs and libraries look for their libraries (BUILD, the build folder)."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["BUILD"])


def elf_files():
    for folder in ("bin", "lib"):
        for path in sorted((BUILD / folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


@unittest.skipUnless(shutil.which("readelf"), "readelf is missing: apt-get install binutils")
class SearchPath(unittest.TestCase):
    def test_no_file_searches_the_folder_it_is_started_in(self):
        files = list(elf_files())
        self.assertIn(BUILD / "bin/doorbell", files)
        for path in files:
            dynamic = subprocess.run(["readelf", "--dynamic", "--wide", path], capture_output=True, text=True, check=True).stdout
            for folders in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
                for folder in folders.split(":"):
                    self.assertTrue(folder.startswith(("/", "$ORIGIN")), f"{path.relative_to(BUILD)} searches '{folders}'")


if __name__ == "__main__":
    unittest.main()
