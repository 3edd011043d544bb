"""The capabilities that modules declare, and the features that a device must have for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vkops.shaders.binary import Declarations, Instruction, Op, Storage
from vkops.shaders.layout import Number

SUBGROUP = {
    "GroupNonUniform": "BASIC",
    "GroupNonUniformVote": "VOTE",
    "GroupNonUniformArithmetic": "ARITHMETIC",
    "GroupNonUniformBallot": "BALLOT",
    "GroupNonUniformShuffle": "SHUFFLE",
    "GroupNonUniformShuffleRelative": "SHUFFLE_RELATIVE",
    "GroupNonUniformClustered": "CLUSTERED",
    "GroupNonUniformQuad": "QUAD",
}
"""Capabilities, and the VkSubgroupFeatureFlagBits that a device must have for them."""

# By number: the name of a capability, and the feature of Vulkan that it needs. {} is where the
# atomic operations of the module work: Buffer or Shared.
_CAPABILITIES = {
    0: ("Matrix", ""), 1: ("Shader", ""),
    **{61 + number: (name, "") for number, name in enumerate(SUBGROUP)},
    9: ("Float16", "shaderFloat16"), 10: ("Float64", "shaderFloat64"),
    11: ("Int64", "shaderInt64"), 22: ("Int16", "shaderInt16"), 39: ("Int8", "shaderInt8"),
    12: ("Int64Atomics", "shader{}Int64Atomics"),
    4428: ("WorkgroupMemoryExplicitLayoutKHR", "workgroupMemoryExplicitLayout"),
    4429: ("WorkgroupMemoryExplicitLayout8BitAccessKHR", "workgroupMemoryExplicitLayout8BitAccess"),
    4430: ("WorkgroupMemoryExplicitLayout16BitAccessKHR",
           "workgroupMemoryExplicitLayout16BitAccess"),
    4433: ("StorageBuffer16BitAccess", "storageBuffer16BitAccess"),
    4434: ("UniformAndStorageBuffer16BitAccess", "uniformAndStorageBuffer16BitAccess"),
    4435: ("StoragePushConstant16", "storagePushConstant16"),
    4441: ("VariablePointersStorageBuffer", "variablePointersStorageBuffer"),
    4442: ("VariablePointers", "variablePointers"),
    4448: ("StorageBuffer8BitAccess", "storageBuffer8BitAccess"),
    4449: ("UniformAndStorageBuffer8BitAccess", "uniformAndStorageBuffer8BitAccess"),
    4450: ("StoragePushConstant8", "storagePushConstant8"),
    5345: ("VulkanMemoryModel", "vulkanMemoryModel"),
    5346: ("VulkanMemoryModelDeviceScope", "vulkanMemoryModelDeviceScope"),
    5612: ("AtomicFloat32MinMaxEXT", "shader{}Float32AtomicMinMax"),
    5613: ("AtomicFloat64MinMaxEXT", "shader{}Float64AtomicMinMax"),
    5616: ("AtomicFloat16MinMaxEXT", "shader{}Float16AtomicMinMax"),
    6016: ("DotProductInputAll", "shaderIntegerDotProduct"),
    6017: ("DotProductInput4x8Bit", "shaderIntegerDotProduct"),
    6018: ("DotProductInput4x8BitPacked", "shaderIntegerDotProduct"),
    6019: ("DotProduct", "shaderIntegerDotProduct"),
    6033: ("AtomicFloat32AddEXT", "shader{}Float32AtomicAdd"),
    6034: ("AtomicFloat64AddEXT", "shader{}Float64AtomicAdd"),
    6095: ("AtomicFloat16AddEXT", "shader{}Float16AtomicAdd"),
}  # fmt: skip

# Names of others, for messages.
_OTHERS = {
    2: "Geometry", 3: "Tessellation", 4: "Addresses", 5: "Linkage", 6: "Kernel", 43: "Sampled1D",
    44: "Image1D", 46: "SampledBuffer", 47: "ImageBuffer", 50: "ImageQuery",
    55: "StorageImageReadWithoutFormat", 56: "StorageImageWriteWithoutFormat", 4437: "DeviceGroup",
    4472: "RayQueryKHR", 5301: "ShaderNonUniform", 5302: "RuntimeDescriptorArray",
    5347: "PhysicalStorageBufferAddresses", 6022: "CooperativeMatrixKHR",
}  # fmt: skip

_NEEDS = dict(_CAPABILITIES.values())

_LOCAL_SIZE_ID = 38
_ATOMIC_NAMES = {5614: "AtomicMinMax", 5615: "AtomicMinMax", 6035: "AtomicAdd"}
_WITHOUT_EXTENDED_TYPES = (("bool", 4), ("int", 4), ("uint", 4), ("float", 4), ("float", 8))


def name(capability: int) -> str:
    """Return the name of a capability, or its number."""
    known = _CAPABILITIES.get(capability)
    return known[0] if known else _OTHERS.get(capability, str(capability))


def unknown(capabilities: tuple[str, ...]) -> list[str]:
    """Return the capabilities that vkops does not support."""
    return [each for each in capabilities if each not in _NEEDS]


def needs(module: Declarations, numbers: Mapping[int, Number]) -> tuple[str, ...]:
    """Return the features of Vulkan that a device must have for a module."""
    used = dict.fromkeys(_used(module, numbers))
    found: list[str] = []
    for capability in map(name, module.capabilities):
        template = _NEEDS.get(capability, "")
        places = [template.format(place) for place in ("Buffer", "Shared")]
        found += [place for place in places if place in used] or places[:1]
    return tuple(dict.fromkeys(filter(None, (*found, *used))))


def _used(module: Declarations, numbers: Mapping[int, Number]) -> Iterator[str]:
    """Yield the features that instructions of a module need, some of them without a capability."""
    if any(mode.words[1] == _LOCAL_SIZE_ID for mode in module.modes):
        yield "maintenance4"
    pointers = {id_: i.words for id_, i in module.defined.items() if i.op == Op.TYPE_POINTER}
    found = {}
    for id_, (op, words) in module.defined.items():
        if op == Op.VARIABLE:
            found[id_] = pointers[words[0]]
            if words[2] == Storage.WORKGROUP and len(words) > 3:
                yield "shaderZeroInitializeWorkgroupMemory"
    for instruction in (each for body in module.functions.values() for each in body):
        op, words = instruction
        if len(words) > 1 and words[0] in pointers:
            found[words[1]] = pointers[words[0]]
        elif op in Op.ATOMICS:
            _, storage, pointee = found[words[0 if op == Op.ATOMIC_STORE else 2]]
            place = "Shared" if storage == Storage.WORKGROUP else "Buffer"
            yield from _atomic(instruction, numbers.get(pointee), place)
        elif op in Op.SUBGROUP:
            type_ = words[0]
            if module.defined[type_].op == Op.TYPE_VECTOR:
                type_ = module.defined[type_].words[1]
            if type_ in numbers and numbers[type_] not in _WITHOUT_EXTENDED_TYPES:
                yield "shaderSubgroupExtendedTypes"


def _atomic(instruction: Instruction, number: Number | None, place: str) -> Iterator[str]:
    if number is None:
        return
    bits = 8 * number.nbytes
    if number.kind == "float":
        done = _ATOMIC_NAMES.get(instruction.op, "Atomics")
        yield f"shader{place}Float{bits}{done}"
    elif bits == 64:
        yield f"shader{place}Int64Atomics"
