"""The instructions that the interpreter knows, and how it refuses others."""

from refusals import fault

from vkops.debug import check
from vkops.errors import ShaderCompileError
from vkops.interpreter.instructions import HANDLERS, REFUSED
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
"""
ENABLED = """
Nop Undef Function FunctionParameter FunctionEnd FunctionCall Variable ImageTexelPointer Load Store CopyMemory
AccessChain InBoundsAccessChain PtrAccessChain ArrayLength VectorExtractDynamic VectorInsertDynamic VectorShuffle
CompositeConstruct CompositeExtract CompositeInsert CopyObject Transpose SampledImage ImageSampleImplicitLod
ImageSampleExplicitLod ImageSampleDrefImplicitLod ImageSampleDrefExplicitLod ImageSampleProjImplicitLod
ImageSampleProjExplicitLod ImageSampleProjDrefImplicitLod ImageSampleProjDrefExplicitLod ImageFetch ImageGather
ImageDrefGather ImageRead ImageWrite Image ImageQuerySizeLod ImageQuerySize ImageQueryLod ImageQueryLevels
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
