# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Results as a pandas DataFrame. Column names say the unit: _ns, _s, _bytes, _bytes_per_s, _ops_per_s, _ops, _percent."""

import pandas

from . import groups, results
from .results import at, members, number, text

LATENCIES = ("min", "mean", "std", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")


def _metrics(prefix, found):
    row = {f"{prefix}ops": number(found, "ops"), f"{prefix}bytes": number(found, "bytes"),
           f"{prefix}elapsed_s": number(found, "elapsed_s"), f"{prefix}ops_per_s": number(found, "ops_per_s"),
           f"{prefix}bytes_per_s": number(found, "bytes_per_s")}
    row.update({f"{prefix}latency_{name}_ns": number(found, "latency_ns", name) for name in LATENCIES})
    return row


def _flat(prefix, value):
    """Numbers, texts and truth values, those of inner objects under joined names; lists are left out."""
    row = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            row.update(_flat(f"{prefix}{key}_", inner))
        elif not isinstance(inner, list):
            row[f"{prefix}{key}"] = inner
    return row


def _cell(cell):
    path = text(cell, "path")
    row = {"path": path, "device_kind": text(cell, "device", "kind"), "device": text(cell, "device", "name"),
           "initiator": groups.initiator(cell)}
    row.update(_flat("cell_", members(cell, "cell")))
    row.update(_metrics("", members(cell, "metrics")))
    for metric in ("ops_per_s", "bytes_per_s", "p50_ns", "p99_ns"):
        for key in ("ci_low", "ci_high", "ci_level"):
            row[f"{metric}_{key}"] = number(cell, "spread", metric, key)
    row.update({f"substep_{name}_ns": number(ns) for name, ns in members(cell, "substeps_ns").items()})
    row["verify"] = text(cell, "verify", "mode")
    row.update({f"{name}_ops": number(cell, "verify", name) for name in ("checked", "unverifiable", *results.DATA_CLASSES)})
    row["checked_bytes"] = number(cell, "verify", "checked_bytes")
    row.update({f"error_{name}_ops": number(n) for name, n in members(cell, "errors").items()})
    row.update({name: number(cell, "cost", name) for name in
                ("cpu_user_s", "cpu_system_s", "cpu_ns_per_op", "gpu_sm_percent", "doorbells_per_op", "polls_per_completion")})
    parts = {name for name, _ in results.populations(cell)} - {"all"}
    for name, part in results.populations(cell):
        if name != "all":
            row.update(_metrics(f"{path}_{name}_", part))
    row.update(_flat(f"{path}_", {k: v for k, v in members(cell, path).items() if path and k not in parts}))
    row.update(_flat("option_", members(cell, "options")))
    return row


def load(names):
    """A row a cell and run, in the order of the files. What a run did not measure is missing (None, NaN).

    `names` are paths of results (.json), of sweeps' results.jsonl, or of directories with such files. Columns: `file`,
    `verdict` (ok, unverified, failed, interrupted, skipped) and `verdict_text`; of a sweep `sweep_cell`, `round`,
    `ended`, `wall_s`, `error`; `path`, `device_kind`, `device`, `initiator`; `cell_*` the parameters; the metrics
    (`ops_per_s`, `latency_p99_ns`, ...) with intervals (`ops_per_s_ci_low`); `substep_*_ns`; what was checked and found
    (`checked_ops`, `corrupt_ops`, ...); `error_*_ops`; the cost; the path's own (`net_lost_percent`); `option_*`.

    Raises doorbell_report.results.Unreadable, whose text names the file.
    """
    return of(results.load([str(name) for name in names]))


def of(loaded):
    """The rows of these results."""
    rows = []
    for result in loaded:
        for cell in result.cells or [{}]:
            alone = results.Result(result.name, {**result.data, "cells": [cell] if cell else []}, result.source, result.run)
            kind, line = results.verdict(alone)
            row = {"file": result.source, "verdict": kind, "verdict_text": line, "complete": at(result.data, "complete") is True,
                   "exit_code": number(result.data, "exit_code"), "git": text(result.data, "tool", "git"),
                   "date_utc": text(result.data, "environment", "date_utc") or None}
            if result.run:
                run = result.run
                row.update(sweep_cell=run.cell, round=run.round, ended=run.ended, wall_s=run.wall_s, error=run.error or None)
                row.update({f"plan_{key.replace('-', '_')}": value for key, value in run.options.items()})
            row.update(_cell(cell) if cell else {})
            rows.append(row)
    return pandas.DataFrame(rows)
