"""``vkops.debug.checking`` and VKOPS_CHECK: each dispatch of a shader also runs in the interpreter."""

from __future__ import annotations

import gc
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from processes import ROOT, outcome, run_with

import vkops
from vkops.debug import CheckError, checking, dispatch_checks, lcov, selftest
from vkops.debug.shader_check import Case
from vkops.gpu.adapters.adapter import select
from vkops.shaders import variants

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
            "weighted:1: out of bounds: index 64 of 'w' is out of bounds: it has 64 elements; invocation (63, 0, 0){times}\n    1 | ",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_fault_is_raised_with_its_lines_and_nothing_is_dispatched(device, run, text):
    x = device.tensor(values())
    with checking(strict=True), pytest.raises(CheckError) as caught:
        run(device, x)
    # On GPUs, the invocations behind the last element compute it again.
    text = text.replace("{times}", "" if device.tuning.is_cpu else ", 193 times")
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
    assert (checks.checked, checks.not_checked.total()) == (4, 0)
    shader(x, groups=1)
    assert checks.checked == 4


@pytest.mark.parametrize("axis", range(3))
def test_numbers_of_workgroups_above_the_limit_are_found_in_a_tensor(device, axis):
    counts = [1, 1, 1]
    counts[axis] = device.limits.max_compute_work_group_count[axis] + 1
    x, groups = device.tensor(values()), device.tensor(np.uint32(counts))
    shader = device.compile_shader(REVERSE, defines={"BARRIER": "barrier();"}, name="reverse")
    with (
        checking() as checks,
        pytest.raises(CheckError, match="workgroups: the device reads") as caught,
    ):
        shader(x, groups=groups)
    assert str(tuple(counts)) in str(caught.value)
    assert x.tolist() == values().tolist()
    assert (checks.checked, checks.not_checked.total()) == (0, 0)


def test_restrict_blocks_may_have_parts_of_a_tensor_that_are_disjoint(device):
    text = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) restrict readonly buffer A { uint a[]; };
layout(std430, binding = 1) restrict writeonly buffer B { uint b[]; };
void main() { uint i = gl_LocalInvocationIndex; b[i] = a[i] + 1u; }"""
    x = device.tensor(np.arange(128, dtype=np.uint32))
    with checking(strict=True):
        shader = device.compile_shader(text)
        shader(x[:64], x[64:], groups=1)
        with pytest.raises(CheckError, match="'b' is declared restrict"):
            shader(x[:64], x[:64], groups=1)
    assert x.tolist() == [*range(64), *range(1, 9), *range(72, 128)]


def test_a_sort_is_interpreted_if_that_is_asked_for(device):
    x = device.tensor(values()[::-1].copy())
    for kernels in (False, True):
        with checking(strict=True, kernels=kernels) as checks:
            assert vkops.kernels.sort(x).tolist() == values().tolist()
        assert (checks.checked > 0) == kernels


def mips(device, _):
    device.image(np.zeros((4, 4), np.float32), mips=2).generate_mips()


def property_of_a_driver(device, _):
    """A test that reads out of bounds."""
    assert selftest.check(device, "robustBufferAccess").passed is not False


@pytest.mark.parametrize("run", [mips, property_of_a_driver])
def test_shaders_of_vkops_are_left_out(device, run):
    with checking(max_instructions=1) as checks:
        run(device, None)
    assert (checks.checked, checks.not_checked) == (0, {})


def fused(device, x):
    scale = vkops.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "scale")
    vkops.fuse(lambda x: vkops.kernels.sum(scale(x)))(x)


def fused_elements(device, x):
    scale = vkops.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "scale")
    vkops.fuse(lambda x: scale(scale(x)))(x)


def reduced(device, x):
    vkops.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")(x)


def scanned(device, x):
    vkops.ScanKernel("T x", "T y", "x", "a + b", "y = item", name="sums")(x)


@pytest.mark.parametrize("run", [called, elementwise, reduced, scanned, fused, fused_elements])
def test_every_dispatch_of_a_users_kernel_is_checked(device, run):
    x = device.tensor(values())
    with checking(max_instructions=1) as checks, checking(max_instructions=1, kernels=True) as all_:
        run(device, x)
    assert checks.not_checked == all_.not_checked != {}


PLAIN = REVERSE.replace("own] = part[63 - own]", "own + 32] += data[own ^ 1]").replace(
    "= data[own];", "= data[own] = 1;"
)


def test_kernels_of_the_package_are_the_same_in_a_block():
    """Only users' shaders have lines there: a kernel is kept as it is first compiled."""
    variants.spirv.cache_clear()
    with checking():
        inside = variants.spirv("copy_reverse")
    variants.spirv.cache_clear()
    assert variants.spirv("copy_reverse") == inside


def test_plain_barriers_can_be_left_out(device, tmp_path):
    text = PLAIN.replace("local_size_x = 64", "local_size_x = 32").replace("BARRIER", "barrier();")
    shader, x = device.compile_shader(text, name="plain"), device.tensor(values())
    with checking(), pytest.raises(CheckError, match="plain barrier: 'data"):
        shader(x, groups=1)
    with checking(plain_barriers=False) as checks:
        shader(x, groups=1)
    assert checks.checked == 1
    program = (
        "import numpy as np, vkops\ndevice = vkops.Device()\nx = device.tensor(np.ones(64, 'f4'))\n"
    )
    program += f"device.compile_shader({text!r}, name='plain')(x, groups=1)\nprint(x.numpy().sum())"
    for switch, out in (("1", ""), ("0", "96.0\n")):
        variables = {"VKOPS_CHECK": "1", "VKOPS_CHECK_PLAIN_BARRIERS": switch}
        assert run_with(tmp_path, ["-c", program], **variables)[1] == out


@pytest.fixture
def change_results(monkeypatch):
    """Return a function that changes element 2 of all that the interpreter computes from then on."""
    check = Case.check

    def change(difference):
        def changed(case):
            report = check(case)
            for point, array in report.buffers.items():
                wrong = difference * (np.arange(array.size) == 2).reshape(array.shape)
                report.buffers[point] = array + wrong.astype(array.dtype)
            return report

        monkeypatch.setattr(Case, "check", changed)

    return change


def test_results_are_compared_as_floats_of_devices(device, change_results):
    change_results(np.float32(2**-12))
    kernel = vkops.ElementwiseKernel("float32 x", "float32 y", "y = sin(x)", "sine")
    with checking():
        kernel(values())
    change_results(np.float32(2**-8))
    with (
        checking(),
        pytest.raises(CheckError, match=r"^sine: results: element 2 of .* in the inter"),
    ):
        kernel(values())
    with checking(compare=False):
        kernel(values())


HEAD = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 8) in;
layout(push_constant) uniform Push { int ahead; };
"""
MAIN = "void main() { int i = int(gl_LocalInvocationIndex), n = i + ahead;"
NUMBERS = np.arange(8, dtype=np.float32)
KEPT = []  # tensors that shaders have only addresses of
PIXELS = np.arange(96, dtype=np.uint8).reshape(4, 8, 3)


def of_images(device):
    """A part of an image, a level that is read while another one is written, and copies."""
    image = device.image(np.zeros((4, 16, 4), np.uint8), mips=2)
    colours, found = device.tensor(PIXELS), device.tensor(np.zeros((4, 8), np.float32))
    return {"A": image.mip(1), "B": image.mip(0), "C": colours, "D": found[:, ::-1]}


def of_textures(device):
    texture = device.image(np.float32([[1, 2, 3], [4, 5, 6]]))
    return {
        "A": (texture, device.sampler("linear", "repeat")), "B": NUMBERS.reshape(1, 8),
        "C": device.sampler("nearest"), "D": device.tensor(NUMBERS),
    }  # fmt: skip


def of_texels(device):
    pairs = device.tensor(np.arange(16, dtype=np.uint8).reshape(8, 2))
    return {"A": pairs, "B": device.tensor(NUMBERS)}


def of_arrays(device):
    blocks = [device.tensor(NUMBERS + n) for n in range(3)]
    images = [device.image(np.zeros((1, 8), np.float32)) for _ in range(2)]
    return {"A": blocks, "B": [{"by": 3}, {"by": 5}], "C": images}


def of_addresses(device):
    KEPT[:] = device.tensor(NUMBERS), device.tensor(NUMBERS + 1)
    table = np.array([each.device_address for each in KEPT], np.uint64)
    return {"A": device.tensor(table)}


CHECKED = {
    of_images: ("""
layout(binding = 0, rgba8) readonly uniform image2D A;
layout(binding = 1, rgba8) writeonly uniform image2D B;
layout(binding = 2, rgba8ui) uniform uimage2D C;
layout(binding = 3, r32f) uniform image2D D;
MAIN imageStore(B, ivec2(i, 3), imageLoad(A, ivec2(i, 1)) + vec4(0.1 * i));
imageStore(C, ivec2(n, 2), imageLoad(C, ivec2(i, 2)) ^ imageLoad(C, ivec2(i, 0)));
imageStore(D, ivec2(i, 1), vec4(sin(float(i)) + imageLoad(C, ivec2(i, 1)).w)); }""", "index (8, 2) of 'C'"),
    of_textures: ("""
layout(binding = 0) uniform sampler2D A;
layout(binding = 1) uniform texture2D B;
layout(binding = 2) uniform sampler C;
layout(binding = 3) buffer D { float d[]; };
MAIN d[n] += texture(A, vec2(0.3 * i, 0.2)).x + texture(sampler2D(B, C), vec2(0.1 * i, 0)).x; }""",
        "index 8 of 'd'"),
    of_texels: ("""
layout(binding = 0) uniform samplerBuffer A;
layout(binding = 1, r32f) uniform imageBuffer B;
MAIN vec4 own = imageLoad(B, i); imageStore(B, n, own + texelFetch(A, i).y); }""", "index 8 of 'B'"),
    of_arrays: ("""
layout(binding = 0) buffer A { float a[]; } as[];
layout(binding = 1) uniform B { float by; } bs[2];
layout(binding = 2, r32f) uniform image2D C[2];
MAIN imageStore(C[1], ivec2(i, 0), vec4(as[2].a[i]));
as[1].a[n] = as[0].a[i] * bs[1].by; }""", "index 8 of 'as[1].a'"),
    of_addresses: ("""
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Numbers { float x[]; };
layout(binding = 0) readonly buffer A { Numbers a[]; };
MAIN a[1].x[n] = 0.1 * sin(a[0].x[i]); }""", "index 32 of 'memory at 0x"),
}  # fmt: skip


@pytest.mark.features
@pytest.mark.parametrize("arguments", CHECKED, ids=lambda each: each.__name__)
def test_all_that_shaders_use_is_checked_and_compared(device, arguments, change_results):
    body, fault = CHECKED[arguments]
    text = HEAD + body.replace("MAIN", MAIN)

    def run(ahead):
        device.compile_shader(text, name="x")(**arguments(device), ahead=ahead, groups=1)

    with checking(strict=True) as checks:
        run(0)
        assert checks.checked == 1
        with pytest.raises(CheckError, match=re.escape(fault)):
            run(1)
        assert checks.checked == 1
        change_results(9)
        with pytest.raises(CheckError, match=r"^x: results: element 2 of "):
            run(0)


def far(device):
    device.compile_shader(ADD, name="add")(
        *[device.tensor(np.zeros(64, np.int32))] * 2, [1], last=64, groups=9999
    )


def of_layers(device):
    text = f"""{HEAD}
layout(binding = 0, r32f) readonly uniform image2DArray A;
layout(binding = 1, r32f) writeonly uniform image2DArray B;
{MAIN} imageStore(B, ivec3(n, 0, 0), imageLoad(A, ivec3(i, 0, 0))); }}"""
    image = device.image(np.zeros((3, 1, 8), np.float32), layers=True)
    device.compile_shader(text, name="x")(A=image[:2], B=image[1:], ahead=0, groups=1)


def of_a_tensor_that_is_gone(device):
    """The recorded program keeps its memory."""
    text = HEAD + CHECKED[of_addresses][0].replace("MAIN", MAIN)
    shader, given = device.compile_shader(text, name="x"), of_addresses(device)
    with device.record() as program:
        shader(**given, ahead=0, groups=1)
    KEPT.clear()
    gc.collect()  # no other tensor is near that gave its address
    program.run()


def large(device):
    far_x = device.tensor(np.zeros(1 << 10, np.int32))
    device.compile_shader(ADD, name="add")(far_x, far_x, [1], last=64, groups=1)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (far, "add: more than 9,000 instructions"),
        (
            lambda device: reduced(device, device.tensor(values(4096))),
            "total: more than 9,000 instructions",
        ),
        pytest.param(of_layers, "x: A and B share some of their bytes", marks=pytest.mark.features),
        pytest.param(
            of_a_tensor_that_is_gone,
            "x: an address belongs to no tensor, or to one that is gone",
            marks=pytest.mark.features,
        ),
        (large, "add: it is bound to more than 1 KiB"),
    ],
    ids=["invocations", "instructions", "layers", "address", "bytes"],
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


TWICE = {
    "tensor": """
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
MAIN b[i] = a[BEFORE] + 1.0; }""",
    "texels": """
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1, r32f) uniform imageBuffer B;
MAIN imageStore(B, i, vec4(a[BEFORE] + 1.0)); }""",
    "image": """
layout(binding = 0, r32f) readonly uniform image2D A;
layout(binding = 1, r32f) uniform image2D B;
MAIN imageStore(B, ivec2(i, 0), imageLoad(A, ivec2(BEFORE, 0)) + 1.0); }""",
}  # fmt: skip


@pytest.mark.features
@pytest.mark.parametrize(
    ("kind", "first"), [("tensor", 0), ("tensor", 64), ("texels", 0), ("texels", 64), ("image", 0)]
)
def test_memory_that_is_bound_twice_is_shared_in_the_interpreter(device, kind, first):
    """Each invocation changes its own element, or reads one that another invocation changes."""
    text = HEAD + TWICE[kind].replace("MAIN", MAIN)
    with checking(strict=True) as checks:
        for before in ("i", "i ^ 1"):
            shader = device.compile_shader(
                text.replace("BEFORE", f"{first} + ({before})"), name="twice"
            )
            both = device.tensor(np.zeros(128, np.float32))
            arguments = both, both[first:]
            if kind == "image":
                arguments = [device.image(NUMBERS.reshape(1, 8))] * 2
            if before == "i":
                shader(*arguments, ahead=0, groups=1)
            else:
                with pytest.raises(CheckError, match="data race"):
                    shader(*arguments, ahead=0, groups=1)
    assert checks.checked == 1


@pytest.mark.features
def test_memory_that_is_bound_and_has_an_address_is_not_checked(device):
    """The interpreter has it twice, and its results would differ."""
    text = """
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Numbers { float x[]; };
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) readonly buffer B { Numbers b; };
MAIN a[n] += b.x[i]; }"""
    shader = device.compile_shader(HEAD + text.replace("MAIN", MAIN), name="x")
    both = device.tensor(NUMBERS)
    table = device.tensor(np.array([both.device_address], np.uint64))
    with checking() as checks:
        shader(A=both, B=table, ahead=0, groups=1)
    (reason,) = checks.not_checked
    assert re.fullmatch("x: A and memory at 0x[0-9a-f]+ share some of their bytes", reason)
    np.testing.assert_array_equal(both.numpy(), 2 * NUMBERS)


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
        (0, {"VKOPS_CHECK": "1", "VKOPS_CHECK_SARIF": "/"}, "0.0", "VKOPS_CHECK_SARIF: /: cannot be written: "),
        (1, {"VKOPS_CHECK": "1"}, "ahead:1: out of bounds", "0 checked, 0 not\n"),
        (1, {"VKOPS_CHECK": "1", "VKOPS_CHECK_INSTRUCTIONS": "9"}, "0.0", "not checked: ahead: more than 9 instructions\n"),
        (0, {"VKOPS_CHECK": "strict", "VKOPS_CHECK_INSTRUCTIONS": "9"}, "ahead: not checked: more than 9", "0 checked, 1 not\n"),
        (0, {"VKOPS_CHECK": "1", "VKOPS_CHECK_PLAIN_BARRIERS": "no"}, "", "VKOPS_CHECK_PLAIN_BARRIERS: got 'no', must be 0 or 1\n"),
        (0, {"VKOPS_CHECK": "1", "VKOPS_CHECK_KERNELS": "2"}, "", "VKOPS_CHECK_KERNELS: got '2', must be 0 or 1\n"),
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


@pytest.mark.parametrize(("switch", "checked"), [("", 1), ("0", 1), ("1", 3)])
def test_a_variable_has_kernels_of_vkops_checked(tmp_path, switch, checked):
    program = PROGRAM.replace("OFFSET", "0") + "vkops.kernels.sum(np.ones(4, np.float32))"
    variables = {"VKOPS_CHECK": "1", "VKOPS_CHECK_KERNELS": switch}
    path = tmp_path / "all.info"
    _, _, complaints = run_with(tmp_path, ["-c", program], VKOPS_COVERAGE=str(path), **variables)
    assert f"dispatches of shaders: {checked} checked, 0 not\n" in complaints
    names = {Path(each).name.partition("-")[0] for each in lcov.read(path)}
    assert {name.partition("_")[0] for name in names} == (
        {"ahead", "sum"} if switch == "1" else {"ahead"}
    )


SUITE = """
import numpy as np, pytest, vkops

ahead = vkops.ElementwiseKernel("raw float32 x", "float32 y", "y = x[i + 1]", name="ahead")


@pytest.mark.parametrize("n", range(6))
def test_right(n):
    assert ahead(np.ones(9, np.float32), size=8).tolist() == [1] * 8


@pytest.mark.parametrize("n", range(3))
def test_too_far(n):
    ahead(np.ones(8, np.float32), size=8)


@pytest.mark.parametrize("n", range(4))
def test_too_long(n):
    ahead(np.ones(9999, np.float32), size=9998)
"""


def test_the_totals_of_pytests_workers_are_added_up(tmp_path):
    for name, text in (
        ("test_suite.py", SUITE),
        ("conftest.py", "import vkops"),
        ("pytest.ini", "[pytest]"),
    ):
        (tmp_path / name).write_text(text)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    arguments = [
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "-c",
        tmp_path / "pytest.ini",
    ]
    variables = {"VKOPS_CHECK": "1", "VKOPS_CHECK_INSTRUCTIONS": "50000"}
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    _, printed, complaints = run_with(tmp_path, [*arguments, tmp_path], **variables, **places)
    assert "3 failed, 10 passed" in printed
    assert complaints.endswith(
        "dispatches of shaders: 6 checked, 4 not\n"
        "not checked: ahead: more than 50,000 instructions, 4 times\n"
    )
    assert complaints.count("dispatches of shaders") == 1
    assert not [*temporary.glob("vkops-*")]


CHILDREN = """
import multiprocessing, os, subprocess, sys
import numpy as np, vkops
kernel = vkops.ElementwiseKernel("float32 x", "float32 y", "y = x + 1", name="next")


def run():
    kernel(np.ones(4, np.float32)).numpy()


if __name__ == "__main__":
    how, *rest = sys.argv[1:]
    if how == "program":
        subprocess.run([sys.executable, __file__, "none"], check=True)
    elif how == "exit":
        if not (pid := os.fork()):
            run()
            sys.exit()
        os.waitpid(pid, 0)
    elif how != "none":
        process = multiprocessing.get_context(how).Process(target=run)
        process.start()
        process.join()
    run()
"""
FORKS = pytest.mark.posix("forks", tests_only=True)
OF_PROCESSES = (
    "none",
    "program",
    "spawn",
    *(pytest.param(how, marks=FORKS) for how in ("fork", "exit")),
)


@pytest.mark.parametrize("how", OF_PROCESSES)
def test_the_totals_of_a_programs_processes_are_added_up(tmp_path, how):
    count = 1 if how == "none" else 2
    (tmp_path / "children.py").write_text(CHILDREN)
    gone = {"VKOPS_CHECK_TOTALS": str(tmp_path / "gone")}  # that of a program that has ended
    arguments = [tmp_path / "children.py", how]
    path = tmp_path / "all.info"
    variables = {"VKOPS_CHECK": "1", "VKOPS_COVERAGE": str(path), **gone}
    _, _, complaints = run_with(tmp_path, arguments, **variables)
    lines = [line for line in complaints.splitlines() if "dispatches of" in line]
    assert lines == [f"dispatches of shaders: {count} checked, 0 not"]
    # The text of the kernel, and what vkops wrote around it.
    kernel, around = sorted(lcov.read(path).items())
    assert kernel[1].lines == {1: 4 * count}
    size = min(256, select(None).limits.max_workgroup)
    taken, said = [size - 4, 4], "10 of 10 lines and 2 of 2 branches"
    if select(None).type != "CPU":  # each invocation has a loop over a batch of elements
        taken, said = [size + 4, 0, size, 4], "12 of 12 lines and 3 of 4 branches"
    assert [way.taken for way in around[1].targets] == [count * each for each in taken]
    assert Path(kernel[0]).read_text().startswith("y = x + 1\n")
    assert f"coverage of shaders: {said} in '{path}'" in complaints


OF_EACH_PROCESS = """    try:
        kernel(np.ones(4, np.float32), 4 + os.getpid(), size=1)
    except AssertionError:
        os.chdir("/")
"""


@pytest.mark.parametrize("how", OF_PROCESSES)
def test_the_findings_of_a_programs_processes_are_in_one_file(tmp_path, how):
    """They are at the line of Python that called the shader, wherever the program goes then."""
    text = CHILDREN.replace(
        '"float32 x", "float32 y", "y = x + 1"',
        '"raw float32 x, uint32 far", "float32 y", "y = x[far]"',
    )
    text = text.replace("    kernel(np.ones(4, np.float32)).numpy()\n", OF_EACH_PROCESS)
    (tmp_path / ".git").mkdir()
    (tmp_path / "children.py").write_text(text)
    variables = {"VKOPS_CHECK": "1", "VKOPS_CHECK_SARIF": "all.sarif", "PYTHONPATH": str(ROOT)}
    status, _, complaints = outcome("children.py", how, cwd=tmp_path, **variables)
    assert status == 0, complaints
    (run,) = json.loads((tmp_path / "all.sarif").read_bytes())["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    line = text.splitlines().index(OF_EACH_PROCESS.splitlines()[1]) + 1
    assert {(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in places} == {
        ("children.py", line)
    }
    assert len(places) == (1 if how == "none" else 2)  # the index is another one


EARLY = """
import numpy as np, sys, vkops
device = vkops.Device(int(sys.argv[1]))
array, tensor = device.pinned(4, "int32"), device.tensor(np.arange(4, dtype=np.int32))
event = tensor.set(array, wait=False)
try:
    tensor.numpy(out=array)
except vkops.VkopsError:
    event.wait()
"""


def test_pinned_arrays_that_are_used_too_early_are_in_the_file(adapter, tmp_path):
    variables = {"VKOPS_CHECK": "1", "VKOPS_CHECK_SARIF": "all.sarif", "PYTHONPATH": str(ROOT)}
    (tmp_path / "early.py").write_text(EARLY)
    status, _, complaints = outcome("early.py", str(adapter.index), cwd=tmp_path, **variables)
    assert status == 0, complaints
    (run,) = json.loads((tmp_path / "all.sarif").read_bytes())["runs"]
    (found,) = run["results"]
    assert found["ruleId"] == "early-access"
    line = EARLY.splitlines().index("    tensor.numpy(out=array)") + 1
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == line


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({}, "VKOPS_COVERAGE: VKOPS_CHECK must be 1 or strict, too: checks count what runs"),
        ({"VKOPS_CHECK": "1"}, "VKOPS_COVERAGE: {folder}/a.info:1: got 'import vkops', must be a line of LCOV's format"),
        ({"VKOPS_CHECK": "1", "VKOPS_COVERAGE": "/"}, "VKOPS_COVERAGE: /: cannot be written: not a regular file"),
    ],
)  # fmt: skip
def test_a_file_for_coverage_is_looked_at_first(tmp_path, monkeypatch, variables, error):
    (tmp_path / "a.info").write_text("import vkops")
    monkeypatch.delenv("VKOPS_CHECK_TOTALS", raising=False)
    monkeypatch.delenv("VKOPS_CHECK", raising=False)
    for name, value in {"VKOPS_COVERAGE": str(tmp_path / "a.info"), **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        vkops.errors.DeviceError, match=f"^{re.escape(error.format(folder=tmp_path))}$"
    ):
        dispatch_checks.check_all()


def test_coverage_without_checks_is_refused(tmp_path):
    status, printed, complaints = run_with(
        tmp_path, ["-c", "import vkops; print(1)"], VKOPS_COVERAGE="a.info"
    )
    assert (status, printed) == (1, "")
    assert "VKOPS_COVERAGE: VKOPS_CHECK must be 1 or strict, too" in complaints
