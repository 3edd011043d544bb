"""The memory of CPU drivers: large pages of the host, which are imported."""

import gc
import mmap
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vkops
from vkops.gpu.memory import host_memory
from vkops.gpu.run.open_device import release_empty_heaps

LARGE_PAGE = 2 << 20


def flags_of(address):
    """The flags of the mapping that contains an address, as Linux shows them."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError(f"{address:x} is not mapped")


@pytest.fixture
def unified(adapter):
    """A device of a CPU driver that imports memory of the host."""
    if adapter.type != "CPU" or sys.platform != "linux":
        pytest.skip("only CPU drivers on Linux have large pages")
    with vkops.Device(adapter.index) as device:
        if not device.mapped or not device.vulkan.native.import_alignment:
            pytest.skip("this driver imports no memory of the host")
        yield device


def results(device):
    """What some operations return on a device: copies, a gather, and texels of a shader."""
    x = np.arange(1 << 16, dtype=np.float32).reshape(256, -1)
    tensor = device.tensor(x)
    yield vkops.concat([tensor, tensor[::-1]]).numpy(), np.concatenate([x, x[::-1]])
    yield tensor.T.copy().numpy(), x.T
    yield vkops.take(tensor, [5, 0, 5], axis=0).numpy(), x[[5, 0, 5]]
    yield (tensor + tensor).numpy(), x + x
    texels = device.compile_shader("""#version 450
        layout(local_size_x = 64) in;
        layout(binding = 0) uniform samplerBuffer source;
        layout(binding = 1) buffer Target { float target[]; };
        void main() {
            uint i = gl_GlobalInvocationID.x;
            target[i] = texelFetch(source, int(i)).x;
        }""")
    target = device.tensor(np.zeros(64, np.float32))
    texels(tensor[1], target, threads=64)
    yield target.numpy(), x[1, :64]


def test_the_memory_of_tensors(unified):
    for result, expected in results(unified):
        np.testing.assert_array_equal(result, expected)
    assert unified.pool.heaps
    for heap in unified.pool.heaps:
        assert heap.is_imported
        assert heap.address % LARGE_PAGE == 0
        assert heap.is_coherent
        if Path("/sys/kernel/mm/transparent_hugepage").is_dir():
            assert "hg" in flags_of(heap.address)


def test_images_have_memory_of_the_driver(unified):
    image = unified.image(np.arange(64, dtype=np.uint8).reshape(8, 8))
    np.testing.assert_array_equal(image.numpy(), np.arange(64).reshape(8, 8))
    assert not any(heap.is_imported for heap in unified.image_pool.heaps)


@pytest.mark.parametrize("reason", ["no large pages", "refused"])
def test_the_memory_of_the_driver_takes_its_place(unified, monkeypatch, reason):
    vulkan, make = unified.vulkan, unified.vulkan.module.Memory

    def memory(device, first, *use):
        if isinstance(first, np.ndarray):
            raise vulkan.module.Error("ErrorInvalidExternalHandle")
        return make(device, first, *use)

    if reason == "no large pages":
        monkeypatch.setattr(host_memory, "large_pages", lambda _: None)
    else:
        module = SimpleNamespace(**{**vars(vulkan.module), "Memory": memory})
        monkeypatch.setattr(vulkan, "module", module)
    unified.pool.release_empty_heaps()
    for result, expected in results(unified):
        np.testing.assert_array_equal(result, expected)
    assert unified.pool.heaps
    assert not any(heap.is_imported for heap in unified.pool.heaps)


def test_the_host_gets_its_memory_back(unified):
    tensor = unified.tensor(np.ones(64 << 20, np.uint8))
    heap = tensor.placed()[0].buffer.extents[0].resource
    address = heap.address
    assert flags_of(address)
    view = tensor.numpy()
    del tensor, heap
    gc.collect()
    release_empty_heaps()
    assert view.all()  # an array that shows the memory keeps it
    del view
    gc.collect()
    release_empty_heaps()
    with pytest.raises(AssertionError, match="is not mapped"):
        flags_of(address)


def resident():
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_small_pinned_arrays_take_no_large_pages(unified):
    """Nor do the last pages of large ones."""
    before = resident()
    arrays = [unified.pinned((16,), "float32") for _ in range(100)]
    arrays += [unified.pinned(((2 << 20) + 4096,), "uint8") for _ in range(20)]
    arrays[0][:] = 1
    assert resident() - before < 80 << 20
