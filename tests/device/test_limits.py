"""Each limit of an adapter at the value that Vulkan guarantees: vkops asks for it and keeps it.

A test has a device with one such limit and the others of the driver.
"""

import gc
import itertools
import json
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest
from arrays import equal
from kernel_plans import window
from refusals import fault

import vkops
from vkops.cli import main
from vkops.errors import BindingError, OutOfDeviceMemoryError
from vkops.gpu.adapters import adapter as adapters
from vkops.gpu.adapters.adapter_limits import LIMITS, Limits, limits_of
from vkops.gpu.copies.rule import COPY
from vkops.plan.algebra import optimize

LEAST = Limits()
UNLIKE_OTHERS = itertools.count(3, 2)

HEAD = "#version 450\n"
COPIED = """layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
"""
FIRST = COPIED + "void main() { target[0] = source[0]; }"
UNIFORM = """layout(binding = 0) uniform U { uvec4 u[N]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
void main() { target[0] = u[N - 1].w; }"""


@pytest.fixture
def limited(adapter, monkeypatch):
    """Opens devices with the least limits of these names, or with values that are given.

    A limit that is like that of no other device has the device opened anew.
    """

    @contextmanager
    def opened(*names, **values):
        limits = {name: getattr(LEAST, name) for name in names}
        limits |= dict(values, buffer_image_granularity=next(UNLIKE_OTHERS))
        monkeypatch.setattr(
            adapters, "limits_of", lambda found: replace(limits_of(found), **limits)
        )
        with vkops.Device(adapter.index) as device:
            yield device

    return opened


def compiled(device, text, **more):
    return device.compile_shader(HEAD + text, name="x", **more)


def seen(monkeypatch, owner, name):
    """A list to which each call of a function adds its arguments."""
    calls, function = [], getattr(owner, name)

    def called(*arguments):
        calls.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(owner, name, called)
    return calls


# -- users' shaders --------------------------------------------------------------------------------

SIZED = "layout(local_size_{}_id = 0) in; void main() {{ }}"


def buffers(count, uniforms=0):
    """A shader that reads so many storage blocks, and uniform blocks."""
    kinds = [*["std430, {} buffer"] * count, *["std140, {} uniform"] * uniforms]
    numbered = [
        f"layout({kind.format(f'binding = {n})')} B{n} {{ uint b{n}; }};"
        for n, kind in enumerate(kinds)
    ]
    total = " + ".join(f"b{n}" for n in range(len(kinds)))
    return "\n".join([*numbered, f"void main() {{ b0 = {total}; }}"])


def images(declared, size, count):
    """A shader with so many images, textures or samplers."""
    lines = ["#extension GL_EXT_samplerless_texture_functions : require", "shared int total;"]
    lines += [declared.format(n) for n in range(count)]
    sizes = " + ".join(f"{size.format(n)}.x" for n in range(count))
    return "\n".join([*lines, f"void main() {{ total = {sizes}; }}"])


COUNTED = {
    # The most of something in a shader, and a shader with so many.
    "max_compute_work_group_size x": (128, lambda _: SIZED.format("x")),
    "max_compute_work_group_size y": (128, lambda _: SIZED.format("y")),
    "max_compute_work_group_size z": (64, lambda _: SIZED.format("z")),
    "max_compute_work_group_invocations": (
        64, lambda _: "layout(local_size_x_id = 0, local_size_y = 2) in; void main() { }"
    ),
    "max_compute_shared_memory_size": (
        4096, lambda n: f"shared uint s[{n}]; void main() {{ s[0] = 1; }}"
    ),
    "max_push_constants_size": (
        32, lambda n: f"layout(push_constant) uniform P {{ uint p[{n}]; }}; void main() {{ }}"
    ),
    "max_per_stage_descriptor_storage_buffers": (4, buffers),
    "max_per_stage_descriptor_uniform_buffers": (12, lambda n: buffers(1, n)),
    "max_per_stage_descriptor_storage_images": (
        4, lambda n: images("layout(r32f, binding = {0}) readonly uniform image2D i{0};", "imageSize(i{0})", n)
    ),
    "max_per_stage_descriptor_sampled_images": (
        16, lambda n: images("layout(binding = {0}) uniform texture2D i{0};", "textureSize(i{0}, 0)", n)
    ),
    "max_per_stage_descriptor_samplers": (
        16, lambda n: "layout(set = 1, binding = 0) uniform texture2D t;\n" + images(
            "layout(binding = {0}) uniform sampler i{0};", "ivec2(textureLod(sampler2D(t, i{0}), vec2(0), 0).xy)", n
        )
    ),
    "max_per_stage_resources": (128, buffers),
    "max_bound_descriptor_sets": (3, lambda n: FIRST.replace("binding = 0", f"set = {n}, binding = 0")),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTED)
def test_shaders_that_need_more_are_refused(limited, message, case):
    name, (most, make) = case.split()[0], COUNTED[case]
    # No device has to have so many blocks of one kind.
    others = {"max_per_stage_descriptor_storage_buffers": 200} if "resources" in name else {}
    with limited(name, **others) as device:

        def shader(n):
            return compiled(device, make(n), constants={0: n} if "size_" in make(n) else {})

        if not others:
            shader(most)
        message(fault(lambda: shader(most + 1)), "x", "[SH-0", device=repr(device.name))


@pytest.mark.parametrize(
    ("name", "head", "value"),
    [
        (
            "subgroup_operations",
            "#extension GL_KHR_shader_subgroup_arithmetic : require\n",
            "subgroupAdd(source[0])",
        ),
        ("features", "", "uint(double(source[0]))"),
    ],
    ids=["subgroups", "numbers of 64 bits"],
)
def test_what_shaders_lack(limited, message, name, head, value):
    with limited(name) as device:
        said = fault(
            lambda: compiled(device, f"{head}{COPIED}void main() {{ target[0] = {value}; }}")
        )
        message(said, "x: needs", "[SH-02]", device=repr(device.name))


def test_groups(limited):
    with limited("max_compute_work_group_count") as device:
        shader = compiled(device, "void main() { }")
        for axis in range(3):
            groups = [1, 1, 1]
            groups[axis] = 65535
            shader.dispatch({}, groups)
            for count in (0, -1, 65536, 10**30):
                groups[axis] = count
                text = fault(lambda: shader.dispatch({}, groups))  # noqa: B023
                more = "; use several dimensions, or a loop in the shader" if count > 0 else ""
                allowed = f"must be 1 to 65535 on this device{more}"
                assert text == f"x groups[{axis}]: got {count}, {allowed} [SH-07]"


def test_sizes_of_uniform_blocks(limited):
    """Values and tensors; they may be larger on this driver."""
    with limited("max_uniform_buffer_range") as device:
        for count in (1024, 1025):
            shader = compiled(device, UNIFORM, defines={"N": count})
            values = np.arange(4 * count, dtype=np.uint32)
            for given in (values.tobytes(), device.tensor(values)):
                target = device.tensor(np.zeros(1, np.uint32))
                call = lambda u=given, t=target, s=shader: s(u, t, threads=1)  # noqa: E731
                if count == 1024:
                    call()
                    assert target.numpy()[0] == values[-1]
                else:
                    assert "got 16400 bytes, must be 16384 at most" in fault(call, BindingError)


def test_texel_buffers(limited, monkeypatch):
    """Their sizes, and offsets, where a view is bound as a copy."""
    text = "layout(binding = 0, r32ui) uniform uimageBuffer B;"
    text += "void main() { imageStore(B, 0, imageLoad(B, 0) + 1u); }"
    with limited("max_texel_buffer_elements", "min_texel_buffer_offset_alignment") as device:
        bound = seen(monkeypatch, device.vulkan.module, "PreparedCall")
        values = device.tensor(np.zeros(65537, np.uint32))
        shader = compiled(device, text)
        for start in (0, 1, 64):
            shader(values[start : start + 65536], threads=1)
        assert values.numpy()[[0, 1, 64]].tolist() == [1, 1, 1]
        assert all(slot.start % 256 == 0 for call in bound for slot in call[1])
        assert "got 65537 texels" in fault(lambda: shader(values, threads=1), BindingError)


# -- what is bound ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["min_storage_buffer_offset_alignment", "min_uniform_buffer_offset_alignment"]
)
def test_offsets_of_what_is_bound(limited, monkeypatch, name):
    """A view at another offset is bound as a copy; kernels have offsets of their own."""
    text = FIRST if "storage" in name else f"#define N 1\n{UNIFORM.replace('.w', '.x')}"
    values = np.arange(200, dtype=np.uint32)
    axpy = vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y")
    for names in ((), (name,)):
        with limited(*names) as device:
            bound = seen(monkeypatch, device.vulkan.module, "PreparedCall")
            x = device.tensor(values)
            for start in (4, 16, 32, 64):
                target = device.tensor(np.zeros(1, np.uint32))
                compiled(device, text)(x[start : start + 4], target, threads=1)
                assert target.numpy()[0] == start
            np.testing.assert_array_equal(
                axpy(x[7:90], x[100:183]).numpy(), values[7:90] + values[100:183]
            )
            offsets = [slot.start for call in bound for slot in call[1]]
            least = getattr(device.info.limits, name)
            assert all(offset % 256 == 0 for offset in offsets) == (least == 256)


def test_buffers_of_a_shader(limited, monkeypatch):
    """Vulkan guarantees four; all kernels are used here."""
    random = np.random.default_rng(1)
    x, y = random.integers(0, 256, (2, 40, 33), np.uint8)
    i, j = random.integers(0, 33, (2, 7))
    monkeypatch.setenv(COPY, "shader")
    with limited("max_per_stage_descriptor_storage_buffers") as device:
        calls = seen(monkeypatch, device.vulkan.module, "Pipeline")
        a, b = device.tensor(x), device.tensor(y)
        large = device.tensor(np.resize(x, 16 << 20))  # in a heap of its own
        for axis in (0, 1):
            equal(vkops.concatenate([a, b, a], axis=axis), np.concatenate([x, y, x], axis=axis))
            equal(vkops.take(b, i, axis=axis), y.take(i, axis=axis))
        joined = vkops.concatenate([a.reshape(-1)[1:], large, b.reshape(-1)])
        equal(joined, np.concatenate([x.ravel()[1:], np.resize(x, 16 << 20), y.ravel()]))
        equal(a[i, j], x[i, j])
        a[i, j] = 7
        x[i, j] = 7
        equal(a.T, x.T)
        bindings = [max(map(len, call[3])) for call in calls]
        assert len(bindings) > 3
        assert max(bindings) <= 4


def test_workgroups_of_kernels(limited):
    """A device may have more invocations in all than along a dimension, and the other way round."""
    plans = [optimize(window(size, [256, 256], [1, 256])) for size in (1, 2, 4)]
    for name in (None, "max_compute_work_group_size", "max_compute_work_group_invocations"):
        with limited(*filter(None, [name])) as device:
            tuning = device.tuning
            as_gpu = type(tuning)(1, 16, 1, 1, False, 1, tuning.sources, tuning.invocations)
            chosen = [as_gpu.choose_kernel(plan, as_gpu.sources).kernel for plan in plans]
            double = vkops.ElementwiseKernel("T x", "T z", "z = x + x")
            x = np.arange(1000, dtype=np.uint32)
            equal(double(device.tensor(x)), 2 * x)
            sizes = [kernel.workgroup for kernel in chosen]
            most = device.info.limits.max_workgroup
            assert most == 128 or not name
            assert (max(sizes) <= 128) == (most == 128)
            assert f"local_size_x = {min(most, 256)}" in double.source


def test_numbers_of_kernels(limited):
    """Numbers that are too many for push constants are in a buffer, of which there are four."""
    names = [f"a{k}" for k in range(33)]
    declared = ", ".join(f"float32 {name}" for name in names)
    total = vkops.ElementwiseKernel(
        f"{declared}, float32 v", "float32 w", f"w = v + {'+'.join(names)}"
    )
    with limited("max_push_constants_size", "max_per_stage_descriptor_storage_buffers") as device:
        x = np.arange(8, dtype=np.float32)
        equal(total(*range(len(names)), device.tensor(x)), x + sum(range(len(names))))
        inputs = "float32 p, float32 q, float32 r, float32 s"
        many = vkops.ElementwiseKernel(inputs, "float32 w", "w = p + q + r + s", "x")
        text = fault(lambda: many(*[device.tensor(x)] * 4))
        assert text.startswith("x storage blocks: got 5, must be 4 at most")


# -- memory ----------------------------------------------------------------------------------------


def test_the_range_of_a_buffer(limited):
    """A larger buffer has several pieces of memory, and no shader is bound to it as one."""
    most = LEAST.max_storage_buffer_range
    with limited("max_storage_buffer_range") as device:
        x = np.resize(np.arange(1 << 20, dtype=np.uint32), most // 4 + 1)
        tensor = device.tensor(x)
        assert tensor.placed()[0].buffer.extents[0].nbytes == most
        equal(tensor[::-1][:3], x[::-1][:3])
        target = device.tensor(np.zeros(1, np.uint32))
        text = fault(lambda: compiled(device, FIRST)(tensor, target, threads=1), BindingError)
        assert f"got {x.nbytes} bytes, must be {most} at most" in text


@pytest.mark.parametrize("name", ["max_memory_allocation_size", "max_buffer_size"])
def test_the_size_of_an_allocation(limited, name):
    """The limit is lower here than any device's: buffers spread."""
    most, x = 1 << 20, np.resize(np.arange(1 << 16, dtype=np.uint32), 1 << 19)
    with limited(**{name: most}) as device:
        for count in (1 << 17, 1 << 18, 1 << 19):
            equal(vkops.split(x[:count], 2, device=device)[1], x[count // 2 : count])
        sizes = [extent.nbytes for extent in device.tensor(x).placed()[0].buffer.extents]
        assert max(sizes) <= most - adapters.ALLOCATION_SLACK
        assert device.memory_report().heaps >= 3


def test_the_number_of_allocations(limited, message):
    """Heaps and blocks of small data count."""
    with limited("max_memory_allocation_count") as device:
        vulkan, x = device.vulkan, np.arange(1 << 14, dtype=np.uint32)
        tensor = device.tensor(x)

        def record():
            with device.record() as program:
                tensor[::-1].copy()
            return program

        taken = allocations(vulkan)
        assert 4000 < len(taken) < 4096
        commands = fault(record, OutOfDeviceMemoryError)
        message(commands, "4096 allocations", device=repr(device.name))
        heap = fault(lambda: device.buffer(64 << 20), OutOfDeviceMemoryError)
        message(heap, "4096 allocations", device=repr(device.name))
        device.synchronize()
        taken.clear()
        record().run()
        equal(tensor[::-1].copy(), x[::-1])
        before = len(allocations(vulkan))
        buffer = device.buffer(64 << 20)
        during = len(allocations(vulkan))
        assert during <= before - 1
        del buffer
        vulkan.release_empty_heaps()
        gc.collect()
        assert len(allocations(vulkan)) >= before


def allocations(vulkan):
    """All allocations that are left."""
    memories = []
    try:
        while len(memories) < 5000:
            memories.append(vulkan.module.Memory(vulkan.native, 256, "upload"))
    except vulkan.module.OutOfMemoryError:
        pass
    return memories


EVERYTHING = """
faulty.record(1)
x = np.arange(1 << 16)
tensor = device.tensor(x)
with device.record() as program:
    reverse = tensor[::-1].copy()
take = device.measure_dispatches()
program.run()
halves = vkops.split(x, 2, device=device)
double = vkops.ElementwiseKernel("T x", "T z", "z = x + x")(device.tensor(np.arange(9, dtype=np.uint32)))
results = [reverse.numpy(), halves[1].numpy(), double.numpy()]
expected = [x[::-1], x[1 << 15:], 2 * np.arange(9)]
assert all(map(np.array_equal, results, expected))
vulkan = device.vulkan
held = [device.buffer(64 << 20)]
while not isinstance(call(lambda: held.append(vulkan.module.Memory(vulkan.native, 256, "upload"))), str):
    pass
made = [line for line in records("vkAllocateMemory") if "failed" not in line]
print(json.dumps([len(made), len(records("vkFreeMemory")), take()]))
"""


@pytest.mark.system("cc")
@pytest.mark.parametrize("staged", ["mapped", "staged"])
@pytest.mark.parametrize("kind", ["", "minimum"])
def test_all_allocations_are_counted(adapter, faulty, kind, staged):
    """The device of the kind "minimum" has no graphics either, and refuses more than the least limits."""
    variables = {"kind": kind, "VKOPS_LIMITS": "minimum", "VKOPS_EXPECT": ""}
    allocated, freed, time = json.loads(faulty(EVERYTHING, adapter.index, staged, **variables))
    assert allocated - freed == Limits().max_memory_allocation_count
    assert time is None


def test_memory_that_host_and_device_do_not_share(limited):
    with limited("memory_types") as device:
        assert not device.mapped
        x = np.arange(5000)
        equal(device.tensor(x)[::2].copy(), x[::2])


# -- other limits ----------------------------------------------------------------------------------


def test_a_queue_without_timestamps(limited, tmp_path, capsys):
    with limited("timestamp_valid_bits") as device:
        take = device.measure_dispatches()
        with vkops.profile() as profile:
            equal(device.tensor(np.arange(10))[::-1].copy(), np.arange(10)[::-1])
        assert take() is None
        rows = profile.by_call()
        assert "wait" in {row.name for row in rows}
        assert all(row.device_ms is None and row.host_ms > 0 for row in rows)
        profile.save(tmp_path / "trace.json")
        assert "the device has no timestamps" in (tmp_path / "trace.json").read_text()
        assert main(["bench", "W1", "--rounds", "1", "--json"]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        assert "device" not in result["seconds"]


def test_kernels_of_64_bits_are_not_used_without_the_feature(limited, monkeypatch):
    monkeypatch.setattr(adapters, "prefers_int64", lambda _: True)
    for names in ((), ("features",)):
        with limited(*names) as device:
            assert device.vulkan._wide == ("shaderInt64" in device.features)
            assert not (names and device.vulkan._wide)


def test_all_limits_are_listed(monkeypatch, capsys, adapter):
    monkeypatch.setenv(LIMITS, "minimum")
    assert main(["devices", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["devices"][adapter.index]["limits"]
    native = adapters.native_adapters()[adapter.index].limits  # what is missing would be the least
    assert native.keys() == printed.keys() - {
        "heaps",
        "memory_types",
        "features",
        "cooperative_matrices",
    }
    assert printed.pop("heaps")
    assert printed.items() <= json.loads(json.dumps(asdict(LEAST))).items()


def test_each_limit_has_a_test():
    """The other ones are only reported."""
    reported = {
        "non_coherent_atom_size", "buffer_image_granularity", "max_image_dimension_2d",
        "subgroup_size",
    }  # fmt: skip
    tests = Path(__file__).read_text().partition("reported = ")[0]
    names = {field.name for field in fields(Limits)} - {"heaps"}
    assert {name for name in names if f'"{name}' not in tests} == reported
