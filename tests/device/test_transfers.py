"""Copies between host and device by several threads, and what runs meanwhile."""

import gc

import numpy as np
import pytest
from forked_children import in_child

pytestmark = pytest.mark.memory


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_copies_by_several_threads(device, threads):
    copier = device.vulkan.module.Copier(threads)
    rng = np.random.default_rng(0)
    for nbytes in (1, 4095, 1 << 19, (1 << 19) + 1, (5 << 20) + 7):
        source = rng.integers(0, 256, nbytes + 16, np.uint8)
        target = np.zeros_like(source)
        copier.copy(target[5 : 5 + nbytes], source[3 : 3 + nbytes])
        assert (target[5 : 5 + nbytes] == source[3 : 3 + nbytes]).all()
        assert not target[:5].any()
        assert not target[5 + nbytes :].any()
    target.flags.writeable = False
    with pytest.raises(ValueError, match=r"read-only|not writeable"):
        copier.copy(target, source)
    with pytest.raises(ValueError, match="as many bytes"):
        copier.copy(np.zeros(3, np.uint8), source)
    with pytest.raises(TypeError):
        copier.copy(np.zeros(3, np.int32), source)


@pytest.mark.posix("forks")
def test_a_forked_child_drops_the_threads(device):
    copiers = [device.vulkan.module.Copier(3)]
    source, target = np.ones(9 << 20, np.uint8), np.zeros(9 << 20, np.uint8)
    copiers[0].copy(target, source)

    def drop():
        copiers.clear()
        gc.collect()
        return "dropped"

    assert in_child(drop) == "dropped"
    target[:] = 0
    copiers[0].copy(target, source)
    assert target.all()


MANY_CORES = """
from vkops.gpu.run import streaming
streaming.cores = lambda: 8
assert device.info.type != "CPU"
for nbytes in (1, 70_000, streaming.PIECE, streaming.PIECE + 1, (40 << 20) + 3):
    x = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    tensor, out = device.tensor(x), np.zeros_like(x)
    assert (tensor.numpy() == x).all() and (tensor.numpy(out=out) == x).all()
    tensor[...] = x[::-1]
    assert (tensor.numpy() == x[::-1]).all()
    if nbytes > 9:
        tensor[3:-2] = x[3:-2]
        assert (tensor[1:].numpy(out=out[1:])[2:-2] == x[3:-2]).all()
"""


@pytest.mark.system("cc")
@pytest.mark.parametrize("kind", ["discrete", "minimum"])
def test_transfers_on_a_host_with_many_cores(adapter, faulty, kind):
    assert faulty(MANY_CORES, adapter.index, "staged", kind=kind) == ""


WAITS = """
import threading
x, small = device.tensor(np.arange(1 << 20, dtype=np.int32)), device.tensor(np.arange(8))
array, out = device.pinned_like(x), device.pinned_like(x)
array[:] = 3
y = vkops.roll(x, 1)
vkops.roll(small, 1).numpy(), y.numpy()
layer().hang()
event = y.numpy(out=out, wait=False)
other = x.set(array, wait=False)
early = not other.done
waiting = threading.Thread(target=event.wait)
waiting.start()
time.sleep(0.05)  # until it waits
z = vkops.roll(small, 1)
early = early and waiting.is_alive()
layer().release()
waiting.join()
other.wait()
print(early, (out == np.roll(np.arange(1 << 20), 1)).all(), (x.numpy() == 3).all(), z.numpy()[0])
"""


@pytest.mark.system("cc")
@pytest.mark.parametrize(("kind", "memory"), [(None, "direct"), ("discrete", "staged")])
def test_early_returns_and_waits_keep_nobody_from_submitting(adapter, faulty, kind, memory):
    assert faulty(WAITS, adapter.index, memory, kind=kind) == "True True True 7\n"
