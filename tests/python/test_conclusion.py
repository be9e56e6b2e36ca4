# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The first sentence of a page, its numbers, warnings, commands and badges: they say what is so, and the worst first."""

import pathlib
import re
import shlex
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

from doorbell_report import conclusion, form, groups, notes, page, results  # noqa: E402
from samples import NEEDS_JINJA, Reader, cell, metrics, render, result, with_verify  # noqa: E402

ENVIRONMENT = {"host": "here", "cpu": "Example CPU", "cores": 4, "date_utc": "2026-11-27T04:02:11Z", "gpu": []}


def spread(rate, half=0.01, level=0.984375):
    of = {"median": rate, "ci_low": rate * (1 - half), "ci_high": rate * (1 + half), "ci_level": level, "noisy": half > 0.025}
    return {"ops_per_s": of, "bytes_per_s": of}


def of(op, size, rate, half=0.01, level=0.984375, **more):
    """A cell of RDMA whose rate, in bytes a second, has an interval of +-half."""
    return cell(path="rdma", cell={"op": op, "size_bytes": size, **more.pop("swept", {})}, spread=spread(rate, half, level), rdma={},
                metrics={**metrics(1000, [[8192, 1000]]), "ops_per_s": rate, "bytes_per_s": rate}, **more)


def sentence(*made):
    loaded = [one if isinstance(one, results.Result) else result([one], environment=ENVIRONMENT) for one in made]
    return conclusion.sentence(loaded, groups.group(loaded))


class Sentence(unittest.TestCase):
    END = "every byte checked; on a software model, on here, at 2026-11-27 04:02 UTC."

    def test_of_one_cell_is_its_figure(self):
        one = cell(cell={"op": "read", "io_bytes": 4096}, spread={})
        self.assertEqual(sentence(one), f"NVMe READ at 4 KiB: 200.0 kIOPS, 0.819 GB/s, median latency 9 us; {self.END}")
        self.assertIn("kIOPS (98 % interval 198.0 kIOPS to 202.0 kIOPS)", sentence(cell(spread=spread(2e5))))

    def test_of_many_is_the_greatest_difference_in_one_parameter(self):
        made = [of(op, size, rate) for op, size, rate in (("read", 4096, 1.0e9), ("write", 4096, 0.9e9), ("read", 65536, 5.25e9),
                                                          ("write", 65536, 2.5e9))]
        self.assertEqual(sentence(*made), f"READ at 64 KiB is 2.1 times WRITE (5.250 GB/s against 2.500 GB/s); {self.END}")

    def test_a_size_is_the_last_choice(self):
        self.assertTrue(sentence(of("read", 64, 1e6), of("read", 65536, 1e9)).startswith(
            "Throughput of 64 KiB is 1000 times that of 64 B (1.000 GB/s against 0.00100 GB/s);"))

    def test_intervals_that_overlap_show_no_difference(self):
        self.assertTrue(sentence(of("read", 64, 1.2e9, 0.2), of("write", 64, 1e9, 0.2)).startswith(
            "No difference is shown between READ and WRITE: their intervals overlap (1.200 GB/s against 1.000 GB/s);"))

    def test_the_same_is_no_difference(self):
        self.assertIn("No difference is shown between READ and WRITE (1.000 GB/s against 1.000 GB/s)",
                      sentence(of("read", 64, 1e9, level=0), of("write", 64, 1e9, level=0)))

    def test_a_smaller_difference_that_is_shown_comes_before_a_greater_that_is_not(self):
        made = [of("read", 64, 3e9, 0.9), of("write", 64, 1e9, 0.9), of("read", 4096, 1.1e9), of("write", 4096, 1e9)]
        self.assertIn("READ at 4 KiB is 1.10 times WRITE", sentence(*made))

    def test_what_was_measured_once_or_seldom_says_so(self):
        self.assertIn("each measured once)", sentence(of("read", 64, 2e9, level=0), of("write", 64, 1e9, level=0)))
        self.assertIn("of too few repeats to be sure)", sentence(of("read", 64, 2e9, level=0.75), of("write", 64, 1e9, level=0.75)))

    def test_of_latencies_the_longer_is_first(self):
        made = [cell(path="rdma", cell={"op": op, "part": "latency"}, metrics={"ops_per_s": 1.0, "latency_ns": {"p50": p50}}, rdma={})
                for op, p50 in (("read", 3000.0), ("write", 2000.0))]
        self.assertIn("Median latency of READ is 1.5 times that of WRITE (3 us against 2 us", sentence(*made))

    def test_of_the_parts_of_one_work_is_the_figure_of_each(self):
        def part(name, rate):
            return of("read", 4096, rate, swept={"part": name})
        self.assertEqual(sentence(result([part("latency", 1e6), part("rate", 2e9)], environment=ENVIRONMENT)),
                         f"RDMA READ at 4 KiB: median latency 9 us (latency), 2.000 GB/s (rate); {self.END}")
        other = part("rate", 2e9)
        other["cell"]["size_bytes"] = 64
        self.assertIn("2 cells of RDMA ran to the end;", sentence(result([part("latency", 1e6), other], environment=ENVIRONMENT)))

    def test_cells_that_differ_in_more_are_compared_by_their_numbers(self):
        made = [of("read", 64, 2e9, swept={"provider": "a"}), of("write", 4096, 1e9, swept={"provider": "b"})]
        self.assertIn("Throughput of cell 1 is 2.0 times that of cell 2", sentence(*made))

    def test_what_was_checked_differently_is_not_compared(self):
        fast = of("read", 64, 9e9)
        fast["verify"].update(mode="none", checked=0)
        said = sentence(fast, of("write", 64, 1e9))
        self.assertNotIn("READ is", said)
        self.assertIn("the data of 1 of 2 cells was not checked", said)

    def test_wrong_data_is_first_and_a_late_operation_is_none(self):
        bad, late = of("read", 64, 1e9), of("write", 64, 1e9)
        bad["verify"].update(corrupt=5)
        late["errors"]["late"] = 7
        said = sentence(of("send", 64, 1e9), late, bad)
        self.assertTrue(said.startswith("1 cell has data errors: cell 3 (5 corrupt); 1 cell has errors: cell 2 (7 late); "), said)
        self.assertNotIn("data errors", sentence(late))
        self.assertNotIn("every byte checked", said)

    def test_what_was_not_checked_is_said(self):
        self.assertIn("; no data was checked;", sentence(with_verify(mode="none", checked=0)))
        self.assertIn("; a sample of 0.1 of the data checked;", sentence(with_verify(mode="sample=0.1")))
        self.assertIn("; every byte checked but 7 of data not known to be written;", sentence(with_verify(unverifiable=7)))

    def test_a_round_that_was_not_checked_is_said(self):
        blind = with_verify(mode="full", checked=0)
        made = [results.Result(f"f:{i}", result([one], environment=ENVIRONMENT).data, "f", results.Run(0, i, {}, 0, "exit", "", 1.0))
                for i, one in enumerate((cell(), cell(), blind))]
        self.assertIn("; of 1 of 1 cell only a part of the data was checked;", conclusion.sentence(made, groups.group(made)))

    def test_what_was_cut_short_or_skipped_is_said(self):
        said = sentence(result([of("read", 64, 1e9)], complete=False, stop_reason="signal", environment=ENVIRONMENT),
                        result([], exit_code=77), of("write", 64, 1e9))
        self.assertIn("1 cell was cut short; 1 cell was skipped; ", said)

    def test_devices_are_what_they_are(self):
        def on(kind, name="x"):
            return of("read", 64, 1e9, device={"kind": kind, "name": name})
        self.assertIn("; on 0000:01:00.0, on here,", sentence(on("hardware", "0000:01:00.0")))
        self.assertIn("; on a software model and through the kernel, on here,", sentence(on("kernel"), on("model")))

    def test_of_nothing(self):
        self.assertEqual(conclusion.sentence([], []), "No cell was measured.")


@NEEDS_JINJA
class Faults(unittest.TestCase):
    def made(self, **last):
        checks = [{"path": "nvme", "fault": "drop", "injected": 10, "found": 10, "found_as": "timeouts"},
                  {"path": "nvme", "fault": "reorder", "injected": 0, "found": 0, "found_as": ""},
                  {"path": "rdma", "fault": "drop", "injected": 7, "found": 7, "found_as": "timeouts", **last}]
        wrong = bool(last)
        return result([cell(spread={}), cell(cell={"rw": "read"}, spread={})], faults=checks, exit_code=2 if wrong else 0, environment=ENVIRONMENT)

    def test_are_a_table(self):
        reader = Reader(render(self.made()))
        self.assertIn("17 faults were injected and every one was found", reader.words)
        table = reader.words[reader.words.index("Faults found / injected"):]
        self.assertRegex(table, r"(?s)^Faults found / injected\s*modeldropreorder\s*NVMe10/10-\s*RDMA7/7\s")

    def test_one_that_was_missed_comes_first_and_is_no_failure_of_a_cell(self):
        words = Reader(render(self.made(found=5, found_as="a <status>"))).words
        self.assertIn("1 fault check did not match: drop in RDMA (5 of 7 found); ", words)
        self.assertIn("fault drop of the RDMA model: 7 injected, 5 found as a <status>", words)
        self.assertNotIn("every one was found", words)
        self.assertIn("2 ok", words)

    def test_others_have_none(self):
        self.assertNotIn("Faults", Reader(render(result([cell()]))).words)


def swept(*made, options=None, code=0, source="f"):
    """A sweep's runs; None is one that left no result."""
    options = options or [{} for _ in made]
    return [results.Result(f"{source}:{i}", {"complete": False, "exit_code": 77} if one is None else result(
        one if isinstance(one, list) else [one]).data, source, results.Run(i, 0, options[i], 77 if one is None else code, "exit", "", 1.0))
            for i, one in enumerate(made)]


class Numbers(unittest.TestCase):
    def numbers(self, made):
        return [[row.number for row in group.rows] for group in groups.group(made)]

    def test_follow_the_results_not_the_groups(self):
        made = [cell(path="rdma", cell={"part": part, "size_bytes": size}) for size in (64, 128) for part in ("latency", "rate")]
        self.assertEqual(self.numbers([result(made)]), [["1", "3"], ["2", "4"]])

    def test_of_a_sweep_are_the_plans(self):
        self.assertEqual(self.numbers(swept(cell(), cell(), cell())[1:]), [["2", "3"]])
        self.assertEqual(self.numbers(swept([cell(), cell()], [cell(), cell()])), [["1.1", "1.2", "2.1", "2.2"]])
        self.assertEqual(self.numbers(swept(cell(), cell()) + swept(cell(), source="g")), [["1", "2", "3"]],
                         "of several sweeps they go on")

    def test_in_words(self):
        self.assertEqual(form.cells_named(["1", "2", "3", "7"]), "cells 1 to 3 and 7")
        self.assertEqual(form.cells_named(["4"]), "cell 4")
        self.assertEqual(form.cells_named(["1.1", "1.2", "2"]), "cells 1.1, 1.2 and 2")


class Skipped(unittest.TestCase):
    def test_cells_keep_their_parameters(self):
        def run(queues, kind="cpu"):
            return cell(cell={"queues": queues, "io_bytes": 512 * queues}, initiator={"kind": kind, "gpu": None})
        options = [{"num-queues": str(n), "lbas": str(n), "initiator": who} for n, who in ((1, "cpu"), (2, "cpu"), (4, "gpu"))]
        (group,) = groups.group(swept(run(1), run(2), None, options=options))
        hollow = group.rows[2]
        self.assertEqual(hollow.verdict[0], "skipped")
        self.assertEqual(hollow.parameters["queues"], 4)
        self.assertEqual(hollow.parameters["initiator"], "GPU")
        self.assertEqual([row.planned for row in group.rows], [{"lbas": 1}, {"lbas": 2}, {"lbas": 4}],
                         "what no parameter tells is said as the plan has it")
        self.assertNotIn("io_bytes", hollow.parameters, "nothing is made up")
        self.assertIn("queues 4", group.label(hollow))
        self.assertIn("GPU", group.label(hollow))

    def test_of_one_value_nothing_is_told(self):
        def run():
            return cell(cell={"queues": 1, "io_bytes": 512})
        (group,) = groups.group(swept(run(), None, options=[{"lbas": "1"}, {"lbas": "8"}]))
        self.assertEqual([row.planned for row in group.rows], [{"lbas": 1}, {"lbas": 8}])
        self.assertEqual(group.rows[1].parameters, {})
        self.assertEqual(group.label(group.rows[1]), "lbas 8")
        table = page.overview(group)
        column = [title for title, _ in table["head"]].index("lbas")
        self.assertEqual([row[column]["text"] for row in table["rows"]], ["1", "8"])

    def test_the_path_of_a_sweep_that_measured_nothing_is_its_plans(self):
        made = swept(None, None)
        found = groups.group(made, {"f": {"command": "qdma validate"}})
        self.assertEqual([g.title for g in found], ["QDMA"])
        self.assertEqual(groups.group([result([], argv=["doorbell", "cxi"])])[0].title, "Cassini")


@NEEDS_JINJA
class Badges(unittest.TestCase):
    def test_say_what_the_table_of_the_command_line_says(self):
        steady, noisy = cell(spread=spread(2e5)), cell(spread=spread(2e5, 0.1))
        words = Reader(render(result([steady] + [noisy] * 9))).words
        self.assertIn("9 noisy1 ok", words)
        alone = cell(spread=spread(2e5, 0.1), repeats=[])
        self.assertIn("1 ok", Reader(render(result([alone]))).words, "one repeat has no spread")
        self.assertIn("1 not verified", Reader(render(result([with_verify(mode="none", checked=0)]))).words)

    def test_late_is_no_data_error(self):
        late = cell(errors={"late": 3})
        words = Reader(render(result([late], exit_code=2))).words
        self.assertIn("FAILED: 3 late", words)
        self.assertNotIn("data error", words)


class Warnings(unittest.TestCase):
    def said(self, *loaded):
        return notes.warnings(list(loaded), [row for group in groups.group(list(loaded)) for row in group.rows])

    def test_name_the_cells_of_their_result(self):
        made = swept(cell(), cell(), cell(), cell())
        for i in (0, 1):
            made[i].data["warnings"] = ["hot"]
        made[2].data["warnings"] = ["busy: load 1.5"]
        made[3].data["warnings"] = ["busy: load 2.5"]
        self.assertEqual(self.said(*made), ["hot (cells 1 and 2)", "busy: load 1.5 (cell 3; with other figures cell 4)"])

    def test_name_the_cell_that_they_begin_with(self):
        made = result([cell(path="rdma", cell={"title": title, "op": "write", "size_bytes": 4096, "part": part})
                       for title, part in (("one: way", "latency"), ("another", "latency"), ("another", "rate"))],
                      warnings=["another: write 4096 bytes, rate: it spread by 7 %", "another: write 4096 bytes, latency: it spread by 9 %",
                                "load is 3.5"])
        self.assertEqual(self.said(made), ["it spread by 7 % (cell 3; with other figures cell 2)", "load is 3.5 (every cell)"])

    def test_keep_a_beginning_that_names_no_cell_for_sure(self):
        made = result([cell(path="rdma", cell={"queue_memory": "host", "op": op}) for op in ("read", "write")],
                      warnings=["host: it is slow", "read: it is slow", "read host: x"])
        self.assertEqual(self.said(made), ["host: it is slow (every cell)", "read: it is slow (every cell)", "x (cell 1)"])

    def test_of_a_single_cell_there_is_nothing_to_name(self):
        self.assertEqual(self.said(result([cell()], warnings=["a: b", "a: b"])), ["a: b"])


class Commands(unittest.TestCase):
    def command(self, *argv, run=None):
        made = result([cell()], argv=list(argv))
        made.run = run
        return notes.command(made)

    def test_are_as_typed_without_the_programs_folder(self):
        self.assertEqual(self.command("/a/build/bin/doorbell", "nvme", "--json=x y", "-q"), "doorbell nvme '--json=x y' -q")

    def test_of_a_sweep_have_nothing_of_the_sweeps_own(self):
        run = results.Run(0, 0, {}, 0, "exit", "", 1.0)
        self.assertEqual(self.command("doorbell", "nvme", "--controller=model:lba=4096", "--a=-1", "--b=", "--json=x/.running-1.json",
                                      "--quiet", run=run), "doorbell nvme --controller model:lba=4096 --a=-1 --b=")
        self.assertEqual(self.command("doorbell", "net", "--json", "x", "--batch=2", run=run), "doorbell net --batch 2")

    def test_are_words_for_a_shell(self):
        words = ["a b", "c'd", "e\\f", "$x", "\x1b[31m", "\u00e4\u2009", "", "*", "g\nh"]
        line = " ".join(map(form.shell_word, words))
        self.assertTrue(line.isprintable(), repr(line))
        done = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, timeout=60)
        self.assertEqual(done.stdout.decode().split("\0")[:-1], words)
        self.assertEqual(shlex.split(form.shell_word("a b")), ["a b"])

    @NEEDS_JINJA
    def test_the_page_is_called_after_the_command(self):
        text = page.render([result([cell()], argv=["/x/doorbell", "qdma", "tune", "--op=get"])], None, False)
        self.assertIn("<title>doorbell qdma tune</title>", text)
        self.assertIn("<pre>$ doorbell qdma tune --op=get</pre>", text)


@NEEDS_JINJA
class Headings(unittest.TestCase):
    def test_say_no_word_twice(self):
        self.assertEqual(form.heading("NVMe", "NVMe reads: single"), "NVMe reads: single")
        self.assertEqual(form.heading("RDMA", "rate", "rate"), "RDMA: rate")
        self.assertEqual(form.heading("Network streams", ""), "Network streams")
        made = [cell(path="rdma", cell={"part": part, "op": op, "title": f"{op} {part}"}, device={"kind": "model", "name": "model:rate=1G"})
                for part in ("rate", "latency") for op in ("read", "write")]
        text = render(result(made))
        heads = re.findall(r"<h[1-4]>(?:<a[^>]*>)?([^<]*)", text)
        self.assertGreater(len(heads), 6)
        for head in heads:
            words = re.findall(r"[a-z]{3,}", head.casefold())
            self.assertEqual(len(words), len(set(words)), head)
        self.assertIn("software model rate=1G", Reader(text).words)
        self.assertNotIn("model model", Reader(text).words)


@NEEDS_JINJA
class Table(unittest.TestCase):
    def heads(self, **swept_too):
        made = [cell(cell={"io_bytes": 512 * n, **{key: f"{value}{n}" for key, value in swept_too.items()}}) for n in (1, 2)]
        (group,) = groups.group([result(made)])
        return [title for title, _ in page.overview(group)["head"]]

    def test_figures_come_before_what_there_is_no_room_for(self):
        few = self.heads(pattern="random")
        self.assertLess(few.index("pattern"), few.index("p50 us"))
        many = self.heads(**{f"parameter_{n}": "a value of its own" for n in range(9)})
        self.assertLess(many.index("io"), many.index("p50 us"))
        self.assertLess(many.index("p99.9 us"), many.index("parameter 8"))
        self.assertEqual(len(many), 18)


if __name__ == "__main__":
    unittest.main()
