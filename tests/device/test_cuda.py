"""Memory that CUDA sees, too: lavapipe's device as a device of an imitated CUDA (tests/imitated/cuda.c).

The package cuda-bindings calls it as it calls NVIDIA's driver. Where semaphores are exported, the layer does so.
"""

from importlib.util import find_spec

import pytest
from adapters import require_sharing
from imitated import CUDA, START, cuda_environment, run

pytestmark = [
    pytest.mark.memory,
    pytest.mark.posix("file descriptors"),
    pytest.mark.system("cc"),
    pytest.mark.skipif(find_spec("cuda") is None, reason="needs cuda-bindings"),
]

KINDS = ["", "discrete", "integrated"]
BOTH = pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])


@pytest.fixture
def program(adapter, device):
    """Runs a program with the imitated CUDA, and returns what it prints."""
    require_sharing(device)
    uuid = device.vulkan.uuids[0].hex()

    def run_with_cuda(text, kind="", ordered=True, mode="direct", **variables):
        chosen = {**cuda_environment(uuid, ordered=ordered), **variables}
        done = run(START + CUDA + text, adapter.index, mode, kind=kind, **chosen)
        return done.stdout

    return run_with_cuda


SEEN = """
X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
x = device.tensor(X, shared=True)
assert x.__dlpack_device__() == (2, 1)
views = (x, x[1:], x.T, x[:, ::2, 1], x.broadcast_to((2, 2, 3, 4))[0], x.view("float32"))
for options in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0)}):
    for view in views:
        shown, where = seen(view, **options)
        assert where == (2, 1)
        assert shown.tobytes() == view.numpy().tobytes() and shown.dtype == view.dtype, options
shown, _ = seen(x)
before = x.numpy()
shown[1, 2] = -7  # as CUDA would
device.wait_stream()
assert x.tolist()[1][2] == [-7] * 4 and before.min() == 0
x[0] = 5
assert (seen(x)[0][0] == 5).all() and (shown[0] == 5).all()
copied, _ = seen(x, copy=True)
copied[...] = 0
device.wait_stream()
assert (x[0].numpy() == 5).all() and (x[1, 2].numpy() == -7).all()
for view in (x[::-1], x.broadcast_to((2, 2, 3, 4))):
    shown, where = seen(view)
    assert where == (2, 1) and (shown == view.numpy()).all() and min(shown.strides) >= 0
assert np.asarray(x).sum() == x.numpy().sum()
assert np.from_dlpack(x, device="cpu").sum() == x.numpy().sum()
small = vkops.asarray([1.5], "float16", device=device)
assert small.__dlpack_device__() == (1, 0) == device.empty(0, shared=True).__dlpack_device__()
assert np.from_dlpack(small).tolist() == [1.5]
with vkops.Device(index, shared=True) as whole:
    y = vkops.flip(whole.tensor(X)).copy()
    assert (seen(y)[0] == np.flip(X)).all()
print(cuda.imitated_contexts())
"""


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_sees_the_memory_itself(program, kind, ordered):
    assert program(SEEN, kind, ordered) == "0\n"


CHAIN = """
N = 100_003
source, out = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
x = device.empty(N, "int32", shared=True)
pointer = seen(x)[0].ctypes.data
first, second = stream(), stream()
device.synchronize()
waits = count("waits")
hold(first, ordered)  # all else goes on
copy_in(first, pointer, source)
device.wait_stream(int(first))
y = device.empty(N, "int32", shared=True)
y[...] = vkops.flip(x)
shown = seen(y, ready=False, stream=int(second))[0]
copy_in(second, out.ctypes.data, shown)
time.sleep(0.2)
if ordered:
    print(x.is_ready, y.is_ready, out.any(), count("waits") - waits)
hold(first, False)
call_cuda("cuStreamSynchronize", second)
print((out == source[::-1]).all(), (y.numpy() == out).all(), (x.numpy() == source).all())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_cuda_and_vulkan_wait_for_each_other_on_the_device(program, kind):
    """A stream that is held lets all wait that comes after it, in both, but not the host."""
    said = program("ordered = True\n" + CHAIN, kind)
    assert said == "False False False 0\nTrue True True\n"


def test_without_semaphores_the_host_waits(program):
    """Here, no stream is held when the host begins to wait."""
    text = "ordered = False\n" + CHAIN + 'print(count("waits") - waits)'
    said = program(text, ordered=False)
    assert said == "True True True\n2\n"


def test_a_consumer_can_ask_for_no_order(program):
    said = program("""
x = device.tensor(np.arange(4), shared=True)
seen(x)
hold(1, True)
device.wait_stream(1)
x[...] = device.tensor([3])
seen(x, ready=False, stream=-1)
print(x.is_ready)
hold(1, False)
print(x.tolist())
""", "discrete")  # fmt: skip
    assert said == "False\n[3, 3, 3, 3]\n"


IMPORTED = """
import ml_dtypes, weakref
X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
arrays = [
    X, X.T, X[::-1, :, ::2], np.array(7, np.int32), X[:0], X > 4, X.astype(complex),
    X.astype(np.uint8)[..., 1:], np.broadcast_to(X[0], (2, 3, 4)).copy()[:, ::-1],
]
for array in arrays:
    foreign = Foreign(array)
    result = vkops.from_dlpack(foreign, device=device)
    assert foreign.asked == [device.vulkan.cuda.stream], foreign.asked
    assert result.dtype == array.dtype and result.shape == array.shape
    assert result.numpy().tobytes() == array.tobytes()
    assert (vkops.flip(result).numpy() == np.flip(array)).all()
assert vkops.from_dlpack(Foreign(X), device=device).__dlpack_device__() == (2, 1)
half = Foreign(X.astype(np.uint16), code=4)
assert vkops.from_dlpack(half, device=device).dtype == ml_dtypes.bfloat16
copied = ctypes.c_uint64.in_dll(cuda, "imitated_copied")
device.synchronize()  # which waits for all copies until now
copied.value = 0
other = Foreign(X, number=0)  # another GPU: by the host
assert vkops.from_dlpack(other, device=device).tolist() == X.tolist()
assert other.asked == [None] and not copied.value
with device.record() as program:
    z = vkops.flip(vkops.from_dlpack(Foreign(X), device=device))
program.run()
assert (z.numpy() == np.flip(X)).all() and not copied.value
big = np.arange(1 << 20, dtype=np.int32)
hold(device.vulkan.cuda.stream, ordered)
foreign = Foreign(big.copy())
alive = weakref.ref(foreign.array)
result = vkops.from_dlpack(foreign, device=device)
del foreign
gc.collect()
print(alive() is not None, copied.value)
part = vkops.roll(result[::2], 1)
del result  # its memory must remain until CUDA has written it
gc.collect()
hold(device.vulkan.cuda.stream, False)
print((part.numpy() == np.roll(big[::2], 1)).all(), copied.value)
until = time.monotonic() + 10
while alive() is not None and time.monotonic() < until:
    time.sleep(0.01)
print(alive() is None, cuda.imitated_contexts())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_cuda_is_copied_on_the_device(program, kind):
    said = program("ordered = 1\n" + IMPORTED, kind)
    assert said == f"True 0\nTrue {4 << 20}\nTrue 0\n"


def test_without_semaphores_the_copy_is_waited_for(program):
    said = program("ordered = 0\n" + IMPORTED, ordered=False)
    assert said == f"False {4 << 20}\nTrue {4 << 20}\nTrue 0\n"


@BOTH
def test_the_array_interface(program, ordered):
    said = program("""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
x = device.tensor(X, shared=True)
whole, view = x.__cuda_array_interface__, x.T[1:].__cuda_array_interface__
assert whole["stream"] == view["stream"] == device.vulkan.cuda.stream
pointer = seen(x)[0].ctypes.data
assert whole["data"] == (pointer, False) and view["data"] == (pointer + 4, False)
assert x.broadcast_to((2, 2, 3)).__cuda_array_interface__["data"] == (pointer, True)
for name in ("data", "stream"):
    del whole[name], view[name]
print(whole, view)
print(hasattr(x, "__cuda_array_interface__"), hasattr(device.tensor(X), "__cuda_array_interface__"))
print(call(lambda: device.tensor(X).__cuda_array_interface__))
""", ordered=ordered)  # fmt: skip
    assert said == (
        "{'shape': (2, 3), 'typestr': '<f4', 'strides': None, 'version': 3} "
        "{'shape': (2, 2), 'typestr': '<f4', 'strides': (4, 12), 'version': 3}\n"
        "True False\n"
        "AttributeError: vkops.Tensor has no attribute '__cuda_array_interface__': CUDA sees only "
        "tensors that were made with shared=True, or on a device that was opened with it\n"
    )


REFUSED = """
x = device.tensor(np.arange(6).reshape(2, 3), shared=True)
for use in (
    lambda: x.__dlpack__(stream=0),
    lambda: x.__dlpack__(stream="no"),
    lambda: x.__dlpack__(stream=-2),
    lambda: device.wait_stream(-1),
    lambda: x.__dlpack__(dl_device=(2, 0)),
    lambda: x.__dlpack__(dl_device=(1, 0), stream=1),
    lambda: x[::-1].__dlpack__(copy=False),
    lambda: x.broadcast_to((2, 2, 3)).__dlpack__(copy=False),
    lambda: device.tensor([1]).__dlpack__(dl_device=(2, 1)),
    lambda: device.tensor(np.zeros(2, "M8[s]"), shared=True).__dlpack__(),
):
    print(call(use))
with device.record():
    print(call(x.__dlpack__))
    print(call(device.wait_stream))
released = device.tensor([1], shared=True)
released.release()
print(call(lambda: released.__dlpack__(dl_device=(2, 1))))
device.close()
print(call(x.__dlpack__))
"""


def test_what_is_refused(program, message):
    for line in program(REFUSED).splitlines():
        assert line.partition(":")[0] in {
            "InvalidDescTypeError",
            "InvalidDescBufferError",
            "DeviceError",
        }
        # Newer versions of NumPy add this to their message.
        message(line.replace(" (or dtypes registered by third-party packages)", ""))


WANTED = """
x = device.tensor([1, 2], shared=True)
print(call(lambda: x.__dlpack__(dl_device=(2, 0))))
print(call(device.wait_stream))
print(call(lambda: x.__cuda_array_interface__))
print(x.__dlpack_device__(), np.from_dlpack(x).tolist())
"""


@pytest.mark.parametrize(
    ("start", "variables", "missing"),
    [
        ("sys.modules['cuda.bindings.driver'] = None\n", {}, "it needs the package cuda-bindings ("),
        ("", {"LD_LIBRARY_PATH": ""}, "CUDA cannot be used: "),
        ("cuda.imitated_fail(b'cuInit')\n", {},
         "CUDA cannot be used: cuInit of CUDA failed: CUDA_ERROR_NO_DEVICE"),
        ("", {"VKOPS_IMITATED_CUDA": "12" * 16}, "no device of CUDA has the UUID of "),
        ("cuda.imitated_fail(b'cuImportExternalSemaphore')\n", {},
         "CUDA cannot be used: cuImportExternalSemaphore of CUDA failed: CUDA_ERROR_INVALID_VALUE"),
    ],
    ids=["package", "driver", "device", "UUID", "semaphores"],
)  # fmt: skip
def test_errors_say_what_is_missing(program, start, variables, missing):
    """All else goes as without CUDA."""
    dlpack, waited, interface, last = program(start + WANTED, **variables).splitlines()
    assert dlpack.startswith(
        f"InvalidDescBufferError: __dlpack__ dl_device: got (2, 0), which is CUDA's: {missing}"
    )
    assert dlpack.endswith("[ARRAY-11]")
    assert waited.startswith(f"DeviceError: {missing}")
    assert interface.startswith(
        f"AttributeError: vkops.Tensor has no attribute '__cuda_array_interface__': {missing}"
    )
    assert last == "(1, 0) [1, 2]"


@pytest.mark.parametrize(
    "function", ["cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer", "cuStreamSynchronize",
                 "cuMemcpyDtoDAsync"],
)  # fmt: skip
def test_a_call_of_cuda_that_fails_leaves_nothing(program, function):
    said = program(f"""
seen(device.tensor([1], shared=True))
gc.collect()
x = device.tensor([1, 2], shared=True)
from processes import descriptors, more_descriptors
before = descriptors()
cuda.imitated_fail(b"{function}")
uses = [lambda: seen(x, ready=False), device.wait_stream, lambda: vkops.from_dlpack(Foreign(np.arange(3)), device=device)]
said = [each for each in map(call, uses) if isinstance(each, str)]
cuda.imitated_fail(b"")
gc.collect()
device.synchronize()  # which frees memory that was still to be zeroed
device.memory_report()
print(more_descriptors(before), cuda.imitated_contexts())
print(*sorted(set(said)))
print(vkops.from_dlpack(Foreign(np.arange(3)), device=device).tolist(), seen(x)[0].tolist())
""", ordered=False)  # fmt: skip
    assert said == (
        f"0 0\nDeviceError: {function} of CUDA failed: CUDA_ERROR_INVALID_VALUE\n[0, 1, 2] [1, 2]\n"
    )


@BOTH
def test_memory_lives_as_long_as_either_side_uses_it(program, ordered):
    said = program("""
x = device.tensor(np.arange(1000), shared=True)
shown, again = seen(x)[0], seen(x[3:])[0]
print(count("memories"))
del x
gc.collect()
print(shown.sum() == 499500, again[0], count("memories"), device.memory_report().heaps)
del shown
print(again[1], count("memories"))
del again
print(count("memories"), device.memory_report().heaps)
y = device.tensor(np.arange(1000), shared=True)
shown = seen(y)[0]
interface = y.__cuda_array_interface__
device.close()
print(shown[7], count("memories"), call(lambda: seen(y)).split(":")[0])
del shown, y
print(count("memories"), count("semaphores"))
""", ordered=ordered)  # fmt: skip
    semaphores = 2 if ordered else 0
    assert said == f"1\nTrue 3 1 1\n4 1\n0 0\n7 1 DeviceError\n0 {semaphores}\n"


def test_a_lost_device(program):
    said = program("""
x = device.tensor([1, 2], shared=True)
shown = seen(x)[0]
layer().lose(b"vkQueueSubmit")
print(call(lambda: seen(x)).split(":")[0], call(device.wait_stream).split(":")[0], shown.tolist())
print(call(lambda: vkops.from_dlpack(Foreign(np.arange(3)), device=device)).split(":")[0])
""")
    assert said == "DeviceError DeviceError [1, 2]\nDeviceError\n"


def test_a_forked_child(program):
    """It uses neither, and frees nothing of CUDA's."""
    said = program("""
x = device.tensor([1, 2], shared=True)
shown = seen(x)[0]
child = os.fork()
if not child:
    print(call(lambda: x.__dlpack__()).split(";")[0], flush=True)
    del shown
    print(count("memories"), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(shown.tolist(), seen(x)[0].tolist())
""")
    assert said == (
        "DeviceError: this process was forked off one that had opened a Vulkan device, and drivers do not "
        "survive that\n1\n[1, 2] [1, 2]\n"
    )


@BOTH
def test_many_threads(program, ordered):
    """Each exchanges tensors with CUDA in both directions, in a stream of its own."""
    said = program("""
from concurrent.futures import ThreadPoolExecutor
def work(seed):
    own, rng = stream(), np.random.default_rng(seed)
    for _ in range(10):
        source, out = rng.integers(0, 1000, 5003, np.int32), np.zeros(5003, np.int32)
        x = vkops.from_dlpack(Foreign(source), device=device)
        y = device.empty(5003, "int32", shared=True)
        y[...] = vkops.flip(x)
        shown = seen(y, ready=False, stream=int(own))[0]
        copy_in(own, out.ctypes.data, shown)
        copy_in(own, shown.ctypes.data, source)
        device.wait_stream(int(own))
        z = vkops.roll(y, 1).numpy()
        call_cuda("cuStreamSynchronize", own)
        assert (out == source[::-1]).all() and (z == np.roll(source, 1)).all()
    return cuda.imitated_contexts()
with ThreadPoolExecutor(4) as pool:
    print(*pool.map(work, range(4)))
gc.collect()
until = time.monotonic() + 10
while count("memories") and time.monotonic() < until:
    time.sleep(0.01)
print(count("memories"))
""", ordered=ordered)  # fmt: skip
    assert said == "0 0 0 0\n0\n"


def test_the_queue_for_transfers_ends_where_semaphores_begin(program):
    """Nothing orders it and CUDA."""
    said = program("""
print(device.vulkan.native.transfers)
x = device.tensor(np.arange(1000), shared=True)
print(seen(x)[0].sum(), device.vulkan.native.transfers, x.numpy().sum())
""", "discrete", mode="staged", VKOPS_TRANSFER_QUEUE="1", VKOPS_TRANSFER_FAMILY="1")  # fmt: skip
    assert said == "True\n499500 False 499500\n"
