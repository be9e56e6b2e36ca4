#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Runs unittest cases and writes what became of each as JUnit XML, which unittest alone cannot.

Usage: run_unittest.py [--short|--long] FILE-OR-FOLDER RESULTS.xml [NAME...]
Of a folder, test_*.py are run. A NAME is Class or Class.test_case. --short leaves out, and --long takes alone, the cases
that are marked, or whose class is, by an attribute `long`: those that `make test` leaves to `make test-all`.
Exit code: 0; 2 when a case failed or there is none; 77 when every case was skipped.
"""

import importlib
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree


class Results(unittest.TextTestResult):
    """Also keeps each case's end, for the XML."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.suite = ElementTree.Element("testsuite")
        self.began = time.monotonic()

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def keep(self, test, what=None, message=""):
        *where, name = test.id().split(".")
        case = ElementTree.SubElement(self.suite, "testcase", name=name, classname=".".join(where[-1:]),
                                      time=f"{time.monotonic() - self.began:.3f}")
        if what is not None:
            ElementTree.SubElement(case, what, message=message)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.keep(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.keep(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.keep(test, "failure", f"{err[0].__name__}: {err[1]}")

    def addError(self, test, err):
        super().addError(test, err)
        self.keep(test, "failure", f"{err[0].__name__}: {err[1]}")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.keep(test, "failure", f"{subtest}: {err[0].__name__}: {err[1]}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.keep(test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.keep(test, "failure", "succeeds, but is marked as an expected failure")


def cases(suite):
    """Each case of a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


def is_long(case):
    return getattr(case, "long", False) or getattr(getattr(case, case._testMethodName, None), "long", False)


def main(arguments):
    length = arguments.pop(0) if arguments[:1] in (["--short"], ["--long"]) else None
    if len(arguments) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    what, out, names = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]), arguments[2:]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)  # results of an earlier run are not this one's
    loader = unittest.defaultTestLoader
    if what.is_dir():
        tests = loader.discover(str(what))
    else:
        sys.path.insert(0, str(what.parent))
        module = importlib.import_module(what.stem)
        tests = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    if length:
        tests = unittest.TestSuite(one for one in cases(tests) if is_long(one) == (length == "--long"))
    results = unittest.TextTestRunner(verbosity=2, resultclass=Results).run(tests)
    ElementTree.ElementTree(results.suite).write(out, encoding="unicode")
    if not results.wasSuccessful() or (results.testsRun == 0 and not results.skipped):
        return 2
    return 77 if len(results.skipped) >= results.testsRun else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
