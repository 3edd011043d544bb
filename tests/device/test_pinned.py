"""Pinned arrays, and transfers that return early."""

import asyncio
import gc
import json
import threading

import numpy as np
import pytest
from forked_children import REFUSED, in_child
from processes import python

import vkops
from vkops.gpu.memory import pinned as registry

pytestmark = pytest.mark.memory

N = 300_001
X = np.random.default_rng(0).integers(0, 256, N, np.uint8)


@pytest.fixture(params=["mapped", "staged"])
def home(request, adapter):
    with vkops.Device(adapter.index, staged=request.param == "staged") as device:
        yield device


def pinned_copy(device, array):
    result = device.pinned_like(array)
    result[...] = array
    return result


def test_an_array_has_a_shape_and_a_dtype_and_is_counted_while_it_has_views(home):
    before = home.memory_report()
    array = home.pinned((3, 5), "int16")
    assert type(array) is np.ndarray
    assert array.shape == (3, 5)
    assert array.dtype == np.int16
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert array.ctypes.data % 64 == 0
    assert home.memory_report().used >= before.used + array.nbytes
    assert home.memory_report().heaps == before.heaps + 1
    view = memoryview(array[1:, 2])
    del array
    gc.collect()
    assert home.memory_report().heaps == before.heaps + 1
    del view
    gc.collect()
    assert home.memory_report() == before
    assert not registry._living


def test_arrays_like_others(home):
    tensor = home.tensor(np.zeros((2, 3), np.float32))
    for like in (tensor, tensor.T, [[1, 2]], X[:4]):
        shape = np.shape(like) if not isinstance(like, vkops.Tensor) else like.shape
        assert home.pinned_like(like).shape == shape
    assert home.pinned(0).shape == (0,)
    assert home.pinned((2, 0), "i4").nbytes == 0


@pytest.mark.parametrize("start", [0, 1, 255, 256])
def test_all_ways_to_and_from_a_pinned_array(home, start):
    array, out = pinned_copy(home, X), home.pinned_like(X)
    part = array[start:]
    tensor = home.tensor(part)
    assert (tensor.numpy() == X[start:]).all()
    out[:] = 7
    assert tensor.numpy(out=out[start:]) is not None
    assert (out[start:] == X[start:]).all()
    assert (out[:start] == 7).all()
    tensor[...] = X[start:][::-1]
    array[start:] = X[start:][::-1]
    assert (tensor.numpy(out=np.zeros(N - start, np.uint8)) == part).all()
    tensor[5:-7] = part[5:-7][::2].repeat(2)[: N - start - 12]
    expected = part.copy()
    expected[5:-7] = part[5:-7][::2].repeat(2)[: N - start - 12]
    assert (tensor.numpy(out=out[start:]) == expected).all()


def test_when_they_return_the_host_may_read_or_write(home):
    array, out = pinned_copy(home, X), home.pinned_like(X)
    tensor = home.tensor(array)
    array[:] = 1
    assert (tensor.numpy() == X).all()
    array[:] = X[::-1]
    tensor[...] = array
    array[:] = 2
    for _ in range(3):
        tensor = vkops.flip(tensor).copy()
    assert (tensor.numpy(out=out) == X).all()
    buffer = home.buffer(N)
    array[:] = X
    buffer.write(array)
    array[:] = 3
    assert buffer.read() == X.tobytes()


def test_views_of_tensors_and_arrays_that_are_not_contiguous(home):
    x = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    tensor, out = home.tensor(x), home.pinned((3, 4, 5), "i4")
    assert tensor.T.numpy(out=home.pinned((5, 4, 3), "i4")).tolist() == x.T.tolist()
    assert tensor[:, ::2].numpy(out=out[:, 1::2]).tolist() == x[:, ::2].tolist()
    assert tensor[..., ::-1].numpy(out=out[..., ::-1]).tolist() == x[..., ::-1].tolist()
    event = tensor[1:].numpy(out=out[1:], wait=False)
    event.wait()
    assert out[1:].tolist() == x[1:].tolist()
    other = home.empty((5, 4, 3), "i4")
    other.set(pinned_copy(home, x).T, wait=False).wait()
    assert other.numpy().tolist() == x.T.tolist()
    assert home.tensor(x[:0]).numpy(out=x[:0].copy()).shape == (0, 4, 5)


def test_early_returns_with_events(home):
    array, out = pinned_copy(home, X), home.pinned_like(X)
    tensor, sent = home.tensor(array, wait=False)
    turned = vkops.flip(tensor).copy()
    event = turned.numpy(out=out, wait=False)
    turned[...] = 0  # later
    event.wait()
    assert sent.done
    assert event.done
    assert (out == X[::-1]).all()

    async def both():
        array[:] = X
        first = tensor.set(array, wait=False)
        second = tensor.numpy(out=out, wait=False)
        await asyncio.gather(wait_for(second), wait_for(first))
        await home.event()

    async def wait_for(event):
        await event
        assert event.done

    asyncio.run(both())
    assert (out == X).all()


def test_ordinary_arrays_are_copied_before_calls_with_wait_false_return(home):
    source, out = X.copy(), np.zeros_like(X)
    tensor, event = home.tensor(source, wait=False)
    assert event.done
    source[:] = 0
    event = tensor.numpy(out=out, wait=False)
    assert event.done
    assert (out == X).all()
    event = tensor.set(7, wait=False)
    assert event.done
    assert set(tensor.tolist()) == {7}


def test_other_arrays_over_pinned_memory_are_found(home):
    array = pinned_copy(home, X)
    for view in (np.frombuffer(array.data, np.uint8), np.from_dlpack(array), array.view("V1")):
        assert home.tensor(view, wait=False)[1]._number


def test_tensors_of_pytorch_over_pinned_memory_are_found(home):
    torch = pytest.importorskip("torch")
    assert home.tensor(torch.from_numpy(pinned_copy(home, X)), wait=False)[1]._number


def test_a_recorded_program_keeps_the_values_of_its_recording(home):
    array, tensor = pinned_copy(home, X), home.empty(N, np.uint8)
    with home.record() as program:
        assert tensor.set(array, wait=False).done
        array[:] = 0
        with pytest.raises(vkops.DeviceError, match="record: "):
            tensor.numpy(out=home.pinned_like(X))
    program.run()
    assert (tensor.numpy() == X).all()


@pytest.mark.parametrize("channels", [None, 3, 4])
def test_images(home, channels):
    shape = (9, 17) if channels is None else (9, 17, channels)
    x = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    array, out = pinned_copy(home, x), home.pinned(shape, "uint8")
    image = home.image(array)
    assert (image.numpy(out=out) == x).all()
    image[2:, 3:] = array[:-2, :-3]
    expected = x.copy()
    expected[2:, 3:] = x[:-2, :-3]
    image.numpy(out=out, wait=False).wait()
    assert (out == expected).all()
    image.set(array, wait=False).wait()
    array[...] = 0
    assert (image.numpy(out=np.zeros_like(x)) == x).all()
    assert image.set(image[...]).done
    with pytest.raises(vkops.InvalidDescError, match="NUMPY out: "):
        image.numpy(out=out[1:])


def test_what_is_refused(home, message):
    tensor = home.tensor(np.zeros((2, 3), np.int32))
    read_only = np.zeros((2, 3), np.int32)
    read_only.flags.writeable = False
    refused = {
        "out": [[1], np.zeros((3, 2), np.int32), np.zeros((2, 3)), read_only],
        "wait": [1, "no"],
    }
    for name, values in refused.items():
        for value in values:
            call = {"out": np.zeros((2, 3), np.int32), name: value}
            with pytest.raises(
                vkops.InvalidDescError, match=rf"NUMPY {name}: .*\[ARRAY-20\]"
            ) as raised:
                tensor.numpy(**call)
            message(str(raised.value))
    for call in (
        lambda: tensor.numpy(wait=False),
        lambda: tensor.set(0, wait=2),
        lambda: home.tensor(0, wait=None),
        lambda: home.pinned(-1),
        lambda: home.pinned(2, object),
        lambda: home.pinned(1 << 60, "u1"),
    ):
        with pytest.raises(vkops.VkopsError) as raised:
            call()
        if "bytes" not in str(raised.value):
            message(str(raised.value))
    assert not np.any(read_only)


def test_checks_report_arrays_that_are_used_too_early(home, tmp_path):
    array, tensor = pinned_copy(home, X), home.tensor(X)
    reads = [
        lambda: home.tensor(array),
        lambda: vkops.concat([array, array]),
        lambda: tensor.set(array, wait=False),
        lambda: home.buffer(N).write(array),
        lambda: home.buffer(N).fill(array[5:]),
    ]
    writes = [
        lambda: tensor.numpy(out=array),
        lambda: tensor[5:].numpy(out=array[5:], wait=False),
    ]
    memory = registry.find_on(home.vulkan, array).extent.resource
    with vkops.debug.checking():
        for read in reads:
            event = tensor.numpy(out=array, wait=False)
            if memory.is_coherent:
                with pytest.raises(
                    AssertionError, match=r"early access: a pinned array .* is read"
                ) as e:
                    read()
                vkops.debug.write_sarif(tmp_path / "early.sarif", e.value.report.findings)
                (log,) = json.loads((tmp_path / "early.sarif").read_text())["runs"]
                assert [each["ruleId"] for each in log["results"]] == ["early-access"]
            else:  # the call has waited, because the host must invalidate the memory
                assert event.done
            event.wait()
            read()
            home.synchronize()
        for write in writes:
            event = tensor.set(array, wait=False)
            with pytest.raises(AssertionError, match=r"early access: a pinned array .* is written"):
                write()
            while not event.done:
                pass
            write()
            home.synchronize()
        tensor.set(array, wait=False)
        home.tensor(array)  # two may read
        home.synchronize()
        event = tensor.numpy(out=array, wait=False)
        home.synchronize()
        home.tensor(array)
    event = tensor.numpy(out=array, wait=False)
    assert (home.tensor(array).numpy() == tensor.numpy()).all()  # without checks, calls wait


def test_a_transfer_keeps_neither_python_nor_other_threads_from_running(home):
    array, out, ticks = pinned_copy(home, np.tile(X, 200)), home.pinned(200 * N, "u1"), [0]
    tensor, small, ended = home.tensor(array), home.tensor(X[:9]), threading.Event()

    def tick():
        while not ended.is_set():
            vkops.roll(small, 1)
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for count in range(1, 31):  # the machine may have other things to do
            tensor.numpy(out=out)
            tensor[...] = array
            if ticks[0] > 6 * count:  # not only between transfers
                break
    finally:
        ended.set()
        thread.join()
    assert ticks[0] > 6 * count
    assert (tensor.numpy(out=out) == array).all()


def test_closed_devices(adapter):
    device = vkops.Device(adapter.index)
    array, out = pinned_copy(device, X), device.pinned_like(X)
    tensor = device.tensor(array)
    event = tensor.numpy(out=out, wait=False)
    device.close()
    event.wait()
    assert event.done
    assert (out == X).all()
    assert (array == X).all()
    for call in (lambda: device.pinned(3), lambda: tensor.numpy(out=out), lambda: device.event()):
        with pytest.raises(vkops.DeviceError, match="is closed"):
            call()
    with vkops.Device(adapter.index) as other:  # of the same adapter
        assert (other.tensor(array).numpy() == X).all()


@pytest.mark.posix("forks")
def test_a_forked_child_has_the_array_and_no_device(home):
    array, out = pinned_copy(home, X), home.pinned_like(X)
    tensor = home.tensor(array)
    event = tensor.numpy(out=out, wait=False)
    uses = [lambda: tensor.numpy(out=out), lambda: tensor.set(array), lambda: home.pinned(3),
            lambda: event.done, event.wait, home.event]  # fmt: skip
    assert [in_child(use) for use in uses] == [REFUSED] * len(uses)

    def drop():
        nonlocal array, out
        del array, out
        gc.collect()
        return "dropped"

    assert in_child(drop) == "dropped"
    event.wait()
    assert (out == X).all()


END = """
import sys
import numpy as np, vkops
device = vkops.Device(int(sys.argv[1]), staged=sys.argv[2] == "staged")
x = device.tensor(np.arange(1 << 20))
array, out = device.pinned_like(x), device.pinned_like(x)
array[:] = 3
device.tensor(array, wait=False)
event = x.numpy(out=out, wait=False)
print("end")
"""


@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_the_end_of_python(adapter, kind):
    assert python("-c", END, adapter.index, kind) == "end\n"


LOST = """
x = device.tensor(np.arange(1 << 16, dtype=np.int32))
array, out = device.pinned_like(x), device.pinned_like(x)
array[:], out[:] = 5, 6
layer().lose(b"vkQueueSubmit")
said = [call(lambda: x.numpy(out=out)), call(lambda: x.set(array)), call(device.event), call(lambda: device.pinned(2))]
print(all("ErrorDeviceLost" in str(each) for each in said), (array == 5).all(), out.shape)
layer().mend()
again = vkops.Device(index)
print((again.tensor(array).numpy() == 5).all())
"""


@pytest.mark.system("cc")
@pytest.mark.parametrize("kind", ["", "discrete"])
def test_a_lost_device(adapter, faulty, kind):
    assert faulty(LOST, adapter.index, "staged", kind=kind) == "True True (65536,)\nTrue\n"


INCOHERENT = """
x = np.random.default_rng(0).integers(0, 256, 70_001, np.uint8)
array, out = device.pinned_like(x), device.pinned_like(x)
array[:] = x
tensor = device.tensor(array)
for start, end in ((0, 70_001), (1, 70_000), (256, 512), (255, 70_001), (512, 70_001)):
    out[:] = 7
    tensor[start:end].numpy(out=out[start:end], wait=False).wait()
    assert (out[start:end] == x[start:end]).all() and (out[:start] == 7).all() and (out[end:] == 7).all()
    array[start:end] = x[start:end][::-1]
    tensor[start:end].set(array[start:end], wait=False).wait()
    x = array.copy()
    assert (tensor.numpy() == x).all(), (start, end)
print(device.mapped)
"""


@pytest.mark.system("cc")
@pytest.mark.parametrize(
    ("kind", "mapped"), [("integrated", True), ("small-bar", False), ("minimum", False)]
)
def test_memory_of_other_devices(adapter, faulty, kind, mapped):
    """That of "integrated" is not coherent: the device writes whole atoms of it alone."""
    assert faulty(INCOHERENT, adapter.index, "direct", kind=kind) == f"{mapped}\n"


PLACES = """
layer().record(1)
array = device.pinned(1000, "u1")
types = {line.split()[1] for line in records("vkAllocateMemory")}
x = device.tensor(array)
layer().record(1)
big = device.pinned(9 << 20, "u1")
big[:] = 1
y = device.tensor(big)
y.numpy(out=big)
print(json.dumps([sorted(types), counts()["vkCmdCopyBuffer"]]))
"""


@pytest.mark.system("cc")
def test_the_device_copies_at_once_from_memory_that_the_host_caches(adapter, faulty):
    assert json.loads(faulty(PLACES, adapter.index, "staged", kind="discrete")) == [
        ["flags=0xe"],
        2,
    ]
