"""Other libraries on vkops's device: they get Vulkan's handles, and the queue for themselves."""

import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from processes import python

import vkops

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.memory


@pytest.mark.system("cc")
@pytest.mark.posix("a compiler", tests_only=True)
def test_a_library_in_cpp(adapter, tmp_path, monkeypatch):
    library = tmp_path / "fill.so"
    source = ROOT / "examples" / "fill.cpp"
    subprocess.run(["c++", "-shared", "-fPIC", source, "-o", library, "-lvulkan"], check=True)
    monkeypatch.setenv("VKOPS_EXPECT", adapter.name)
    monkeypatch.setenv("VKOPS_ADAPTER", adapter.name)
    said = python(str(ROOT / "examples" / "fill.py"), str(library))
    assert said == "0 [0, 0, 0, 7, 7, 7, 0, 0]\n"


def test_handles(device):
    handles = device.handles
    numbers = handles.instance, handles.physical_device, handles.device, handles.queue
    assert all(numbers)
    assert len({*numbers}) == 4
    assert handles.queue_family >= 0
    with vkops.Device(device.info.index) as other:
        assert other.handles.queue == handles.queue
    x = device.tensor(np.arange(12, dtype=np.int16).reshape(3, 4))
    shown = x.numpy()
    buffer, offset, size = x.handles
    assert buffer
    assert size == x.nbytes
    assert x[1:].handles == (buffer, offset + 8, 16)
    x[...] = 0
    assert x.handles == (buffer, offset, size)
    assert shown[2, 3] == 11
    for view in (x[:, 1], x[:0]):
        with pytest.raises(vkops.BindingError, match="SH-12"):
            view.handles  # noqa: B018
    with pytest.raises(vkops.DeviceError, match="has no handles"):
        vkops.Tensor.from_array(device, [1], on_host=True).handles  # noqa: B018


def test_the_queue_belongs_to_one_thread(device):
    x, ended = device.tensor(np.arange(8)), []

    def work():
        ended.append(vkops.roll(x, 1).copy().tolist())

    thread = threading.Thread(target=work)
    with device.handles.locked():
        thread.start()
        thread.join(0.3)
        assert not ended
        assert thread.is_alive()
        with pytest.raises(vkops.DeviceError, match="this thread has locked the queue"):
            vkops.flip(x).copy()
        with (
            pytest.raises(vkops.DeviceError, match="this thread has locked the queue"),
            device.handles.locked(),
        ):
            pass
    thread.join()
    assert ended == [[7, *range(7)]]
    assert vkops.flip(x).tolist() == [*range(7, -1, -1)]


def test_the_lock_is_free_after_an_error(device):
    with pytest.raises(ZeroDivisionError), device.handles.locked():
        1 / 0  # noqa: B018
    assert vkops.flip(device.tensor([1, 2])).tolist() == [2, 1]


def test_many_threads_take_turns(device):
    x, count = device.tensor(np.arange(100)), []

    def work():
        for _ in range(20):
            with device.handles.locked():
                count.append(threading.get_ident())
            vkops.roll(x, 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(count) == 80
