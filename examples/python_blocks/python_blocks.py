#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Writes blocks of an NVMe controller, reads them into arrays, checks them, and measures how fast the controller reads.

Usage: python_blocks.py [CONTROLLER] [GPU]     (usual: model; with the number of a GPU also into its memory)
Exit code: 0; 1 for what doorbell refuses, 2 for wrong data, 77 where the controller or the GPU is absent. What it overwrites
is doorbell's own data, or nothing.
"""

import sys

import numpy

import doorbell
import doorbell.nvme

BYTES = 8 << 20


def into_host_memory(disk, data):
    """The controller writes into memory that a NumPy array stands on."""
    array = disk.empty(data.shape, data.dtype)
    disk.read(0, out=array)
    return int((array != data).sum())


def into_gpu_memory(disk, data):
    """The same into the memory of a GPU, on which a tensor of PyTorch stands. The GPU compares."""
    import torch

    tensor = torch.from_dlpack(disk.empty(data.shape, data.dtype, gpu=True))
    disk.read(0, out=tensor)
    return int((tensor != torch.from_numpy(data).to(tensor.device)).sum())


def main(controller="model", gpu=None):
    data = numpy.random.default_rng(1).integers(0, 1 << 31, BYTES // 4, dtype=numpy.int32)
    with doorbell.nvme.open(controller, gpu=None if gpu is None else int(gpu)) as disk:
        print(f"{disk.name}: {disk.blocks} blocks of {disk.block_bytes} bytes")
        disk.write(0, data)
        wrong = into_host_memory(disk, data)
        print(f"host memory: {data.size} words, {wrong} wrong")
        if gpu is not None:
            wrong_there = into_gpu_memory(disk, data)
            print(f"memory of GPU {gpu}: {data.size} words, {wrong_there} wrong")
            wrong += wrong_there
    if wrong:
        return 2
    result = doorbell.run("nvme", controller=controller, size="128KiB", in_flight=32, duration=0.5, progress=False)
    print(f"{result.verdict}: reads at {result.cells[0].parts['read'].bytes_per_s / 1e9:.1f} GB/s")
    return result.exit_code


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:3]))
    except doorbell.Error as error:
        print(f"python_blocks: {error}\n{error.hint}".rstrip(), file=sys.stderr)
        sys.exit(error.exit_code)
