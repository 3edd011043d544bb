"""Bound operators and shaders that are dispatched again and again."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vkops import dml

pytestmark = pytest.mark.memory

N = 300
ADD = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer From { int from[]; };
layout(std430, binding = 1) buffer To { int to[]; };
layout(push_constant) uniform Push { int n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < to.length()) to[i] = from[i] + n; }"""


def operator(device, source, target):
    """An operator that turns a list around, bound; it copies by a shader."""
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [N])
    turned = dml.Slice1OperatorDesc(desc, desc, [0], [N], [-1])
    return device.compile_operator(device.create_operator(turned)).bind([source], [target])


def copying(device, source, target):
    """An operator that copies a list, bound; Vulkan's own copies may do that."""
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [N])
    copied = dml.ElementWiseIdentityOperatorDesc(desc, desc)
    return device.compile_operator(device.create_operator(copied)).bind([source], [target])


def shader(device, source, target):
    """A shader that adds 7, bound."""
    return device.compile_shader(ADD).bound({"From": source, "To": target}, 5, [7])


def shader_of_views(device, source, target):
    """A shader that adds 7, bound to views, which are copied before and after it."""
    views = {"From": source[::-1], "To": target[::-1]}
    return device.compile_shader(ADD).bound(views, 5, [7])


EXPECTED = {
    operator: lambda x: x[::-1],
    copying: lambda x: x,
    shader: lambda x: x + 7,
    shader_of_views: lambda x: x + 7,
}
each_kind = pytest.mark.parametrize("bind", EXPECTED, ids=lambda bind: bind.__name__)


def tensors(device):
    return device.tensor(np.arange(N, dtype=np.int32)), device.tensor(np.zeros(N, np.int32))


@each_kind
@pytest.mark.parametrize("staged", [False, True])
def test_each_dispatch_reads_what_is_there(device, staged_device, bind, staged):
    device = staged_device if staged else device
    source, target = tensors(device)
    bound = bind(device, source, target)
    for number in range(6):
        x = np.arange(N, dtype=np.int32) * number
        source[:] = x
        target[:] = -1
        bound.dispatch()
        np.testing.assert_array_equal(target.numpy(), EXPECTED[bind](x))


@each_kind
def test_two_that_alternate_without_waiting(device, bind):
    one, other = tensors(device)
    there, back = bind(device, one, other), bind(device, other, one)
    expected = np.arange(N, dtype=np.int32)
    for _ in range(100):
        there.dispatch()
        back.dispatch()
        expected = EXPECTED[bind](EXPECTED[bind](expected))
    np.testing.assert_array_equal(one.numpy(), expected)


@each_kind
def test_a_recorded_program_contains_what_was_dispatched_before(device, bind):
    source, target = tensors(device)
    bound = bind(device, source, target)
    for _ in range(3):
        bound.dispatch()
    target[:] = -1
    with device.record() as program:
        bound.dispatch()
    np.testing.assert_array_equal(target.numpy(), np.full(N, -1))
    program.run()
    np.testing.assert_array_equal(target.numpy(), EXPECTED[bind](source.numpy()))


@each_kind
def test_threads_that_dispatch_the_same(device, bind):
    source, target = tensors(device)
    bound = bind(device, source, target)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: bound.dispatch(), range(40)))
    np.testing.assert_array_equal(target.numpy(), EXPECTED[bind](source.numpy()))
