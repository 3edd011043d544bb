"""Operators with anything bound to them, against the NumPy executor on the same bytes."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import operator_table

from fuzz import hostile, target
from fuzz.choices import Choices
from fuzz.targets.descriptors import operator
from vkops.dml import BufferTensorDesc, SplitOperatorDesc, TensorDataType, TensorFlags
from vkops.plan import execute

SIZES = (16, 64, 256, 4096, 1 << 16)
PIECE, WHOLE = (BufferTensorDesc(TensorDataType.INT32, [n]) for n in (4, 8))
SPLIT = SplitOperatorDesc(WHOLE, [PIECE, PIECE], 0)
CASES = 300  # sound operators among those that are tried


class RandomBinding(NamedTuple):
    """A binding, and where it is: in which memory, from which byte; None where that is unknown."""

    value: Any
    memory: int | None
    offset: int | None


class Target(target.Target):
    def __init__(self):
        self.device = target.opened()
        host = self.device.host_buffer(4096)
        self.memory = [*(self.device.buffer(size) for size in SIZES), host]
        self.tensors = [self.device.tensor(np.arange(n, dtype=np.int32)) for n in (4, 8, 1000)]
        self.memory += [tensor.buffer for tensor in self.tensors]
        with target.opened() as other:
            closed = [other.buffer(256), other.tensor(np.arange(8))]
            self.dead = other.compile_operator(other.create_operator(SPLIT))
        released = self.device.tensor(np.arange(8))
        released.release()
        self.others = [*closed, released, self.tensors[2][::2], self.device, self.device.vulkan]
        self.content = [Random(i).randbytes(memory.nbytes) for i, memory in enumerate(self.memory)]
        random = Random(0)
        self.descs = [SPLIT, *(operator_table.random_case(random).desc for _ in range(CASES))]

    def check(self, data):
        choices = Choices(data)
        desc = operator(choices) if choices.one_in(3) else choices.pick(self.descs)
        if choices.one_in(20):
            self._memory(choices)
        compiled = self.device.compile_operator(self.device.create_operator(desc))
        if choices.one_in(40):
            compiled = self.dead
        for memory, content in zip(self.memory, self.content, strict=True):
            memory.write(content)
        expected = [np.frombuffer(content, np.uint8).copy() for content in self.content]
        reads = [self._binding(choices, tensor) for _, tensor in desc.inputs]
        owned = [TensorFlags.OWNED_BY_DML in tensor.flags for _, tensor in desc.inputs]
        pairs = [*zip(reads, owned, strict=True)]
        if any(owned):
            compiled.initialize([bound.value if is_owned else None for bound, is_owned in pairs])
        sources = [None if is_owned else bound.value for bound, is_owned in pairs]
        writes = [self._binding(choices, tensor) for _, tensor in desc.outputs]
        targets = [bound.value for bound in writes]
        if choices.one_in(40):
            sources = hostile.value(choices)
        if choices.one_in(40):
            targets = hostile.value(choices)
        if choices.one_in(4):
            compiled.dispatch(sources, targets, wait=False).wait()
        else:
            compiled.dispatch(sources, targets)
        if any(bound.memory is None for bound in (*reads, *writes)):
            return
        arrays = [[expected[b.memory][b.offset :] for b in bounds] for bounds in (reads, writes)]
        execute(desc.lower(), *arrays)
        for number, (memory, contents) in enumerate(zip(self.memory, expected, strict=True)):
            got = memory.array()
            target.require(np.array_equal(got, contents), f"memory {number} is wrong, after {desc}")

    def _binding(self, choices, tensor):
        """Something to bind to a tensor, mostly with room for it."""
        if choices.one_in(25):
            return RandomBinding(choices.pick(self.others), None, None)
        if choices.one_in(25):
            return RandomBinding(hostile.value(choices), None, None)
        number = choices.below(len(self.memory))
        memory = self.memory[number]
        first = len(self.memory) - len(self.tensors)
        holder = self.tensors[number - first] if number >= first and choices.one_in(2) else memory
        if choices.one_in(3):
            return RandomBinding(holder, number, 0)
        room = max(0, memory.nbytes - tensor.total_tensor_size_in_bytes)
        offset = choices.below(room // 16 + 1) * 16
        if choices.one_in(20):
            offset = choices.below(memory.nbytes + 32)
        nbytes = choices.pick([None, tensor.total_tensor_size_in_bytes, memory.nbytes - offset])
        if choices.one_in(20):
            value = (holder, hostile.value(choices), hostile.value(choices))
            return RandomBinding(value, None, None)
        return RandomBinding((holder, offset, nbytes), number, offset)

    def _memory(self, choices):
        """What is read from memory, and written to it, at any place."""
        memory = choices.pick(self.memory)
        calls = [
            lambda: memory.write(hostile.value(choices), hostile.value(choices)),
            lambda: memory.read(hostile.value(choices), hostile.value(choices)),
            lambda: memory.array(hostile.integer(choices), hostile.integer(choices)),
            lambda: self.device.buffer(_no_great_size(hostile.value(choices))),
        ]
        choices.pick(calls)()


def _no_great_size(value):
    """Sizes that exist in none, or little, memory."""
    return value % 1000 if type(value) is int and 1000 < value < 1 << 40 else value
