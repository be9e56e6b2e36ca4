# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""doorbell.run() from an installed wheel, held against the command. DOORBELL is the program of the same build."""

import ast
import importlib.util
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import doorbell

PROGRAM = os.environ["DOORBELL"]
SHORT = {"write_io": 2000, "read_io": 2000, "duration": 0.1, "repeats": 2}


def quick(**options):
    return doorbell.run("nvme", progress=False, **{**SHORT, **options})


class Results(unittest.TestCase):
    def test_it_is_the_record(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "r.json"
            result = quick(in_flight=4, json=file)
            written = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(result.record, written)
        self.assertTrue(result.ok)
        self.assertEqual((result.exit_code, result.verdict, result.complete, result.stop_reason), (0, "OK", True, "done"))
        (cell,), (recorded,) = result.cells, written["cells"]
        self.assertEqual(cell.path, "nvme")
        self.assertEqual(cell.parameters["in_flight"], "4")
        self.assertEqual(cell.figures.operations, recorded["metrics"]["ops"])
        self.assertEqual(cell.figures.p50_ns, recorded["metrics"]["latency_ns"]["p50"])
        self.assertEqual(cell.parts["read"].bytes, recorded["nvme"]["read"]["bytes"])
        self.assertEqual(cell.repeats_operations_per_s, [r["ops_per_s"] for r in recorded["repeats"]])
        self.assertEqual(cell.checks.checked, recorded["verify"]["checked"])
        self.assertEqual(cell.errors, recorded["errors"])

    def test_a_frame_is_that_of_the_file(self):
        import doorbell_report
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "r.json"
            ours = quick(json=file).frame()
            theirs = doorbell_report.load(file)
        self.assertEqual(len(ours), 1)
        ours, theirs = ours.drop(columns="file"), theirs.drop(columns="file")
        self.assertEqual(list(ours.columns), list(theirs.columns))
        self.assertTrue(ours.equals(theirs))

    def test_wrong_data_is_a_result(self):
        result = quick(fault={"corrupt": 0.05}, seed=3)
        self.assertEqual(result.exit_code, 2)
        self.assertFalse(result.ok)
        self.assertGreater(result.cells[0].checks.corrupt, 0)
        self.assertEqual(result.cells[0].checks.failed, result.cells[0].checks.corrupt)
        self.assertIn(f"{result.cells[0].checks.corrupt} corrupt", result.verdict)
        self.assertIn("FAILED", repr(result))

    def test_every_path_runs(self):
        runs = {"nvme": SHORT, "rdma": {"iters": 200}, "cxi": {"iters": 200}, "net": {"duration": 0.2},
                "qdma": {"iters": 50},
                "qdma-validate": {"buffer_size": "64Ki", "ddr_only": True, "threads": 2, "bandwidth_duration": 0.02},
                "qdma-tune": {"largest": "256Ki", "duration": 0.02}}
        for path, options in runs.items():
            with self.subTest(path):
                result = doorbell.run(path, progress=False, **options)
                self.assertTrue(result.ok, result.verdict)
                self.assertTrue(result.cells)

    def test_values_are_as_typed(self):
        result = quick(verify=False, less_timing=True, direct=None)
        self.assertEqual(result.cells[0].checks.mode, "none")
        self.assertIsNone(result.cells[0].figures.p50_ns)
        self.assertEqual(quick(verify=True, less_timing=False, warmup=0.00001).cells[0].checks.mode, "full")

    def test_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "r.html"
            result = quick(html=page)
            self.assertIn(result.verdict, page.read_text(encoding="utf-8"))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.assertTrue(quick(html=pathlib.Path(folder) / "none" / "r.html").ok)
            self.assertIn("html", str(said[0].message))


class Refusals(unittest.TestCase):
    def test_they_are_the_commands(self):
        for options, code in (({"in_flight": 0}, 1), ({"no_such": 1}, 1), ({"controller": "acme"}, 1),
                              ({"controller": "0000:ff:1f.7"}, 77), ({"verify": "maybe"}, 1)):
            words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
            typed = subprocess.run([PROGRAM, "nvme", *words], capture_output=True, text=True, timeout=60, check=False)
            with self.assertRaises(doorbell.Error) as raised:
                doorbell.run("nvme", **options)
            self.assertEqual(raised.exception.exit_code, code)
            self.assertEqual(typed.returncode, code)
            self.assertIn(str(raised.exception), typed.stderr)
            if raised.exception.hint:
                self.assertIn(raised.exception.hint, typed.stderr)

    def test_an_unknown_path(self):
        with self.assertRaisesRegex(doorbell.Error, "'acme' is not one of nvme"):
            doorbell.run("acme")

    def test_one_at_a_time(self):
        begun, may_end = threading.Event(), threading.Event()

        def progress(*_):
            begun.set()
            may_end.wait(60)

        other = threading.Thread(target=lambda: quick_of(progress))
        quick_of = lambda p: doorbell.run("nvme", progress=p, **{**SHORT, "duration": 0.5})
        other.start()
        self.assertTrue(begun.wait(60))
        try:
            with self.assertRaisesRegex(doorbell.Error, "another run is under way"):
                quick()
        finally:
            may_end.set()
            other.join(60)
        self.assertTrue(quick().ok)


class Progress(unittest.TestCase):
    def test_it_is_called_by_this_thread(self):
        seen = []
        doorbell.run("nvme", progress=lambda *now: seen.append((threading.get_ident(), *now)), **{**SHORT, "duration": 0.5})
        self.assertTrue(seen)
        for thread, share, phase, operations in seen:
            self.assertEqual(thread, threading.get_ident())
            self.assertTrue(math.isnan(share) or 0 <= share <= 1, share)
            self.assertIn(phase, ("write", "read", "warm-up"))
            self.assertGreaterEqual(operations, 0)
        self.assertEqual(sorted(now[3] for now in seen), [now[3] for now in seen])

    def test_its_exception_ends_the_run(self):
        class Enough(Exception):
            pass

        def progress(*_):
            raise Enough
        with self.assertRaises(Enough):
            doorbell.run("nvme", progress=progress, **{**SHORT, "duration": 600})
        self.assertTrue(quick().ok)

    def test_ctrl_c_has_the_result(self):
        program = ("import doorbell\n"
                   "def progress(share, phase, operations):\n    print('goes on', flush=True)\n"
                   "try:\n    doorbell.run('nvme', duration=600, warmup=0, progress=progress)\n"
                   "except KeyboardInterrupt as e:\n"
                   "    print(type(e).__name__, e.result.exit_code, e.result.stop_reason, e.result.complete,"
                   " e.result.cells[0].figures.operations > 0)\n")
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        with child:
            self.assertEqual(child.stdout.readline(), "goes on\n")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.stdout.read().splitlines()[-1], "Interrupted 130 signal False True")
            self.assertEqual(child.wait(60), 0)

    def test_ctrl_c_before_there_is_progress(self):
        # A device that takes a minute to come up says nothing meanwhile.
        program = ("import doorbell, threading, os, signal\n"
                   "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                   "try:\n    doorbell.run('nvme', controller='model:latency=20ms', duration=600, write_io=100000)\n"
                   "except KeyboardInterrupt:\n    print('ended')\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.stdout, done.stderr), ("ended\n", ""))


class Types(unittest.TestCase):
    def test_stubs_name_all_that_is_there(self):
        folder = pathlib.Path(doorbell.__file__).parent
        self.assertTrue((folder / "py.typed").is_file())
        stub = ast.parse((folder / "_native.pyi").read_text(encoding="utf-8"))
        classes = {node.name: {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
                   for node in stub.body if isinstance(node, ast.ClassDef)}
        for name in ("Figures", "Checks", "Cell", "Result", "Blocks"):
            there = {member for member in vars(getattr(doorbell._native, name)) if not member.startswith("_")}
            self.assertEqual(there, {member for member in classes[name] if not member.startswith("_")})

    def test_all_that_is_named_is_there(self):
        for name in doorbell.__all__:
            self.assertTrue(hasattr(doorbell, name), name)

    def test_it_is_the_installed_one(self):
        source = pathlib.Path(__file__).parents[2]
        self.assertFalse(pathlib.Path(doorbell.__file__).is_relative_to(source / "python"))
        self.assertTrue(importlib.util.find_spec("doorbell_report").origin.startswith(sys.prefix))
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertTrue(said.startswith(f"doorbell {doorbell.__version__} "), said)


if __name__ == "__main__":
    unittest.main()
