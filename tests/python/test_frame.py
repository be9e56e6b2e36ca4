# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Results in a notebook: the DataFrame, the package, and the example."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "python"
sys.path[:0] = [str(HERE), str(PYTHON)]

import synthetic  # noqa: E402
import doorbell_report  # noqa: E402
from doorbell_report import results  # noqa: E402


def missing(*modules):
    return [m for m in modules if importlib.util.find_spec(m) is None]


@unittest.skipIf(missing("pandas"), "python3-pandas is not installed")
class Frame(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        synthetic.write(holder.name, 100)
        cls.folder = holder.name
        cls.frame = doorbell_report.load(holder.name)

    def test_a_row_a_cell_and_run(self):
        self.assertEqual(len(self.frame), 100)
        self.assertEqual(self.frame["verdict"].value_counts().to_dict(),
                         {"ok": 65, "failed": 15, "unverified": 10, "interrupted": 5, "skipped": 5})
        self.assertEqual(sorted(self.frame["path"].dropna().unique()), sorted(synthetic.PATHS))

    def test_figures_are_those_of_the_files(self):
        line = json.loads((pathlib.Path(self.folder) / "nvme" / "results.jsonl").read_text(encoding="utf-8").splitlines()[0])
        cell = line["result"]["cells"][0]
        row = self.frame[(self.frame["path"] == "nvme") & (self.frame["sweep_cell"] == 0)].iloc[0]
        for name, value in (("ops_per_s", cell["metrics"]["ops_per_s"]), ("latency_p99_ns", cell["metrics"]["latency_ns"]["p99"]),
                            ("cell_io_bytes", 512), ("ops_per_s_ci_low", cell["spread"]["ops_per_s"]["ci_low"]),
                            ("cpu_ns_per_op", cell["cost"]["cpu_ns_per_op"]), ("checked_ops", cell["verify"]["checked"]),
                            ("nvme_read_ops_per_s", cell["nvme"]["read"]["ops_per_s"]), ("option_verify", "on"), ("wall_s", 1.5)):
            self.assertEqual(row[name], value, name)

    def test_a_run_without_a_result_is_a_row_too(self):
        lost = self.frame[self.frame["ended"] == "signal"]
        self.assertEqual(len(lost), 5)
        self.assertTrue(lost["ops_per_s"].isna().all())
        self.assertTrue(lost["error"].str.contains("segmentation fault").all())

    def test_numbers_are_numbers(self):
        for name in ("ops_per_s", "bytes_per_s", "latency_p50_ns", "substep_build_ns", "error_timeout_ops", "net_lost_percent"):
            self.assertEqual(self.frame[name].dtype.kind, "f", name)

    def test_column_names_say_the_unit(self):
        units = re.compile(r"(_ns|_s|_bytes|_ops|_percent|_fraction|_ci_level|_per_op|_per_completion|_gbps|_mpps)(_ci_low|_ci_high)?$|^ops$|^bytes$")
        for name in ("ops", "bytes", "ops_per_s", "latency_mean_ns", "elapsed_s", "checked_bytes", "p50_ns_ci_high"):
            self.assertIn(name, self.frame.columns)
            self.assertRegex(name, units)
        measured = [c for c in self.frame.columns if re.match("(latency|ops|bytes|substep|error_|cpu|elapsed|checked|corrupt)", c)]
        self.assertGreater(len(measured), 30)
        for name in measured:
            self.assertRegex(name, units)

    def test_what_is_no_result_is_named(self):
        with tempfile.TemporaryDirectory() as empty, self.assertRaises(results.Unreadable) as refused:
            doorbell_report.load(empty)
        self.assertIn(empty, str(refused.exception))


class Package(unittest.TestCase):
    def test_pandas_is_not_imported_for_a_page(self):
        code = "import sys, doorbell_report, doorbell_report.__main__; sys.exit('pandas' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(PYTHON)},
                                        check=False).returncode, 0)


class Example(unittest.TestCase):
    def test_it_holds_no_output(self):
        for cell in json.loads((PYTHON / "example.ipynb").read_text(encoding="utf-8"))["cells"]:
            self.assertFalse(cell.get("outputs"))

    @unittest.skipIf(missing("nbclient", "ipykernel", "pandas", "matplotlib"),
                     "python3-nbclient, python3-ipykernel, python3-pandas or python3-matplotlib is not installed")
    def test_it_runs(self):
        import nbclient
        import nbformat
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(folder, 24, ("rdma",))
            os.environ.update(DOORBELL_RESULTS=folder, PYTHONPATH=str(PYTHON), PYDEVD_DISABLE_FILE_VALIDATION="1",
                              JUPYTER_PLATFORM_DIRS="1", IPYTHONDIR=folder, MPLBACKEND="module://matplotlib_inline.backend_inline")
            book = nbformat.read(PYTHON / "example.ipynb", 4)
            nbclient.NotebookClient(book, timeout=200, resources={"metadata": {"path": folder}}).execute()
        outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
        self.assertFalse([o for o in outputs if o.output_type == "error"])
        self.assertTrue(any("image/png" in o.get("data", {}) for o in outputs), "the picture")
        self.assertIn("(24, ", str(outputs[0]))

    test_it_runs.long = True  # half a minute in a notebook's kernel; `make test` leaves it to `make test-all`


if __name__ == "__main__":
    unittest.main()
