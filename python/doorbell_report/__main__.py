# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""python3 -m doorbell_report RESULT... -o report.html"""

import argparse
import os
import pathlib
import sys
import tempfile

from . import charts, compare, drawing, figures, groups, page, results, template


def write(path, content):
    """Replaces `path` whole, so that a browser never loads half a page."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
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


def pictures_of(loaded, plans, bits):
    """The pictures of every group, and of the only cell where there is one."""
    grouped = groups.group(loaded, plans, bits)
    tables = {source: results.items(plan, "published") for source, plan in plans.items()}
    drawn = [picture for group in grouped for picture in charts.of_group(group, tables, drawing.PAPER)]
    rows = [row for group in grouped for row in group.rows if row.cell]
    if len(rows) < page.MANY:
        for row in rows:
            drawn += figures.of_cell(row.cell, drawing.PAPER, f"cell-{row.number}", row.units.rate)
    return drawn


def write_all(drawn, folder, kind):
    if not drawn:
        raise results.Unreadable("there is nothing to draw")
    os.makedirs(folder, exist_ok=True)
    for picture in drawn:
        write(os.path.join(folder, f"{picture.name}.{kind}"), picture.file(kind))


def arguments_of(arguments):
    parser = Parser(prog="doorbell_report", description="Makes one self-contained HTML page from result files.")
    parser.add_argument("result", nargs="+",
                        help="a result (.json), results one a line (.jsonl), a directory of such files, or the JSON of "
                             "one comparison")
    parser.add_argument("-o", "--output", required=True,
                        help="the page to write, - is standard output; with png or svg, the folder for the pictures")
    parser.add_argument("--format", choices=("html", "png", "svg"), default="html",
                        help="html: one page (default); png, svg: its pictures alone, a file each")
    parser.add_argument("--title", default=None)
    parser.add_argument("--units", choices=("bytes", "bits"),
                        help="payload a second in GB/s or in Gb/s (not given: as each result was printed, if all agree)")
    parser.add_argument("--no-pictures", action="store_true", help="tables only")
    options = parser.parse_args(arguments)
    if options.format != "html" and (options.no_pictures or options.output == "-"):
        parser.error(f"--format {options.format} writes pictures into a folder: no --no-pictures, and not to -")
    return options


def run(options):
    needed = {"python3-jinja2": template.available()} if options.format == "html" else \
        {"python3-matplotlib": drawing.available()}
    for package, there in needed.items():
        if not there:
            raise results.Unreadable(f"{package} is not installed, and --format {options.format} needs it")
    drawing_too = not options.no_pictures and drawing.available()
    lacks = "" if drawing_too or options.no_pictures else drawing.MISSING
    if lacks:
        print(f"doorbell_report: {options.output}: {lacks}", file=sys.stderr)
    compared = compare.only(options.result, options.output)
    if compared is not None:
        if options.format != "html":
            write_all(compare.pictures(compared, drawing.PAPER), options.output, options.format)
        else:
            write(options.output, compare.render(compared, options.title or "doorbell compare", drawing_too, lacks))
        return
    loaded = results.load(options.result, options.output)
    bits = None if options.units is None else options.units == "bits"
    plans = results.plans(loaded)
    if options.format != "html":
        write_all(pictures_of(loaded, plans, bits), options.output, options.format)
    else:
        write(options.output, page.render(loaded, options.title, drawing_too, plans, bits, lacks))


def main(arguments=None):
    try:
        run(arguments_of(arguments))
    except (results.Unreadable, OSError) as error:
        print(f"doorbell_report: {error}", file=sys.stderr)
        return 1
    return 0


def script():
    """The entry point that pip installs as `doorbell-report`."""
    sys.exit(main())


if __name__ == "__main__":
    sys.exit(main())
