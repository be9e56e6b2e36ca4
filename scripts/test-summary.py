#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Sums up what scripts/test.sh ran: names each failed and each skipped test with its reason.

Usage: test-summary.py FOLDER
FOLDER holds *.xml, ctest's JUnit files, and steps.tsv: NAME, passed|failed|skipped, REASON a line for
what is no ctest case. The last line is "N passed, N failed, N skipped". Exit code: 0, or 2 for a failure.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# How the tests inside one ctest case say that they were left out.
GTEST_SKIP = re.compile(r"^(?P<where>\S+:\d+): Skipped\n(?P<reason>.*(?:\n(?!\n|\[).*)*)\n+\[  SKIPPED \] (?P<name>\S+)",
                        re.MULTILINE)
UNITTEST_SKIP = re.compile(r"^(?P<name>\w+ \(\S+\))(?:\n.*)?? \.\.\. skipped ['\"](?P<reason>.*)['\"]$", re.MULTILINE)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def short(reason):
    reason = re.sub(r"^(skip(ped)?)\s*:\s*", "", " ".join(reason.split()), flags=re.IGNORECASE)
    return reason[:200]


def ctest_cases(path):
    """Yields (name, state, reason) of a JUnit file, and of the tests that a passed case left out."""
    suite = path.stem
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{suite}: {case.get('name')}"
        output = case.findtext("system-out") or ""
        failure = case.find("failure")
        if case.get("status") == "fail" or failure is not None:
            yield name, "failed", (failure.get("message") if failure is not None else "") or last_line(output)
            continue
        if case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None:
            yield name, "skipped", short(last_line(output))
            continue
        yield name, "passed", ""
        for pattern in (GTEST_SKIP, UNITTEST_SKIP):
            for found in pattern.finditer(output):
                yield f"{name} {found['name']}", "skipped", short(found["reason"])


def steps(path):
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield tuple((line.split("\t") + ["", ""])[:3])


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 1
    folder = pathlib.Path(arguments[0])
    results = [row for path in sorted(folder.glob("*.xml")) for row in ctest_cases(path)]
    results += steps(folder / "steps.tsv")
    count = {"passed": 0, "failed": 0, "skipped": 0}
    print()
    for name, state, reason in results:
        count[state] += 1
        if state != "passed":
            print(f"{state}: {name}{f' ({reason})' if reason else ''}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 2 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
