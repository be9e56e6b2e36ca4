#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`mpirun doorbell sweep`: pairs of ranks of this host, and of hosts that are network namespaces. Needs no hardware."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import unittest

import ranks
import sweeps
from harness import DOORBELL, ROOT, doorbell, end_of, wait_for_cpu, wait_until

PROGRAM = os.path.abspath(DOORBELL)
PLAN = """\
name: pairs
title: every two ranks
command: net
options: {payload: 1400, count: 500, timeout: 20, settle: 5}
matrix: {stream: [tcp, udp]}
pairs: {}
"""
LONG = """\
name: long
command: net
options: {stream: tcp, payload: 4000, duration: 60, repeats: 1, warmup: 0, timeout: 20}
pairs: {directions: one, at-once: disjoint}
"""
NEEDS_RANKS = unittest.skipIf(ranks.why_not(), ranks.why_not())
NEEDS_HOSTS = unittest.skipIf(ranks.why_no_hosts(), ranks.why_no_hosts())


class WithFolder(sweeps.WithFolder):
    text = PLAN

    def sweep(self, count, *arguments, plan=None, code=0):
        done = ranks.run(count, PROGRAM, "sweep", plan or self.plan(), "--out", self.out, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def lines(self):
        self.is_valid(self.out / "results.jsonl")
        return super().lines()

    def pairs(self):
        return [(x["options"]["from-rank"], x["options"]["to-rank"]) for x in self.lines()]


@NEEDS_RANKS
class OnOneHost(WithFolder):
    def test_two_ranks_measure_in_both_directions(self):
        page = self.folder / "page.html"
        done = self.sweep(2, "--html", page)
        self.assertIn("OK: 4 of 4 runs complete", done.stdout)
        host = os.uname().nodename
        lines = self.lines()
        self.assertEqual([(x["options"]["stream"], *pair) for x, pair in zip(lines, self.pairs())],
                         [("tcp", 0, 1), ("tcp", 1, 0), ("udp", 0, 1), ("udp", 1, 0)])
        for line in lines:
            cell, = line["result"]["cells"]
            self.assertEqual({key: cell["cell"][key] for key in ("stream", "from_rank", "from_host", "to_rank", "to_host")},
                             {"stream": line["options"]["stream"], "from_rank": line["options"]["from-rank"],
                              "from_host": host, "to_rank": line["options"]["to-rank"], "to_host": host})
            self.assertEqual(cell["net"]["sent"], 500)
            self.assertGreater(cell["verify"]["checked"], 0)
        rows = list(csv.DictReader((self.out / "runs.csv").read_text(encoding="utf-8").splitlines()))
        self.assertEqual([row["cell"] for row in rows], ["0", "1", "2", "3"])
        self.assertIn(f"from_rank=1;from_host={host};to_rank=0", rows[1]["parameters"])
        self.assertEqual(len(list(self.out.iterdir())), 4, "nothing else is left")
        text = page.read_text(encoding="utf-8")
        self.assertIn(f">{host}:1<", text)
        try:
            from doorbell_report import drawing
        except ImportError:
            return
        if drawing.available():
            self.assertIn("of each pair", text)

    def test_it_goes_on_with_what_is_missing(self):
        self.sweep(2, "--only", "from=1,stream=udp")
        self.assertEqual(self.pairs(), [(1, 0)])
        done = self.sweep(2)
        self.assertIn("1 of 4 runs are there already", done.stderr)
        self.assertEqual([x["cell"] for x in self.lines()], [3, 0, 1, 2])
        self.assertIn("4 of 4 runs are there already", self.sweep(2).stderr)
        other = self.sweep(3, code=1)
        self.assertIn("it holds the results of another plan", other.stderr)

    def test_two_sweeps_are_compared_pair_by_pair(self):
        self.sweep(2, "--only", "stream=tcp")
        first = self.out
        self.out = self.folder / "again"
        self.sweep(2, "--only", "stream=tcp")
        done = doorbell("compare", first, self.out, "--json", self.json)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ratios = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual(ratios["not_comparable"], 0)
        self.assertEqual(len(ratios["cells"]), 2)

    def test_pairs_without_a_common_rank_run_at_the_same_time(self):
        with subprocess.Popen(ranks.command(4, PROGRAM, "sweep", self.plan(LONG), "--out", self.out), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=ranks.environment()) as process:
            try:
                wait_until(lambda: process.poll() is not None or len(clients_of(process.pid)) == 2, "two clients at a time")
                self.assertIsNone(process.poll(), process.stderr and process.returncode)
                process.send_signal(signal.SIGINT)
            finally:
                out, err = end_of(process)
        self.assertNotEqual(process.returncode, 0, out + err)
        wait_until(lambda: not any(str(self.out) in words for words in command_lines()), "the end of all ranks")

    def test_pairs_that_run_at_the_same_time_do_not_meet_each_other(self):
        done = self.sweep(4, "--only", "stream=tcp", plan=self.plan(PLAN.replace("{}", "{directions: one, at-once: disjoint}")))
        self.assertIn("OK: 6 of 6 runs complete", done.stdout)
        for line in self.lines():
            cell, = line["result"]["cells"]
            self.assertEqual((cell["net"]["sent"], cell["net"]["unique"]), (500, 500))

    def test_one_rank_needs_no_mpi(self):
        plain = self.plan(PLAN.replace("pairs: {}\n", ""))
        done = subprocess.run(ranks.command(1, PROGRAM, "sweep", plain, "--list"), capture_output=True, text=True, timeout=60,
                              env=ranks.environment(DOORBELL_LIBMPI="/nonexistent/libmpi.so"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_what_is_wrong_with_the_plan_is_said_once(self):
        for text, says in ((PLAN.replace("pairs: {}\n", ""), "2 ranks have been started, and the plan has no key 'pairs'"),
                           (PLAN.replace("{}", "{network: 203.0.113.0/24}"), "has no address in it"),
                           (PLAN.replace("net\n", "nvme\n").replace("stream: [tcp, udp]", "batch-size: [1, 8]")
                            .replace("payload: 1400, count: 500, timeout: 20, settle: 5", "timeout: 20"),
                            "doorbell nvme has no --listen and --connect")):
            done = self.sweep(2, plan=self.plan(text), code=1)
            self.assertEqual(done.stderr.count(says), 1, done.stderr)
            self.assertFalse(self.out.exists())

    def test_a_list_says_which_ranks(self):
        done = self.sweep(2, "--list")
        host = os.uname().nodename
        self.assertIn(f"--stream=tcp  # from {host}:1 to {host}:0", done.stdout)
        self.assertFalse(self.out.exists())

    def test_a_cell_that_cannot_run_fails_with_both_reasons_and_the_others_go_on(self):
        # Nobody may have an interface of this name.
        done = self.sweep(2, plan=self.plan(PLAN.replace("matrix: {stream: [tcp, udp]}",
                                                         "cells: [{stream: tcp, link: nolink0}, {stream: tcp}]")), code=1)
        lines = self.lines()
        self.assertEqual([x["exit_code"] for x in lines], [1, 1, 0, 0])
        self.assertIn("nolink0", lines[0]["error"])
        self.assertIn("rank ", lines[0]["error"])
        self.assertIn("FAILED: 2 of 4 runs complete", done.stdout)


class WithoutALauncher(WithFolder):
    def test_pairs_need_one(self):
        done = doorbell("sweep", self.plan(), "--out", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no MPI launcher has started this process", done.stderr)
        self.assertFalse(self.out.exists())
        listed = doorbell("sweep", self.plan(), "--list")
        self.assertEqual((listed.returncode, len(listed.stdout.splitlines())), (0, 2), listed.stderr)

    def test_every_plan_of_pairs_that_comes_with_doorbell_is_whole(self):
        for name in ("pairs-net", "pairs-rdma"):
            for more in ([], ["--profile", "quick"]):
                done = doorbell("sweep", ROOT / "plans" / f"{name}.yaml", "--list", *more)
                self.assertEqual(done.returncode, 0, done.stderr)

    def start(self, **more):
        return subprocess.run([PROGRAM, "sweep", str(self.plan()), "--out", str(self.out)], capture_output=True, text=True,
                              timeout=60, env=ranks.environment(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", **more))

    def test_an_mpi_that_is_not_there_or_none_is_named(self):
        done = self.start(DOORBELL_LIBMPI="/nonexistent/libmpi.so")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("/nonexistent/libmpi.so", done.stderr)
        other = self.start(DOORBELL_LIBMPI="libc.so.6")
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertIn("it does not say which MPI it is", other.stderr)

    @NEEDS_RANKS
    def test_a_library_that_another_launcher_belongs_to_is_named(self):
        # Without its launcher, the library is a world of one rank.
        done = self.start()
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("it belongs to another launcher", done.stderr)

    def test_an_endless_run_between_two_processes_reports_when_it_is_stopped(self):
        for stream in ("tcp", "udp"):
            with subprocess.Popen([PROGRAM, "net", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as server:
                try:
                    to = server.stderr.readline().split()[-1]
                    code, out, err = self.client(stream, to)
                    self.assertEqual(code, 130, out + err)
                    self.assertEqual(server.wait(timeout=60), 0, server.stderr.read())
                finally:
                    server.kill()
            result = self.valid()
            cell, = result["cells"]
            self.assertEqual((result["stop_reason"], result["complete"]), ("signal", False))
            self.assertGreater(cell["metrics"]["ops"], 0)

    def client(self, stream, to):
        command = [PROGRAM, "net", "--stream", stream, "--payload", "1400", "--infinite", "--connect", to, "--json", str(self.json)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_for_cpu(process, 0.2)
            process.send_signal(signal.SIGINT)
            out, err = end_of(process)
        return process.returncode, out, err

    def test_a_server_does_not_wait_for_ever(self):
        for path, more in (("net", []), ("rdma", ["--provider", "verbs", "--device", "none0"])):
            done = doorbell(path, "--listen", "127.0.0.1:0", "--listen-wait", "0.1", *more)
            self.assertEqual(done.returncode, 1 if path == "net" else done.returncode, done.stderr)
            self.assertNotEqual(done.returncode, 0)
        self.assertIn("no client is waited for", doorbell("net", "--listen-wait", "1").stderr)


def command_lines():
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass  # it has ended between the two looks
    return found


def descendants(pid):
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in path.read_text(encoding="utf-8").split():
                found += [int(child), *descendants(int(child))]
        except OSError:
            pass
    return found


def clients_of(pid):
    """The processes below it that run the sending end of a cell."""
    found = []
    for child in descendants(pid):
        try:
            if b"--connect=" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
        except OSError:
            pass
    return found


@NEEDS_HOSTS
class OnHostsOfTheirOwn(WithFolder):
    """Each rank in a network namespace with a name of its own, and two networks between them."""

    def on_hosts(self, count, text, *arguments, code=0, prepare="", flags=()):
        done = ranks.run_on_hosts(count, PROGRAM, "sweep", self.plan(text), "--out", self.out, *arguments, prepare=prepare,
                                  flags=flags)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_three_hosts_are_a_matrix(self):
        done = self.on_hosts(3, PLAN + "rounds: 1\n")
        self.assertIn("OK: 12 of 12 runs complete", done.stdout)
        lines = self.lines()
        self.assertEqual({(x["options"]["from-host"], x["options"]["to-host"]) for x in lines},
                         {(f"n{a}", f"n{b}") for a in range(3) for b in range(3) if a != b})
        for line in lines:
            cell, = line["result"]["cells"]
            self.assertEqual(cell["net"]["sent"], 500)
        self.assertIn("# ranks: n0 n1 n2", (self.out / "plan.yaml").read_text(encoding="utf-8"))

    def test_the_plan_chooses_the_network(self):
        self.on_hosts(2, PLAN.replace("{}", "{network: 10.78.0.0/24}"))
        for line in self.lines():
            connect, = [word for word in line["result"]["argv"] if word.startswith("--connect=")]
            self.assertRegex(connect, rf"--connect=10\.78\.0\.{line['options']['to-rank'] + 1}:\d+$")

    def test_a_pair_that_cannot_connect_fails_and_the_others_go_on(self):
        plan = PLAN.replace("{}", "{network: 10.78.0.0/24}").replace("timeout: 20", "timeout: 2").replace("[tcp, udp]", "[tcp]")
        done = self.on_hosts(3, plan, code=1,
                             prepare='nsenter --net="$folder/hosts/n1" ip route add prohibit 10.78.0.3/32')
        self.assertIn("FAILED: 4 of 6 runs complete", done.stdout)
        for line in self.lines():
            ends = {line["options"]["from-host"], line["options"]["to-host"]}
            if ends == {"n1", "n2"}:
                self.assertEqual(line["exit_code"], 1)
                self.assertIn(f"({line['options']['from-host']}): ", line["error"])
                self.assertIn("--connect 10.78.0.", line["error"])
            else:
                self.assertEqual((line["exit_code"], line["error"]), (0, None), line["options"])

    def test_a_rank_that_dies_fails_its_cells_alone(self):
        # Its host dies while the first cell, in which it listens, is on its way. --enable-recovery keeps the launcher from
        # ending the others, and then the launcher's exit code is 0 whatever rank 0 ends with.
        plan = LONG.replace("duration: 60", "duration: 5").replace(", at-once: disjoint", "")
        kill = f"""(
            until pgrep -f -- "^doorbell net .*--connect=10.77.0.3:" >/dev/null; do sleep 0.02; done
            for p in $(pgrep -f "^{PROGRAM} sweep") $(pgrep -f "^doorbell net"); do
              if nsenter --target $p --uts hostname | grep -q "^n2$"; then kill -KILL $p; fi
            done
          ) & """
        done = self.on_hosts(3, plan, prepare=kill, flags=("--enable-recovery",))
        self.assertIn("FAILED: 1 of 3 runs complete, exit code 1", done.stdout)
        lines = self.lines()
        self.assertEqual(len(lines), 3, done.stdout)
        for line in lines:
            if "n2" in (line["options"]["from-host"], line["options"]["to-host"]):
                self.assertEqual(line["exit_code"], 1, line["error"])
                self.assertIn("rank 2 (n2) has gone", line["error"])
                self.assertIsNone(line["result"])
            else:
                self.assertEqual((line["exit_code"], line["error"]), (0, None))


if __name__ == "__main__":
    unittest.main()
