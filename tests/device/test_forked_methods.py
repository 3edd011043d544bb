"""What a forked child has inherited: whatever would use a device raises a DeviceError at once.

Meanwhile a thread of the parent, which the child does not have, holds every lock of vkops.
"""

import asyncio
import gc
import inspect
import json
import re
import signal
import threading
import weakref
from contextlib import ExitStack, contextmanager

import numpy as np
import onnx
import pytest
from adapters import require_sharing
from compiled_operators import reverse
from forked_children import REFUSED, in_child

import vkops
from vkops import dml
from vkops.gpu.run.pending import BackgroundTask
from vkops.plan.view import View
from vkops.system import threads
from vkops.tensors.array_plan import copy_view

pytestmark = pytest.mark.posix("forks")

SECONDS = 10.0
"""How long a call may take."""

NO_ADDRESS = "DeviceError: the tensor has no address: it is in memory of the host"
WORDS = np.arange(4, dtype=np.int32)
SHADER = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { int x[]; };
void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] = 1; }"""
MODEL = """<ir_version: 8, opset_import: ["" : 13]>
g (int32[N] x) => (int32[M] y) { y = Concat <axis = 0> (x, x) }"""
DESC = dml.BufferTensorDesc(dml.TensorDataType.INT32, [4])
IDENTITY = dml.ElementWiseIdentityOperatorDesc(DESC, DESC)


class Case:
    """An object, and the arguments of its methods, or a call of one; others take none.

    ``answers`` are the names that need no device; ``last`` are those that release the object, which
    are called after all others; ``names`` are those that are called, if not all.
    """

    def __init__(self, make, answers="", arguments=lambda device: {}, last="", names=""):
        self.make, self.arguments = make, arguments
        self.answers, self.last, self.names = answers.split(), last.split(), names.split()


BINARY = "add sub mul truediv floordiv mod divmod pow and or xor lshift rshift"


def shared_handle(device):
    require_sharing(device)
    return device.tensor(WORDS, shared=True).share()


def of_tensor(device):
    binary = BINARY.split()
    x, at = device.tensor(WORDS), np.arange(2)
    operators = [
        *binary,
        *[f"r{each}" for each in binary],
        *[f"i{each}" for each in binary if each != "divmod"],
    ]
    return {
        **{
            f"__{each}__": [1]
            for each in (
                *operators,
                "matmul",
                "rmatmul",
                "imatmul",
                "lt",
                "le",
                "gt",
                "ge",
                "contains",
            )
        },
        "__array_function__": [np.flip, [vkops.Tensor], [x], {}],
        "__array_ufunc__": [np.add, "__call__", x, 1],
        "__deepcopy__": [{}],
        "__eq__": [1],
        "__format__": [""],
        "__getitem__": [at],
        "__ne__": [1],
        "__setitem__": [0, 1],
        "astype": ["float32"],
        "broadcast_to": [(2, 2, 2)],
        "expand_dims": [0],
        "fill": [1],
        "from_array": [device, WORDS],
        "item": [0, 0],
        "make": [copy_view(View.packed((4,)), 4), device, [x], [x.dtype]],
        "moveaxis": [0, 1],
        "over": [device, x.buffer, (4,), x.dtype],
        "reshape": [4],
        "set": [1],
        "squeeze": [()],
        "swapaxes": [0, 1],
        "to": [device.info.index],
        "to_device": [device.info.index],
        "view": ["uint32"],
    }


def of_device(device):
    operator = device.create_operator(IDENTITY)
    return {
        "buffer": [16],
        "check_feature_support": [dml.FeatureQueryFeatureLevels(["1_0"])],
        "compile_graph": [[dml.identity(dml.input_tensor(dml.Graph(), 0, DESC))]],
        "compile_operator": [operator],
        "compile_shader": [SHADER],
        "create_operator": [IDENTITY],
        "empty": [4],
        "fits": [1 << 30],
        "from_kompute": [None],
        "host_buffer": [16],
        "image": [(4, 4)],
        "pinned": [4],
        "pinned_like": [WORDS],
        "shares_memory_with": [device],
        "submit": [[object()]],
        "tensor": [WORDS],
        "wait": [1],
    }


def of_buffer(device):
    return {
        "array": [], "clone": [0, 16], "fill": [WORDS], "fill_with": [[WORDS]], "is_on": [device],
        "memory_view": [0, 16], "write": [bytes(16)],
    }  # fmt: skip


def of_operator(device):
    x, y = device.buffer(16), device.buffer(16)
    return {"bind": [[x], [y]], "dispatch": [[x], [y]], "initialize": [[None]]}


def of_shader(device):
    x = device.tensor(WORDS)
    return {
        "__call__": lambda shader: shader(x, threads=4), "bound": [{"X": x}], "dispatch": [{"X": x}]
    }  # fmt: skip


def of_kernel(device):
    return {"__call__": [device.tensor(WORDS)]}


def recorded(device):
    with device.record() as program:
        vkops.flip(device.tensor(WORDS)).copy()
    return program


def of_image(device):
    form = device.image((4, 4), "float32").part.memory.form
    return {"__getitem__": [0], "__setitem__": [..., 1], "mip": [0], "set": [1], "viewed": [form]}


async def awaited(event):
    await event


DESCRIBED = "shape ndim size nbytes __len__ __repr__"
TENSOR = f"""
{DESCRIBED} T __array_function__ __array_namespace__ __dlpack_device__ __enter__ __exit__ __format__
__iter__ __sizeof__ base broadcast_to buffer device device_address diagonal dtype expand_dims flags
flip is_read_only itemsize mT moveaxis over owns_buffer pack placed ravel release reshape rot90
squeeze strides swapaxes transpose view words"""
BUFFER = "__repr__ flush is_coherent is_on layout memory_view nbytes shown visible"
CASES = {
    "Tensor": Case(
        lambda device: device.tensor(WORDS.reshape(2, 2)), TENSOR, of_tensor, "release __exit__"
    ),
    "Tensor without dimensions": Case(
        lambda device: device.tensor(np.int32(1)),
        names="__bool__ __complex__ __float__ __index__ __int__",
    ),
    "Tensor on the host": Case(
        lambda device: vkops.Tensor.from_array(device, WORDS.reshape(2, 2), on_host=True),
        TENSOR.replace("device_address", "is_ready"),
        of_tensor,
        "release __exit__",
    ),
    "Image": Case(
        lambda device: device.image(np.zeros((4, 4), np.float32), mips=2),
        f"{DESCRIBED} __getitem__ has_layers mip viewed",
        of_image,
    ),
    "Sampler": Case(lambda device: device.sampler(), "__repr__ is_on", lambda d: {"is_on": [d]}),
    "Buffer": Case(
        lambda device: device.buffer(16),
        f"{BUFFER} allocation device_address extents is_addressed",
        of_buffer,
    ),
    "HostBuffer": Case(lambda device: device.host_buffer(16), f"{BUFFER} bytes pending", of_buffer),
    "CompiledOperator": Case(
        lambda device: reverse(device, 16), "__repr__ bind binding_properties", of_operator
    ),
    "BoundOperator": Case(
        lambda device: reverse(device, 16).bind([device.buffer(16)], [device.buffer(16)]),
        "__repr__",
    ),
    "BoundOperator that streams": Case(
        lambda device: reverse(device, 16).bind([device.host_buffer(16)], [device.host_buffer(16)]),
        "__repr__",
    ),
    "Pending": Case(
        lambda device: reverse(device, 16).dispatch(
            [device.buffer(16)], [device.buffer(16)], wait=False
        ),
        "__getnewargs__ __repr__ device number",
    ),
    "CompiledShader": Case(lambda device: device.compile_shader(SHADER), "__repr__", of_shader),
    "BoundShader": Case(
        lambda device: device.compile_shader(SHADER).bound({"X": device.buffer(16)}),
        "__repr__ __enter__ __exit__",
    ),
    "RecordedProgram": Case(recorded, "__repr__ close steps", last="close"),
    "Profile": Case(
        lambda device: vkops.profile(),
        "__enter__ __exit__ __repr__ __str__ by_call by_kernel calls save",
        lambda device: {"save": ["trace.json"]},
        "save",
    ),
    "Device": Case(
        lambda device: device,
        "__enter__ __exit__ __repr__ check_feature_support close closed cooperative_matrices "
        "create_operator features host_buffer info limits name same_bits",
        of_device,
        "close __exit__",
    ),
    "Event": Case(
        lambda device: device.tensor(WORDS).numpy(out=device.pinned_like(WORDS), wait=False),
        "__repr__",
        lambda device: {"__await__": lambda event: asyncio.run(awaited(event))},
    ),
    "SharedHandle": Case(
        shared_handle,
        "__reduce__ __repr__ dtype of shape",
        lambda device: {"of": lambda handle: None, "opened": [device]},
    ),
    "DeviceHandles": Case(
        lambda device: device.handles,
        "__repr__",
        lambda device: {"locked": lambda handles: handles.locked().__enter__()},
    ),
    "KomputeManager": Case(
        lambda device: device.kompute,
        "__repr__",
        lambda device: {
            "tensor": [[1.0]],
            "tensor_t": [WORDS],
            "algorithm": [[], b""],
            "run": [],
            "memory": [None],
        },
    ),
    "Philox": Case(
        lambda device: vkops.kernels.random.Philox(1),
        "__repr__ position",
        lambda device: {
            "choice": [9],
            "integers": [9],
            "permutation": [9],
            "shuffle": [device.tensor(WORDS)],
        },
    ),
    "Session": Case(
        lambda device: vkops.onnx.Session(onnx.parser.parse_model(MODEL), device),
        "__repr__ get_inputs get_modelmeta get_outputs get_overridable_initializers get_provider_options "
        "get_providers get_session_options specialize",
        lambda device: {"run": [{"x": WORDS}], "specialize": [{"x": WORDS}]},
    ),
    "ElementwiseKernel": Case(
        lambda device: vkops.ElementwiseKernel("int32 x", "int32 z", "z = x"),
        "__repr__ source",
        of_kernel,
    ),
    "ReductionKernel": Case(
        lambda device: vkops.ReductionKernel("int32 x", "int32 z", "x", "a + b", "z = a", "0"),
        "__repr__",
        of_kernel,
    ),
    "ScanKernel": Case(
        lambda device: vkops.ScanKernel("int32 x", "int32 z", "x", "a + b", "z = item", "0"),
        "__repr__",
        of_kernel,
    ),
}

INHERITED = {
    *("__init__", "__new__", "__dir__", "__getattr__", "__init_subclass__"),
    "__replace__",  # of dataclasses from Python 3.13 on
    *("__annotate_func__", "__annotate__"),  # of Python 3.14, for itself
}


def public_names(kind):
    """What vkops defines in a class: public attributes, and the methods that Python calls."""
    for each in kind.__mro__:
        for name, value in vars(each).items() if each.__module__.startswith("vkops") else ():
            is_called = name.startswith("__") and name.endswith("__") and inspect.isfunction(value)
            if (is_called or not name.startswith("_")) and name not in INHERITED:
                yield name


def late(*_):
    """A handler of alarms."""
    raise TimeoutError


def outcome(one, name, arguments):
    """The error of an attribute or a call, or its result."""

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        if callable(arguments):
            result = arguments(one)
        else:
            result = getattr(one, name)
            result = result(*arguments) if callable(result) else result
        if inspect.isawaitable(result):
            result = asyncio.run(result)
        if inspect.isgenerator(result):
            result = list(result)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return f"answers {result!r:.40}"


def host_buffers(one):
    """The host memory that an object uses."""
    if isinstance(one, vkops.Tensor):
        return host_buffers(one.buffer)
    if isinstance(one, vkops.BoundOperator):
        one = [extent.resource for extent in one.tensors.values()]
    return [
        each
        for each in (one if isinstance(one, list) else [one])
        if isinstance(each, vkops.HostBuffer)
    ]


@contextmanager
def everything_is_held(buffers):
    """In this block, another thread holds all locks, and a stream uses the host's memory."""
    ready, end = threading.Event(), threading.Event()

    def hold():
        with ExitStack() as stack:
            for lock in threads.locks:
                stack.enter_context(lock)
            ready.set()
            end.wait()

    stream = BackgroundTask(end.wait)
    for buffer in buffers:
        buffer.pending = stream
    stream.start()
    holder = threading.Thread(target=hold)
    holder.start()
    ready.wait()
    try:
        yield
    finally:
        end.set()
        holder.join()
        stream.wait()


def lacks(device, text):
    """Whether a text names features of which the device has none."""
    named = re.findall(r"\b(?:shader|buffer)[A-Z]\w+", text)
    return bool(named) and device.features.isdisjoint(named)


@pytest.mark.parametrize("title", CASES)
def test_what_uses_a_device_raises_at_once(device, title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASES[title]
    one, arguments = case.make(device), case.arguments(device)
    every = case.names or sorted({*public_names(type(one))})
    names = [*(name for name in every if name not in case.last), *case.last]
    assert {*case.answers, *case.last, *arguments} <= {*every}

    def work():
        return json.dumps({name: outcome(one, name, arguments.get(name, [])) for name in names})

    with everything_is_held(host_buffers(one)):
        found = json.loads(in_child(work))
    for name, said in found.items():
        refuses = name.startswith("__") and said.startswith("InvalidDesc")
        if name in case.answers:
            assert said.startswith("answers ") or lacks(device, said), (name, said)
        elif not refuses and not lacks(device, said):
            assert said in (REFUSED, NO_ADDRESS), (name, said)


def test_what_began_before_the_fork(adapter):
    with vkops.Device(adapter.index) as device:
        measured, profile, program = device.measure_dispatches(), vkops.profile(), device.record()
        with profile, program:
            uses = measured, profile.__exit__, lambda: program.__exit__(None, None, None)
            with everything_is_held([]):
                assert [in_child(use) for use in uses] == [REFUSED] * len(uses)
        measured(stop=True)


@pytest.mark.parametrize("title", CASES)
def test_objects_are_freed_without_a_lock(device, title):
    one = CASES[title].make(device)
    freed = weakref.ref(one) if getattr(type(one), "__weakrefoffset__", 0) else lambda: None
    with everything_is_held([]):
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            del one
            gc.collect()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert title == "Device" or freed() is None
