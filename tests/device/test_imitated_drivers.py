"""The layer that imitates drivers (tests/imitated): devices, failures and records are as they should be."""

import json
import sys
from dataclasses import asdict

import imitated
import pytest
from imitated import IMPORTS, KINDS, environment
from processes import VULKAN, outcome

from vkops.gpu.adapters.adapter_limits import Limits

pytestmark = pytest.mark.system("cc")

VALIDATION_FAILED = -1000011001  # VK_ERROR_VALIDATION_FAILED_EXT

START = f"""{IMPORTS}
import warnings
warnings.simplefilter("ignore")
def said(use):
    try:
        return use()
    except KeyError as error:  # a result that the package does not know
        return int(str(error))
    except Exception as error:
        return type(error).__name__
"""
OPEN = """
import vulkan as vk
application = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 1, 0))
instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
adapter = vk.vkEnumeratePhysicalDevices(instance)[index]
about = vk.vkGetPhysicalDeviceProperties(adapter)
queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
device = vk.vkCreateDevice(adapter, vk.VkDeviceCreateInfo(pQueueCreateInfos=[queue]), None)
def allocate(type, size=1024):
    info = vk.VkMemoryAllocateInfo(allocationSize=size, memoryTypeIndex=type)
    return vk.vkAllocateMemory(device, info, None)
def buffer(memory, usage=vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT):
    made = vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(size=1024, usage=usage), None)
    vk.vkBindBufferMemory(device, made, memory, 0)
    return made
def run(record):
    pool = vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)
    commands, = vk.vkAllocateCommandBuffers(device, vk.VkCommandBufferAllocateInfo(
        commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1))
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo(flags=1))
    record(commands)
    vk.vkEndCommandBuffer(commands)
    fence = vk.vkCreateFence(device, vk.VkFenceCreateInfo(), None)
    work = vk.VkSubmitInfo(pCommandBuffers=[commands])
    vk.vkQueueSubmit(vk.vkGetDeviceQueue(device, 0, 0), 1, [work], fence)
    return fence
def wait(fence, seconds=10):
    vk.vkWaitForFences(device, 1, [fence], True, int(seconds * 1e9))
"""


@pytest.fixture
def program(adapter):
    """Runs a program with the layer; returns the JSON that it prints, and standard error."""

    def run(kind, text, **variables):
        done = imitated.run(START + text, adapter.index, kind=kind, **variables)
        return json.loads(done.stdout), done.stderr

    return run


LOOK = """
from vkops.gpu.adapters.adapter import native_adapters
found = native_adapters()[index]
types = [f"{heap} {' '.join(names)}" for heap, names in found.memory_types]
look = [found.type, [local for _, local in found.memory_heaps], types, found.memory_heaps[-1][0],
    found.limits, found.features]
"""
DEVICE, BOTH = "DEVICE_LOCAL", "DEVICE_LOCAL HOST_VISIBLE"
HOST = ["1 HOST_VISIBLE HOST_COHERENT", "1 HOST_VISIBLE HOST_COHERENT HOST_CACHED"]
DISCRETE = [f"0 {DEVICE}", HOST[0], f"0 {BOTH} HOST_COHERENT", HOST[1]]
INTEGRATED = [f"0 {DEVICE}", f"0 {BOTH} HOST_COHERENT"]
TYPES = {
    "discrete": (2, [True, False], DISCRETE),
    "small-bar": (2, [True, False, True], [*DISCRETE[:2], f"2 {BOTH} HOST_COHERENT", HOST[1]]),
    "integrated": (1, [True], [*INTEGRATED, f"0 {BOTH} HOST_CACHED"]),
    "integrated-coherent": (1, [True], [*INTEGRATED, f"0 {BOTH} HOST_COHERENT HOST_CACHED"]),
    "minimum": (2, [True, False], DISCRETE),
}


MEMORY = """
found = [said(lambda: bool(vk.vkMapMemory(device, allocate(type), 0, 1024, 0))) for type in range(3)]
held = [allocate(2, 100 << 20) for _ in range(2)]
found.append(said(lambda: bool(allocate(2, 100 << 20))))
vk.vkFreeMemory(device, held[0], None)
found.append(said(lambda: bool(allocate(2, 100 << 20))))
needs = vk.vkGetBufferMemoryRequirements(device, buffer(allocate(1)))
if about.limits.maxComputeSharedMemorySize == 16384:
    found.append(said(lambda: bool(allocate(0, (1 << 30) + 1))))
    found.append(said(lambda: [allocate(0, 64) for _ in range(5000)]))
print(json.dumps([look, found, needs.memoryTypeBits, not list(vk.vkEnumerateDeviceExtensionProperties(adapter, None))]))
"""


@VULKAN
@pytest.mark.parametrize("kind", KINDS)
def test_the_type_the_memory_and_the_limits_of_each_device(program, kind):
    (look, found, types, no_extensions), said = program(kind, LOOK + OPEN + MEMORY)
    device_type, local, listed, last_heap, limits, features = look
    assert (device_type, local, listed) == TYPES[kind]
    assert (last_heap == 256 << 20) == (kind == "small-bar")
    least = json.loads(json.dumps(asdict(Limits())))
    assert (limits == {name: least[name] for name in limits}) == (kind == "minimum")
    assert (features == ["robustBufferAccess"]) == (kind == "minimum")
    # Memory is mapped and bounded as its type says.
    third = "VkErrorOutOfDeviceMemory" if kind == "small-bar" else True
    refused = ["VkErrorOutOfDeviceMemory", "VkErrorTooManyObjects"] if kind == "minimum" else []
    assert found == [VALIDATION_FAILED, True, True, third, True, *refused]
    assert said == "imitated driver: vkMapMemory: the host does not see this memory\n"
    assert types == (7 if kind.startswith("integrated") else 15)
    assert no_extensions == (kind == "minimum")


COHERENCE = """
cached, other = allocate(2), allocate(1)
source, target = buffer(cached), buffer(other)
host, seen = vk.vkMapMemory(device, cached, 0, 1024, 0), vk.vkMapMemory(device, other, 0, 1024, 0)
def ranges(offset=0, size=(1 << 64) - 1):
    return [vk.VkMappedMemoryRange(memory=cached, offset=offset, size=size)]
def copied():
    wait(run(lambda commands: vk.vkCmdCopyBuffer(
        commands, source, target, 1, [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=1024)])))
    return [ord(seen[0]), ord(seen[1023])]
def fill(word):
    wait(run(lambda commands: vk.vkCmdFillBuffer(commands, source, 0, 1024, word)))
fill(0)
host[:] = b"A" * 1024
found = [copied()]
vk.vkFlushMappedMemoryRanges(device, 1, ranges(0, 256))
found.append(copied())
vk.vkFlushMappedMemoryRanges(device, 1, ranges())
found.append(copied())
fill(0x42424242)
found.append(ord(host[0]))
vk.vkInvalidateMappedMemoryRanges(device, 1, ranges())
found += [ord(host[0]), said(lambda: vk.vkFlushMappedMemoryRanges(device, 1, ranges(4)))]
vk.vkUnmapMemory(device, cached)
found.append(said(lambda: vk.vkFlushMappedMemoryRanges(device, 1, ranges())))
print(json.dumps(found))
"""


@VULKAN
def test_memory_that_is_not_coherent_needs_flushes_and_invalidations(program):
    counts, said = program("integrated", OPEN + COHERENCE)
    wrong = VALIDATION_FAILED
    assert counts == [[0, 0], [65, 0], [65, 65], 65, 66, wrong, wrong]
    assert said == (
        "imitated driver: vkFlushMappedMemoryRanges: the range is not aligned to nonCoherentAtomSize\n"
        "imitated driver: vkFlushMappedMemoryRanges: the memory is not mapped\n"
    )


RECORDS = """
def record(commands):
    memory = vk.VkMemoryBarrier(srcAccessMask=0x1000, dstAccessMask=0x2000)
    vk.vkCmdFillBuffer(commands, target, 0, 1024, 7)
    vk.vkCmdPipelineBarrier(commands, 0x1000, 0x4000, 0, 1, [memory], 0, [], 0, [])
faulty.record(1)
target = buffer(allocate(3))
start = time.perf_counter()
faulty.slow(1_000_000)
fence = run(record)
early = said(lambda: vk.vkGetFenceStatus(device, fence)), said(lambda: wait(fence, 0))
wait(fence)
seconds = time.perf_counter() - start
lines = records()
faulty.slow(0)
numbers = []
for number in range(faulty.calls()):
    faulty.record(1)
    faulty.fail(b"", number, 1, NO_DEVICE_MEMORY)
    numbers.append((said(lambda: wait(run(record))), faulty.still_failing(), len(counts())))
faulty.fail(b"vkAllocateMemory", 1, 1, NO_DEVICE_MEMORY)
named = [said(lambda: bool(allocate(0))) for _ in range(3)]
print(json.dumps([lines, early, seconds, numbers, named]))
"""
LINES = """
vkAllocateMemory type=3 flags=0xe bytes=1024 imported=0
vkCreateBuffer bytes=1024 usage=0x3 flags=0x0
vkBindBufferMemory type=3 offset=0
vkCreateCommandPool flags=0x0
vkAllocateCommandBuffers buffers=1
vkBeginCommandBuffer flags=0x1
vkCmdFillBuffer bytes=1024
vkCmdPipelineBarrier stages=0x1000,0x4000 access=0x1000,0x2000 memory=1 buffers=0 images=0
vkEndCommandBuffer
vkCreateFence
vkQueueSubmit submissions=1 buffers=1
vkGetFenceStatus
vkWaitForFences fences=1
vkWaitForFences fences=1
"""


@VULKAN
def test_calls_are_recorded_delayed_and_fail_by_name_and_number(program):
    (lines, early, seconds, numbers, named), _ = program("discrete", OPEN + RECORDS)
    assert lines == LINES.strip().splitlines()
    assert early == ["VkNotReady", "VkTimeout"]
    assert seconds >= 1
    failed = [["VkErrorOutOfDeviceMemory", 0]] * 7 + [[None, 1]] * 5
    assert [outcome[:2] for outcome in numbers] == failed
    assert named == [True, "VkErrorOutOfDeviceMemory", True]


@VULKAN
def test_extensions_can_be_hidden(program):
    look = "print(json.dumps([e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(adapter, None)]))"
    names, _ = program("", OPEN + look)
    fewer, _ = program("", OPEN + look, VKOPS_HIDDEN_EXTENSIONS=" ".join(names[1:3]))
    assert fewer == [names[0], *names[3:]]


ADDED = """
import vkops
faulty.record(1)
device = vkops.Device(index)
print(json.dumps([records("added"), device.cooperative_matrices, sorted(device.features)]))
"""


def test_newer_features_are_enabled_where_the_driver_has_them(adapter, program):
    (added, matrices, features), _ = program("discrete", ADDED, VKOPS_ADDED="1")
    assert added == [
        "VK_KHR_shader_quad_control 1", "VK_KHR_shader_subgroup_rotate 3", "VK_KHR_shader_maximal_reconvergence 1",
        "VK_KHR_cooperative_matrix 1", "VK_KHR_shader_float_controls2 1", "VK_KHR_shader_expect_assume 1",
        "VK_KHR_portability_subset -1", "VK_NV_shader_subgroup_partitioned -1",
    ]  # fmt: skip
    assert {
        "shaderQuadControl", "shaderSubgroupRotate", "shaderSubgroupRotateClustered", "shaderMaximalReconvergence",
        "cooperativeMatrix", "shaderFloatControls2", "shaderExpectAssume", "VK_NV_shader_subgroup_partitioned",
    } < {*features}  # fmt: skip
    assert matrices == [
        [16, 16, 16, "float16", "float16", "float32", "float32", False, "subgroup"],
        [8, 16, 32, "uint8", "int8", "int32", "int32", True, "subgroup"],
        [16, 16, 16, "bfloat16", "bfloat16", "float32", "uint32", False, "workgroup"],
    ]
    (none, matrices, fewer), _ = program("discrete", ADDED)
    assert none == []
    assert bool(matrices) == ("cooperativeMatrix" in fewer)
    assert {*fewer} < {*features} or adapter.type != "CPU"  # a GPU may have all of them


UNSEEN = "print(said(lambda: vk.vkMapMemory(device, allocate(0), 0, 1024, 0)))"


@VULKAN
@pytest.mark.posix("named pipes")
@pytest.mark.system("VkLayer_khronos_validation")
def test_the_validation_layer_checks_the_use_of_the_imitated_device(adapter, tmp_path):
    """It must lie above the layer: memory of the driver's type 0 could be mapped."""
    (tmp_path / "program.py").write_text(START + OPEN + UNSEEN)
    command = "-m", "vkops", "debug", "validate", "--", sys.executable, tmp_path / "program.py"
    _, printed, _ = outcome(*command, adapter.index, **environment("discrete"))
    assert "VUID-vkMapMemory-memory-00682" in printed
