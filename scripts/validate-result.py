#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Checks result files against schema/results-1.schema.json.

Usage: validate-result.py [--schema SCHEMA] FILE...
A FILE that ends in .jsonl holds one Result a line, or a sweep's records, whose results are checked; "-" is standard
input.
Exit code: 0 all valid, 1 usage or an unreadable file, 2 an invalid one, 77 python3-jsonschema is absent.
"""

import argparse
import functools
import json
import pathlib
import sys

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "schema" / "results-1.schema.json"
SWEEP_SCHEMA = "doorbell.sweep/1"


def refuse_constant(name):
    """Python reads NaN and Infinity; JSON does not know them."""
    raise ValueError(f"{name} is not JSON")


def unique_keys(pairs):
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError(f"a key is given twice among {sorted(document)}")
    return document


def parse(text):
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_keys)


def documents(name):
    """Yields (label, text) of each document in a file."""
    text = sys.stdin.read() if name == "-" else pathlib.Path(name).read_text(encoding="utf-8")
    if not name.endswith(".jsonl"):
        yield name, text
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{name}:{number}", line


@functools.cache
def validator_of(schema):
    """The validator of the schema in that file; None where python3-jsonschema is absent."""
    try:
        import jsonschema
    except ImportError:
        return None
    rules = parse(schema.read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(rules)
    kind.check_schema(rules)
    return kind(rules)


def problems(validator, text):
    try:
        document = parse(text)
    except ValueError as error:
        return [f"not JSON: {error}"]
    if isinstance(document, dict) and document.get("schema") == SWEEP_SCHEMA:
        document = document.get("result")
        if document is None:  # a cell that crashed
            return []
    found = sorted(validator.iter_errors(document), key=lambda e: [str(p) for p in e.absolute_path])
    return [f"{'/'.join(map(str, e.absolute_path)) or '(top)'}: {e.message[:300]}" for e in found]


class Parser(argparse.ArgumentParser):
    def error(self, message):
        # argparse exits with 2, which means an invalid result here.
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def main(arguments=None):
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--schema", default=SCHEMA, type=pathlib.Path)
    parser.add_argument("file", nargs="+")
    options = parser.parse_args(arguments)
    validator = validator_of(options.schema)
    if validator is None:
        print("SKIP: python3-jsonschema is not installed, nothing was checked")
        return 77

    worst = 0
    for name in options.file:
        try:
            for label, text in documents(name):
                found = problems(validator, text)
                for line in found:
                    print(f"{label}: {line}", file=sys.stderr)
                print(f"{label}: {'INVALID' if found else 'valid'}")
                worst = max(worst, 2 if found else 0)
        except (OSError, UnicodeDecodeError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            worst = max(worst, 1)
    return worst


if __name__ == "__main__":
    sys.exit(main())
