# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""python3 -m doorbell_report RESULT... -o report.html"""

import argparse
import os
import pathlib
import sys
import tempfile

from . import figures, load, page


def write(path, text):
    """Replaces `path` whole, so that a browser never loads half a page."""
    data = text.encode("utf-8", "replace")
    if path == "-":
        sys.stdout.buffer.write(data)
        return
    target = pathlib.Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a pipe or a device: renaming over it would destroy it
        return
    target = target.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def main(arguments=None):
    parser = Parser(prog="doorbell_report", description="Makes one self-contained HTML page from result files.")
    parser.add_argument("result", nargs="+",
                        help="a result (.json), results one a line (.jsonl), or a directory of such files")
    parser.add_argument("-o", "--output", required=True, help="the page to write; - is standard output")
    parser.add_argument("--title", default="doorbell report")
    parser.add_argument("--no-pictures", action="store_true", help="tables only")
    options = parser.parse_args(arguments)
    try:
        results = load.load(options.result, options.output)
        drawing = not options.no_pictures and figures.available()
        if not drawing and not options.no_pictures:
            print("doorbell_report: python3-matplotlib is not installed, the page has tables only", file=sys.stderr)
        write(options.output, page.render(results, options.title, drawing))
    except (load.Unreadable, OSError) as error:
        print(f"doorbell_report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
