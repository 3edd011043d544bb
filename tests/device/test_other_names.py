"""Names of other libraries: their errors say what to use instead."""

import re
from operator import attrgetter

import numpy as np
import public_names
import pytest
from processes import ROOT, outcome

import vkops
from vkops.arguments.other_names import FILE, NOTHING, hint, row_of, table

IN_EACH_CALL = (
    vkops.Buffer, vkops.CompiledShader, vkops.Device, vkops.ElementwiseKernel, vkops.Image,
    vkops.RecordedProgram,
)  # fmt: skip
"""Classes whose attributes each call reads, which __getattr__ would slow down."""

OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.0.0"
"""CuPy has the names of NumPy 2, of which NumPy 1 lacks some, such as acos and isdtype."""


@pytest.fixture(scope="module")
def places(device):
    """The module or class of vkops for each of the other libraries."""
    return {
        "vkops": vkops,
        "Tensor": device.tensor(np.zeros((2, 2), np.float32)),
        "Device": device,
        "DeviceInfo": device.info,
        "Buffer": device.buffer(16),
        "Image": device.image((2, 2)),
        "Sampler": device.sampler(),
        "CompiledShader": device.compile_shader("#version 450\nvoid main() {}"),
        "RecordedProgram": device.record(),
        "ElementwiseKernel": vkops.ElementwiseKernel("T x", "T y", "y = x"),
        "ReductionKernel": vkops.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0"),
        "Philox": vkops.kernels.random.Philox(1),
    }


def _error(owner, name):
    """The text after the name in the error for a missing attribute; None if it is there."""
    if hasattr(owner, name):
        return None
    if isinstance(owner, IN_EACH_CALL):  # only the page has their names
        return hint(name)
    with pytest.raises(AttributeError) as raised:
        getattr(owner, name)
    start, text = str(raised.value).split(f" has no attribute {name!r}")
    assert start == ("module 'vkops'" if owner is vkops else f"vkops.{type(owner).__name__}")
    assert (raised.value.name, raised.value.obj) == (name, owner)
    return text


@pytest.mark.parametrize("library", public_names.LIBRARIES)
def test_every_name_is_there_or_has_a_hint(library, places):
    """The public interface of the versions in public_names.json counts."""
    errors = {
        f"{place}.{name}": _error(places[kind], name)
        for each, _, place, kind, names in public_names.read()
        if each == library
        for name in names
    }
    assert len(errors) > 40
    for name, text in errors.items():
        is_newer = OLD_NUMPY and not hasattr(np, name.rpartition(".")[2])
        if text is not None and (text or not is_newer):
            assert re.match(": (use|there is no replacement:) .", text), name


def test_every_row_is_used():
    """Each row is for a name of one of the libraries, or for one of NumPy's."""
    used = {
        row_of(name, of_module=kind == "vkops")
        for *_, kind, names in public_names.read()
        for name in names
    }
    unused = {name for name in table() if name not in used and not hasattr(np, name)}
    assert unused <= ({"strings"} if OLD_NUMPY else set())
    lines = [line for line in FILE.read_text("utf-8").splitlines() if line and line[0] != "#"]
    names = [name for line in lines for name in line.split("\t")[0].split()]
    assert len(names) == len(table())
    assert len({line.split("\t")[1] for line in lines}) == len(lines)


def look_up(owner, path):
    """Raise an error if there is no such attribute, or an address without the feature for it."""
    if path == "device_address" and "bufferDeviceAddress" not in owner.device.features:
        with pytest.raises(vkops.DeviceError, match=r"has no address: .* bufferDeviceAddress"):
            attrgetter(path)(owner)
    else:
        attrgetter(path)(owner)


def test_every_replacement_exists(places):
    roots = {
        "vkops": vkops,
        "numpy": np,
        "tensor": places["Tensor"],
        "device": places["Device"],
        "shader": places["CompiledShader"],
        "image": places["Image"],
        "buffer": places["Buffer"],
        "program": places["RecordedProgram"],
    }
    count = 0
    for name, instead in table().items():
        text = instead.replace("{name}", name.lstrip(".")).removeprefix(NOTHING)
        for root, path in re.findall(r"(?<![\w.])(\w+)\.([a-z]\w*(?:\.\w+)*)", text, re.IGNORECASE):
            is_newer = OLD_NUMPY and root == "numpy" and not hasattr(np, path)
            if root in roots and path != "kernels.random.Philox" and not is_newer:
                look_up(roots[root], path)
                count += 1
        for argument in re.findall(r"the argument (\w+)", instead):
            assert argument in {"format", "mips", "name"}
    assert count > 200
    code = [text for text in table().values() if text.startswith("vkops.ElementwiseKernel(")]
    for text in code:
        x = places["Tensor"]
        assert eval(text)(x, x, x).shape == x.shape


GUIDE = """
ndarray ndarray.get ndarray.device ndarray.data.ptr float32 uint32 array asarray ascontiguousarray
asnumpy arange empty empty_like ones zeros zeros_like abs add power sqrt sum prod mean amax amin
argmax argmin cumsum matmul reshape allclose linalg.norm get_array_module cuda.Device
ElementwiseKernel ReductionKernel fuse RawKernel RawKernel.attributes RawModule
RawModule.get_function RawModule.get_global RawModule.get_texref cuda.texture.TextureObject
cuda.texture.SurfaceObject cupyx.jit.rawkernel jit.threadIdx jit.blockIdx jit.blockDim jit.gridDim
cuda.Stream Stream.null Stream.ptds Stream.use Stream.synchronize Stream.wait_event Stream.record
Stream.from_external cuda.get_current_stream cuda.Event cuda.get_elapsed_time cuda.ExternalStream
get_default_memory_pool get_default_pinned_memory_pool cuda.MemoryPool MemoryPool.set_limit
cuda.PinnedMemoryPool cuda.PinnedMemoryPointer cuda.MemoryPointer cuda.UnownedMemory
cuda.set_allocator cuda.set_pinned_memory_allocator cuda.malloc_managed cuda.malloc_async
cuda.MemoryAsyncPool cuda.memory.malloc_system cupyx.empty_pinned cupyx.zeros_pinned
cupyx.empty_like_pinned cupyx.zeros_like_pinned cupyx.profiler.benchmark cupyx.profiler.time_range
cupyx.profiler.profile from_dlpack fft.fft fft.ifft fft.rfft fft.fftn fft.fft2 cupyx.scipy.fft
cupyx.scipy.fftpack.get_fft_plan fft.config.get_plan_cache fft.config.show_plan_cache_info
fft.config.set_cufft_callbacks fft.config.set_cufft_gpus fft.config.use_multi_gpus
fft._cache.PlanCache cuda.cufft.Plan1d cuda.cufft.XtPlanNd random.random random.randn random.normal
random.RandomState __array_ufunc__ __array_function__ __cuda_array_interface__ CUPY_ACCELERATORS
CUPY_CACHE_DIR CUPY_CACHE_SAVE_CUDA_SOURCE CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION
CUPY_CUDA_ARRAY_INTERFACE_SYNC CUPY_CUDA_PER_THREAD_DEFAULT_STREAM CUPY_DLPACK_EXPORT_VERSION
CUPY_ENABLE_UMP CUPY_GPU_MEMORY_LIMIT
"""
"""The names in the user guide of CuPy at its commit 6b6d9563, without the prefix ``cupy.``."""


def test_the_table_of_cupys_user_guide(places):
    """It has all names of the guide, and what takes their place exists, or has a reason."""
    page = (ROOT / "docs/tutorials/shaders.md").read_text("utf-8")
    (text,) = re.findall(r"^## CuPy to vkops\n(.*?)^## ", page, re.M | re.S)
    lines = [line for line in text.splitlines() if line[:2] == "| " and line[:3] != "| *"]
    rows = [line.strip("| ").split(" | ") for line in lines[1:]]
    named = [name for left, _ in rows for name in re.findall(r"`([^`]+)`", left)]
    assert set(GUIDE.split()) - {*named} == set()
    assert len(named) == len({*named})
    owners = {
        "vkops": vkops, "numpy": np, "tensor": places["Tensor"], "device": places["Device"],
    }  # fmt: skip
    variables = " ".join(path.read_text("utf-8") for path in (ROOT / "vkops").rglob("*.py"))
    count = 0
    for left, right in rows:
        for code in re.findall(r"`([^`]+)`", right):
            for owner, path in re.findall(r"\b(vkops|numpy|tensor|device)\.(\w+(?:\.\w+)*)", code):
                look_up(owners[owner], path)
                count += 1
            for variable in re.findall(r"VKOPS_[A-Z_]+", code):
                assert variable in variables
        if "`" in left:
            assert "`" in right or right.startswith(("none", "the same")), right
    assert count > 60


def test_texts(places, device):
    texts = {
        (
            "vkops",
            "RawKernel",
        ): ": use device.compile_shader(source), with GLSL, HLSL, Slang or SPIR-V",
        ("vkops", "array"): ": use vkops.asarray",
        ("vkops", "int_"): ": use numpy.int_",
        ("vkops", "size"): ": use tensor.size",
        ("vkops", "cov"): ": use numpy.cov on tensor.numpy()",
        ("Buffer", "size"): ": use .nbytes, or .shape",
        (
            "Device",
            "create_render_pipeline",
        ): ": there is no replacement: vkops runs compute shaders, and draws nothing",
        ("Tensor", "get_async"): ": use tensor.numpy()",
        ("Tensor", "tofile"): ": use .numpy().tofile",
        ("Device", "no_such"): "",
        ("Tensor", "no_such"): "",
    }
    for (place, name), text in texts.items():
        assert _error(places[place], name) == text
    assert hint("__get__") == ""


def test_cost():
    """Names with underscores, which NumPy and others look for, and modules read no table."""
    program = """
import sys, vkops
assert not hasattr(vkops, "__array_interface__") and not hasattr(vkops, "_private")
from vkops import console
assert "vkops.arguments.other_names" not in sys.modules and "numpy" not in sys.modules
import numpy as np
from vkops.arguments.other_names import table
x = vkops.asarray([1, 2])
np.stack([np.asarray(x), x])
assert not hasattr(x, "__array_interface__") and not hasattr(x.device, "_private")
assert table.cache_info().currsize == 0
assert not hasattr(x, "absent")
assert table.cache_info().currsize == 1
"""
    assert outcome("-c", program)[0] == 0


@pytest.mark.parametrize("kind", IN_EACH_CALL)
def test_classes_that_each_call_uses_have_no_getattr(kind):
    assert not hasattr(kind, "__getattr__")
