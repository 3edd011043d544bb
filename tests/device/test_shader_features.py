"""The features that shaders need, and those that a device is asked for."""

import itertools
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import vkops_native
from processes import outcome

from vkops import shaders
from vkops.errors import InvalidDescError
from vkops.runtime.shader_checks import check_features
from vkops.shaders import features, grammar
from vkops.shaders.binary import Declarations, Instruction, Op, Storage
from vkops.shaders.compiler import _LAYOUTS
from vkops.shaders.layout import ScalarType

MAIN = 100
"""The id of the entry point."""

NUMBERS = {
    id_: ScalarType(kind, nbytes)
    for id_, (kind, nbytes) in enumerate(
        itertools.product(("bool", "uint", "int", "float"), (1, 2, 4, 8)), 1
    )
}


def module(body=(), capabilities=(), modes=(), classes=()):
    """Return a module with a variable of each type of numbers in each storage class.

    The pointer of a type has its id + 20, the vector its id + 40, and the variable its id + 60.
    """
    declarations = Declarations((1, 6), capabilities=list(capabilities))
    declarations.modes = [Instruction(16, (MAIN, *mode)) for mode in modes]
    for id_, number in NUMBERS.items():
        declarations.defined[id_] = Instruction(Op.TypeInt, (id_, 8 * number.nbytes, 0))
        declarations.defined[id_ + 40] = Instruction(Op.TypeVector, (id_ + 40, id_, 2))
        for storage in classes:
            declarations.defined[id_ + 20] = Instruction(Op.TypePointer, (id_ + 20, storage, id_))
            variable = (id_ + 20, id_ + 60, storage, 99)
            declarations.defined[id_ + 60] = Instruction(Op.Variable, variable)
    declarations.functions[MAIN] = list(body)
    return declarations


def needed():
    """Yield all features that a module of known capabilities and modes can need."""
    known = [n for n, name in grammar.CAPABILITIES.items() if name in features.CAPABILITIES]
    for mode, width in itertools.product(grammar.EXECUTION_MODES, (16, 32, 64)):
        declarations = module(modes=[(mode, width)], capabilities=known)
        if not features.unknown(declarations, MAIN):
            yield from features.needs(declarations, NUMBERS, MAIN)
    for storage in (Storage.STORAGE_BUFFER, Storage.WORKGROUP):
        body = [
            Instruction(op, (id_ + 60,) if op == Op.AtomicStore else (id_, 200, id_ + 60))
            for op, id_ in itertools.product(Op.ATOMICS, NUMBERS)
            if NUMBERS[id_].kind != "bool" and NUMBERS[id_] != ("float", 1)
        ]
        yield from features.needs(module(body, known, classes=[storage]), NUMBERS, MAIN)
    body = [
        Instruction(op, (id_ + vector, 200, 7))
        for op, id_, vector in itertools.product(Op.SUBGROUP, NUMBERS, (0, 40))
    ]
    for clustered, scope in itertools.product(((), (9,)), (1, 3)):
        rotate = Instruction(Op.GroupNonUniformRotateKHR, (1, 200, 7, 8, 9, *clustered))
        declarations = module([rotate, Instruction(Op.ReadClockKHR, (1, 200, 300))], known)
        declarations.defined[300] = Instruction(Op.Constant, (1, 300, scope))
        yield from features.needs(declarations, NUMBERS, MAIN)
    yield from features.needs(module(body), NUMBERS, MAIN)
    yield from filter(None, _LAYOUTS)


def test_each_name_that_a_module_can_need_is_one_that_the_device_is_asked_for():
    names = set(needed())
    assert {"maintenance4", "shaderSharedFloat64AtomicMinMax", "scalarBlockLayout"} < names
    assert {"shaderZeroInitializeWorkgroupMemory", "shaderSubgroupExtendedTypes"} < names
    assert {"shaderSubgroupRotate", "shaderSubgroupRotateClustered", "cooperativeMatrix"} < names
    assert {"shaderSubgroupClock", "shaderDeviceClock", "shaderMaximalReconvergence"} < names
    assert sorted(names - {*vkops_native.FEATURES}) == []


def test_modes_and_capabilities_are_known_by_name_or_refused():
    for number, name in grammar.CAPABILITIES.items():
        refused = features.unknown(module(capabilities=[number]), MAIN)
        assert refused == (() if name in features.CAPABILITIES else (name,))
    for number, name in grammar.EXECUTION_MODES.items():
        refused = features.unknown(module(modes=[(number, 32)]), MAIN)
        assert refused == (() if name in features.MODES else (name,))
        assert features.unknown(module(modes=[(number, 32)]), MAIN + 1) == ()


HEAD = "#version 450\n{}\nlayout(local_size_x = 8) in;\n"
HEAD += "layout(binding = 0) buffer O {{ uint o[]; }};\n{}\n"
HEAD += "void main() {} {{ uint i = gl_LocalInvocationIndex; {} }}"


def extension(*names):
    return "".join(f"#extension GL_{name} : require\n" for name in names)


def float_mode(name, capability, mode):
    allowed = 'extensions = ["SPV_KHR_float_controls"], capabilities'
    text = f"{extension('EXT_spirv_intrinsics')}spirv_execution_mode({allowed} = [{capability}], "
    return name, (f"{text}{mode}, 32);", "", "", "o[i] = uint(float(i) * 2.0);")


def rotation(feature, cluster):
    """A program that rotates numbers in subgroups, or in clusters of so many invocations."""
    allowed = 'extensions = ["SPV_KHR_subgroup_rotate"], capabilities = [6026], id = 4431'
    arguments, size = (", uint n", "4u") if cluster else ("", "gl_SubgroupSize")
    head = extension("EXT_spirv_intrinsics", "KHR_shader_subgroup_basic")
    head += f"spirv_instruction({allowed}) uint rotated(uint scope, uint own, uint by{arguments});"
    body = f"""uint n = {size}, next = rotated(3u, i, 1u{", 4u" if cluster else ""});
        o[i] = next == i / n * n + (i + 1u) % n || (i == 7u && n > 8u) ? 2 * i : 1;"""
    return feature, (head, "", "", body)


PROGRAMS = {
    "shaderZeroInitializeWorkgroupMemory": (
        extension("EXT_null_initializer"), "shared uint s[8] = {};", "", "o[i] = s[i] + 2 * i;"
    ),
    "workgroupMemoryExplicitLayout": (
        extension("EXT_shared_memory_block"), "shared A { uint a[8]; };", "",
        "a[i] = 2 * i; o[i] = a[i];"
    ),
    "workgroupMemoryExplicitLayout8BitAccess": (
        extension("EXT_shared_memory_block", "EXT_shader_explicit_arithmetic_types_int8"),
        "shared A { uint8_t a[8]; };", "", "a[i] = uint8_t(2 * i); o[i] = a[i];"
    ),
    "VK_EXT_descriptor_indexing": (
        extension("EXT_nonuniform_qualifier"), "", "", "o[nonuniformEXT(i)] = 2 * i;"
    ),
    "shaderSubgroupUniformControlFlow": (
        extension("KHR_shader_subgroup_basic", "EXT_subgroup_uniform_control_flow"), "",
        "[[subgroup_uniform_control_flow]]", "o[i] = 2 * i;"
    ),
    "shaderSubgroupClock": (
        extension("ARB_shader_clock"), "", "", "o[i] = clock2x32ARB().x == 0 ? 2 * i : 2 * i;"
    ),
    "shaderDeviceClock": (
        extension("EXT_shader_realtime_clock"), "", "", "o[i] = clockRealtime2x32EXT() == uvec2(0) ? 1 : 2 * i;"
    ),
    "VK_EXT_shader_subgroup_ballot": (
        extension("ARB_shader_ballot", "ARB_gpu_shader_int64"), "", "",
        "o[i] = 2 * i - i % gl_SubGroupSizeARB + readFirstInvocationARB(7) - 7 + bitCount(uint(ballotARB(true) & gl_SubGroupLtMaskARB));"
    ),
    "VK_EXT_shader_subgroup_vote": (
        extension("ARB_shader_group_vote"), "", "",
        "o[i] = anyInvocationARB(i < 8) && allInvocationsARB(i < 8) && allInvocationsEqualARB(i < 8) ? 2 * i : 1;"
    ),
    "VK_NV_shader_subgroup_partitioned": (
        extension("NV_shader_subgroup_partitioned"), "", "", "o[i] = i + subgroupPartitionedAddNV(i, subgroupPartitionNV(i));"
    ),
    **dict([
        rotation("shaderSubgroupRotate", cluster=False),
        rotation("shaderSubgroupRotateClustered", cluster=True),
        float_mode("shaderDenormPreserveFloat32", 4464, 4459),
        float_mode("shaderDenormFlushToZeroFloat32", 4465, 4460),
        float_mode("shaderSignedZeroInfNanPreserveFloat32", 4466, 4461),
        float_mode("shaderRoundingModeRTEFloat32", 4467, 4462),
        float_mode("shaderRoundingModeRTZFloat32", 4468, 4463),
    ]),
}  # fmt: skip


def doubled(device, source, **settings):
    """Run a shader that writes 2 * i."""
    shader = device.compile_shader(source, name="x", **settings)
    tensor = device.tensor(np.ones(8, np.uint32))
    shader(tensor, groups=1)
    assert tensor.numpy().tolist() == [*range(0, 16, 2)]


@pytest.mark.parametrize("feature", PROGRAMS)
def test_a_shader_runs_if_the_device_has_its_feature(any_device, feature):
    shader = shaders.load(HEAD.format(*PROGRAMS[feature]), target_env="vulkan1.2", name="x")
    assert feature in shader.needs
    missing = [name for name in shader.needs if name not in any_device.features]
    if not missing:
        doubled(any_device, shader)
        return
    with pytest.raises(InvalidDescError, match="SH-02") as caught:
        any_device.compile_shader(shader)
    assert ", ".join(missing) in str(caught.value)


@pytest.mark.features
@pytest.mark.parametrize("target_env", ["vulkan1.1", "vulkan1.3"])
def test_local_sizes_that_are_constants(device, target_env):
    source = HEAD.format("", "", "", "o[i] = 2 * i * gl_WorkGroupSize.x / 8;")
    source = source.replace("local_size_x = 8", "local_size_x_id = 0")
    shader = shaders.load(source, target_env=target_env, constants={0: 8}, name="x")
    assert ("maintenance4" in shader.needs) == (target_env == "vulkan1.3")
    doubled(device, shader)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4"])
@pytest.mark.parametrize("extended", [False, True])
def test_versions_of_spirv(device, version, extended):
    """VK_KHR_spirv_1_4 adds one to Vulkan 1.1."""
    newest = {"1.0": (1, 0), "1.1": (1, 3), "1.2": (1, 5)}.get(version, (1, 6))
    newest = max(newest, (1, 4)) if extended else newest
    names = {"VK_KHR_spirv_1_4"} if extended else set()
    info = SimpleNamespace(api_version=f"{version}.200", label="'X'")
    opened = SimpleNamespace(features=names, info=info)
    for minor in range(7):
        shader = SimpleNamespace(name="x", needs=(), subgroup_operations=())
        shader.spirv_version = (1, minor)
        if (1, minor) <= newest:
            check_features(opened, shader)
        else:
            with pytest.raises(InvalidDescError, match=rf"needs SPIR-V 1\.{minor}, "):
                check_features(opened, shader)


HIDING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <vulkan/vulkan.h>
VkResult vkEnumerateDeviceExtensionProperties(
    VkPhysicalDevice device, const char *layer, uint32_t *count, VkExtensionProperties *found) {
  *count = 0;
  return VK_SUCCESS;
}
void vkGetPhysicalDeviceProperties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *found) {
  void *vulkan = dlopen("libvulkan.so.1", RTLD_NOW);
  void *real = dlsym(vulkan, "vkGetPhysicalDeviceProperties2");
  void *newer = found->pNext;
  found->pNext = 0;
  ((PFN_vkGetPhysicalDeviceProperties2)real)(device, found);
  found->pNext = newer;
  found->properties.apiVersion = VERSION;
}
"""

CORE = {
    "1_1": {"storageBuffer16BitAccess", "variablePointers"},
    "1_2": {"shaderFloat16", "scalarBlockLayout", "vulkanMemoryModel", "VK_KHR_spirv_1_4"},
    "1_3": {"maintenance4", "shaderIntegerDotProduct", "shaderZeroInitializeWorkgroupMemory"},
}


@pytest.mark.system("cc")
@pytest.mark.parametrize("version", CORE)
def test_features_that_are_a_part_of_the_version(device, tmp_path, version):
    """The driver lists no extension at all, and has no properties that are newer than Vulkan 1.0."""
    (tmp_path / "hiding.c").write_text(HIDING)
    compiler = shutil.which("cc") or shutil.which("gcc")
    options = ["-shared", "-fPIC", f"-DVERSION=VK_API_VERSION_{version}", "-ldl"]
    library = str(tmp_path / "hiding.so")
    subprocess.run([compiler, tmp_path / "hiding.c", *options, "-o", library], check=True)
    code = f"""import vkops
device = vkops.Device({device.name!r})
print(*device.features)
limits = device.info.limits
print(limits.max_memory_allocation_size, limits.max_buffer_size, limits.subgroup_size, end="")
print(*limits.subgroup_operations)"""
    (every, _), (found, told) = (  # all that the driver has, whatever limits the tests run with
        outcome("-c", code, VKOPS_LIMITS="", VKOPS_IMITATED="", **more)[1].splitlines()
        for more in ({}, {"LD_PRELOAD": library})
    )
    every, found = {*every.split()}, {*found.split()}
    assert told == f"{1 << 30} {1 << 30} 1"  # what Vulkan guarantees
    for each, names in CORE.items():
        assert found & names == (names & every if each <= version else set())
    assert found < every
    assert "robustBufferAccess2" not in found
