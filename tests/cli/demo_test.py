#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""doorbell demo: all paths and fault checks on a screen of 40 lines; its progress on a terminal only."""

import json
import os
import pty
import signal
import subprocess
import threading
import unittest

from harness import DOORBELL, WithFolder, doorbell, end_of, wait_for_work

LINES = 40


class Terminal:
    """The other end of a terminal, read by a thread."""

    def __init__(self):
        self.own, self.theirs = pty.openpty()
        self.text = b""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while True:
            try:
                part = os.read(self.own, 65536)
            except OSError:  # nobody holds the other end any more
                return
            self.text += part

    def close(self):
        os.close(self.theirs)
        self.reader.join()
        os.close(self.own)


class Demo(WithFolder):
    def test_one_screen_with_every_path_and_every_fault(self):
        terminal = Terminal()
        done = subprocess.run([DOORBELL, "demo", "--output", str(self.folder)], stdout=subprocess.PIPE,
                              stderr=terminal.theirs, text=True, timeout=200,
                              env={**os.environ, "TERM": "xterm", "COLUMNS": "120"})
        terminal.close()
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), LINES, done.stdout)
        self.assertTrue(all(character >= " " or character == "\n" for character in done.stdout))
        paths = list(json.loads(doorbell("list", "--json").stdout))[1:-1]
        for path in paths:
            self.assertRegex(done.stdout, rf"(?m)^  {path} .* OK( \[\d+\])?$")
        begin = next(i for i, line in enumerate(lines) if line.startswith("  found/injected"))
        kinds = lines[begin].split()[1:]
        self.assertEqual(kinds, "drop delay error corrupt misplace stale duplicate reorder removal".split())
        for line in lines[begin + 1:begin + 1 + len(paths)]:
            cells = line.split()[-len(kinds):]
            for kind, cell in zip(kinds, cells):
                if cell != "-":
                    found, injected = cell.split("/")
                    self.assertEqual(found, injected, line)
            self.assertRegex(cells[kinds.index("corrupt")], r"^[1-9]\d*/")
        self.assertRegex(done.stdout, r"(?m)^OK")
        folder, = self.folder.iterdir()
        result = self.valid(folder / "result.json")
        self.assertEqual({c["path"] for c in result["cells"]}, set(paths))
        self.assertEqual({f["path"] for f in result["faults"]}, set(paths))
        self.assertEqual([f["fault"] for f in result["faults"] if f["path"] == paths[0]], kinds)
        shown = [cell for line in lines[begin + 1:begin + 1 + len(paths)] for cell in line.split()[-len(kinds):]]
        self.assertEqual([f"{f['found']}/{f['injected']}" if f["injected"] else "-" for f in result["faults"]], shown)
        if (folder / "report.html").exists():
            self.assertIn(f"report  {folder / 'report.html'}", done.stdout)
            page = (folder / "report.html").read_text(encoding="utf-8")
            self.assertIn("faults were injected and every one was found", page)
            table = page[page.index("Faults found / injected"):]
            for cell in shown:
                self.assertIn(f">{cell}</td>", table)
        self.assertIn("help " + paths[0], done.stdout)  # what to try next
        # The progress line: percent, rate and what is done, drawn over and removed at the end.
        drawn = terminal.text.decode()
        self.assertRegex(drawn, r"\r\x1b\[K\[#+\.*\] +\d+ %  ")
        self.assertNotIn("\n", drawn)
        self.assertTrue(drawn.endswith("\r\x1b[K"), drawn[-100:])


    def test_ctrl_c_leaves_whole_files(self):
        process = subprocess.Popen([DOORBELL, "demo", "--output", str(self.folder)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        wait_for_work(process)
        process.send_signal(signal.SIGINT)
        out, err = end_of(process)
        self.assertIn(process.returncode, (0, 130), out + err)
        folder, = self.folder.iterdir()
        self.assertEqual(self.valid(folder / "result.json")["stop_reason"], "signal")
        self.assertTrue((folder / "runs.csv").read_text(encoding="utf-8").startswith("path,"))
        if "not written: " not in out:
            page = (folder / "report.html").read_text(encoding="utf-8")
            self.assertTrue(page.rstrip().endswith("</html>"))
            self.assertIn("stopped by signal", page)


class LongWork(WithFolder):
    RUN = ("nvme", "--duration", "2.5", "--repeats", "1", "--warmup", "0", "--write-io", "0", "--read-io", "1",
           "--timeout", "60", "--late-after", "50")

    def test_progress_on_a_terminal(self):
        terminal = Terminal()
        done = subprocess.run([DOORBELL, *self.RUN], stdout=subprocess.PIPE, stderr=terminal.theirs, text=True,
                              timeout=120, env={**os.environ, "TERM": "xterm"})
        terminal.close()
        self.assertEqual(done.returncode, 0, done.stdout)
        drawn = terminal.text.decode()
        self.assertRegex(drawn, r"\[#+\.+\] +\d+ %  [\d.]+ (?:[kMG] )?ops/s, \d+ s left  read")
        self.assertTrue(drawn.endswith("\r\x1b[K"))

    def test_no_progress_in_a_pipe(self):
        done = doorbell(*self.RUN)
        self.assertEqual((done.returncode, done.stderr), (0, "1 repeat of 2.5 s, about 2 s\n"))
        done = doorbell(*self.RUN, "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
