"""``vkops.debug.checking`` and VKOPS_CHECK: each dispatch of a shader also runs in the interpreter."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from processes import run_with

import vkops
from vkops.debug import CheckError, checking, dispatch_checks
from vkops.debug.shader_check import Case

REVERSE = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { float data[]; };
shared float part[64];
void main() {
    uint own = gl_LocalInvocationIndex;
    part[own] = data[own];
    BARRIER
    data[own] = part[63 - own];
}"""
ADD = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { int x[]; };
layout(std430, binding = 1) buffer Y { int y[]; };
layout(binding = 2) uniform U { int n; };
layout(push_constant) uniform Push { int last; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < last) y[i] = x[i] + n;
}"""


def values(n=64):
    return np.arange(n, dtype=np.float32)


def recorded(device, run):
    with device.record() as program:
        run()
    program.run()


def called(device, x):
    device.compile_shader(REVERSE, defines={"BARRIER": ""}, name="reverse")(x, groups=1)


def of_a_view(device, x):
    called(device, x[::-1])


def bound(device, x):
    shader = device.compile_shader(REVERSE, defines={"BARRIER": ""}, name="reverse")
    shader.bound({"Data": x}, 1).dispatch()


def of_a_program(device, x):
    recorded(device, lambda: (vkops.roll(x, 1), called(device, x), vkops.flip(x)))


def elementwise(device, x):
    vkops.ElementwiseKernel("raw float32 x", "float32 y", "y = x[i + 1]", "ahead")(x, size=64)


def reduction(device, x):
    operation = "raw float32 w, float32 x", "float32 y", "w[i + 1] * x", "a + b", "y = a"
    vkops.ReductionKernel(*operation, name="weighted")(x, x)


RACE = (
    "reverse:9: data race: 'part[63]' in shared memory: the first invocation reads it, the second wrote it "
    "in line 7, and there is no barrier between them; invocations (0, 0, 0) and (63, 0, 0), 64 times\n"
    "    9 |     data[own] = part[63 - own];\n    7 |     part[own] = data[own];"
)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        *((run, RACE) for run in (called, of_a_view, bound, of_a_program)),
        (
            elementwise,
            "ahead:1: out of bounds: index 64 of 'x' is out of bounds: it has 64 elements; invocation (63, 0, 0)\n    1 | y = x[i + 1]",
        ),
        (
            reduction,
            "weighted:1: out of bounds: index 64 of 'w' is out of bounds: it has 64 elements; invocation (63, 0, 0)\n    1 | ",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_fault_is_raised_with_its_lines_and_nothing_is_dispatched(device, run, text):
    x = device.tensor(values())
    with checking(strict=True), pytest.raises(CheckError) as caught:
        run(device, x)
    assert str(caught.value).startswith(text)
    assert x.tolist() == values().tolist()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_right_dispatches_run_and_are_counted(device):
    with checking(strict=True) as checks:
        shader = device.compile_shader(REVERSE, defines={"BARRIER": "barrier();"})
        x = device.tensor(values())
        shader(x, groups=1)
        shader(x[::-1], groups=1)
        recorded(device, lambda: shader(x, groups=1))
        assert x.tolist() == values()[::-1].tolist()
        add = device.compile_shader(ADD)
        y = device.tensor(np.arange(100, dtype=np.int32))
        add(y, y, [7], last=70, groups=device.tensor(np.int32([2, 1, 1])))
        add(y, y, [7], last=70, groups=device.tensor(np.int32([0, 1, 1])))
        add(y[:50], device.empty(50, np.int32), [1], last=50, threads=0)
        assert y.tolist() == [n + 7 * (n < 70) for n in range(100)]
        assert vkops.kernels.sum(x).item() == 64 * 63 // 2
    assert (checks.checked, checks.not_checked.total()) == (6, 0)
    shader(x, groups=1)
    assert checks.checked == 6


def test_results_are_compared_as_floats_of_devices(device, monkeypatch):
    monkeypatch.setattr(Case, "check", changed_by(np.float32(2**-12)))
    kernel = vkops.ElementwiseKernel("float32 x", "float32 y", "y = sin(x)", "sine")
    with checking():
        kernel(values())
    monkeypatch.setattr(Case, "check", changed_by(np.float32(2**-8)))
    with (
        checking(),
        pytest.raises(CheckError, match=r"^sine: results: element 2 of .* in the inter"),
    ):
        kernel(values())
    with checking(compare=False):
        kernel(values())


def changed_by(difference, check=Case.check):
    def changed(case):
        report = check(case)
        return replace(
            report,
            buffers={
                p: a + difference * (np.arange(a.size) == 2) for p, a in report.buffers.items()
            },
        )

    return changed


IMAGE = """#version 450
layout(binding = 0, r32f) uniform image2D image;
void main() { imageStore(image, ivec2(0), vec4(1)); }"""


def far(device):
    device.compile_shader(ADD, name="add")(
        *[device.tensor(np.zeros(64, np.int32))] * 2, [1], last=64, groups=9999
    )


def of_an_image(device):
    device.compile_shader(IMAGE, name="stores")(
        device.image(np.zeros((2, 2), np.float32)), groups=1
    )


def of_parts(device):
    both = device.tensor(np.zeros(128, np.int32))
    device.compile_shader(ADD, name="add")((both, 0, 512), (both, 256, 256), [1], last=64, groups=1)


def large(device):
    far_x = device.tensor(np.zeros(1 << 10, np.int32))
    device.compile_shader(ADD, name="add")(far_x, far_x, [1], last=64, groups=1)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (far, "add: more than 9,000 instructions"),
        (
            lambda device: vkops.kernels.sum(device.tensor(values(4096))),
            "sum: more than 9,000 instructions",
        ),
        (of_an_image, "stores: the storage image image is not supported by the interpreter"),
        (of_parts, "add: X and Y share some of their bytes"),
        (large, "add: it is bound to more than 1 KiB"),
    ],
    ids=["invocations", "instructions", "image", "overlap", "bytes"],
)
def test_what_is_not_checked_runs_and_is_listed_and_is_an_error_if_checks_are_strict(
    device, monkeypatch, capsys, run, reason
):
    monkeypatch.setattr(dispatch_checks, "MAX_BYTES", 1 << 10 if run is large else 1 << 20)
    with checking(max_instructions=9000) as checks:
        run(device)
        run(device)
    assert checks.not_checked == {reason: 2}
    assert capsys.readouterr().err.splitlines() == [
        f"dispatches of shaders: {checks.checked} checked, 2 not", f"not checked: {reason}, 2 times"
    ]  # fmt: skip
    name, _, text = reason.partition(": ")
    with checking(strict=True, max_instructions=9000), pytest.raises(CheckError) as caught:
        run(device)
    assert str(caught.value) == f"{name}: not checked: {text}"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many"])
def test_a_wrong_number_of_instructions(wrong):
    with pytest.raises(vkops.InvalidDescError, match="SH-07"), checking(max_instructions=wrong):
        pass


PROGRAM = """
import numpy as np, vkops
kernel = vkops.ElementwiseKernel("raw float32 x", "float32 y", "y = x[i + OFFSET]", "ahead")
try:
    print(kernel(np.zeros(64, np.float32), size=64).numpy().sum())
except AssertionError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("offset", "variables", "out", "err"),
    [
        (0, {"VKOPS_CHECK": "1"}, "0.0", "1 checked, 0 not\n"),
        (1, {"VKOPS_CHECK": "1"}, "ahead:1: out of bounds", "0 checked, 0 not\n"),
        (1, {"VKOPS_CHECK": "1", "VKOPS_CHECK_INSTRUCTIONS": "9"}, "0.0", "not checked: ahead: more than 9 instructions\n"),
        (0, {"VKOPS_CHECK": "strict", "VKOPS_CHECK_INSTRUCTIONS": "9"}, "ahead: not checked: more than 9", "0 checked, 1 not\n"),
        (0, {"VKOPS_CHECK": "yes"}, "", "VKOPS_CHECK: got 'yes', must be 1 or strict\n"),
        (0, {"VKOPS_CHECK": "1", "VKOPS_CHECK_INSTRUCTIONS": "0"}, "", "VKOPS_CHECK_INSTRUCTIONS: got '0', must be an integer from 1\n"),
    ],
)  # fmt: skip
def test_the_variables_check_a_whole_program(tmp_path, offset, variables, out, err):
    _, printed, complaints = run_with(
        tmp_path, ["-c", PROGRAM.replace("OFFSET", str(offset))], **variables
    )
    assert printed.startswith(out)
    assert err in complaints
