"""Kernels of ``vkops.kernels`` without a device."""

import numpy as np
import pytest

from vkops.debug import check
from vkops.elementwise.parameters import Operand
from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.observer import Observer
from vkops.interpreter.scheduler import Run
from vkops.interpreter.state import Settings
from vkops.kernels.random import _kernel
from vkops.kernels.reduction import CHUNKS, ReductionKernel
from vkops.plan.rounding import factor
from vkops.shaders import load
from vkops.shaders.binary import positions
from vkops.shaders.features import exact_floats, with_modes
from vkops.shaders.layout import ScalarType

SUBGROUP, SEGMENT = 32, 128


class Loads(Observer):
    """Adds the bytes of the segments that loads of subgroups touch in the array of the input."""

    def __init__(self, memory):
        self.memory, self.moved = memory, 0

    def access(self, kind, pointer, active):
        memory, own = pointer.variable, self.memory.contents()
        if (
            kind == "read"
            and isinstance(memory, MemoryVariable)
            and np.shares_memory(memory.contents(), own)
        ):
            first = pointer.variable.addresses(pointer.type, pointer.offset, active).reshape(-1)
            pairs = np.stack([active.slots // SUBGROUP, first // SEGMENT])
            self.moved += SEGMENT * np.unique(pairs, axis=1).shape[1]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    ("lanes", "results", "count", "strides"),
    [(1, 128, 2048, (1, 128)), (128, 2, 16_384, (16_384, 1))],
)
def test_reductions_read_each_segment_once(lanes, results, count, strides, batch):
    """Along the first axis, neighbouring invocations reduce neighbouring columns."""
    reduction = ReductionKernel("float32 x", "float32 y", "x", "a + b", "y = a", name="sum")
    kernel = reduction._pass(np.dtype("f4"), (("float32", "float32"),), lanes, True, batch)
    arrays = zip(kernel._params, ("f4", "i4", "f4"), (0, None, 1), strict=True)
    operands = [Operand(each, np.dtype(dtype), array) for each, dtype, array in arrays]
    text = kernel._generated(operands, 2, ("strided",), local_size=128, pushed=True)
    word, nbytes = ScalarType("uint", 4), 4 * results * count
    read, written = (MemoryVariable("", word, "", 1, n, is_written=True) for n in (nbytes, nbytes))
    read.fill(np.ones(results * count, np.float32).tobytes())
    words = [count, results * count, count, factor(count), (count - 1).bit_length(), 0, *strides]
    pushed, chunks = np.array(words, "u4").tobytes(), -(-count // CHUNKS[lanes])
    loads, groups = Loads(read), (results * lanes * chunks // 128, 1, 1)
    memory = {(0, 0): read, (0, 1): written}
    Run(load(text, name="sum"), memory, groups, pushed, Settings(), observers=[loads]).run()
    assert written.contents().view("f4").sum() == results * count
    assert loads.moved == nbytes


DECORATE, NO_CONTRACTION, EXTENDED = 71, 42, 12
EXACT = {75, 59, 65}
"""FindUMsb, PackDouble2x32 and UnpackDouble2x32."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_need_only_operations_that_are_exact(dtype):
    """The driver must not combine a multiplication with an addition, and nothing divides."""
    kernel = _kernel("normal", np.dtype(dtype))
    dtypes = [*["u4"] * 4, *[dtype] * 3]
    operands = [
        Operand(each, np.dtype(kind), None)
        for each, kind in zip(kernel._params, dtypes, strict=True)
    ]
    operands[-1].array = 0
    text = kernel._generated(operands, 1, ("packed",), local_size=64, pushed=True)
    words = np.frombuffer(load(text, name="normal").spirv, np.uint32).tolist()
    instructions = [(op, words[at + 1 : at + count]) for at, op, count in positions(words)]
    kept = {each[0] for op, each in instructions if op == DECORATE and each[1] == NO_CONTRACTION}
    used = [each[1] for op, each in instructions if op in (127, 129, 131, 133)]
    assert len(used) > 30
    assert {*used} <= kept
    assert not [op for op, _ in instructions if 134 <= op <= 141]
    assert {each[3] for op, each in instructions if op == EXTENDED} <= EXACT


def test_modes_of_floats_are_declared_where_the_device_has_them():
    extension, widths = "VK_KHR_shader_float_controls", (32, 64)
    modes = ("DenormPreserve", "SignedZeroInfNanPreserve", "RoundingModeRTE")
    needed = {extension, *[f"shader{mode}Float{width}" for mode in modes for width in widths]}
    text = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer Y { double y[]; };
void main() { y[gl_LocalInvocationIndex] = 0.5lf * gl_LocalInvocationIndex; }"""
    for left_out in sorted(needed | {""}):
        features = frozenset(needed - {left_out})
        result, has_all = exact_floats(features, widths)
        assert has_all == (left_out == "")
        changed = with_modes(load(text).spirv, result)
        expected = set() if left_out == extension else features
        assert {*load(changed).needs} - {"shaderFloat64"} == expected
        report = check(changed, {"Y": np.zeros(4)}, threads=4)
        assert report.ok, str(report)
        np.testing.assert_array_equal(report.buffers["Y"].view("f8"), np.arange(4) / 2)
