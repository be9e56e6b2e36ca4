# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""python/nvme.ipynb from an installed wheel: it runs, what it reads is right, and it is not slow beside the command. DOORBELL is
the program of the same build."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "python" / "nvme.ipynb"
PROGRAM = os.environ["DOORBELL"]
# Of the command's rate, in the best of nine turns: what else the machine does may slow either side of a turn. The first turn
# above it decides.
MARK = 0.9

# The last cell of the notebook in this test: the program itself beside the array, in turns.
BESIDE = f"""
import json, subprocess
def program_rate():
    done = subprocess.run([{PROGRAM!r}, "nvme", "--controller", CONTROLLER, "--size", "128KiB", "--in-flight", "32", "--write-io", "8192",
                           "--read-io", "8192", "--repeats", "1", "--duration", "0.5", "--warmup", "0", "--quiet", "--json", "-"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["cells"][0]["nvme"]["read"]["bytes_per_s"]
disk = doorbell.nvme.open(CONTROLLER)
disk.write(0, data)
array = disk.empty(GIB // 8, "uint64")
turns = []
for turn in range(9):
    rates = array_rate(), program_rate()
    turns.append(rates)
    if rates[0] / rates[1] > {MARK}:
        break
disk.close()
print(json.dumps(turns))
"""


class Notebook(unittest.TestCase):
    def test_it_holds_no_output(self):
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
            self.assertFalse(cell.get("outputs"))
            self.assertIsNone(cell.get("execution_count"))

    @unittest.skipIf(any(importlib.util.find_spec(name) is None for name in ("nbclient", "ipykernel", "pandas")),
                     "python3-nbclient, python3-ipykernel or python3-pandas is not installed")
    def test_it_runs_and_is_not_slow(self):
        import nbclient
        import nbformat
        book = nbformat.read(NOTEBOOK, 4)
        book.cells.append(nbformat.v4.new_code_cell(BESIDE))
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(PYDEVD_DISABLE_FILE_VALIDATION="1", JUPYTER_PLATFORM_DIRS="1", IPYTHONDIR=folder,
                              JUPYTER_PATH=f"{folder}/share/jupyter")
            # The kernel of this interpreter, which has the package, and not the system's.
            subprocess.run([sys.executable, "-m", "ipykernel", "install", "--prefix", folder, "--name", "doorbell"],
                           capture_output=True, timeout=60, check=True)
            nbclient.NotebookClient(book, timeout=300, kernel_name="doorbell", resources={"metadata": {"path": folder}}).execute()
        outputs = [[o for o in cell.outputs] for cell in book.cells if cell.cell_type == "code"]
        text = json.dumps([o for cell in outputs for o in cell])
        self.assertNotIn('"output_type": "error"', text)
        self.assertIn("<doorbell.Result: OK, 1 cell>", text)
        self.assertIn("all of it right", text)
        self.assertIn("corrupt', 2)", text.replace('"', "'"))
        self.assertEqual(outputs[-2][-1]["data"]["text/plain"], "True")
        self.assertTrue(any("display_data" == o["output_type"] for o in outputs[1]), "progress is shown")

        turns = json.loads(outputs[-1][-1]["text"])
        ratios = [array / program for array, program in turns]
        shown = ", ".join(f"{array / 1e9:.2f}/{program / 1e9:.2f}" for array, program in turns)
        print(f"array/program in GB/s: {shown}")
        self.assertGreater(max(ratios), MARK, shown)


if __name__ == "__main__":
    unittest.main()
