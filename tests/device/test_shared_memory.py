"""Memory that several processes see."""

import gc
import os
import pickle
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from adapters import require_sharing
from processes import descriptors, more_descriptors

import vkops
from vkops.system import handover

pytestmark = [pytest.mark.memory, pytest.mark.posix("file descriptors")]

X = np.arange(100_003, dtype=np.int32)

OTHER = """
import pickle, sys
import numpy as np, vkops
device = vkops.Device(int(sys.argv[1]), staged=sys.argv[2] == "staged")
def receive():
    return pickle.loads(bytes.fromhex(input()))
"""


@pytest.fixture(params=["mapped", "staged"])
def home(request, adapter):
    with vkops.Device(adapter.index, staged=request.param == "staged") as device:
        device.kind = request.param
        require_sharing(device)
        yield device


@pytest.fixture
def start(home):
    """Starts a program in another process, with a device of the same kind."""
    started = []

    def begin(program):
        command = [sys.executable, "-c", OTHER + program, str(home.info.index), home.kind]
        pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, **pipe))
        return started[-1]

    yield begin
    for each in started:
        each.kill()
        each.communicate()


def say(process, line=""):
    process.stdin.write(line + "\n")
    process.stdin.flush()


def send(process, handle):
    say(process, pickle.dumps(handle).hex())


def heard(process):
    return process.stdout.readline().strip()


def test_two_processes_see_the_same_memory(home, start):
    tensor = home.tensor(X.reshape(-1, 1), shared=True)
    process = start("""
x = vkops.open_shared(receive(), device)
print(x.shape, x.dtype, int(x.numpy().sum()), flush=True)
input()
print(x[5, 0].item(), flush=True)
x[...] = vkops.flip(x).copy()
device.synchronize()
print("written", flush=True)
input()
""")
    send(process, tensor.share())
    assert heard(process) == f"{(len(X), 1)} int32 {X.sum()}"
    shown = tensor.numpy()
    tensor[5] = -3
    home.synchronize()
    say(process)
    assert heard(process) == "-3"
    assert heard(process) == "written"
    assert tensor.numpy()[-6, 0] == -3
    assert tensor.numpy()[0, 0] == X[-1]
    assert shown[5, 0] == 5  # a copy


FIRST = """
x = device.tensor(np.arange(1000), shared=True)
handle = x.share()
print(pickle.dumps(handle).hex(), flush=True)
input()
"""


def test_either_process_may_end_first(home, start):
    process = start(FIRST)
    handle = pickle.loads(bytes.fromhex(heard(process)))
    tensor = vkops.open_shared(handle, home)
    process.kill()
    process.communicate()
    assert (tensor.numpy() == np.arange(1000)).all()
    tensor[...] = 3
    assert (vkops.flip(tensor).numpy() == 3).all()

    own = home.tensor(X, shared=True)
    process = start("x = vkops.open_shared(receive(), device)\nx[0] = 9\ndevice.synchronize()\n")
    send(process, own.share())
    assert process.wait(timeout=300) == 0
    assert own.numpy()[:2].tolist() == [9, 1]


def test_a_handle_is_pickled_and_opened_once(home):
    tensor = home.tensor(X, shared=True)
    handle = tensor.share()
    assert (handle.shape, handle.dtype) == (X.shape, X.dtype)
    copy = pickle.loads(pickle.dumps(handle))
    with pytest.raises(vkops.DeviceError, match="pickled once"):
        pickle.dumps(handle)
    other = vkops.open_shared(copy, home)
    for again in (copy, handle):
        with pytest.raises(vkops.DeviceError, match="it was opened before"):
            vkops.open_shared(again, home)
    tensor[7] = -7
    home.synchronize()
    assert other[7].item() == -7
    assert (vkops.open_shared(tensor.share(), home).numpy() == tensor.numpy()).all()  # another one


def gone(path):
    """Whether the folder of a path is removed, for which it waits up to 30 seconds."""
    until = time.monotonic() + 30
    while Path(path).parent.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return not Path(path).parent.exists()


def test_a_handle_ends_with_the_tensor_and_after_a_time(home):
    tensor = home.tensor(X, shared=True)
    held, before = descriptors(), home.memory_report()
    early, late = tensor.share(timeout=0.1), tensor.share()
    assert gone(early._path)
    assert Path(late._path).exists()
    del tensor
    gc.collect()
    assert gone(late._path)
    for handle in (early, late):
        with pytest.raises(vkops.DeviceError, match="its tensor is gone, or its time is over"):
            vkops.open_shared(handle, home)
    assert not more_descriptors(held)
    assert home.memory_report().heaps == before.heaps - 1


def test_the_memory_is_its_own_zeroed_and_does_not_move(home):
    before = home.memory_report()
    tensor = home.empty((3, 1000), "float64", shared=True)
    assert home.memory_report().heaps == before.heaps + 1
    assert not tensor.numpy().any()
    memory = tensor.buffer.extents
    assert memory[0].start == 0
    shown = tensor.numpy()
    tensor[1] = 5
    assert tensor.buffer.extents is memory
    assert not shown.any()
    assert home.empty((0, 2), shared=True).nbytes == 0
    assert home.tensor(X, shared=True, wait=False)[1].done


def test_the_socket_is_for_this_user_alone(home, monkeypatch):
    tensor = home.tensor(X, shared=True)
    handle = tensor.share()
    path = Path(handle._path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for token in (b"", b"x" * 32, b"x" * 1000):  # what knows no token gets nothing
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            other.connect(str(path))
            other.send(token)
            assert socket.recv_fds(other, 100, 1)[:2] == (b"", [])
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(vkops.DeviceError, match="another user"):
            vkops.open_shared(handle, home)
    assert (vkops.open_shared(handle, home).numpy() == X).all()


def test_what_a_handle_says_is_compared_before_anything_is_imported(home):
    tensor = home.tensor(X, shared=True)
    handle = tensor.share()
    layout = handle._layout
    changes = {
        "uuids": (bytes(16), bytes(16)), "usage": 1, "shape": (2,), "nbytes": 1 << 40,
        "allocated": 1 << 40, "type": 77, "is_mapped": not layout.is_mapped,
    }  # fmt: skip
    texts = {"uuids": "another device or driver", "usage": "other features"}
    for name, value in changes.items():
        handle = tensor.share()
        handle._layout = layout._replace(**{name: value})
        with pytest.raises(vkops.DeviceError, match=texts.get(name, "something else")):
            vkops.open_shared(handle, home)
    assert home.memory_report().heaps == 1


def test_a_descriptor_that_is_no_memory(home, monkeypatch):
    """A driver may take it nevertheless: all that vkops promises is an error of its own, or a tensor."""
    handle = home.tensor(X, shared=True).share()
    monkeypatch.setattr(handover, "fetch", lambda *_: os.open(os.devnull, os.O_RDONLY))
    held = descriptors()
    with pytest.raises(vkops.DeviceError):
        vkops.open_shared(handle, home)
    assert not more_descriptors(held)


def test_what_is_refused(home, message):
    tensor = home.tensor(X, shared=True)
    for call in (
        lambda: home.tensor(X).share(),
        lambda: tensor[1:].share(),
        lambda: vkops.open_shared(tensor.share(), home).share(),
        lambda: home.empty(0, shared=True).share(),
        lambda: tensor.share(timeout=0),
        lambda: tensor.share("no"),
        lambda: vkops.open_shared(3),
    ):
        with pytest.raises(vkops.InvalidDescError, match=r"\[ARRAY-21\]") as raised:
            call()
        message(str(raised.value))
    with home.record(), pytest.raises(vkops.DeviceError, match="record: "):
        tensor.share()


def test_all_tensors_of_a_device(home, start):
    """Results of functions and of recorded programs, and what is opened again, which is not zeroed."""
    staged = home.kind == "staged"
    with vkops.Device(home.info.index, staged=staged, shared=True) as device:
        before = device.memory_report()
        x = device.tensor(X)
        y = vkops.flip(x).copy()
        with device.record() as program:
            z = vkops.roll(y, 1)
        program.run()
        assert device.memory_report().heaps == before.heaps + 3
        again = vkops.open_shared(y.share(), device)
        assert (again.numpy() == X[::-1]).all()
        other = start("""
x = vkops.open_shared(receive(), device)
x[...] = x.numpy() + 1
device.synchronize()
print("done", flush=True)
""")
        send(other, z.share())
        assert heard(other) == "done"
        assert (z.numpy() == np.roll(X[::-1], 1) + 1).all()
        shown = z.numpy()
        z[0] = 77
        assert shown[0] != 77
        assert vkops.kernels.sum(device.tensor(np.ones(1000, np.float32))).item() == 1000
        program.close()


@pytest.mark.system("cc")
def test_a_driver_that_cannot(adapter, faulty):
    program = """
print(call(lambda: device.tensor([1], shared=True)))
print(call(lambda: device.empty(3, shared=True)))
print(call(lambda: vkops.Device(device.info.index, shared=True)))
"""
    said = faulty(
        program, adapter.index, "direct", VKOPS_HIDDEN_EXTENSIONS="VK_KHR_external_memory_fd"
    )
    assert said.count("DeviceError: ") == said.count("a driver with VK_KHR_external_memory_fd") == 3


@pytest.mark.system("cc")
def test_a_failed_import_closes_its_descriptor(adapter, device, faulty):
    require_sharing(device)
    program = """
from processes import descriptors, more_descriptors
x = device.tensor([1, 2], shared=True)
handle = x.share()
layer().fail(b"vkAllocateMemory", 0, 1, NO_DEVICE_MEMORY)
said = call(lambda: vkops.open_shared(handle, device))
before = descriptors()
layer().fail(b"vkAllocateMemory", 0, 1, NO_DEVICE_MEMORY)
call(lambda: vkops.open_shared(x.share(), device))
print(said.split(":")[0], more_descriptors(before), x.tolist())
"""
    said = faulty(program, adapter.index, "direct")
    assert said == "OutOfDeviceMemoryError 0 [1, 2]\n"


SPAWNED = """
import multiprocessing, sys
import numpy as np, vkops

def work(handle, index, queue):
    device = vkops.Device(index)
    x = vkops.open_shared(handle, device)
    x[0] = 42
    device.synchronize()
    queue.put(x.shape)

if __name__ == "__main__":
    device = vkops.Device(int(sys.argv[1]))
    x = device.tensor(np.arange(5), shared=True)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(x.share(), device.info.index, queue))
    process.start()
    print(queue.get(timeout=300))
    process.join()
    print(x.tolist())
"""


def test_multiprocessing(home, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, str(program), str(home.info.index)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("(5,)\n[42, 1, 2, 3, 4]\n", "")
