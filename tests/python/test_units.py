# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The units of the page: those of the program's tables, one a column, and the same in tables, pictures and sentences."""

import pathlib
import random
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "python")]

from doorbell_report import charts, conclusion, drawing, groups, results, units  # noqa: E402
from samples import NEEDS_JINJA, NEEDS_MATPLOTLIB, Reader, cell, load_all, metrics, render, result, with_and_without  # noqa: E402
import synthetic  # noqa: E402

# Units that the program's tables never have: a unit that depends on the figure, and operations without a thousand.
OTHERS = re.compile(r"[kM]B/s|[GM] ops/s|(?<!k )(?<!\w)ops/s|MIOPS|kpps")


def net(rate=2.5e6, **more):
    return cell(path="net", operation="packet", net={}, spread={}, cell={"stream": "raw", "payload_bytes": 1000, **more.pop("swept", {})},
                metrics={**metrics(1000, [[64, 1000]]), "ops_per_s": rate, "bytes_per_s": rate * 1000},
                repeats=[{"seed": 1, "ops_per_s": rate, "bytes_per_s": rate * 1000}] * 2, **more)


def words_of(*made, **more):
    """What the page says, without its style."""
    return Reader(re.sub(r"<style>.*?</style>", "", render(*made, **more), flags=re.DOTALL)).words


class Table(unittest.TestCase):
    def test_it_is_that_of_the_program(self):
        source = (ROOT / "src" / "report" / "units.cpp").read_text(encoding="utf-8")
        program = {name: eval(factor) for name, factor in re.findall(r'\{"([^"]+)", ([0-9e /]+)\}', source)}  # noqa: S307
        page = {unit.name: unit.factor for unit in units.MEANINGS}
        self.assertEqual(page, program)

    def test_a_unit_of_rates(self):
        for operations, name in (((), "kIOPS"), (("operation",), "kIOPS"), (("", "operation"), "kIOPS"), (("packet",), "Mpps"),
                                 (("packet", "packet"), "Mpps"), (("packet", "operation"), "k ops/s")):
            self.assertEqual(units.rate(operations).name, name, operations)

    def test_bits_are_those_that_every_run_printed(self):
        bits, other = cell(options={"units": "bits"}), cell(options={"units": "bytes"})
        for cells, expected in (([], False), ([bits], True), ([bits, bits], True), ([bits, other], False), ([bits, cell()], False),
                                ([cell(options=None)], False)):
            self.assertIs(units.in_bits(cells), expected)


@NEEDS_JINJA
class Page(unittest.TestCase):
    def test_packets_are_packets(self):
        for pictures in with_and_without():
            words = words_of(result([net()]), pictures=pictures)
            for expected in ("Network streams at 1000 B: 2.500 Mpps, 2.500 GB/s, median latency 9 us;", "highest rate2.500 Mpps", "countMppsGB/s",
                             "repeatseedMppsGB/s", "1 Mpps is 10^6 packets/s, 1 GB/s is 10^9 bytes/s"):
                self.assertIn(expected, words)
            self.assertNotIn("IOPS", words)
            self.assertNotRegex(words, OTHERS)

    def test_other_operations_are_thousands(self):
        words = words_of(result([cell()]), pictures=drawing.available())
        for expected in ("200.0 kIOPS (98 % interval 190.0 kIOPS to 210.0 kIOPS), 0.819 GB/s", "highest rate200.0 kIOPS", "rate, kIOPS200.0",
                         "1 kIOPS is 1000 operations/s"):
            self.assertIn(expected, words)
        self.assertNotIn("pps", words)
        self.assertNotRegex(words, OTHERS)

    def test_a_table_of_both_has_one_unit(self):
        made = [net(2e6), net(1e3, swept={"stream": "tcp"})]
        made[1]["operation"] = "operation"
        words = words_of(result(made))
        self.assertIn("k ops/s", words)
        self.assertIn("2\N{THIN SPACE}000", words)
        self.assertNotRegex(words, r"Mpps|IOPS")
        apart = words_of(result([net()]), result([cell()]))
        for name in ("Mpps", "kIOPS"):
            self.assertIn(name, apart, "each path has a table of its own")
        self.assertNotIn("k ops/s", apart)

    def test_every_table_and_picture_of_every_path(self):
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(folder, 60)
            made, plans = load_all(folder)
        for pictures in with_and_without():
            self.assertNotRegex(words_of(*made, pictures=pictures, plans=plans), OTHERS)

    def test_bits(self):
        options = {"options": {"units": "bits"}}
        words = words_of(result([net(**options)]), pictures=drawing.available())
        for expected in ("2.500 Mpps, 20.00 Gb/s", "highest throughput20.00 Gb/s", "countMppsGb/s", "1 Gb/s is 10^9 bits/s"):
            self.assertIn(expected, words)
        self.assertNotIn("GB/s", words)
        self.assertIn("2.500 GB/s", words_of(result([net(**options), net()])))

    def test_bits_as_the_page_is_told(self):
        for bits, unit in ((True, "20.00 Gb/s"), (False, "2.500 GB/s")):
            for own in ({"units": "bits"}, {"units": "bytes"}):
                (group,) = groups.group([result([net(options=own)])], bits=bits)
                self.assertIn(unit, conclusion.sentence([result([net()])], [group]))

    def test_rounds_of_a_sweep(self):
        made = [results.Result(f"f:{n}", result([net(2e6 + n)]).data, "f", results.Run(0, n, {}, 0, "exit", "", 1.0)) for n in range(3)]
        self.assertIn("roundMppsGB/s", words_of(*made))


@NEEDS_MATPLOTLIB
class Pictures(unittest.TestCase):
    def drawn(self, path, bits=None):
        rng = random.Random(1)
        made = [result([synthetic.cell(rng, path, i)]) for i in range(24) if i % 10 != 9]
        found = groups.group(made, bits=bits)
        return [picture for group in found for picture in charts.of_group(group, {}, drawing.PAGE)]

    def labels(self, path, bits=None):
        return {label for p in self.drawn(path, bits) for axes in p.figure.axes for label in (axes.get_xlabel(), axes.get_ylabel())}

    def test_axes_have_the_tables_units(self):
        for path, rate in (("nvme", "kIOPS"), ("net", "Mpps")):
            labels = self.labels(path)
            self.assertIn(rate, labels)
            self.assertFalse([label for label in labels if OTHERS.search(label)])
        self.assertIn("GB/s", self.labels("nvme"))
        bits = self.labels("nvme", bits=True)
        self.assertIn("Gb/s", bits)
        self.assertNotIn("GB/s", bits)

    def test_words_have_them_too(self):
        alternatives = " ".join(picture.alt for picture in self.drawn("nvme"))
        self.assertRegex(alternatives, r"[\d.]+ GB/s at 512 B to [\d.]+ GB/s at 1 MiB")
        self.assertNotRegex(alternatives, OTHERS)

    def test_an_axis_of_small_figures_has_them_whole(self):
        for sizes in ((512, 1024, 2048, 65536), (512, 1024)):  # a logarithmic axis, one from 0
            made = [cell(cell={"io_bytes": size, "batch": batch}, spread={}, metrics={**metrics(100, [[64, 100]]), "bytes_per_s": size * batch})
                    for size in sizes for batch in (1, 2)]
            (group,) = groups.group([result(made)])
            for picture in charts.of_group(group, {}, drawing.PAGE):
                texts = re.findall(r"<text[^>]*>([^<]*)<", picture.inline(1))
                self.assertEqual([text for text in texts if re.search(r"\de[-+\N{MINUS SIGN}]?\d", text)], [], picture.title)


if __name__ == "__main__":
    unittest.main()
