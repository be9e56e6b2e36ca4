# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""doorbell.run()."""

from __future__ import annotations

import decimal
import math
import os
import warnings
from typing import Callable, Mapping, Union

from . import _native, _progress
from ._errors import Error, Interrupted

Value = Union[bool, int, float, str, os.PathLike, None, list, tuple, Mapping]
Progress = Callable[[float, str, int], object]


def _text(value) -> str:
    """As it is typed on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(_text(inner) for inner in value)
    if isinstance(value, float):
        return format(decimal.Decimal(repr(value)).normalize(), "f") if math.isfinite(value) else repr(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _words(options) -> list[tuple[str, str]]:
    return [(name.rstrip("_"), _text(value)) for name, value in options.items() if value is not None]


def _page_of(record: dict, page) -> None:
    import doorbell_report
    try:
        doorbell_report.write_page(record, page)
    except OSError as error:  # the result is worth more than its page
        warnings.warn(f"html: {error}", stacklevel=3)


def _require_pages() -> None:
    from doorbell_report import template
    if not template.available():
        raise Error("html: jinja2 is not installed", "pip install 'doorbell[report]'")


def run(path: str, *, progress: Progress | bool | None = None, html: str | os.PathLike | None = None,
        **options: Value) -> _native.Result:
    """Measures as `doorbell PATH` does, and returns the result when all is done.

    `path` is "nvme", "rdma", "cxi", "net", "qdma", "qdma-validate" or "qdma-tune". Options have the names that
    `doorbell PATH --help` shows, with '_' for '-'. True and False are for flags and for on|off; a list is a value with
    commas; a dictionary is KIND=VALUE pairs (`fault={"corrupt": 0.01}`); None leaves an option out. `json`, `csv`, `junit` and `html` write files.

    A run whose data was wrong returns: `exit_code` is 2, `verdict` says what was found. `doorbell.Error` is raised for
    what the command refuses; nothing has been touched then. `progress` is called with the share of the phase that is done (nan:
    no end is known), the phase in words, and the operations so far; without it, a notebook and a terminal show a line, and
    `progress=False` shows none. Ctrl-C, and an exception of `progress`, end the run early: `doorbell.Interrupted`, a
    KeyboardInterrupt, has what was measured. One run at a time in a process.
    """
    if html is not None:
        _require_pages()
    words = _words(options)
    shows = _progress.fitting() if progress is None or progress is True else None
    result, raised = None, None
    try:
        result, raised = _native.run(path, words, shows or progress or None)
    finally:
        if shows is not None:
            shows.end(result.verdict if result is not None else "")
    if result is not None and html is not None:
        _page_of(result.record, html)
    if isinstance(raised, KeyboardInterrupt):
        raise Interrupted(result) from None
    if raised is not None:
        raise raised
    return result
