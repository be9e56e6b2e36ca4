# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Reads doorbell's results: one self-contained HTML page, pictures, or a pandas DataFrame for a notebook.

    python3 -m doorbell_report DIR -o report.html
    import doorbell_report; frame = doorbell_report.load("results/modes")
"""

__all__ = ["frame_of", "load", "write_page"]


def load(*names):
    """A pandas.DataFrame with a row a cell and run of the named result files and directories; see `frame.load`."""
    from . import frame  # pandas takes a second to import, and the page does not need it

    return frame.load(names)


def frame_of(record, name="result"):
    """The same of one result that is there: a dictionary of schema/results-1.schema.json."""
    from . import frame, results

    return frame.of([results.Result(name, record)])


def write_page(record, path, title=None):
    """Writes the page of such a result to `path`, with pictures where matplotlib is installed. Needs jinja2."""
    from . import __main__, drawing, page, results

    lacks = "" if drawing.available() else drawing.MISSING
    loaded = [results.Result(title or "result", record)]
    __main__.write(path, page.render(loaded, title, drawing.available(), {}, None, lacks))
