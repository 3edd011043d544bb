"""Pointers in the interpreter: into several variables, moved by elements, compared, in variables."""

import numpy as np
import pytest
from refusals import fault
from spirv import VOID, assembled, bound, head

from vkops.debug import check
from vkops.debug.shader_check import Case
from vkops.errors import ShaderCompileError
from vkops.interpreter.recorder import Recorder
from vkops.interpreter.tracing import Tracer

EXTENSIONS = """OpExtension "SPV_KHR_variable_pointers"
OpExtension "SPV_KHR_expect_assume"
"""
POINTERS = ("VariablePointers", "VariablePointersStorageBuffer")
HEAD = head(*POINTERS, interface="%gid %A %B %C %part %kept", local=4, more=EXTENSIONS)
HEAD += bound("A", "B", "C")
HEAD += (
    """OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %arr ArrayStride 4
OpDecorate %ptr ArrayStride 4
OpDecorate %S Block
OpMemberDecorate %S 0 Offset 0
"""
    + VOID
    + """%bool = OpTypeBool
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%v3 = OpTypeVector %uint 3
%four = OpConstant %uint 4
%inp = OpTypePointer Input %v3
%inu = OpTypePointer Input %uint
%arr = OpTypeRuntimeArray %uint
%row = OpTypeArray %uint %four
%S = OpTypeStruct %arr
%ps = OpTypePointer StorageBuffer %S
%ptr = OpTypePointer StorageBuffer %uint
%pp = OpTypePointer Function %ptr
%held = OpTypePointer Private %ptr
%two = OpTypeStruct %ptr %ptr
%ptwo = OpTypePointer Function %two
%pshared = OpTypePointer Workgroup %uint
%prow = OpTypePointer Workgroup %row
%take = OpTypeFunction %uint %ptr
%gid = OpVariable %inp Input
%A = OpVariable %ps StorageBuffer
%B = OpVariable %ps StorageBuffer
%C = OpVariable %ps StorageBuffer
%part = OpVariable %prow Workgroup
%kept = OpVariable %held Private
%c0 = OpConstant %uint 0
%c1 = OpConstant %uint 1
%c2 = OpConstant %uint 2
%c3 = OpConstant %uint 3
%minus = OpConstant %int -1
%null = OpConstantNull %ptr
%yes = OpConstantTrue %bool
%main = OpFunction %void None %function
%l = OpLabel
VARIABLES
%gp = OpAccessChain %inu %gid %c0
%i = OpLoad %uint %gp
%odd = OpBitwiseAnd %uint %i %c1
%cond = OpIEqual %bool %odd %c0
%pa = OpAccessChain %ptr %A %c0 %i
%pb = OpAccessChain %ptr %B %c0 %i
%pc = OpAccessChain %ptr %C %c0 %i
BODY
OpReturn
OpFunctionEnd
%load = OpFunction %uint None %take
%given = OpFunctionParameter %ptr
%begin = OpLabel
%found = OpLoad %uint %given
OpReturnValue %found
OpFunctionEnd
"""
)
SELECT = "%sel = OpSelect %ptr %cond %pa %pb\n"
PHI = """OpSelectionMerge %m None
OpBranchConditional %cond %t %f
%t = OpLabel
OpBranch %m
%f = OpLabel
OpBranch %m
%m = OpLabel
%sel = OpPhi %ptr %pa %t %pb %f
"""
RESULT = "\n%v = OpLoad %uint %sel\nOpStore %pc %v"
# A pointer that goes from A's element 0 to its end, and the sum of what it has passed.
LOOP = """%start = OpAccessChain %ptr %A %c0 %c0
%end = OpPtrAccessChain %ptr %start %four
OpBranch %loop
%loop = OpLabel
%p = OpPhi %ptr %start %l %next %again
%sum = OpPhi %uint %c0 %l %more %again
%ends = OpPtrEqual %bool %p %end
OpLoopMerge %done %again None
OpBranchConditional %ends %done %again
%again = OpLabel
%x = OpLoad %uint %p
%more = OpIAdd %uint %sum %x
%next = OpPtrAccessChain %ptr %p %c1
OpBranch %loop
%done = OpLabel
OpStore %pc %sum"""
CASES = {
    "select": (SELECT + RESULT, [10, 21, 12, 23]),
    "phi": (PHI + RESULT, [10, 21, 12, 23]),
    "copy of a choice": (SELECT.replace("%sel", "%sel0") + "%sel = OpCopyObject %ptr %sel0" + RESULT, [10, 21, 12, 23]),
    "choice of choices": (SELECT.replace("%sel", "%one") + "%less = OpULessThan %bool %i %c2\n%sel = OpSelect %ptr %less %one %pa" + RESULT, [10, 21, 12, 13]),
    "argument": (SELECT + "%v = OpFunctionCall %uint %load %sel\nOpStore %pc %v", [10, 21, 12, 23]),
    "variable": (PHI.replace("%m = OpLabel", "%m = OpLabel\n").replace("%sel", "%sel0") + "OpStore %local %sel0\n%sel = OpLoad %ptr %local" + RESULT, [10, 21, 12, 23]),
    "variable written in branches": ("""OpStore %local %pb
OpSelectionMerge %m None
OpBranchConditional %cond %t %m
%t = OpLabel
OpStore %local %pa
OpBranch %m
%m = OpLabel
%sel = OpLoad %ptr %local""" + RESULT, [10, 21, 12, 23]),
    "private variable": (SELECT.replace("%sel", "%sel0") + "OpStore %kept %sel0\n%sel = OpLoad %ptr %kept" + RESULT, [10, 21, 12, 23]),
    "choice of blocks": ("%blocks = OpSelect %ps %cond %A %B\n%sel = OpAccessChain %ptr %blocks %c0 %c3" + RESULT, [13, 23, 13, 23]),
    "lengths": ("%la = OpArrayLength %uint %A 0\n%lb = OpArrayLength %uint %B 0\n%v = OpSelect %uint %cond %la %lb\nOpStore %pc %v", [4, 6, 4, 6]),
    "store": ("%s = OpSelect %ptr %cond %pc %pb\nOpStore %s %i", [0, 0, 2, 0]),
    "copied memory": (SELECT + "OpCopyMemory %pc %sel", [10, 21, 12, 23]),
    "atomic": (SELECT + "%v = OpAtomicIAdd %uint %sel %c1 %c0 %four\nOpStore %pc %v", [10, 21, 12, 23]),
    "elements": ("%first = OpAccessChain %ptr %A %c0 %c0\n%sel = OpPtrAccessChain %ptr %first %i" + RESULT, [10, 11, 12, 13]),
    "elements of a choice": ("%a0 = OpAccessChain %ptr %A %c0 %c0\n%b0 = OpAccessChain %ptr %B %c0 %c0\n%s = OpSelect %ptr %cond %a0 %b0\n%sel = OpPtrAccessChain %ptr %s %i" + RESULT, [10, 21, 12, 23]),
    "backwards": ("%sel0 = OpPtrAccessChain %ptr %pb %c1\n%sel = OpPtrAccessChain %ptr %sel0 %minus" + RESULT, [20, 21, 22, 23]),
    "shared elements": ("%own = OpAccessChain %pshared %part %c0\n%s = OpPtrAccessChain %pshared %own %i\nOpStore %s %i\n%v = OpLoad %uint %s\nOpStore %pc %v", [0, 1, 2, 3]),
    "loop": (LOOP, [46] * 4),
    "equal": (SELECT + "%same = OpPtrEqual %bool %sel %pa\n%v = OpSelect %uint %same %c1 %c2\nOpStore %pc %v", [1, 2, 1, 2]),
    "not equal": (SELECT + "%other = OpPtrNotEqual %bool %pa %sel\n%v = OpSelect %uint %other %c1 %c2\nOpStore %pc %v", [2, 1, 2, 1]),
    "equal to null": ("%sel = OpSelect %ptr %cond %pa %null\n%none = OpPtrEqual %bool %sel %null\n%v = OpSelect %uint %none %c1 %c2\nOpStore %pc %v", [2, 1, 2, 1]),
    "difference": ("%a1 = OpAccessChain %ptr %A %c0 %c1\n%d = OpPtrDiff %int %pa %a1\n%v = OpBitcast %uint %d\nOpStore %pc %v", [2**32 - 1, 0, 1, 2]),
}  # fmt: skip


def module(body):
    """A module, in which ``local`` is a variable of pointers where it is used."""
    variables = "%local = OpVariable %pp Function" if "%local" in body else ""
    variables += "%both = OpVariable %ptwo Function" if "%both" in body else ""
    return assembled(HEAD.replace("VARIABLES", variables).replace("BODY", body), "spv1.4")


def arrays():
    a, b = np.arange(10, 14, dtype=np.uint32), np.arange(20, 26, dtype=np.uint32)
    return {"A": a, "B": b, "C": np.zeros(4, np.uint32)}


@pytest.mark.parametrize("name", CASES)
def test_results(name):
    """``vkops debug step`` and ``vkops debug trace``, which record the run, execute the same."""
    body, wanted = CASES[name]
    case = Case.of(module(body), arrays())
    report = case.check()
    assert report.ok, str(report)
    assert report.buffers["C"].tolist() == wanted
    _, memory = case.run(observers=[Recorder(1), Tracer(range(4))])
    assert memory[0, 2].contents().view(np.uint32).tolist() == wanted
    if name == "store":
        assert report.buffers["B"].tolist() == [20, 1, 22, 3, 24, 25]
    if name == "atomic":
        assert report.buffers["A"].tolist() == [14, 11, 16, 13]
        assert report.buffers["B"].tolist() == [20, 25, 22, 27, 24, 25]


def test_pointers_behind_the_end():
    """An element access is a fault only where memory is read or written."""
    body = "%far = OpPtrAccessChain %ptr %pa %c2\n"
    assert check(module(body), arrays()).ok
    report = check(module(body + "%v = OpLoad %uint %far\nOpStore %pc %v"), arrays())
    assert [(f.kind, f.count) for f in report.findings] == [("out of bounds", 2)]
    assert "index 4 of 'A' is out of bounds: it has 4 elements" in str(report)
    assert report.buffers["C"].tolist() == [12, 13, 0, 0]


def test_an_index_out_of_bounds_is_kept_where_paths_meet():
    body = PHI.replace(
        "OpSelectionMerge", "%far = OpAccessChain %ptr %A %c0 %four\nOpSelectionMerge"
    )
    report = check(module(body.replace("%pa %t", "%far %t") + RESULT), arrays())
    assert [(f.kind, f.count) for f in report.findings] == [("out of bounds", 2)]
    body = body.replace("%pa %t", "%far %t").replace("%pb %f", "%pa %f")  # both in one variable
    report = check(module(body + RESULT), arrays())
    assert [(f.kind, f.count) for f in report.findings] == [("out of bounds", 2)]
    assert "index 4 of 'A' is out of bounds: it has 4 elements" in str(report)


REFUSED = {
    "read of null": "%v = OpLoad %uint %null\nOpStore %pc %v",
    "read of a choice with null": "%sel = OpSelect %ptr %cond %pa %null" + RESULT,
    "element behind null": "%p = OpPtrAccessChain %ptr %null %c1",
    "undefined": "%undef = OpUndef %ptr\n%p = OpSelect %ptr %yes %undef %pa\nOpStore %p %c1",
    "variable without a value": "%p = OpLoad %ptr %local\nOpStore %p %c1",
    "struct": "%all = OpLoad %two %both",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, message):
    spirv = module(REFUSED[name])
    message(fault(lambda: check(spirv, arrays(), name="pointers"), ShaderCompileError))
