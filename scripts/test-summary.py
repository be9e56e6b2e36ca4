#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Sums up what scripts/test.sh ran: names each failed and each skipped test with its reason.

Usage: test-summary.py FOLDER
FOLDER holds PRESET.xml, ctest's JUnit file of a run; PRESET/NAME.xml, the results of the cases inside the ctest case NAME,
as GoogleTest and tests/run_unittest.py write them; and steps.tsv: NAME, passed|failed|skipped, REASON a line for what is no
ctest case. A ctest case that left no file of its own counts as one. The last line is "N passed, N failed, N skipped".
Exit code: 0, or 2 for a failure.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def short(reason):
    # GoogleTest begins with the place in the source.
    reason = re.sub(r"^\S+:\d+\n", "", reason)
    reason = re.sub(r"^(skip(ped)?)\s*:\s*", "", " ".join(reason.split()), flags=re.IGNORECASE)
    return reason[:200]


def cases_inside(path):
    """(name, state, reason) of each case in the file of a GoogleTest program or of tests/run_unittest.py."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    found = []
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failures, skipped = case.findall("failure"), case.find("skipped")
        if failures:
            found.append((name, "failed", short(failures[0].get("message") or "")))
        elif skipped is not None or case.get("result") == "skipped":
            found.append((name, "skipped", short(skipped.get("message") or "") if skipped is not None else ""))
        elif case.get("status") != "notrun":
            found.append((name, "passed", ""))
    return found


def ctest_cases(path):
    """(name, state, reason) of each ctest case of a run, or of the cases inside it where it tells them."""
    preset = path.stem
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        output = case.findtext("system-out") or ""
        failure = case.find("failure")
        inside = cases_inside(path.with_suffix("") / f"{name.replace('/', '_')}.xml")
        yield from ((f"{preset}: {name.split('.')[0]}: {each}", state, reason) for each, state, reason in inside)
        skipped = case.find("skipped")
        why = skipped.get("message") or "" if skipped is not None else ""
        # A case that could not be started (no program, no fixture) is "not run" as well, and that is a failure.
        left_out = case.get("status") == "disabled" or why.startswith("SKIP_")
        if case.get("status") == "fail" or failure is not None or (case.get("status") == "notrun" and not left_out):
            # It may have failed where no case did: a crash, a timeout, what a sanitizer finds at the end.
            if not any(state == "failed" for _, state, _ in inside):
                message = failure.get("message") if failure is not None else why
                yield f"{preset}: {name}", "failed", message or last_line(output)
        elif not inside:
            yield f"{preset}: {name}", *(("skipped", short(last_line(output))) if left_out else ("passed", ""))


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
