"""Shaders of the user's own on real drivers."""

import json
from pathlib import Path

import models
import numpy as np
import pytest
from adapters import UNDER_LAYER
from refusals import fault

import vkops
from vkops.cli import main
from vkops.errors import BindingError, InvalidDescError, OutOfDeviceMemoryError
from vkops.shaders.shader import MAX_BINDING

HEAD = "#version 450\n"
ADD = """layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer From { uint from[]; };
layout(std430, binding = 1) buffer To { uint to[]; };
layout(push_constant) uniform Push { uint n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < to.length()) to[i] = from[i] + n; }"""
COUNT = """layout(std430, binding = 0) buffer Data { uint data[]; };
void main() { data[gl_WorkGroupID.x] += 1; }"""


def words(resource):
    return np.frombuffer(resource.read(), np.uint32).tolist()


def filled(device, values):
    values = np.asarray(values, np.uint32)
    buffer = device.buffer(values.nbytes)
    buffer.write(values)
    return buffer


def compiled(device, body, **options):
    return device.compile_shader(HEAD + body, name="x", **options)


# -- results ---------------------------------------------------------------------------------------


def test_results_and_bytes_around_them(any_device):
    x, y = filled(any_device, range(16)), filled(any_device, [7] * 16)
    shader = compiled(any_device, ADD)
    shader.dispatch({"From": (x, 16, 32), "To": (y, np.uint8(8), np.int64(24))}, [2], [100])
    assert words(x) == list(range(16))
    assert words(y) == [7, 7, 104, 105, 106, 107, 108, 109, *[7] * 8]


def test_tensors_from_an_offset_to_their_end(device):
    x, y = (device.tensor(np.arange(16, dtype=np.uint32)) for _ in range(2))
    compiled(device, ADD).dispatch({"From": (x[4:], 16, None), "To": (y, 48, None)}, [2], [100])
    np.testing.assert_array_equal(y.numpy(), [*range(12), *range(108, 112)])


def test_read_only_blocks_are_not_written_back(any_device):
    """What was written to a buffer in the meantime is kept."""
    x, y = filled(any_device, range(8)), filled(any_device, [0] * 8)
    with compiled(any_device, ADD).bound({"From": x, "To": y}, [2], [1]) as run:
        run.dispatch()
        x.write(np.arange(8, 16, dtype=np.uint32))
    assert words(x) == list(range(8, 16))
    assert words(y) == list(range(1, 9))


def test_bound_once_dispatched_often(any_device):
    x = filled(any_device, [0] * 6)
    with compiled(any_device, COUNT).bound({"Data": (x, 4, 16)}, [3]) as run:
        for number in range(5):
            run.dispatch()
            assert words(x) == [0, *[number + 1] * 3, 0, 0]
    assert run.__exit__() is None  # an error in the block is raised


@pytest.mark.parametrize("order", [("buffer", "host_buffer"), ("host_buffer", "buffer")])
def test_the_same_part_of_host_and_device_memory(any_device, order):
    """Neither is bound as the other was."""
    shader = compiled(any_device, COUNT)
    for kind in order:
        data = getattr(any_device, kind)(64)
        data.write(np.zeros(16, np.uint32))
        shader.dispatch({"Data": (data, 4, 16)}, [4])
        assert words(data) == [0, 1, 1, 1, 1, *[0] * 11]


def test_host_memory_that_is_bound_twice(any_device):
    text = """layout(std430, binding = 0) buffer A { uint a[]; };
    layout(std430, binding = 1) buffer B { uint b[]; };
    void main() { a[gl_WorkGroupID.x] += 1; b[gl_WorkGroupID.x] += 10; }"""
    shader, host = compiled(any_device, text), any_device.host_buffer(32)
    host.write(np.zeros(8, np.uint32))
    shader.dispatch({"A": (host, 0, 16), "B": (host, 0, 16)}, [4])
    shader.dispatch({"A": (host, 0, 16), "B": (host, 16, 16)}, [4])
    assert words(host) == [12, 12, 12, 12, 10, 10, 10, 10]
    assert fault(
        lambda: shader.dispatch({"A": (host, 0, 16), "B": (host, 8, 16)}, [2]), BindingError
    ) == (
        "x B: shares bytes with A, must not: one of them is host memory that is copied while the "
        "shader runs, and one is written [SH-06]"
    )


def test_workgroups_and_threads(device):
    """Only ``threads`` may be 0."""
    shader, x = compiled(device, COUNT), filled(device, [0] * 4)
    shader(x, threads=0)
    shader.dispatch({"Data": x}, threads=[3, 0])
    assert words(x) == [0] * 4
    shader(x, groups=np.array([2, 1]))
    assert words(x) == [1, 1, 0, 0]
    shader.dispatch({"Data": x}, threads=3)
    shader.bound({"Data": x}).dispatch()
    assert words(x) == [3, 2, 1, 0]


def test_a_block_that_is_declared_and_not_used(device):
    """It takes no position, and what is given by its name is ignored."""
    text = "layout(std430, binding = 7) buffer Unused { uint unused[]; };\n" + COUNT
    shader, x = compiled(device, text), filled(device, [0] * 4)
    shader(x, groups=1, Unused=x)
    shader.dispatch({"Data": x, "Unused": x})
    assert words(x) == [2, 0, 0, 0]


def test_one_buffer_for_two_blocks(any_device):
    x = filled(any_device, range(8))
    compiled(any_device, ADD).dispatch({"From": x, "To": x}, [2], [10])
    assert words(x) == list(range(10, 18))


@pytest.mark.parametrize("name", ["In", "Out"])
def test_blocks_of_one_binding_share_a_buffer(any_device, name):
    """Results are in the buffer, whichever of the blocks it was bound to."""
    text = """layout(std430, binding = 2) readonly buffer In { uint a[]; };
    layout(std430, binding = 2) buffer Out { uint b[]; };
    void main() { b[1] = a[0] + 1; }"""
    x = filled(any_device, [5, 0])
    compiled(any_device, text).dispatch({name: x})
    assert words(x) == [5, 6]


NAMES = """layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer B { float x[]; };
layout(std430, binding = 0) readonly buffer BV4 { vec4 x4[]; } vectors;
layout(std430, binding = 1) buffer Y { float y[]; };
layout(std430, binding = 2) buffer Unused { float unused[]; };
layout(push_constant) uniform Push { float pass, groups, self, Unused; } push;
void main() {
    uint i = gl_GlobalInvocationID.x;
    y[i] = 1000 * push.pass + 100 * push.groups + 10 * push.self + push.Unused + x[i];
}"""
CONSTANTS = {"pass_": 1, "groups_": 2, "self": 3, "Unused": 4}


@pytest.mark.parametrize("name", ["B", "BV4", "vectors", "0"])
def test_a_name_stands_for_its_binding(device, name):
    """Also that of a block which the shader does not use."""
    shader, x = compiled(device, NAMES), device.tensor(np.arange(4, dtype=np.float32))
    expected = [1234, 1235, 1236, 1237]
    assert shader(**{name: x}, out={"Y": name}, threads=4, **CONSTANTS).tolist() == expected
    y = device.empty(4, np.float32)
    shader.dispatch({name: x, 1: y}, 1, [1, 2, 3, 4])
    assert y.tolist() == expected


def test_names_that_python_or_a_call_uses(device):
    shader, x = compiled(device, NAMES), device.tensor(np.zeros(4, np.float32))
    constants = {"pass": 1, "self_": 3, "groups_": 2, "Unused": 4}
    assert shader(x, out=4, threads=4, **constants).tolist() == [1234] * 4
    assert shader(B_=x, out={"Y": 4}, groups=1, **constants).tolist() == [1234] * 4


@pytest.mark.parametrize(
    ("call", "named"),
    [
        *(
            (lambda s, y, wrong=wrong: s(1.0, y, groups=1, **CONSTANTS, **wrong), "[SH-04]")
            for wrong in (
                {"pass": 2}, {"passs": 2}, {"y": 2}, {"Bv4": 1.0}, {"B": 1.0, "BV4": 1.0}, {"B": 1.0, "B_": 1.0},
            )
        ),
        *(  # before a value that is wrong
            (lambda s, y, wrong=wrong: s.dispatch(wrong, 1), "there is no such block [SH-04]")
            for wrong in ({"Z": 3}, {"Bv4": None}, {"vector": 1.0}, {"Unused": 3, "pass": 1})
        ),
        (lambda s, y: s(y, y, groups=1, pass_=1, self=1, Unused=1), "groups [SH-09]"),
        (lambda s, y: compiled(y.device, "void main() {}").dispatch({"B": y}), "there are none [SH-04]"),
    ],
)  # fmt: skip
def test_names_that_are_wrong(device, call, named, message):
    shader, y = compiled(device, NAMES), device.empty(4, np.float32)
    kind = InvalidDescError if "SH-09" in named else BindingError
    message(fault(lambda: call(shader, y), kind), "x ", *named.rsplit(maxsplit=1))


def test_gaps_between_bindings(any_device):
    text = """layout(std430, binding = 6) buffer B { uint b[]; } out_;
    layout(std430, binding = 3) readonly buffer A { uint a[]; };
    void main() { out_.b[0] = a[1]; }"""
    x, y = filled(any_device, [1, 2]), filled(any_device, [0, 9])
    compiled(any_device, text).dispatch({"A": x, "out_": y})
    assert words(y) == [2, 9]


def test_resources_of_every_kind(any_device):
    shader = compiled(any_device, ADD)
    host = any_device.host_buffer(32)
    host.write(np.arange(8, dtype=np.uint32))
    x = any_device.tensor(np.zeros((2, 4), np.uint32))
    shader.dispatch({"From": host, "To": x}, [2], [1])
    assert x.numpy().tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    shader.dispatch({"From": (x, 16, 16), "To": (host, 16, 16)}, [1], [1])
    assert words(host) == [0, 1, 2, 3, 6, 7, 8, 9]


# -- features of shaders -------------------------------------------------------------------------

UNIFORM = """struct S { float x; vec2 y; };
layout(std140, binding = 1) uniform U { float a[3]; vec3 v[2]; mat3 m; layout(row_major) mat2x3 r;
  S s[2]; uint n; } u;
layout(std430, binding = 0) buffer B { float b[]; };
void main() {
  b[0] = u.a[2]; b[1] = u.v[1].z; b[2] = u.m[2][1]; b[3] = u.r[1][2]; b[4] = u.s[1].y.y;
  b[5] = float(u.n); int k = int(u.n); b[6] = u.a[k - 76]; b[7] = u.v[k - 77][k - 76];
}"""


@pytest.mark.parametrize("target_env", ["vulkan1.0", "vulkan1.1"])
def test_uniform_blocks(any_device, target_env):
    """They are storage blocks for Kompute, of the same layout: std140."""
    shader = any_device.compile_shader(
        vkops.shaders.load(HEAD + UNIFORM, target_env=target_env, name="x")
    )
    values = np.arange(53, dtype=np.float32)
    values[52:].view(np.uint32)[0] = 77
    u, b = any_device.tensor(values), any_device.tensor(np.zeros(8, np.float32))
    assert [block.nbytes for block in shader.shader.blocks] == [0, 4 * 53]
    shader.dispatch({"B": b, "u": u})
    assert b.numpy().tolist() == [8, 18, 29, 41, 51, 77, 4, 13]
    assert u.numpy()[:52].tolist() == list(range(52))


def test_specialization_constants_and_local_sizes(any_device):
    text = """layout(local_size_x_id = 5) in;
    layout(constant_id = 1) const uint U = 1u; layout(constant_id = 2) const int I = 1;
    layout(constant_id = 3) const float F = 1.0; layout(constant_id = 4) const bool T = false;
    layout(constant_id = 6) const float G = 1.0;
    shared uint s[gl_WorkGroupSize.x];
    layout(std430, binding = 0) buffer B { uint b[]; };
    void main() {
      s[gl_LocalInvocationIndex] = gl_LocalInvocationIndex; barrier();
      if (gl_LocalInvocationIndex > 0) return;
      uint sum = 0; for (uint i = 0; i < gl_WorkGroupSize.x; ++i) sum += s[i];
      b[0] = U; b[1] = uint(I); b[2] = floatBitsToUint(F); b[3] = uint(T); b[4] = sum;
      b[5] = uint(isinf(G)); }"""
    b = filled(any_device, [9] * 6)
    constants = {"U": 4294967295, 2: -5, "F": 0.1, 4: True, 5: 16, "G": float("inf")}
    compiled(any_device, text, constants=constants).dispatch({"B": b})
    bits = int(np.float32(0.1).view(np.uint32))
    assert words(b) == [2**32 - 1, 2**32 - 5, bits, 1, 120, 1]
    compiled(any_device, text).dispatch({"B": b})
    assert words(b) == [1, 1, int(np.float32(1).view(np.uint32)), 0, 0, 0]


OUTSIDE = """layout(std430, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint at; uint numbers[2]; };
shared uint group[3];
void main() {
  uint own[3] = uint[](4, 5, 6);
  group[0] = group[1] = group[2] = 7u;
  group[at] = 8u;
  own[at] = 9u;
  uint first = data[at];
  data[at] = 99u;
  data[0] = first;
  data[1] = own[at];
  data[2] = own[0] + own[1] + own[2];
  data[3] = group[at];
  data[4] = group[0] + group[1] + group[2];
  data[5] = numbers[at];
}"""


@pytest.mark.skipif(UNDER_LAYER, reason="the layer is to see what a shader does")
@pytest.mark.parametrize("at", [6, 7, 1 << 28, (1 << 32) - 1])
def test_indices_out_of_bounds_on_a_cpu(device, at):
    """Of arrays, the last element is used; accesses to buffers are discarded.

    SwiftShader, which cannot discard them, uses the last element there, too.
    """
    if device.info.type != "CPU":
        pytest.skip("a GPU keeps accesses within the process's memory on the device")
    around = device.tensor(np.full((3, 64), 5, np.uint32))  # each row is at a multiple of 256 bytes
    discards = "robustBufferAccess2" in device.vulkan.features
    shader = compiled(device, OUTSIDE)
    shader.dispatch({"Data": (around[1], 0, 24)}, push_constants=[at, 1, 2])
    expected = [0 if discards else 5, 9, 4 + 5 + 9, 8, 7 + 7 + 8, 2]
    contents = around.numpy().copy()
    assert contents[1, :6].tolist() == expected
    contents[1, :6] = 5
    assert (contents == 5).all()


def test_a_shader_without_a_bounds_check(device):
    """128 invocations of 100 elements: nothing else is written."""
    text = """layout(local_size_x = 64) in;
    layout(std430, binding = 0) buffer Data { uint data[]; };
    void main() { data[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x; }"""
    tensors = [device.tensor(np.full(100, 5, np.uint32)) for _ in range(3)]
    compiled(device, text)(tensors[1], groups=2)
    contents = tensors[1].numpy()
    if "robustBufferAccess2" in device.vulkan.features:
        np.testing.assert_array_equal(contents, np.arange(100))
    np.testing.assert_array_equal(contents[:99], np.arange(99))
    for other in (tensors[0], tensors[2]):
        assert (other.numpy() == 5).all()


def test_lengths_of_runtime_arrays(any_device):
    text = """layout(std430, binding = 0) buffer Data { uint head; uvec4 data[]; };
    void main() { head = data.length(); }"""
    for nbytes in (32, 44, 48):
        x = filled(any_device, [0] * 12)
        compiled(any_device, text).dispatch({"Data": (x, 0, nbytes)})
        assert words(x)[0] == nbytes // 16 - 1


@pytest.mark.parametrize(
    "late", [{"constants": {0: 1}}, {"defines": {"N": 1}}, {"include_dirs": ["."]}, {"debug": True}]
)
def test_arguments_for_a_loaded_shader(device, late):
    loaded = vkops.shaders.load(HEAD + "void main() {}", name="x")
    with pytest.raises(InvalidDescError, match=r"^x source: a loaded shader takes no .*\[SH-10\]$"):
        device.compile_shader(loaded, **late)


# -- SH-07, SH-08: limits of the device ----------------------------------------------------------


def test_threads_above_the_limits(device, message):
    shader, x = compiled(device, ADD), filled(device, [0] * 4)
    most = device.info.limits.max_compute_work_group_count
    for axis, size in enumerate((4, 1, 1)):
        threads = [1] * 3
        threads[axis] = most[axis] * size + 1
        text = fault(lambda: shader(x, x, n=1, threads=threads))  # noqa: B023
        assert text.startswith(
            f"x threads[{axis}]: got {threads[axis]}, must be 1 to {most[axis] * size}"
        )
    values = {"limit": most[0] * 4, "count": most[0] * 4 + 1, "most": most[0]}
    text = fault(lambda: shader(x, x, n=1, threads=values["count"]))
    message(text, "x threads[0]: ", "loop over the grid", "[SH-07]", **values)


def test_the_largest_binding(device):
    """Drivers may allocate memory for the bindings below it that the shader does not use."""
    x = filled(device, [0])
    text = f"layout(binding = {MAX_BINDING}) buffer B {{ uint b; }}; void main() {{ b = 1; }}"
    compiled(device, text).dispatch({"B": x})
    assert words(x) == [1]


# -- memory, threads, closing ----------------------------------------------------------------------


def test_out_of_memory_changes_nothing(any_device, monkeypatch):
    base, shader = any_device.tensor(np.zeros((64, 2), np.uint32)), compiled(any_device, COUNT)
    run = shader.bound({"Data": base[:, 0]})

    def full(*_):
        raise OutOfDeviceMemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(any_device.pool, "allocate", full)
        said = fault(lambda: shader.dispatch({"Data": base[:, 0]}), OutOfDeviceMemoryError)
        assert said == "no room"
        run.dispatch()
    assert base.numpy().sum() == 1


# -- in JSON models --------------------------------------------------------------------------------


@pytest.fixture
def run_model(adapter, tmp_path, monkeypatch, capsys):
    """Run a model of one shader; return the status, and the lines of both streams but the first."""
    monkeypatch.chdir(tmp_path)

    def run_model(text, *options, **command):
        Path("s.comp").write_text(HEAD + text)
        document = models.model(
            {"X": models.zeros(4, "UINT32"), "Y": models.resource("UINT32", [3, 1, 1, 2, 1, 1])},
            {"s": {"type": "glsl", "sourcePath": "s.comp"}},
            {"type": "writeFile", "resource": "X", "targetPath": "before.bin"},
            models.dispatch("s", Data="X") | command,
            {"type": "print", "resource": "X"},
        )
        Path("m.json").write_text(json.dumps(document))
        status = main(["run", "-a", adapter.name, *options, "m.json"])
        seen = capsys.readouterr()
        return status, seen.out.splitlines()[1:], seen.err.splitlines()

    return run_model


PART = {"bindings": {"0": {"name": "X", "elementOffset": 1, "elementCount": 2}}}


@pytest.mark.parametrize(
    ("text", "options", "groups", "more", "expected"),
    [
        (COUNT, ["-i", "3", "-r", "2"], [3, 1, 1], {}, "6, 6, 6, 0"),
        (COUNT.replace("+= 1", "= data.length()"), [], [2, 1, 1], PART, "0, 2, 2, 0"),
        (COUNT, [], "Y", {}, "1, 1, 1, 0"),  # which the device reads
        (COUNT, [], {"name": "Y", "elementOffset": 3}, {}, "1, 1, 0, 0"),
    ],
    ids=["again and again", "a part", "groups", "a part of groups"],
)
def test_models(run_model, text, options, groups, more, expected):
    status, out, err = run_model(text, *options, threadGroupCount=groups, **more)
    assert (status, err) == (0, [])
    assert out[-1] == f"Resource 'X': {expected}"
    assert out[-2].startswith(f"Dispatch 's': {3 if options else 1} iterations, ")


def test_limits_are_checked_before_anything_runs(run_model, device):
    most = device.info.limits.max_compute_shared_memory_size
    text = f"shared uint s[{most // 4 + 1}]; {COUNT.replace('+= 1', '= s[0]')}"
    status, out, err = run_model(text)
    assert (status, out) == (1, [])
    assert err == [
        "Failed to execute the model: ERROR creating dispatchable 's': s.comp bytes of shared "
        f"memory: got {most + 4}, must be {most} at most on {device.name!r} [SH-08]"
    ]
    assert not Path("before.bin").exists()
