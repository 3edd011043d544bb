"""Shaders of products of cooperative matrices, for the interpreter and for devices."""

import re

import numpy as np
from spirv import VOID, bound, cooperative, head

from vkops.shaders.shader import Shader

TYPES = {
    "float16": "OpTypeFloat 16", "float32": "OpTypeFloat 32", "int8": "OpTypeInt 8 1", "int32": "OpTypeInt 32 1",
    "uint8": "OpTypeInt 8 0", "uint32": "OpTypeInt 32 0",
}  # fmt: skip

PRODUCT = head(
    "VulkanMemoryModel", "{type_capability}", "{capability}", "!6022", model="Logical Vulkan",
    interface="%group %a %b %c %y", local="{local}", more='OpExtension "SPV_KHR_cooperative_matrix"\n',
)  # fmt: skip
PRODUCT += bound("a", "b", "c", "y")
PRODUCT += (
    """OpDecorate %group BuiltIn WorkgroupId
OpDecorate %narrows ArrayStride {narrow_bytes}
OpDecorate %wides ArrayStride {wide_bytes}
OpDecorate %narrow_block Block
OpDecorate %wide_block Block
OpMemberDecorate %narrow_block 0 Offset 0
OpMemberDecorate %wide_block 0 Offset 0
"""
    + VOID
    + """%bool = OpTypeBool
%uint = OpTypeInt 32 0
%uint3 = OpTypeVector %uint 3
%narrow = {narrow}
%wide = {wide}
%narrows = OpTypeRuntimeArray %narrow
%wides = OpTypeRuntimeArray {stored}
%narrow_block = OpTypeStruct %narrows
%wide_block = OpTypeStruct %wides
%to_narrow_block = OpTypePointer StorageBuffer %narrow_block
%to_wide_block = OpTypePointer StorageBuffer %wide_block
%to_narrow = OpTypePointer StorageBuffer %narrow
%to_wide = OpTypePointer StorageBuffer {stored}
%to_uint3 = OpTypePointer Input %uint3
%a = OpVariable %to_narrow_block StorageBuffer
%b = OpVariable %to_narrow_block StorageBuffer
%c = OpVariable %to_wide_block StorageBuffer
%y = OpVariable %to_wide_block StorageBuffer
%group = OpVariable %to_uint3 Input
%zero = OpConstant %uint 0
%unit = OpConstant %uint 1
%two = OpConstant %uint 2
%scope = OpConstant %uint {scope}
%rows = OpConstant %uint {rows}
%depth = OpConstant %uint {depth}
%columns = OpConstant %uint {columns}
%a_order = OpConstant %uint {a_order}
%a_stride = OpConstant %uint {a_stride}
%a_down = OpConstant %uint {a_down}
%a_across = OpConstant %uint {a_across}
%b_order = OpConstant %uint {b_order}
%b_stride = OpConstant %uint {b_stride}
%b_down = OpConstant %uint {b_down}
%b_across = OpConstant %uint {b_across}
%y_stride = OpConstant %uint {y_stride}
%y_down = OpConstant %uint {y_down}
%three = OpConstant %wide 3
%A = OpTypeCooperativeMatrixKHR %narrow %scope %rows %depth %zero
%B = OpTypeCooperativeMatrixKHR %narrow %scope %depth %columns %unit
%C = OpTypeCooperativeMatrixKHR %wide %scope %rows %columns %two
%to_C = OpTypePointer Function %C
%to_part = OpTypePointer Function %wide
%main = OpFunction %void None %function
%start = OpLabel
%sum = OpVariable %to_C Function
%ids = OpLoad %uint3 %group
%x_at = OpCompositeExtract %uint %ids 0
%y_at = OpCompositeExtract %uint %ids 1
%down = OpIMul %uint %y_at %y_down
%right = OpIMul %uint %x_at %columns
%place = OpIAdd %uint %down %right
%from_c = OpAccessChain %to_wide %c %zero %place
%before = OpCooperativeMatrixLoadKHR %C %from_c %zero %y_stride
%a_first = OpIMul %uint %y_at %a_down
%b_first = OpIMul %uint %x_at %b_across
OpBranch %loop
%loop = OpLabel
%k = OpPhi %uint %zero %start %next_k %again
%so_far = OpPhi %C %before %start %after %again
%more = OpULessThan %bool %k %two
OpLoopMerge %done %again None
OpBranchConditional %more %again %done
%again = OpLabel
%a_skip = OpIMul %uint %k %a_across
%a_at = OpIAdd %uint %a_first %a_skip
%b_skip = OpIMul %uint %k %b_down
%b_at = OpIAdd %uint %b_first %b_skip
%from_a = OpAccessChain %to_narrow %a %zero %a_at
%from_b = OpAccessChain %to_narrow %b %zero %b_at
%one = OpCooperativeMatrixLoadKHR %A %from_a %a_order %a_stride
%other = OpCooperativeMatrixLoadKHR %B %from_b %b_order %b_stride
%after = OpCooperativeMatrixMulAddKHR %C %one %other %so_far {flags}
%next_k = OpIAdd %uint %k %unit
OpBranch %loop
%done = OpLabel
OpStore %sum %so_far
{scale}
%made = OpLoad %C %sum
%to = OpAccessChain %to_wide %y %zero %place
OpCooperativeMatrixStoreKHR %to %made %zero %y_stride
OpReturn
OpFunctionEnd
"""
)

LOOP = """
%length = OpCooperativeMatrixLengthKHR %uint %C
OpBranch %each
%each = OpLabel
%n = OpPhi %uint %zero %done %next_n %body
%some = OpULessThan %bool %n %length
OpLoopMerge %end %body None
OpBranchConditional %some %body %end
%body = OpLabel
%to_one = OpAccessChain %to_part %sum %n
%part = OpLoad %wide %to_one
%larger = Op{sign}Mul %wide %part %three
OpStore %to_one %larger
%next_n = OpIAdd %uint %n %unit
OpBranch %each
%end = OpLabel
"""

WHOLE = """
%old = OpLoad %C %sum
%filled = OpCompositeConstruct %C %three
%product = Op{sign}Mul %C %old %filled
%twice = Op{sign}Add %C %old %old
%thrice = Op{sign}Add %C %twice %old
%none = Op{sign}Sub %C %product %thrice
%less = OpMatrixTimesScalar %C %old %three
%negative = Op{negate}Negate %C %less
%positive = Op{sign}Sub %C %none %negative
%first = OpCompositeExtract %wide %positive 0
%same = OpCompositeInsert %C %first %positive 0
OpStore %sum %same
"""


def product(
    narrow,
    wide,
    tile,
    size,
    orders=(0, 0),
    *,
    flags=0,
    scale="",
    scope=3,
    stride=None,
    margin=3,
    packed=1,
):
    """A shader of products of tiles, 2 along each dimension.

    Lines of factors have so many more numbers in memory as ``margin`` says, and buffers of sums have
    elements of so many ``packed`` numbers.
    """
    m, k, n = tile
    is_float = narrow.startswith("float")
    letter = "F" if is_float else "I"
    values = {
        "type_capability": "Float16" if is_float else "Int8",
        "capability": f"StorageBuffer{16 if is_float else 8}BitAccess",
        "scope": scope, "local": size, "rows": m, "depth": k, "columns": n, "flags": flags,
        "narrow": TYPES[narrow], "narrow_bytes": np.dtype(narrow).itemsize,
        "wide": TYPES[wide], "wide_bytes": packed * np.dtype(wide).itemsize,
        "stored": "%uint" if packed > 1 else "%wide",
        "y_stride": 2 * n // packed if stride is None else stride, "y_down": 2 * m * n // packed,
        "scale": scale.format(sign=letter, negate="F" if is_float else "S"),
    }  # fmt: skip
    for name, order, (rows, columns) in zip("ab", orders, ((m, k), (k, n)), strict=True):
        lead = 2 * (rows if order else columns) + margin
        down, across = (rows, columns * lead) if order else (rows * lead, columns)
        values |= {f"{name}_order": order, f"{name}_stride": lead}
        values |= {f"{name}_down": down, f"{name}_across": across}
    text = PRODUCT.format(**values)
    same = {narrow: "%narrow", "uint32": "%uint"}.get(wide)
    if same:  # a module has a type of numbers once
        text = re.sub(r"%wide\b", same, text.replace(f"%wide = {TYPES[wide]}\n", ""))
    return Shader.read(cooperative(text), "product.spv")


def operands(narrow, wide, tile, orders, largest=127, margin=3):
    """Random matrices and how they lie in memory."""
    m, k, n = (2 * each for each in tile)
    random = np.random.default_rng(1)
    matrices = [random.integers(-largest, largest, (*shape,)).astype(t)
            for shape, t in (((m, k), narrow), ((k, n), narrow), ((m, n), wide))]  # fmt: skip
    stored = []
    for matrix, order in zip(matrices, orders, strict=False):
        lines = matrix.T if order else matrix
        stored.append(np.pad(lines, ((0, 0), (0, margin))).ravel())
    return matrices, [*stored, matrices[2].ravel(), np.zeros(m * n, wide)]
