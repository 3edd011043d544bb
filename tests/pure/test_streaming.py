"""Plans in chunks, each run by the NumPy executor on what the chunk says it needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import input_bytes, plans

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.run import streaming
from vkops.gpu.run.streaming import chunks
from vkops.plan import CopyPlan, Output, View, execute
from vkops.plan.movements import copy


def run_in_chunks(plan, limit, inputs):
    """The outputs, as chunks of at most so many staged bytes make them; and how many did."""
    outputs = [np.zeros(output.nbytes, np.uint8) for output in plan.outputs]
    made = chunks(plan, limit)
    for chunk in made:
        staged = np.full(limit, 0xEE, np.uint8)
        for piece in chunk.sources:
            assert piece.staged + piece.nbytes <= limit
            source = inputs[piece.array][piece.start : piece.start + piece.nbytes]
            assert source.size == piece.nbytes
            staged[piece.staged : piece.staged + piece.nbytes] = source
        targets = [
            outputs[piece.array][piece.start : piece.start + piece.nbytes]
            for piece in chunk.targets
        ]
        assert sum(target.size for target in targets) <= limit
        execute(chunk.plan, [staged], targets)
    return outputs, len(made)


@given(plans(), st.integers(1, 8))
def test_chunks_make_the_whole(plan, parts):
    inputs = input_bytes(plan)
    # With room for all inputs, chunks differ in what they write.
    room = sum(nbytes + 256 for nbytes in plan.inputs)
    written = sum(output.nbytes + 256 for output in plan.outputs)
    each = 256 * len(plan.outputs)  # a part of each output is in every chunk
    limit = -(-max(room, written // parts, each) // 256) * 256
    outputs, _ = run_in_chunks(plan, limit, inputs)
    for output, expected in zip(outputs, execute(plan, inputs), strict=True):
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("element_size", [1, 4])
def test_split_and_join_send_little_more_than_they_move(axis, element_size):
    whole = View.packed((300, 301))
    nbytes = 300 * 301 * element_size
    sizes = (100, 100, whole.sizes[axis] - 200)
    parts = [whole.narrow(axis, 100 * k, size) for k, size in enumerate(sizes)]
    packed = [View.packed(part.sizes) for part in parts]
    part_bytes = [int(np.prod(part.sizes)) * element_size for part in parts]
    split = CopyPlan(
        element_size,
        (nbytes,),
        tuple(
            Output(n, (copy(part, to),))
            for n, part, to in zip(part_bytes, parts, packed, strict=True)
        ),
    )
    join = CopyPlan(
        element_size,
        tuple(part_bytes),
        (
            Output(
                nbytes,
                tuple(
                    copy(p, part, k) for k, (p, part) in enumerate(zip(packed, parts, strict=True))
                ),
            ),
        ),
    )
    for plan in (split, join):
        inputs = input_bytes(plan)
        outputs, count = run_in_chunks(plan, 16384, inputs)
        for output, expected in zip(outputs, execute(plan, inputs), strict=True):
            np.testing.assert_array_equal(output, expected)
        assert count <= 3 * -(-nbytes // 16384)


def test_what_lies_too_far_apart_is_refused(monkeypatch):
    """A transpose's every row reads the whole input."""
    monkeypatch.setattr(streaming, "MAX_CHUNKS", 1 << 9)
    plan = CopyPlan(
        1,
        (1 << 16,),
        (Output(1 << 16, (copy(View((256, 256), (1, 256)), View.packed((256, 256))),)),),
    )
    with pytest.raises(OutOfDeviceMemoryError, match="are too far apart"):
        chunks(plan, 1024)
