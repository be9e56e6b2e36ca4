# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Moves bytes between accelerators and devices, and measures what each path delivers.

    import doorbell
    result = doorbell.run("nvme", controller="model", in_flight=32, duration=1)
    result.frame()[["cell_in_flight", "ops_per_s", "latency_p99_ns"]]

doorbell.nvme reads and writes blocks; doorbell_report makes tables, pictures and pages of results.
"""

from . import nvme
from ._errors import Error, Interrupted
from ._native import Cell, Checks, Figures, Result, __version__
from ._run import run

__all__ = ["Cell", "Checks", "Error", "Figures", "Interrupted", "Result", "nvme", "run", "__version__"]
