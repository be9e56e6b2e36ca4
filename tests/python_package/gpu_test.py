# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""doorbell.nvme with arrays of PyTorch and CuPy on a GPU, checked there. Skipped where there is none."""

import unittest

import numpy

import doorbell
from doorbell import nvme

MIB = 1 << 20
GPU = 0


def opened(**options):
    try:
        return nvme.open("model:capacity=512MiB", gpu=GPU, **options)
    except doorbell.Error as error:
        if error.exit_code == 77:
            raise unittest.SkipTest(f"no GPU: {error}") from None
        raise


def library(name):
    try:
        return __import__(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


def pattern(size, seed=1):
    return numpy.random.default_rng(seed).integers(0, 256, size, dtype=numpy.uint8)


class Torch(unittest.TestCase):
    def setUp(self):
        self.torch = library("torch")
        self.disk = opened()
        self.addCleanup(self.disk.close)

    def test_into_memory_of_the_device(self):
        data = pattern(256 * MIB)
        self.disk.write(0, data)
        memory = self.disk.empty((256, MIB // 4), "int32", gpu=True)
        tensor = self.torch.from_dlpack(memory)
        self.assertEqual((tuple(tensor.shape), tensor.dtype, tensor.device.type), ((256, MIB // 4), self.torch.int32, "cuda"))
        self.assertEqual(tensor.data_ptr(), memory.address)
        self.disk.read(0, out=tensor)
        expected = self.torch.from_numpy(data.view(numpy.int32).reshape(256, -1)).cuda()
        self.assertEqual(int((tensor != expected).sum()), 0, "compared on the GPU")
        self.disk.read(2048, out=tensor[3])  # a part
        self.assertTrue(bool((tensor[3] == expected[1]).all()))
        self.assertTrue(bool((tensor[4] == expected[4]).all()))

    def test_into_any_tensor(self):
        data = pattern(80 * MIB)
        self.disk.write(0, data)
        tensor = self.torch.zeros(80 * MIB, dtype=self.torch.uint8, device="cuda")
        self.disk.read(0, out=tensor)
        self.assertEqual(int((tensor != self.torch.from_numpy(data).cuda()).sum()), 0)

    def test_from_a_tensor_that_a_kernel_is_still_writing(self):
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            tensor = self.torch.zeros(64 * MIB, dtype=self.torch.uint8, device="cuda")
            for _ in range(200):
                tensor += 1
            self.disk.write(0, tensor)
        self.assertTrue((self.disk.read(0, 64 * MIB // 512) == 200).all())

    def test_bfloat16(self):
        memory = self.disk.empty(4096, "bfloat16", gpu=True)
        tensor = self.torch.from_dlpack(memory)
        self.assertEqual(tensor.dtype, self.torch.bfloat16)
        tensor.fill_(1.5)
        self.torch.cuda.synchronize()
        self.disk.write(0, tensor)
        self.assertTrue((self.disk.read(0, 16).view(numpy.uint16) == 0x3FC0).all())

    def test_a_tensor_outlives_the_device(self):
        disk = opened()
        disk.write(0, bytes([7]) * MIB)
        tensor = self.torch.from_dlpack(disk.empty(MIB, gpu=True))
        disk.read(0, out=tensor)
        disk.close()
        self.assertEqual(int(tensor.to(self.torch.int64).sum()), 7 * MIB)
        tensor += 1
        self.torch.cuda.synchronize()

    def test_pinned_host_memory(self):
        data = pattern(4 * MIB)
        self.disk.write(0, data)
        tensor = self.torch.empty(4 * MIB, dtype=self.torch.uint8, pin_memory=True)
        self.disk.read(0, out=tensor)
        self.assertTrue((tensor.numpy() == data).all())

    def test_refusals(self):
        with nvme.open() as disk:
            with self.assertRaisesRegex(doorbell.Error, "opened without one"):
                disk.read(0, out=self.torch.zeros(512, dtype=self.torch.uint8, device="cuda"))
        with self.assertRaises(TypeError):
            self.disk.read(0, out=self.torch.zeros((64, 64), dtype=self.torch.uint8, device="cuda")[:, ::2])


class Cupy(unittest.TestCase):
    def setUp(self):
        self.cupy = library("cupy")
        self.disk = opened()
        self.addCleanup(self.disk.close)

    def test_both_ways(self):
        cupy = self.cupy
        data = pattern(64 * MIB)
        there = cupy.asarray(data)
        self.disk.write(0, there)
        for memory in (self.disk.empty(64 * MIB, gpu=True), ):
            by_interface, by_dlpack = cupy.asarray(memory), cupy.from_dlpack(memory)
            self.assertEqual(by_interface.data.ptr, memory.address)
            self.assertEqual(by_dlpack.data.ptr, memory.address)
            self.disk.read(0, out=by_interface)
            self.assertEqual(int((by_dlpack != there).sum()), 0, "compared on the GPU")
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            written = cupy.zeros(64 * MIB, cupy.uint8)
            for _ in range(100):
                written += 1
            self.disk.write(0, Interface(written))
        self.assertTrue((self.disk.read(0, 64 * MIB // 512) == 100).all())
        self.disk.read(0, out=Interface(written))
        self.disk.write(0, there)
        other = cupy.zeros(64 * MIB, cupy.uint8)
        self.disk.read(0, out=other)
        self.assertEqual(int((other != there).sum()), 0)


class Interface:
    """An array that has the CUDA array interface alone, as numba's do."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class Run(unittest.TestCase):
    def test_a_kernel_rings_the_doorbell(self):
        opened().close()
        result = doorbell.run("nvme", initiator="gpu", gpu=GPU, memory_mode=11, duration=0.5, progress=False)
        self.assertTrue(result.ok, result.verdict)
        self.assertEqual(result.cells[0].initiator, "gpu")


if __name__ == "__main__":
    unittest.main()
