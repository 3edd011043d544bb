"""Operators with what NumPy makes of the same arrays, run by the thousand and compared.

Nothing of vkops but descriptors and devices is used: NumPy says what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from random import Random
from typing import NamedTuple

import numpy as np
from byte_arrays import DTYPES, described, poisoned

from vkops import dml

KINDS = {
    size: [kind for kind in sorted(DTYPES) if kind.size_bits == 8 * size] for size in (1, 2, 4, 8)
}
"""DirectML's types, by bytes of an element."""

GUARD = 64  # bytes at least between outputs, and around them all; a multiple of a binding's 16
SPACE = 1 << 20
"""Bytes for inputs, and for outputs: once the latter are used up, every one is compared."""


class Case(NamedTuple):
    """An operator, and NumPy's function of its inputs that returns all its outputs.

    ``indices`` are what inputs hold whose content is not arbitrary, by the number of the input.
    """

    desc: dml.OperatorDesc
    expect: Callable[[list[np.ndarray]], Sequence[np.ndarray]]
    indices: Mapping[int, np.ndarray] = {}

    def fill(self, number, data):
        """Write the indices of an input into its bytes, which stay as they are otherwise."""
        if number in self.indices:
            _, tensor = self.desc.inputs[number]
            described(tensor, data)[...] = self.indices[number]
        return data

    def inputs(self, random):
        """Random bytes for each input, with its indices in their places."""
        sizes = [tensor.total_tensor_size_in_bytes for _, tensor in self.desc.inputs]
        result = (np.frombuffer(bytearray(random.randbytes(size)), np.uint8) for size in sizes)
        return [self.fill(number, data) for number, data in enumerate(result)]

    def write(self, inputs, outputs):
        """Write what NumPy makes of the bytes of inputs into those of outputs."""
        read, written = (
            [described(tensor, data) for (_, tensor), data in zip(tensors, arrays, strict=True)]
            for tensors, arrays in ((self.desc.inputs, inputs), (self.desc.outputs, outputs))
        )
        for output, result in zip(written, self.expect(read), strict=True):
            output[...] = result


# -- operators, by what NumPy needs to know of them -----------------------------------------------


@cache
def packed(kind, sizes):
    return dml.BufferTensorDesc(kind, sizes)


def split(source, targets, axis):
    desc = dml.SplitOperatorDesc(source, targets, axis)
    cuts = list(accumulate(target.sizes[axis] for target in targets))[:-1]
    return Case(desc, lambda arrays: np.split(arrays[0], cuts, axis))


def join(sources, target, axis):
    desc = dml.JoinOperatorDesc(sources, target, axis)
    return Case(desc, lambda arrays: [np.concatenate(arrays, axis)])


def window(array, offsets, windows, strides, counts):
    """So many elements of a window of an array, as a view."""
    ends = [offset + size for offset, size in zip(offsets, windows, strict=True)]
    whole = array[tuple(map(slice, offsets, ends))]
    stepped = whole[tuple(slice(None, None, stride) for stride in strides)]
    return stepped[tuple(map(slice, counts))]


def slice_(source, target, offsets, strides):
    """The output's sizes say how many elements are copied."""
    desc = dml.SliceOperatorDesc(source, target, offsets, target.sizes, strides)
    place = offsets, source.sizes, strides, target.sizes
    return Case(desc, lambda arrays: [window(arrays[0], *place)])


def slice1(source, target, offsets, windows, strides):
    desc = dml.Slice1OperatorDesc(source, target, offsets, windows, strides)
    place = offsets, windows, strides, target.sizes
    return Case(desc, lambda arrays: [window(arrays[0], *place)])


def identity(source, target):
    return Case(dml.ElementWiseIdentityOperatorDesc(source, target), lambda arrays: arrays)


# -- running them ---------------------------------------------------------------------------------


def run(device, case, allocate=None, guard=16):
    """Dispatch with random inputs and poisoned outputs; compare all bytes with NumPy's.

    ``allocate`` makes a buffer of so many bytes; around each tensor are ``guard`` bytes.
    """
    sources = case.inputs(Random(1))
    targets = [poisoned(tensor.total_tensor_size_in_bytes) for _, tensor in case.desc.outputs]
    buffers = []
    for array in (*sources, *targets):
        nbytes = array.size + 2 * guard
        buffers.append((allocate or device.buffer)(nbytes))
        buffers[-1].write(poisoned(nbytes))
        buffers[-1].write(array, guard)
    bindings = [(b, guard, b.nbytes - 2 * guard) for b in buffers]
    compiled = device.compile_operator(device.create_operator(case.desc))
    compiled.dispatch(bindings[: len(sources)], bindings[len(sources) :])
    case.write(sources, targets)
    edge = poisoned(guard)
    for buffer, target in zip(buffers[len(sources) :], targets, strict=True):
        np.testing.assert_array_equal(buffer.array(), np.concatenate([edge, target, edge]))


class Runner:
    """Runs cases on a device in memory that they share; ``compare`` looks at all bytes of it.

    Outputs are placed from the end of the memory down: what an operator writes behind its output
    is not covered up by a later one.
    """

    def __init__(self, device):
        random = np.random.default_rng(0)
        # Blocks of all 256 bytes in any order: no two bytes of a small input are the same.
        blocks = [random.permutation(256).astype(np.uint8) for _ in range(SPACE // 256)]
        self.data = np.concatenate(blocks)
        self.poison = poisoned(SPACE)
        self.device = device
        self.source, self.target = device.buffer(SPACE), device.buffer(SPACE)
        self.source.write(self.data)
        self.count = 0
        self._begin()

    def _begin(self):
        self.target.write(self.poison)
        self.expected = self.poison.copy()
        self.end = SPACE
        self.since = []  # (lowest byte, descriptor)

    def run(self, case):
        """Create, compile, bind and dispatch; NumPy's result goes where the device's has to be."""
        desc = case.desc
        inputs, outputs = ([t for _, t in tensors] for tensors in (desc.inputs, desc.outputs))
        needed = sum(GUARD + _room(tensor) for tensor in outputs)
        if needed + GUARD > self.end:
            self.compare()
        first = self.count % 61 * 16  # inputs lie elsewhere for each case
        *reads, end = accumulate(map(_room, inputs), initial=first)
        _, *writes = accumulate((-GUARD - _room(tensor) for tensor in outputs), initial=self.end)
        self.end = writes[-1]
        assert end <= SPACE, desc
        assert self.end >= GUARD, desc
        self.since.append((self.end, desc))
        for number in case.indices:
            place = slice(reads[number], reads[number] + _room(inputs[number]))
            self.source.write(case.fill(number, self.data[place]), place.start)
        try:
            compiled = self.device.compile_operator(self.device.create_operator(desc))
            sources = _bindings(self.source, reads, inputs)
            compiled.dispatch(sources, _bindings(self.target, writes, outputs))
        except Exception as error:
            raise AssertionError(f"{desc}: {error}") from error
        case.write([self.data[at:] for at in reads], [self.expected[at:] for at in writes])
        self.count += 1

    def compare(self):
        """Compare all bytes that operators could have written, and those they read."""
        result = self.target.array()
        wrong = np.flatnonzero(result != self.expected)
        if wrong.size:
            at = int(wrong[-1])
            desc = next((desc for begin, desc in self.since if begin <= at), "nothing")
            raise AssertionError(
                f"{wrong.size} bytes are wrong; the last, {at}, is {result[at]}, "
                f"must be {self.expected[at]}: in an output of, or right behind, {desc}"
            )
        assert np.array_equal(self.source.array(), self.data), "inputs were written"
        self._begin()


def _bindings(buffer, offsets, tensors):
    return [
        (buffer, at, tensor.total_tensor_size_in_bytes)
        for at, tensor in zip(offsets, tensors, strict=True)
    ]


def _room(tensor):
    """Bytes of a tensor, up to where the next one can be bound."""
    return -(-tensor.total_tensor_size_in_bytes // 16) * 16
