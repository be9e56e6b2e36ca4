# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Reads doorbell's results: one self-contained HTML page, pictures, or a pandas DataFrame for a notebook.

    python3 -m doorbell_report DIR -o report.html
    import doorbell_report; frame = doorbell_report.load("results/modes")
"""

__all__ = ["load"]


def load(*names):
    """A pandas.DataFrame with a row a cell and run of the named result files and directories; see `frame.load`."""
    from . import frame  # pandas takes a second to import, and the page does not need it

    return frame.load(names)
