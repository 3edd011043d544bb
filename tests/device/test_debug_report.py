"""``vkops debug report``: adapters, their limits, and broken drivers."""

from __future__ import annotations

import pytest
from adapters import manifest, own_loader

import vkops
from vkops.debug.bug_report import report
from vkops.gpu.adapters.diagnosis import drivers
from vkops.gpu.adapters.kompute import loader


@pytest.mark.usefixtures("shared_memory")
def test_limits_that_are_known_from_elsewhere(adapter):
    """test_imitated_drivers.py compares the others."""
    parts = adapter.limits
    assert parts.max_per_stage_descriptor_storage_buffers == adapter.max_bindings
    assert sum(heap.size for heap in parts.heaps if heap.device_local) == adapter.dedicated_memory
    assert sum(heap.size for heap in parts.heaps if not heap.device_local) == adapter.shared_memory
    assert any("HOST_VISIBLE" in kind.properties for kind in parts.memory_types)
    assert {kind.heap for kind in parts.memory_types} <= set(range(len(parts.heaps)))
    assert parts.subgroup_size in {1 << n for n in range(8)}
    assert "robustBufferAccess" in parts.features  # all implementations have it


@pytest.mark.usefixtures("shared_memory")
def test_the_section_of_an_adapter(adapter):
    text = report()
    _, _, text = text.partition(f"### Adapter {adapter.index}: {adapter.name}\n")
    lines = text.split("\n")
    parts = adapter.limits
    x, y, z = parts.max_compute_work_group_size
    for line in (
        f"- type: {adapter.type}",
        f"- driver: {adapter.driver}, version {adapter.driver_version}",
        f"- Vulkan: {adapter.api_version}",
        f"- maxStorageBufferRange: {parts.max_storage_buffer_range}",
        f"- maxComputeWorkGroupSize: {x}, {y}, {z}",
        f"- maxPerStageDescriptorStorageBuffers: {adapter.max_bindings}",
        f"- subgroupSize: {parts.subgroup_size}",
    ):
        assert line in lines
    assert any(line.startswith(f"- memory heap 0: {parts.heaps[0].size} bytes") for line in lines)


@pytest.mark.system("VkLayer_khronos_validation")
def test_loader_and_layers(adapter):
    text = report()
    assert f"- loader: {loader()['version']}" in text
    assert any(layer.startswith("VK_LAYER_KHRONOS_validation 1.") for layer in loader()["layers"])
    assert "- Kompute: loads" in text
    assert "- problem: " not in text


def test_an_adapter_that_is_not_the_expected_one(adapter, monkeypatch):
    monkeypatch.setenv("VKOPS_EXPECT", "no such thing")
    assert "is expected (VKOPS_EXPECT)" in report().partition("- problem: ")[2].split("\n")[0]


@own_loader
def test_broken_drivers(adapter, monkeypatch, tmp_path):
    works = next(driver for driver in drivers() if adapter.name in driver.adapters)
    absent = manifest(tmp_path, "absent", "libvulkan_absent.so")
    monkeypatch.setenv("VK_DRIVER_FILES", f"{works.path}:{absent}")
    monkeypatch.setenv("HOME", str(tmp_path))
    text = report()
    assert f"- {works.path}: offers {', '.join(works.adapters)}" in text
    assert "- ~/absent.json: libvulkan_absent.so: cannot open shared object file" in text
    assert "- VK_DRIVER_FILES: " in text


@own_loader
def test_no_driver(adapter, monkeypatch, tmp_path):
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    monkeypatch.setenv("VK_ICD_FILENAMES", str(tmp_path))
    text = report()
    assert "- problem: no Vulkan" in text
    assert "### Adapter" not in text
    assert f"# vkops {vkops.__version__}" in text
