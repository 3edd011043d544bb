"""The capabilities that modules declare, and the features that a device must have for them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from vkops.shaders import grammar
from vkops.shaders.binary import HEADER_WORDS, Declarations, Instruction, Op, Storage, positions
from vkops.shaders.grammar import EXECUTION_MODES, WITH_RESULT
from vkops.shaders.layout import ScalarType

SUBGROUP = {
    "GroupNonUniform" + kind.removeprefix("BASIC").title().replace("_", ""): kind
    for kind in (
        "BASIC", "VOTE", "ARITHMETIC", "BALLOT", "SHUFFLE", "SHUFFLE_RELATIVE", "CLUSTERED", "QUAD",
    )
}  # fmt: skip
"""Capabilities, and the VkSubgroupFeatureFlagBits that a device must have for them."""

_FLOAT_CONTROLS = (
    "DenormPreserve", "DenormFlushToZero", "SignedZeroInfNanPreserve",
    "RoundingModeRTE", "RoundingModeRTZ",
)  # fmt: skip
"""The names of capabilities and of execution modes."""

_EXACT = ("DenormPreserve", "SignedZeroInfNanPreserve", "RoundingModeRTE")
_EXTENSION = b"SPV_KHR_float_controls\0\0"

_SAME_NAMES = (
    "StorageBuffer8BitAccess", "UniformAndStorageBuffer8BitAccess", "StoragePushConstant8",
    "StorageBuffer16BitAccess", "UniformAndStorageBuffer16BitAccess", "StoragePushConstant16",
    "VariablePointersStorageBuffer", "VariablePointers", "WorkgroupMemoryExplicitLayoutKHR",
    "WorkgroupMemoryExplicitLayout8BitAccessKHR", "WorkgroupMemoryExplicitLayout16BitAccessKHR",
    "VulkanMemoryModel", "VulkanMemoryModelDeviceScope", "RuntimeDescriptorArray",
)  # fmt: skip
_IMAGE_FEATURES = (
    "StorageImageExtendedFormats", "StorageImageReadWithoutFormat",
    "StorageImageWriteWithoutFormat", "StorageImageMultisample", "ImageGatherExtended",
)  # fmt: skip
CAPABILITIES = {
    **dict.fromkeys(("Matrix", "Shader", "DeviceGroup", *SUBGROUP), ""),
    **dict.fromkeys(("Image1D", "Sampled1D", "ImageBuffer", "SampledBuffer", "ImageQuery"), ""),
    **{name: f"shader{name}" for name in _IMAGE_FEATURES},
    **dict.fromkeys(("ImageCubeArray", "SampledCubeArray"), "imageCubeArray"),
    "ImageMSArray": "shaderStorageImageMultisample",
    "MinLod": "shaderResourceMinLod", "Int64ImageEXT": "shaderImageInt64Atomics",
    **{name: f"shader{name}" for name in ("Float16", "Float64", "Int8", "Int16", "Int64")},
    **{name: name[0].lower() + name[1:].removesuffix("KHR") for name in _SAME_NAMES},
    **{f"AtomicFloat{bits}{change}EXT": f"shader{{}}Float{bits}Atomic{change}"
       for bits in (16, 32, 64) for change in ("Add", "MinMax")},
    **{f"DotProduct{form}": "shaderIntegerDotProduct"
       for form in ("", "InputAll", "Input4x8Bit", "Input4x8BitPacked")},
    "Int64Atomics": "shader{}Int64Atomics",
    "ShaderNonUniform": "VK_EXT_descriptor_indexing",
    "SubgroupBallotKHR": "VK_EXT_shader_subgroup_ballot",
    "SubgroupVoteKHR": "VK_EXT_shader_subgroup_vote",
    "GroupNonUniformPartitionedEXT": "VK_NV_shader_subgroup_partitioned",
    "GroupNonUniformRotateKHR": "shaderSubgroupRotate",
    "ShaderClockKHR": "shader{}Clock",
    **{name: f"shader{name.removesuffix('KHR')}"
       for name in ("DemoteToHelperInvocation", "ExpectAssumeKHR", "FloatControls2",
                    "QuadControlKHR")},
    "CooperativeMatrixKHR": "cooperativeMatrix",
    "PhysicalStorageBufferAddresses": "bufferDeviceAddress",
    **{f"{kind}Array{index}": f"shader{kind}Array{index}"
       for kind in ("StorageBuffer", "UniformBuffer", "SampledImage", "StorageImage",
                    "StorageTexelBuffer", "UniformTexelBuffer")
       for index in ("DynamicIndexing", "NonUniformIndexing")},
    **dict.fromkeys(_FLOAT_CONTROLS, "VK_KHR_shader_float_controls"),  # modes name the features
}  # fmt: skip
"""The features of Vulkan that capabilities need; {} is the place that instructions name."""

MODES = {
    "LocalSize": "", "LocalSizeId": "maintenance4",
    "SubgroupUniformControlFlowKHR": "shaderSubgroupUniformControlFlow",
    "MaximallyReconvergesKHR": "shaderMaximalReconvergence",
    "FPFastMathDefault": "shaderFloatControls2",
    **{mode: f"shader{mode}Float{{}}" for mode in _FLOAT_CONTROLS},
}  # fmt: skip
"""The features that execution modes need; {} is the width of numbers."""

_DEVICE_SCOPE = 1
_ACCESS = (Op.AccessChain, Op.InBoundsAccessChain)
_ARRAYS = (Op.TypeArray, Op.TypeRuntimeArray)
_DYNAMIC = {Storage.UNIFORM: "UniformBuffer", Storage.STORAGE_BUFFER: "StorageBuffer",
            Storage.UNIFORM_CONSTANT: "SampledImage"}  # fmt: skip
_BUFFER, _STORED = 5, 2  # of the operands of OpTypeImage
_ATOMIC_NAMES = {
    Op.AtomicFMinEXT: "AtomicMinMax", Op.AtomicFMaxEXT: "AtomicMinMax",
    Op.AtomicFAddEXT: "AtomicAdd",
}  # fmt: skip
_ATOMIC_PLACES = {Storage.WORKGROUP: "Shared", Storage.IMAGE: "Image"}
_WITHOUT_EXTENDED_TYPES = (("bool", 4), ("int", 4), ("uint", 4), ("float", 4), ("float", 8))


def exact_floats(features: Set[str], widths: Iterable[int]) -> tuple[list[tuple[str, int]], bool]:
    """Return the execution modes that give floats of some widths the same bits on all devices.

    With them, denormal numbers, the sign of zero, infinities and NaN are kept, and results are
    rounded to nearest. The list has the modes that the device supports; the Boolean says whether it
    supports all of them.
    """
    modes = [(mode, width) for mode in _EXACT for width in widths]
    known = [(mode, width) for mode, width in modes if MODES[mode].format(width) in features]
    if CAPABILITIES[_EXACT[0]] not in features:
        known = []
    return known, known == modes


def with_modes(spirv: bytes, modes: Sequence[tuple[str, int]]) -> bytes:
    """Return a module of one entry point with modes of ``exact_floats``.

    This is not done in GLSL, where glslang 12 accepts each mode for one width only.
    """
    if not modes:
        return spirv
    capability, number = (
        {text: value for value, text in table.items()}
        for table in (grammar.CAPABILITIES, EXECUTION_MODES)
    )
    words, start = memoryview(spirv).cast("I").tolist(), HEADER_WORDS
    places = {op: (at, at + count) for at, op, count in positions(words)}
    entry, last = words[places[Op.ExecutionMode][0] + 1], places[Op.ExecutionMode][1]
    declared = [
        *[n for mode in dict(modes) for n in (2 << 16 | Op.Capability, capability[mode])],
        *words[start : places[Op.Capability][1]],
        (1 + len(_EXTENSION) // 4) << 16 | Op.Extension, *memoryview(_EXTENSION).cast("I"),
        *words[places[Op.Capability][1] : last],
        *[
            word
            for mode, width in modes
            for word in (4 << 16 | Op.ExecutionMode, entry, number[mode], width)
        ],
    ]  # fmt: skip
    return array("I", [*words[:start], *declared, *words[last:]]).tobytes()


def without_modes(spirv: bytes) -> bytes:
    """Return a module without modes of floats: with them, old versions of spirv-opt do little."""
    words = memoryview(spirv).cast("I").tolist()
    kept = words[:HEADER_WORDS]
    for at, op, count in positions(words):
        instruction = words[at : at + count]
        modes = {Op.Capability: grammar.CAPABILITIES, Op.ExecutionMode: EXECUTION_MODES}.get(op, {})
        last = instruction[1:3][-1:]  # the capability, or the mode behind the entry point
        is_mode = any(modes.get(number) in _EXACT for number in last)
        if not is_mode and array("I", instruction[1:]).tobytes() != _EXTENSION:
            kept += instruction
    return array("I", kept).tobytes()


def name(capability: int) -> str:
    """Return the name of a capability."""
    return grammar.CAPABILITIES.get(capability, f"capability {capability}")


def unknown(module: Declarations, function: int) -> tuple[str, ...]:
    """Return the capabilities and the modes of an entry point that vkops does not support."""
    modes = [mode for mode, _ in _modes(module, function) if mode not in MODES]
    return (*unsupported(module.capabilities), *modes)


def unsupported(capabilities: Iterable[int]) -> tuple[str, ...]:
    """Return the names of the capabilities that vkops does not support."""
    return tuple(each for each in map(name, capabilities) if each not in CAPABILITIES)


def _modes(module: Declarations, function: int) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the execution modes of an entry point, with their operands."""
    for _, (id_, mode, *operands) in module.modes:
        if id_ == function:
            yield EXECUTION_MODES.get(mode, f"execution mode {mode}"), operands


def needs(
    module: Declarations, numbers: Mapping[int, ScalarType], function: int
) -> tuple[str, ...]:
    """Return the features of Vulkan that a device must have for an entry point of a module."""
    used = dict.fromkeys(_used(module, numbers))
    for mode, operands in _modes(module, function):
        used[MODES.get(mode, "").format(*operands)] = None
    of_capabilities: list[str] = []
    for capability in map(name, module.capabilities):
        template = CAPABILITIES.get(capability, "")
        is_clock = capability == "ShaderClockKHR"
        names = ("Subgroup", "Device") if is_clock else ("Buffer", "Shared", "Image")
        places = [template.format(place) for place in names]
        of_capabilities += [place for place in places if place in used] or places[:1]
    return tuple(dict.fromkeys(filter(None, (*of_capabilities, *used))))


def _used(module: Declarations, numbers: Mapping[int, ScalarType]) -> Iterator[str]:
    """Yield the features that a module's instructions need, as not all have a capability."""
    pointers = {id_: i.words for id_, i in module.defined.items() if i.op == Op.TypePointer}
    pointer_types, arrays = {}, {}
    for id_, (op, words) in module.defined.items():
        if op == Op.Variable:
            _, storage, pointee = pointer_types[id_] = pointers[words[0]]
            if storage in _DYNAMIC and module.defined[pointee].op in _ARRAYS:
                kind = _image(module, module.defined[pointee].words[1]) or _DYNAMIC[storage]
                arrays[id_] = f"shader{kind}ArrayDynamicIndexing"
            if words[2] == Storage.WORKGROUP and len(words) > 3:
                yield "shaderZeroInitializeWorkgroupMemory"
    for instruction in (each for body in module.functions.values() for each in body):
        op, words = instruction
        if op in _ACCESS and words[2] in arrays and words[3] not in module.defined:
            yield arrays[words[2]]
        if op in WITH_RESULT and words[0] in pointers:
            pointer_types[words[1]] = pointers[words[0]]
        elif op in Op.ATOMICS:
            _, storage, pointee = pointer_types[words[0 if op == Op.AtomicStore else 2]]
            place = _ATOMIC_PLACES.get(storage, "Buffer")
            yield from _atomic(instruction, numbers.get(pointee), place)
        elif op == Op.ReadClockKHR:
            is_of_device = module.defined[words[2]].words[2:] == (_DEVICE_SCOPE,)
            yield f"shader{'Device' if is_of_device else 'Subgroup'}Clock"
        elif op in Op.SUBGROUP:
            if op == Op.GroupNonUniformRotateKHR and len(words) > 5:
                yield "shaderSubgroupRotateClustered"
            type_ = words[0]
            if module.defined[type_].op == Op.TypeVector:
                type_ = module.defined[type_].words[1]
            if type_ in numbers and numbers[type_] not in _WITHOUT_EXTENDED_TYPES:
                yield "shaderSubgroupExtendedTypes"


def _image(module: Declarations, type_: int) -> str:
    """The kind of an image in the names of features; empty for all other types."""
    op, words = module.defined[type_]
    if op == Op.TypeSampledImage:
        return _image(module, words[1])
    if op != Op.TypeImage:
        return ""
    if words[2] == _BUFFER:
        return "StorageTexelBuffer" if words[6] == _STORED else "UniformTexelBuffer"
    return "StorageImage" if words[6] == _STORED else "SampledImage"


def _atomic(instruction: Instruction, number: ScalarType | None, place: str) -> Iterator[str]:
    if number is None:
        return
    bits = 8 * number.nbytes
    if number.kind == "float":
        yield f"shader{place}Float{bits}{_ATOMIC_NAMES.get(instruction.op, 'Atomics')}"
    elif bits == 64:
        yield f"shader{place}Int64Atomics"
