# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The units of rates and of payload: one for a whole column, a picture or a sentence, and the same as in the program's
tables (src/report/units.cpp)."""

import dataclasses

from . import form
from .results import text

PACKET = "packet"  # the operation of a cell whose operations are packets


@dataclasses.dataclass(frozen=True)
class Unit:
    name: str
    factor: float  # a figure is divided by it

    def said(self, value):
        """A figure with its unit, for sentences; `value` may be None."""
        return form.MISSING if value is None else f"{form.digits(value / self.factor)} {self.name}"


@dataclasses.dataclass(frozen=True)
class Units:
    """Those of one table and of all that belongs to it."""
    rate: Unit
    volume: Unit


IOPS = Unit("kIOPS", 1e3)
PACKETS = Unit("Mpps", 1e6)
MIXED = Unit("k ops/s", 1e3)
BYTES = Unit("GB/s", 1e9)
BITS = Unit("Gb/s", 1e9 / 8)
MEANINGS = {IOPS: "1000 operations/s", PACKETS: "10^6 packets/s", MIXED: "1000 packets or other operations/s",
            BYTES: "10^9 bytes/s", BITS: "10^9 bits/s"}
TIME = Unit("us", 1e3)
NONE = Unit("", 1.0)
TIMES = (Unit("ms", 1e6), TIME, Unit("ns", 1.0))


def rate(operations):
    """The unit of the rates of such operations: packets, others, or some of each."""
    kinds = {operation == PACKET for operation in operations}
    return MIXED if len(kinds) > 1 else PACKETS if True in kinds else IOPS


def of_times(values):
    """The unit of times in ns where neither a column nor a sentence says it: the largest in which the longest is at least 1."""
    longest = max(values, default=0.0)
    return next((unit for unit in TIMES if longest >= unit.factor), TIMES[-1])


def of_cells(cells, bits=False):
    return Units(rate(text(cell, "operation") for cell in cells), BITS if bits else BYTES)


def legend(used):
    """The units of a page in words; each once."""
    return ", ".join(f"1 {unit.name} is {MEANINGS[unit]}" for unit in dict.fromkeys(used))


def in_bits(cells):
    """Whether all cells were measured with --units bits."""
    chosen = [text(cell, "options", "units") for cell in cells]
    return bool(chosen) and all(choice == "bits" for choice in chosen)
