"""The instructions that the interpreter knows, and how it refuses others."""

import itertools

import pytest
import spirv
from refusals import fault

from vkops import shaders
from vkops.debug import check
from vkops.debug.shader_check import Case
from vkops.errors import ShaderCompileError
from vkops.interpreter.instructions import HANDLERS, REFUSED
from vkops.interpreter.observer import Observer
from vkops.shaders import features
from vkops.shaders.grammar import INSTRUCTIONS

CAPABILITIES = """
AtomicFloat16AddEXT AtomicFloat16MinMaxEXT AtomicFloat32AddEXT AtomicFloat32MinMaxEXT AtomicFloat64AddEXT
AtomicFloat64MinMaxEXT DenormFlushToZero DenormPreserve DotProduct DotProductInput4x8Bit DotProductInput4x8BitPacked
DotProductInputAll Float16 Float64 GroupNonUniform GroupNonUniformArithmetic GroupNonUniformBallot
GroupNonUniformClustered GroupNonUniformQuad GroupNonUniformShuffle GroupNonUniformShuffleRelative GroupNonUniformVote
Int16 Int64 Int64Atomics Int8 Matrix RoundingModeRTE RoundingModeRTZ Shader ShaderNonUniform SignedZeroInfNanPreserve
StorageBuffer16BitAccess StorageBuffer8BitAccess StoragePushConstant16 StoragePushConstant8
UniformAndStorageBuffer16BitAccess UniformAndStorageBuffer8BitAccess VariablePointers VariablePointersStorageBuffer
VulkanMemoryModel VulkanMemoryModelDeviceScope WorkgroupMemoryExplicitLayout16BitAccessKHR
WorkgroupMemoryExplicitLayout8BitAccessKHR WorkgroupMemoryExplicitLayoutKHR
DeviceGroup SubgroupBallotKHR SubgroupVoteKHR GroupNonUniformPartitionedEXT GroupNonUniformRotateKHR ShaderClockKHR
DemoteToHelperInvocation ExpectAssumeKHR FloatControls2 QuadControlKHR CooperativeMatrixKHR
RuntimeDescriptorArray StorageBufferArrayDynamicIndexing StorageBufferArrayNonUniformIndexing
UniformBufferArrayDynamicIndexing UniformBufferArrayNonUniformIndexing PhysicalStorageBufferAddresses
SampledImageArrayDynamicIndexing SampledImageArrayNonUniformIndexing StorageImageArrayDynamicIndexing
StorageImageArrayNonUniformIndexing StorageTexelBufferArrayDynamicIndexing
StorageTexelBufferArrayNonUniformIndexing UniformTexelBufferArrayDynamicIndexing
UniformTexelBufferArrayNonUniformIndexing
Image1D ImageBuffer ImageCubeArray ImageGatherExtended ImageQuery Int64ImageEXT MinLod Sampled1D SampledBuffer
SampledCubeArray StorageImageExtendedFormats StorageImageReadWithoutFormat StorageImageWriteWithoutFormat
StorageImageMultisample ImageMSArray
"""
ENABLED = """
Nop Undef Function FunctionParameter FunctionEnd FunctionCall Variable ImageTexelPointer Load Store CopyMemory
AccessChain InBoundsAccessChain PtrAccessChain ArrayLength VectorExtractDynamic VectorInsertDynamic VectorShuffle
CompositeConstruct CompositeExtract CompositeInsert CopyObject Transpose SampledImage ImageSampleImplicitLod
ImageSampleExplicitLod ImageSampleDrefImplicitLod ImageSampleDrefExplicitLod ImageSampleProjImplicitLod
ImageSampleProjExplicitLod ImageSampleProjDrefImplicitLod ImageSampleProjDrefExplicitLod ImageFetch ImageGather
ImageDrefGather ImageRead ImageWrite Image ImageQuerySizeLod ImageQuerySize ImageQueryLod ImageQueryLevels
ImageQuerySamples
ConvertPtrToU ConvertUToPtr ConvertFToU ConvertFToS ConvertSToF ConvertUToF UConvert SConvert FConvert
QuantizeToF16 Bitcast SNegate FNegate IAdd FAdd ISub FSub IMul FMul UDiv SDiv FDiv UMod SRem SMod FRem FMod
VectorTimesScalar MatrixTimesScalar VectorTimesMatrix MatrixTimesVector MatrixTimesMatrix OuterProduct Dot IAddCarry
ISubBorrow UMulExtended SMulExtended Any All IsNan IsInf LogicalEqual LogicalNotEqual LogicalOr LogicalAnd LogicalNot
Select IEqual INotEqual UGreaterThan SGreaterThan UGreaterThanEqual SGreaterThanEqual ULessThan SLessThan
ULessThanEqual SLessThanEqual FOrdEqual FUnordEqual FOrdNotEqual FUnordNotEqual FOrdLessThan FUnordLessThan
FOrdGreaterThan FUnordGreaterThan FOrdLessThanEqual FUnordLessThanEqual FOrdGreaterThanEqual FUnordGreaterThanEqual
ShiftRightLogical ShiftRightArithmetic ShiftLeftLogical BitwiseOr BitwiseXor BitwiseAnd Not BitFieldInsert
BitFieldSExtract BitFieldUExtract BitReverse BitCount DPdx DPdy Fwidth ControlBarrier MemoryBarrier AtomicLoad
AtomicStore AtomicExchange AtomicCompareExchange AtomicIIncrement AtomicIDecrement AtomicIAdd AtomicISub AtomicSMin
AtomicUMin AtomicSMax AtomicUMax AtomicAnd AtomicOr AtomicXor Phi LoopMerge SelectionMerge Label Branch
BranchConditional Switch Kill Return ReturnValue Unreachable GroupNonUniformElect GroupNonUniformAll
GroupNonUniformAny GroupNonUniformAllEqual GroupNonUniformBroadcast GroupNonUniformBroadcastFirst
GroupNonUniformBallot GroupNonUniformInverseBallot GroupNonUniformBallotBitExtract GroupNonUniformBallotBitCount
GroupNonUniformBallotFindLSB GroupNonUniformBallotFindMSB GroupNonUniformShuffle GroupNonUniformShuffleXor
GroupNonUniformShuffleUp GroupNonUniformShuffleDown GroupNonUniformIAdd GroupNonUniformFAdd GroupNonUniformIMul
GroupNonUniformFMul GroupNonUniformSMin GroupNonUniformUMin GroupNonUniformFMin GroupNonUniformSMax
GroupNonUniformUMax GroupNonUniformFMax GroupNonUniformBitwiseAnd GroupNonUniformBitwiseOr GroupNonUniformBitwiseXor
GroupNonUniformLogicalAnd GroupNonUniformLogicalOr GroupNonUniformLogicalXor GroupNonUniformQuadBroadcast
GroupNonUniformQuadSwap CopyLogical PtrEqual PtrNotEqual PtrDiff TerminateInvocation SDot UDot SUDot SDotAccSat
UDotAccSat SUDotAccSat AtomicFMinEXT AtomicFMaxEXT AtomicFAddEXT SubgroupBallotKHR SubgroupFirstInvocationKHR
SubgroupAllKHR SubgroupAnyKHR SubgroupAllEqualKHR SubgroupReadInvocationKHR GroupNonUniformRotateKHR ReadClockKHR
GroupNonUniformPartitionEXT GroupNonUniformQuadAllKHR GroupNonUniformQuadAnyKHR ExpectKHR AssumeTrueKHR
DemoteToHelperInvocation IsHelperInvocationEXT CooperativeMatrixLoadKHR CooperativeMatrixStoreKHR
CooperativeMatrixMulAddKHR CooperativeMatrixLengthKHR
"""
"""The instructions of functions that these capabilities enable, according to the grammar of SPIRV-Headers."""

BLOCKS = {
    "Function", "FunctionParameter", "FunctionEnd", "FunctionCall", "Phi", "LoopMerge", "SelectionMerge", "Label", "Branch",
    "BranchConditional", "Switch", "Return", "ReturnValue", "Kill", "Unreachable", "TerminateInvocation",
}  # fmt: skip
"""Instructions that the scheduler executes."""


def test_every_instruction_that_modules_can_have_is_known():
    """Where vkops accepts another capability, its instructions belong to the list."""
    assert sorted(features.CAPABILITIES) == sorted(CAPABILITIES.split())
    known = {INSTRUCTIONS[op][2:] for op in HANDLERS if op in INSTRUCTIONS} | BLOCKS
    lacking = {name for name in ENABLED.split() if name not in known}
    assert lacking == REFUSED


def test_others_are_refused_by_name(monkeypatch, message):
    text = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer X { uint x[]; };
void main() { x[0] = x[1] * x[2]; }"""
    monkeypatch.delitem(HANDLERS, 132)
    message(fault(lambda: check(text, name="x"), ShaderCompileError))


# -- debugPrintfEXT --------------------------------------------------------------------------------

PRINTF = (
    'OpExtension "SPV_KHR_non_semantic_info"\n%print = OpExtInstImport "NonSemantic.DebugPrintf"\n'
)
VALUES = """%int = OpTypeInt 32 1
%half = OpTypeFloat 16
%float = OpTypeFloat 32
%double = OpTypeFloat 64
%pair = OpTypeVector %float 2
%bool = OpTypeBool
%n = OpConstant %int -7
%h = OpConstant %half 1.5
%f = OpConstant %float 1.5
%d = OpConstant %double 1.5
%p = OpConstantComposite %pair %f %f
%yes = OpConstantTrue %bool
%nothing = OpConstant %float !0x7fc00000
%struct = OpTypeStruct %float
%s = OpConstantComposite %struct %f
"""


def printing(form, operands):
    """SPIR-V with a call of debugPrintfEXT, whose operands spirv-val does not check."""
    head = spirv.head("Float16", "Float64", more=PRINTF)
    strings = f'%format = OpString "{form}"\n%text = OpString "a text"\n'
    call = spirv.entry_point(f"%called = OpExtInst %void %print 1 {operands}\n")
    module = spirv.assembled(head + strings + spirv.VOID + VALUES + call)
    return shaders.load(module, name="x")


@pytest.mark.parametrize(
    ("form", "operands", "text"),
    [
        ("%s|%5s|%d", "%text %text %n", "a text|a text|-7"),
        ("%8s|%-8s|%%", "%text %text", "  a text|a text  |%"),
        ("%d %i %u %5d %-5d|%05d", "%n %n %n %n %n %n", "-7 -7 -7    -7 -7   |-0007"),
        (
            "%x %X %o %d",
            "%f %h %f %f",
            "3fc00000 3E00 7760000000 1069547520",
        ),  # the bits of a float
        ("%f %g %e %.1f %lf", "%f %h %d %f %d", "1.500000 1.5 1.500000e+00 1.5 1.500000"),
        ("%a %A", "%f %d", "0x1.8000000000000p+0 0X1.8000000000000P+0"),
        ("%d %f %v2f", "%nothing %nothing %p", "2143289344 nan 1.500000, 1.500000"),
        ("%f %d", "%n %yes", "-7.000000 1"),
        ("%d %d", "%n", "-7 %d"),
        ("%d", "%n %text %struct", "-7"),
        ("%s %d", "%n %n", "%s -7"),
        ("%5-d %..f %99999d %q", "%n %n", "%5-d %..f %99999d %q"),  # these are no conversions
    ],
)
def test_printing_any_value_in_any_format(form, operands, text):
    report = check(printing(form, f"%format {operands}"))
    assert [each for _, each in report.printed] == [text]


@pytest.mark.parametrize(
    "operands",
    [
        "", "%n", "%void", "%main", "%format", "%format %s", "%format %void", "%format %label",
        "%format %text %text", "%format %text %s", "%format %text %float", "%format %text %print",
    ],
)  # fmt: skip
def test_operands_of_printing_that_are_nothing_to_print(operands, message):
    module = printing("%s %d", operands)
    if operands == "%format":  # which lacks values
        assert check(module).printed[0][1] == "%s %d"
        return
    message(fault(lambda: check(module), ShaderCompileError))


# -- other ids that the validator accepts ----------------------------------------------------------


@pytest.mark.parametrize("name", ["NonSemantic.Unknown", "NonSemantic.Shader.DebugInfo.999"])
@pytest.mark.parametrize(
    "operands", ["1", "103", "103 %n", "103 %n %n %n %n %n", "23 %void", "999"]
)
def test_instructions_without_a_meaning_are_passed_over(name, operands):
    more = PRINTF.replace("NonSemantic.DebugPrintf", name)
    call = f"%called = OpExtInst %void %print {operands}\n"
    module = spirv.assembled(
        spirv.head("Float16", "Float64", more=more) + spirv.VOID + VALUES + spirv.entry_point(call)
    )
    assert check(shaders.load(module, name="x")).ok


def test_sets_of_instructions_that_are_not_known_are_refused(message):
    more = 'OpExtension "SPV_AMD_shader_trinary_minmax"\n%set = OpExtInstImport "SPV_AMD_shader_trinary_minmax"\n'
    code = (
        "%least = OpExtInst %float %set FMin3AMD %f %f %f\n%twice = OpFAdd %float %least %least\n"
    )
    text = (
        spirv.head("Float16", "Float64", more=more) + spirv.VOID + VALUES + spirv.entry_point(code)
    )
    module = spirv.assembled(text)
    message(fault(lambda: check(shaders.load(module, name="x")), ShaderCompileError))


OF_CONSTANTS = """
int: SNegate Not IAdd ISub IMul SDiv SRem SMod ShiftRightLogical ShiftRightArithmetic ShiftLeftLogical BitwiseOr
int: BitwiseXor BitwiseAnd Select
bool: IEqual INotEqual SLessThan ULessThan SGreaterThan UGreaterThan SLessThanEqual ULessThanEqual SGreaterThanEqual
bool: UGreaterThanEqual LogicalOr LogicalAnd LogicalNot LogicalEqual LogicalNotEqual
long: SConvert
double: FConvert
float: QuantizeToF16
"""
"""The operations of OpSpecConstantOp by the types of results, but for those of unsigned numbers."""
OF_VECTORS = """
%vint VectorShuffle %vone %vother 3 0
%int CompositeExtract %vone 1
%vint CompositeInsert %other %vone 1
"""
TYPES = {"int": "OpTypeInt 32 1", "long": "OpTypeInt 64 1", "float": "OpTypeFloat 32",
         "double": "OpTypeFloat 64", "bool": "OpTypeBool"}  # fmt: skip
NUMBERS = {"one": ("int", " %int -7"), "other": ("int", " %int 3"), "third": ("float", " %float 0.3"),
           "yes": ("bool", "True %bool"), "no": ("bool", "False %bool")}  # fmt: skip


def test_operations_on_constants_are_those_of_instructions():
    operations = OF_VECTORS.split("\n")[1:-1]
    for kind, names in (line.split(": ") for line in OF_CONSTANTS.split("\n")[1:-1]):
        for name, form in itertools.product(names.split(), ("%", "%v")):
            one, other = ("yes", "no") if name.startswith("Logical") else ("one", "other")
            one = "third" if kind in ("double", "float") else one
            operands = [one] if kind in ("long", "double", "float") else [one, other]
            operands = [one] if name in ("SNegate", "Not", "LogicalNot") else operands
            operands = ["yes", *operands] if name == "Select" else operands
            operations.append(f"{form}{kind} {name} " + " ".join(f"{form}{o}" for o in operands))
    text = spirv.head("Int64", "Float64") + spirv.VOID
    for name, declared in TYPES.items():
        text += f"%{name} = {declared}\n%v{name} = OpTypeVector %{name} 2\n"
    for name, (kind, value) in NUMBERS.items():
        text += f"%{name} = OpSpecConstant{value}\n"
        text += f"%v{name} = OpSpecConstantComposite %v{kind} %{name} %{name}\n"
    code = ""
    for number, (type_, op, operands) in enumerate(each.split(" ", 2) for each in operations):
        text += f"%constant{number} = OpSpecConstantOp {type_} {op} {operands}\n"
        code += f"%computed{number} = Op{op} {type_} {operands}\n"

    class Results(Observer):
        computed = ()

        def result(self, step, value):
            self.computed += (value.array,)

    results = Results()
    module = spirv.assembled(text + spirv.entry_point(code))
    Case.of(shaders.load(module, name="x")).run(observers=[results])
    constants = [*results.machine.program.constants.values()][-len(operations) :]
    for operation, computed, constant in zip(operations, results.computed, constants, strict=True):
        assert computed.dtype == constant.array.dtype, operation
        assert computed.tolist() == constant.array.tolist(), operation


CONSTANTS = """#version 450
layout(constant_id = 0) const int N = 4;
layout(constant_id = 1) const bool B = true;
layout(constant_id = 2) const float F = 1.5;
layout(binding = 0) buffer Y { int y[]; };
const ivec2 v = ivec2(N, 2);
const ivec3 w = ivec3(v.yx, 5);
const ivec2 u = B ? v + 1 : w.zz;
const int m = v.x * w.z + u.y;
void main() { y[0] = m; y[1] = u.x; y[2] = w.x; y[3] = int(2 * F); }"""


def test_specialization_constants_of_all_forms():
    for given, numbers in (({}, [23, 5, 2, 3]), ({"N": 6, "B": False, "F": 2.5}, [35, 5, 2, 5])):
        report = check(CONSTANTS, {"Y": 16}, constants=given)
        assert report.buffers["Y"].tolist() == numbers
