"""The limits that Vulkan guarantees: kernels keep them, and adapters' own limits count otherwise."""

import dataclasses
from types import SimpleNamespace

import pytest
from kernel_plans import several, window

from vkops.errors import DeviceError
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.adapter_limits import LIMITS, Limits, MemoryType
from vkops.gpu.kernels import choice
from vkops.gpu.kernels.choice import STREAM, STREAM_SHARED, TILES, choose_kernel
from vkops.plan.algebra import optimize
from vkops.shaders import spirv
from vkops.shaders.module import Module
from vkops.shaders.variants import VARIANTS

LEAST = Limits()
"""What Vulkan guarantees."""

KERNELS = {
    name: kernel
    for value in vars(choice).values()
    for kernel in (value.values() if isinstance(value, dict) else [value])
    if isinstance(kernel, choice.Kernel)
    for name in (kernel.name, kernel.wide)
    if name
}


def test_every_kernel_that_can_be_chosen_is_there():
    assert KERNELS.keys() == VARIANTS.keys()


@pytest.mark.parametrize("name", VARIANTS)
def test_kernels_keep_the_limits_that_vulkan_guarantees(name):
    """Except for the size of workgroups and the number of buffers, by which they are chosen."""
    module, kernel = Module.read(spirv(name)), KERNELS[name]
    assert module.local_size == (kernel.workgroup, 1, 1)
    assert kernel.workgroup <= LEAST.max_workgroup or kernel in (*TILES.values(), STREAM_SHARED)
    assert kernel.workgroup <= choice.MAX_WORKGROUP
    bindings = {block.place for block in module.blocks}
    assert bindings <= {(0, number) for number in range(kernel.bindings)}
    assert kernel.bindings <= LEAST.max_per_stage_descriptor_storage_buffers or kernel == STREAM
    assert {block.kind for block in module.blocks} == {"storage"}
    assert module.shared_nbytes <= LEAST.max_compute_shared_memory_size
    assert module.push_nbytes == 0


@pytest.mark.parametrize("size", TILES)
def test_workgroups_that_are_too_large_are_not_chosen(size):
    transpose = optimize(window(size, [256, 256], [1, 256]))
    join = optimize(several(1, 24, 5, 6))
    for plan, large in ((transpose, TILES[size]), (join, STREAM_SHARED)):
        for most in (large.workgroup, large.workgroup - 1):
            chosen = choose_kernel(plan, is_cpu=False, invocations=most).kernel
            assert (chosen == large) == (most == large.workgroup)


# -- adapters --------------------------------------------------------------------------------------


def offer(monkeypatch, **limits):
    """Offer one adapter, with these limits and otherwise the least ones; return its information."""
    other = ("memory_types", "features", "heaps", "cooperative_matrices")
    values = {field.name: getattr(LEAST, field.name) for field in dataclasses.fields(Limits)}
    native = SimpleNamespace(
        name="X", type=2, driver="x", api_version=1 << 22, driver_version=1, vendor_id=1, device_id=1,
        limits={name: value for name, value in {**values, **limits}.items() if name not in other},
        memory_heaps=[(1 << 30, True), (1 << 20, False)],
        memory_types=[(0, ("DEVICE_LOCAL", "HOST_VISIBLE", "HOST_COHERENT"))],
        features=("robustBufferAccess", "shaderInt64"), cooperative_matrices=(),
    )  # fmt: skip
    monkeypatch.setattr(adapter, "native_adapters", lambda _: (native,))
    (info,) = adapter.devices()
    return info


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"max_storage_buffer_range": 1 << 29}, 1 << 29),
        ({"max_storage_buffer_range": 1 << 32}, (1 << 30) - adapter.ALLOCATION_SLACK),
        ({"max_storage_buffer_range": 1 << 32, "max_buffer_size": 1 << 20},
         (1 << 20) - adapter.ALLOCATION_SLACK),
        ({"max_storage_buffer_range": 1 << 32, "max_memory_allocation_size": 1 << 25},
         (1 << 25) - adapter.ALLOCATION_SLACK),
    ],
)  # fmt: skip
def test_the_largest_buffer(monkeypatch, limits, most):
    assert offer(monkeypatch, **limits).max_buffer == most


@pytest.mark.parametrize(("x", "invocations"), [(128, 1024), (1024, 128)])
def test_the_largest_workgroup(monkeypatch, x, invocations):
    size = {"max_compute_work_group_size": (x, 1024, 64)}
    size["max_compute_work_group_invocations"] = invocations
    assert offer(monkeypatch, **size).limits.max_workgroup == 128


def test_minimum_limits(monkeypatch):
    names = {field.name for field in dataclasses.fields(Limits)}
    more = dict.fromkeys(names - {"memory_types", "features", "heaps"}, 1 << 40)
    info = offer(monkeypatch, **more)
    assert info.unified_memory
    assert (info.dedicated_memory, info.shared_memory) == (1 << 30, 1 << 20)
    assert info.memory == 1 << 30
    assert dataclasses.replace(info, dedicated_memory=0).memory == 1 << 20
    assert info.limits.features == ("robustBufferAccess", "shaderInt64")
    monkeypatch.setenv(LIMITS, "minimum")
    least = offer(monkeypatch, **more)
    assert least.limits == dataclasses.replace(LEAST, heaps=info.limits.heaps)
    assert not least.unified_memory
    assert (least.max_buffer, least.max_bindings) == (1 << 27, 4)
    assert least.limits.memory_types[1] == MemoryType(0, ("HOST_VISIBLE", "HOST_COHERENT"))


def test_a_wrong_choice_of_limits(monkeypatch, message):
    monkeypatch.setenv(LIMITS, "most")
    with pytest.raises(DeviceError) as error:
        offer(monkeypatch)
    message(str(error.value), "VKOPS_LIMITS")
