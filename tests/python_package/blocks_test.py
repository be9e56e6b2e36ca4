# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""doorbell.nvme from an installed wheel: blocks to and from arrays of all kinds."""

import array
import gc
import mmap
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

import doorbell
from doorbell import nvme

MIB = 1 << 20


def pattern(size, seed=1):
    return numpy.random.default_rng(seed).integers(0, 256, size, dtype=numpy.uint8)


def anonymous_kib():
    """Memory of this process that is no file's."""
    for line in pathlib.Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1])
    raise AssertionError("no line of anonymous memory")


class RoundTrip(unittest.TestCase):
    def test_sizes_and_places(self):
        with nvme.open("model:capacity=64MiB") as disk:
            for size in (512, 7 * 512, MIB - 512, MIB, MIB + 512, 5 * MIB + 512, 33 * MIB):
                for shift in (0, 1, 4, 16, 511):
                    with self.subTest(size=size, shift=shift):
                        data = pattern(size + shift, size + shift)[shift:]
                        self.assertEqual(disk.write(3, data), size // 512)
                        whole = numpy.full(size + shift + 4096, 0xA5, numpy.uint8)
                        out = whole[shift:shift + size]
                        self.assertIs(disk.read(3, out=out), out)
                        self.assertTrue(numpy.array_equal(out, data))
                        self.assertTrue((whole[:shift] == 0xA5).all() and (whole[shift + size:] == 0xA5).all(),
                                        "nothing else is touched")

    def test_any_buffer(self):
        data = pattern(2 * MIB)
        with nvme.open() as disk, mmap.mmap(-1, data.nbytes) as mapped:
            for given in (data.tobytes(), bytearray(data), memoryview(data), array.array("I", data.tobytes()),
                          data.view("float64"), data.reshape(2, 2, -1), data.view("complex64")):
                disk.write(0, given)
                outs = (bytearray(data.nbytes), mapped, array.array("Q", bytes(data.nbytes)), numpy.empty((4, MIB // 2), numpy.uint8),
                        numpy.empty(data.nbytes // 4, numpy.float32), memoryview(bytearray(data.nbytes)))
                for out in outs:
                    self.assertEqual(bytes(memoryview(disk.read(0, out=out)).cast("B")), data.tobytes())
                    memoryview(out).cast("B")[:] = bytes(data.nbytes)
                disk.write(0, bytes(data.nbytes))

    def test_the_media_file_has_it(self):
        # The kernel's view of the same bytes.
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "disk")
            data = pattern(4 * MIB)
            with nvme.open(f"model:media=file:{file},capacity=8MiB") as disk:
                disk.write(16, data)
                disk.flush()
            with open(file, "rb") as there:
                self.assertEqual(there.read()[16 * 512:16 * 512 + data.nbytes], data.tobytes())

    def test_without_a_target(self):
        data = pattern(3 * 512)
        with nvme.open() as disk:
            disk.write(9, data)
            new = disk.read(9, 3)
            self.assertEqual((new.dtype, new.shape), (numpy.uint8, (1536,)))
            self.assertTrue(numpy.array_equal(new, data))
            own = disk.empty((3, 128), "uint32")
            self.assertTrue((own == 0).all())
            disk.read(9, out=own)
            self.assertEqual(own.tobytes(), data.tobytes())
            disk.read(10, out=own[1:2])  # a part of it
            self.assertEqual(own.tobytes(), data.tobytes())
            for kind in ("int8", "float16", "float32", "bool", "complex128"):
                self.assertEqual(disk.empty(4, kind).dtype, numpy.dtype(kind))


class WithoutACopy(unittest.TestCase):
    """A copy goes by way of 8 MiB that the device gets for it."""

    def grown(self, target):
        data = pattern(32 * MIB)
        with nvme.open("model:capacity=64MiB") as disk:
            own = disk.empty(data.nbytes)
            disk.write(0, own)  # and the media's memory is there
            out = own if target == "own" else numpy.full(data.nbytes + 16, 1, numpy.uint8)[target:target + data.nbytes]
            before = anonymous_kib()
            disk.read(0, out=out)
            return (anonymous_kib() - before) * 1024

    def test_own_memory(self):
        self.assertLess(self.grown("own"), 4 * MIB)

    def test_large_arrays(self):
        self.assertLess(self.grown(0), 4 * MIB)
        self.assertLess(self.grown(4), 4 * MIB)

    def test_what_no_device_can_reach_is_copied(self):
        self.assertGreater(self.grown(1), 7 * MIB)


class GpuMemory(unittest.TestCase):
    """On a Level Zero that needs no GPU (tests/gpu/fake_level_zero.cpp); no host code reaches its memory."""

    @classmethod
    def setUpClass(cls):
        os.environ.update(DOORBELL_LIBZE_LOADER=os.environ["FAKE_LEVEL_ZERO"], DOORBELL_LIBCUDA="/nonexistent/libcuda.so.1",
                          DOORBELL_LIBAMDHIP64="/nonexistent/libamdhip64.so")

    def test_there_and_back(self):
        data = pattern(6 * MIB + 512)
        with nvme.open("model:capacity=64MiB", gpu=0) as disk:
            there = disk.empty((4, data.nbytes // 16), "float32", gpu=True)
            self.assertEqual((there.nbytes, there.__dlpack_device__()), (data.nbytes, (14, 0)))
            disk.write(0, data)
            disk.read(0, out=there)
            self.assertEqual(disk.write(32768, there), data.nbytes // 512)
            self.assertTrue(numpy.array_equal(disk.read(32768, data.nbytes // 512), data))
            self.assertEqual(there.__cuda_array_interface__["data"], (there.address, False))
            narrow = disk.empty(256, "bfloat16", gpu=True)
            self.assertEqual(narrow.nbytes, 512)
            self.assertEqual(disk.write(0, narrow), 1)
            self.assertFalse(disk.read(0, 1).any(), "it is made of zeros")
        self.assertEqual(there.nbytes, data.nbytes)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.disk = nvme.open("model:capacity=1MiB")
        self.addCleanup(self.disk.close)

    def test_arrays(self):
        frozen = numpy.zeros(512, numpy.uint8)
        frozen.flags.writeable = False
        for out in (b"x" * 512, "text", 5, None.__class__, frozen, numpy.zeros((512, 512), numpy.uint8)[:, ::2],
                    numpy.zeros((512, 512), numpy.uint8).T, numpy.array([object()] * 64)):
            with self.subTest(repr(out)[:40]), self.assertRaises(TypeError):
                self.disk.read(0, out=out)
        for out in (numpy.zeros(0, numpy.uint8), numpy.zeros(511, numpy.uint8), numpy.zeros(513, numpy.uint8)):
            with self.assertRaisesRegex(ValueError, "are not blocks of 512"):
                self.disk.read(0, out=out)
            with self.assertRaisesRegex(ValueError, "are not blocks of 512"):
                self.disk.write(0, out)
        with self.assertRaisesRegex(ValueError, "has 1 blocks, not 2"):
            self.disk.read(0, 2, out=numpy.zeros(512, numpy.uint8))

    def test_ranges(self):
        for lba, blocks in ((2048, 1), (2047, 2), (0, 2048 + 1), (-1, 1), (0, 0), (0, -1), (1 << 64, 1), ((1 << 64) - 1, 1)):
            with self.subTest(lba=lba, blocks=blocks), self.assertRaises((ValueError, doorbell.Error)):
                self.disk.read(lba, blocks)
        with self.assertRaisesRegex(doorbell.Error, "read of 2 blocks at 2047: the namespace has 2048 blocks"):
            self.disk.read(2047, 2)
        with self.assertRaises(TypeError):
            self.disk.read(0)
        with self.assertRaises(TypeError):
            self.disk.read(0.5, 1)

    def test_memory(self):
        for shape, dtype in ((0, "uint8"), ((4, 0), "uint8"), ((1 << 40, 1 << 40), "uint8")):
            with self.assertRaises(doorbell.Error):
                self.disk.empty(shape, dtype)
        for dtype in ("datetime64[s]", ">u4", object, "S4"):
            with self.assertRaises(TypeError):
                self.disk.empty(4, dtype)
        with self.assertRaisesRegex(doorbell.Error, "without a GPU"):
            self.disk.empty(4, gpu=True)

    def test_opening(self):
        for options in ({"controller": "acme"}, {"in_flight": 0}, {"in_flight": 1024}, {"nsid": 2}, {"timeout": -1}):
            with self.subTest(options), self.assertRaises(doorbell.Error) as raised:
                nvme.open(**options)
            self.assertEqual(raised.exception.exit_code, 1)
        with self.assertRaises(doorbell.Error) as raised:
            nvme.open("0000:ff:1f.7")
        self.assertEqual(raised.exception.exit_code, 77)

    def test_other_peoples_data(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "disk")
            with open(file, "wb") as there:
                there.write(b"somebody's" * 104858)
            with nvme.open(f"model:media=file:{file},capacity=1MiB") as disk:
                with self.assertRaisesRegex(doorbell.Error, "data that doorbell did not write"):
                    disk.write(0, bytes(512))
                self.assertEqual(disk.read(0, 1).tobytes(), (b"somebody's" * 52)[:512])
            with nvme.open(f"model:media=file:{file},capacity=1MiB", allow_write=True) as disk:
                disk.write(0, bytes(512))
                self.assertFalse(disk.read(0, 1).any())


class Lives(unittest.TestCase):
    def test_arrays_outlive_the_device(self):
        data = pattern(2 * MIB)
        disk = nvme.open()
        disk.write(0, data)
        keep, dropped = disk.read(0, 4096), disk.read(0, 4096)
        disk.close()
        disk.close()
        self.assertTrue(disk.closed)
        self.assertTrue(numpy.array_equal(keep, data))
        del dropped
        gc.collect()
        keep[:] = 0
        for call in (lambda: disk.read(0, out=keep), lambda: disk.write(0, keep), disk.flush, lambda: disk.empty(1)):
            with self.assertRaisesRegex(doorbell.Error, "it is closed"):
                call()

    def test_a_closed_device_is_gone(self):
        def threads():
            return len(os.listdir("/proc/self/task"))
        before = threads()
        disk = nvme.open()
        kept = disk.empty(MIB)
        self.assertGreater(threads(), before)
        disk.close()
        self.assertEqual(threads(), before)
        kept[:] = 1

    def test_no_answer(self):
        disk = nvme.open("model:latency=60s", timeout=0.2)
        out = numpy.zeros(MIB, numpy.uint8)
        with self.assertRaisesRegex(doorbell.Error, "did not answer in time") as raised:
            disk.read(0, out=out)
        self.assertEqual(raised.exception.exit_code, 2)
        with self.assertRaises(doorbell.Error):
            disk.read(0, 1)
        disk.close()
        self.assertFalse(out.any())

    def test_threads(self):
        data = pattern(8 * MIB)
        problems = []
        with nvme.open("model:capacity=16MiB") as disk:
            disk.write(0, data)

            def work(seed):
                try:
                    for i in range(20):
                        own = disk.empty(MIB) if i % 2 else numpy.empty(MIB, numpy.uint8)
                        at = (seed * 7 + i) % 8
                        disk.read(at * 2048, out=own)
                        if not numpy.array_equal(own, data[at * MIB:(at + 1) * MIB]):
                            problems.append(f"{seed} {i}")
                except Exception as error:  # of any thread
                    problems.append(repr(error))

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
        self.assertEqual(problems, [])

    def test_closed_by_another_thread(self):
        disk = nvme.open("model:capacity=16MiB")
        begun, ends = threading.Event(), []

        def work():
            try:
                while True:
                    disk.read(0, out=disk.empty(MIB))
                    begun.set()
            except doorbell.Error as error:
                ends.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        self.assertTrue(begun.wait(60))
        disk.close()
        for thread in threads:
            thread.join(60)
        self.assertEqual(ends, ["block device: it is closed"] * 3)

    def test_ctrl_c(self):
        program = ("import doorbell.nvme, sys\n"
                   "disk = doorbell.nvme.open('model:bandwidth=100M,capacity=4GiB', timeout=60)\n"
                   "out = disk.empty(1 << 30)\n"
                   "try:\n    print('begins', flush=True)\n    disk.read(0, out=out)\n"
                   "except KeyboardInterrupt:\n    print('ended', disk.read(0, 8).any())\n")
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        with child:
            self.assertEqual(child.stdout.readline(), "begins\n")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.stdout.read(), "ended False\n")
            self.assertEqual(child.wait(60), 0)


if __name__ == "__main__":
    unittest.main()
