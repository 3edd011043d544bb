"""DirectML operators on the device, against what NumPy makes of the same arrays."""

from random import Random

import numpy as np
import pytest
from byte_arrays import poisoned
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operator_cases import identity, packed, run, split
from operator_table import OPERATORS, kinds, longer

from vkops import from_dlpack
from vkops.dml import BufferTensorDesc, TensorDataType

on_device = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


shapes = st.integers(1, 8).flatmap(
    lambda rank: st.lists(st.integers(1, 9 if rank < 4 else 3), min_size=rank, max_size=rank)
)


@on_device
@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data(), sizes=shapes, random=st.randoms(use_true_random=False))
def test_random_descriptors(device, name, data, sizes, random):
    kind = data.draw(st.sampled_from(kinds(name)))
    axis = data.draw(st.integers(0, len(sizes) - 1))
    case = OPERATORS[name].make(random, kind, tuple(sizes), axis)
    run(device, case)


@pytest.mark.parametrize("kind", [TensorDataType.UINT8, TensorDataType.FLOAT32])
def test_hundreds_of_outputs(device, kind):
    sizes, parts = (3, 700), [packed(kind, (3, 1))] * 700
    run(device, split(packed(kind, sizes), parts, 1))


@pytest.mark.parametrize("memory", ["direct", "staged", "on the host"])
@pytest.mark.parametrize("more", [1, 2, 3])
def test_tensors_that_end_within_a_word(device, staged_device, memory, more):
    """Bytes after the elements, and those after the tensor, do not change (T-14)."""
    home = staged_device if memory == "staged" else device
    allocate = home.host_buffer if memory == "on the host" else home.buffer
    for name, entry in OPERATORS.items():
        random = Random(f"{name} {more}")
        case = entry.make(random, random.choice(kinds(name)), (2, 3, 5), 1)
        if case.indices and memory == "on the host":
            continue  # B-22
        case = case._replace(desc=longer(case.desc, more))
        for guard in (0, 16):  # the buffer ends with the tensor, or goes on
            run(home, case, allocate, guard)


@pytest.mark.parametrize("load", ["tensor", "from_dlpack"])
def test_tensors_of_arrays_that_end_within_a_word(any_device, load):
    array = np.arange(7, dtype=np.uint8)
    source = any_device.tensor(array) if load == "tensor" else from_dlpack(array, device=any_device)
    target = any_device.tensor(poisoned(7))
    desc = BufferTensorDesc(TensorDataType.UINT8, (3,), total_tensor_size_in_bytes=7)
    operator = any_device.create_operator(identity(desc, desc).desc)
    any_device.compile_operator(operator).dispatch([source], [target])
    assert target.numpy().tolist() == [0, 1, 2, *poisoned(7)[3:]]


FILL_BYTES = """#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint8_t data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] = uint8_t(data.length());
}"""


def test_blocks_of_bytes_that_end_within_a_word(device):
    """A shader sees the bytes that are bound, and no others."""
    if "storageBuffer8BitAccess" not in device.features or "shaderInt8" not in device.features:
        pytest.skip("the device has no 8-bit numbers")
    buffer = device.buffer(80)
    buffer.write(poisoned(80))
    device.compile_shader(FILL_BYTES)((buffer, 64, 7), threads=64)
    assert buffer.array().tolist() == [*poisoned(80)[:64], *[7] * 7, *poisoned(80)[71:]]


def test_padding_of_the_input_total_is_ignored(device):
    """TotalTensorSizeInBytes may exceed what the sizes imply (T-12)."""
    wide = BufferTensorDesc(TensorDataType.INT16, (3,), total_tensor_size_in_bytes=64)
    run(device, identity(wide, packed(TensorDataType.INT16, (3,))))
