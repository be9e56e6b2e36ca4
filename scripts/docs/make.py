#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Writes the pages of the public headers and of docs. Usage: scripts/docs/make.py [FOLDER], by default build/docs
Exit code: 0; 1 when Doxygen is missing; 2 when it finds something wrong, which it names.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version():
    return re.search(r"^project\(doorbell VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]


def doxygen(folder, **settings):
    """Runs Doxygen for `folder`, with settings on top of the Doxyfile. Returns what it complains of."""
    settings = {"PROJECT_NUMBER": version(), "OUTPUT_DIRECTORY": folder, **settings}
    text = "@INCLUDE = scripts/docs/Doxyfile\n" + "".join(f'{k} = "{v}"\n' for k, v in settings.items())
    done = subprocess.run(["doxygen", "-"], input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0 and not done.stderr:
        return f"doxygen ended with {done.returncode}"
    return done.stderr.replace(str(ROOT) + "/", "")


def main(arguments):
    folder = pathlib.Path(arguments[0] if arguments else ROOT / "build/docs").resolve()
    if shutil.which("doxygen") is None:
        print("docs: doxygen is missing: run scripts/install-deps.sh docs", file=sys.stderr)
        return 1
    shutil.rmtree(folder / "html", ignore_errors=True)  # pages of names that are gone
    folder.mkdir(parents=True, exist_ok=True)
    if wrong := doxygen(folder):
        print(wrong, end="", file=sys.stderr)
        return 2
    print(folder / "html/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
