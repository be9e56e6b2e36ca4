# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Blocks of an NVMe namespace to and from arrays.

    import doorbell.nvme
    with doorbell.nvme.open("model") as disk:
        data = disk.read(0, 2048)                          # a numpy array; the controller wrote into it
        tensor = torch.from_dlpack(disk.empty(1 << 20, gpu=True))   # with open(..., gpu=0)
        disk.read(0, out=tensor)
"""

from __future__ import annotations

import math
import operator
from typing import Any, Sequence

import numpy

from . import _native

__all__ = ["BlockDevice", "GpuArray", "open"]

_LEGACY_STREAMS = {2: 1, 10: 0}  # DLPack's words for them, by its device types of CUDA and ROCm
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's, by the letter of NumPy's kinds


class GpuArray:
    """An array in GPU memory that the device reaches, for other libraries to stand on without a copy:
    `torch.from_dlpack(array)`, `cupy.asarray(array)`, `numba.cuda.as_cuda_array(array)`.

    It stays as long as any of these.
    """

    def __init__(self, memory: Any, shape: tuple[int, ...], dtype: str, address: int):
        self._memory = memory
        self.shape = shape
        self.dtype = dtype
        self.address = address

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * (2 if self.dtype == "bfloat16" else numpy.dtype(self.dtype).itemsize)

    def __dlpack__(self, *args, **kwargs):
        return self._memory.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self._memory.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype == "bfloat16":
            raise AttributeError("the CUDA array interface has no bfloat16; use DLPack")
        return {"shape": self.shape, "typestr": numpy.dtype(self.dtype).str, "data": (self.address, False),
                "strides": None, "stream": None, "version": 3}

    def __repr__(self) -> str:
        return f"<doorbell.nvme.GpuArray {self.shape} {self.dtype}>"


def _block(lba) -> int:
    at = operator.index(lba)
    if not 0 <= at < 1 << 64:
        raise ValueError(f"block {at}: blocks have numbers from 0 on")
    return at


class BlockDevice:
    """Made by open(). Any thread may call it; calls wait for each other. Long calls let other threads run, and end with
    Ctrl-C. All raise doorbell.Error, which names the blocks and the controller's status.
    """

    def __init__(self, blocks: _native.Blocks):
        self._blocks = blocks

    @property
    def name(self) -> str:
        """The controller's full name."""
        return self._blocks.name

    @property
    def blocks(self) -> int:
        """The namespace's size."""
        return self._blocks.blocks

    @property
    def block_bytes(self) -> int:
        return self._blocks.block_bytes

    @property
    def closed(self) -> bool:
        return self._blocks.closed

    def empty(self, shape: int | Sequence[int], dtype: Any = "uint8", *, gpu: bool = False) -> Any:
        """An array of zeros in memory that the controller reaches, so that nothing is copied on the way: a NumPy array, or
        with `gpu` a GpuArray, in the GPU that open() was given; its dtype may be "bfloat16", too.
        """
        dims = (int(shape),) if isinstance(shape, (int, numpy.integer)) else tuple(int(n) for n in shape)
        if gpu and dtype == "bfloat16":
            code, bits, name = 4, 16, "bfloat16"
        else:
            kind = numpy.dtype(dtype)
            if kind.kind not in _CODES or not kind.isnative:
                raise TypeError(f"{kind} is not a type of numbers that DLPack has")
            code, bits, name = _CODES[kind.kind], kind.itemsize * 8, kind.name
        memory = self._blocks.allocate(dims, code, bits, gpu)
        if not gpu:
            return memory
        return GpuArray(memory, dims, name, self._blocks.address(memory))

    def read(self, lba: int, blocks: int | None = None, *, out: Any = None) -> Any:
        """Reads `blocks` blocks from block `lba` into `out`, and returns it: an array of NumPy, PyTorch, CuPy or any other
        with DLPack or the buffer protocol, in C's order, of as many bytes. Without `out` it is a new array of uint8.

        Nothing is copied on the way to arrays of empty() and to host arrays of 1 MiB and more; smaller ones, and others on
        a GPU, are.
        """
        if out is None:
            if blocks is None:
                raise TypeError("read() needs the number of blocks, or an array: out=")
            if not 0 < blocks <= self.blocks:
                raise ValueError(f"{blocks} blocks: 1 to {self.blocks}, the whole namespace, can be read")
            out = self.empty(blocks * self.block_bytes)
        self._blocks.read(_block(lba), self._settled(out), -1 if blocks is None else blocks)
        return out

    def write(self, lba: int, data: Any) -> int:
        """Writes all of `data`, an array as read() takes it or bytes, from block `lba` on; returns how many blocks these
        were. Data that is not doorbell's own is overwritten only if open() was given `allow_write`.
        """
        return self._blocks.write(_block(lba), self._settled(data))

    def _settled(self, array: Any) -> Any:
        """The array, as the extension takes it, when the work that its library has queued for it is done."""
        if hasattr(array, "__dlpack_device__"):
            kind = int(array.__dlpack_device__()[0])
            if kind in _LEGACY_STREAMS and not isinstance(array, GpuArray):
                # The legacy default stream waits for the array's own then.
                array.__dlpack__(stream=_LEGACY_STREAMS[kind])
                self._blocks.settle(1)
            return array
        if not hasattr(array, "__cuda_array_interface__"):
            return array
        of = array.__cuda_array_interface__
        item = numpy.dtype(of["typestr"]).itemsize
        strides = tuple(item * math.prod(of["shape"][i + 1:]) for i in range(len(of["shape"])))
        if of.get("strides") is not None and tuple(of["strides"]) != strides:
            raise TypeError("data must be contiguous in C's order")
        if of.get("stream") is not None:
            self._blocks.settle(of["stream"])
        address, read_only = of["data"]
        return self._blocks.view(address, item * math.prod(of["shape"]), read_only, array)

    def flush(self) -> None:
        """Returns when all that was written is on the medium."""
        self._blocks.flush()

    def close(self) -> None:
        """Gives the controller back. Arrays keep their contents. Raises doorbell.Error where what the controller did at the
        end makes earlier results doubtful.
        """
        self._blocks.close()

    def __enter__(self) -> BlockDevice:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.blocks} blocks of {self.block_bytes} bytes"
        return f"<doorbell.nvme.BlockDevice {self.name}: {state}>"


def open(controller: str = "model", *, nsid: int = 1, in_flight: int = 32, io_bytes: int = 0, timeout: float = 10,
         allow_write: bool = False, gpu: int | None = None) -> BlockDevice:
    """Opens a namespace of a controller by its name on the command line: "model", "model:media=file,...", "qemu", a PCI
    address. With `with`, it is closed at the end.

    `in_flight` commands are under way at a time (1..1023), each of at most `io_bytes` (0: 128 KiB, or the controller's
    limit if that is less); an answer is waited for `timeout` seconds; `gpu` is the number of the GPU whose memory the
    controller shall reach, as `doorbell list gpu` shows it.
    """
    return BlockDevice(_native.Blocks(controller, nsid, in_flight, io_bytes, timeout, allow_write, gpu))
