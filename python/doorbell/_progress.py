# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""A line that shows how far a run is: in a notebook, or on a terminal."""

import math
import sys

_BAR = 30


def _line(share, phase, operations):
    filled = round(_BAR * share) if math.isfinite(share) else 0
    bar = f"[{'#' * filled}{'.' * (_BAR - filled)}] {share:4.0%}  " if math.isfinite(share) else ""
    return f"{bar}{phase}, {operations:,} operations"


class _Notebook:
    def __init__(self, display):
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def __call__(self, share, phase, operations):
        self._handle.update({"text/plain": _line(share, phase, operations)}, raw=True)

    def end(self, text):
        self._handle.update({"text/plain": text}, raw=True)


class _Terminal:
    def __init__(self):
        self._shown = 0

    def __call__(self, share, phase, operations):
        line = _line(share, phase, operations)
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)

    def end(self, _text):
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()


def fitting():
    """What shows progress here; None where nobody would see it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import display
        return _Notebook(display)
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else None
