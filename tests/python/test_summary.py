# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""scripts/test-summary.py: what it makes of the files of ctest, GoogleTest and unittest."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ctest(*cases):
    return "<testsuite>" + "".join(cases) + "</testsuite>"


def case(name, status="run", inner="", output=""):
    return f'<testcase name="{name}" status="{status}">{inner}<system-out>{output}</system-out></testcase>'


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def summary(self):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "test-summary.py", self.folder], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.strip().splitlines()

    def test_cases_inside_count_and_are_named(self):
        self.file("release.xml", ctest(case("rings_test.Ring"), case("bundle")))
        self.file("release/rings_test.Ring.xml", '<testsuites><testsuite name="Ring">'
                  '<testcase name="Wraps" classname="Ring" status="run" result="completed"/>'
                  '<testcase name="Grows" classname="Ring" status="run" result="skipped">'
                  '<skipped message="/a/ring_test.cpp:7&#x0A;no memory for it"/></testcase></testsuite></testsuites>')
        self.assertEqual(self.summary(), (0, ["skipped: release: rings_test: Ring.Grows (no memory for it)",
                                              "2 passed, 0 failed, 1 skipped"]))

    def test_a_failed_case_is_named_with_its_message(self):
        self.file("asan.xml", ctest(case("rings_test.Ring", "fail", '<failure message=""/>')))
        self.file("asan/rings_test.Ring.xml", '<testsuite><testcase name="Wraps" classname="Ring" status="run">'
                  '<failure message="/a/ring_test.cpp:9&#x0A;Expected equality"/></testcase></testsuite>')
        self.assertEqual(self.summary(), (2, ["failed: asan: rings_test: Ring.Wraps (Expected equality)",
                                              "0 passed, 1 failed, 0 skipped"]))

    def test_a_program_that_fails_although_its_cases_pass(self):
        self.file("tsan.xml", ctest(case("rings_test.Ring", "fail", '<failure message=""/>', "x\nWARNING: data race\n")))
        self.file("tsan/rings_test.Ring.xml",
                  '<testsuite><testcase name="Wraps" classname="Ring" status="run"/></testsuite>')
        self.assertEqual(self.summary(), (2, ["failed: tsan: rings_test.Ring (WARNING: data race)",
                                              "1 passed, 1 failed, 0 skipped"]))

    def test_a_program_that_crashed_left_no_results(self):
        self.file("release.xml", ctest(case("Shapes/rings_test.Ring", "fail", '<failure message="SIGSEGV"/>')))
        self.assertEqual(self.summary(),
                         (2, ["failed: release: Shapes/rings_test.Ring (SIGSEGV)", "0 passed, 1 failed, 0 skipped"]))

    def test_parameterised_suites_have_their_file_without_slashes(self):
        self.file("release.xml", ctest(case("rings_test.All/Ring")))
        self.file("release/rings_test.All_Ring.xml", '<testsuite><testcase name="Wraps/0" classname="All/Ring" status="run"/>'
                  '<testcase name="Wraps/1" classname="All/Ring" status="run"/></testsuite>')
        self.assertEqual(self.summary(), (0, ["2 passed, 0 failed, 0 skipped"]))

    def test_whole_cases_that_are_skipped_and_steps(self):
        self.file("release.xml", ctest(case("guest", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>',
                                            "guest: skipped: no QEMU"), case("cli")))
        self.file("steps.tsv", "lint: ASCII\tpassed\t\nlint: formatting\tskipped\tclang-format is not installed\n"
                  "build tsan\tfailed\n")
        self.assertEqual(self.summary(), (2, ["skipped: release: guest (guest: skipped: no QEMU)",
                                              "skipped: lint: formatting (clang-format is not installed)",
                                              "failed: build tsan", "2 passed, 1 failed, 2 skipped"]))

    def test_a_program_that_was_not_built_has_failed(self):
        self.file("release.xml", ctest(case("rings_test_NOT_BUILT", "notrun",
                                            '<skipped message="Unable to find executable"/>'), case("cli")))
        self.assertEqual(self.summary(), (2, ["failed: release: rings_test_NOT_BUILT (Unable to find executable)",
                                              "1 passed, 1 failed, 0 skipped"]))

    def test_nothing_run_is_no_success(self):
        self.assertEqual(self.summary(), (2, ["0 passed, 0 failed, 0 skipped"]))

    def test_unittest_results_are_read(self):
        source = self.folder / "sample_test.py"
        source.write_text("import unittest\nclass Sample(unittest.TestCase):\n"
                          "    def test_good(self):\n        pass\n"
                          "    def test_bad(self):\n        self.assertEqual(1, 2)\n"
                          "    def test_parts(self):\n        with self.subTest(part=3):\n            self.fail('broken')\n"
                          "    @unittest.skip('not here')\n    def test_left_out(self):\n        pass\n", encoding="utf-8")
        out = self.folder / "release" / "cli.xml"
        done = subprocess.run([sys.executable, ROOT / "tests" / "run_unittest.py", source, out], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.file("release.xml", ctest(case("cli", "fail", '<failure message=""/>')))
        self.assertEqual(self.summary(), (2, ["failed: release: cli: Sample.test_bad (AssertionError: 1 != 2)",
                                              "skipped: release: cli: Sample.test_left_out (not here)",
                                              "failed: release: cli: Sample.test_parts (test_parts "
                                              "(sample_test.Sample.test_parts) (part=3): AssertionError: broken)",
                                              "1 passed, 2 failed, 1 skipped"]))

    def test_unittest_without_cases_is_no_success(self):
        source = self.folder / "empty_test.py"
        source.write_text("import unittest\n", encoding="utf-8")
        done = subprocess.run([sys.executable, ROOT / "tests" / "run_unittest.py", source, self.folder / "x.xml"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
