"""Large pages of the host's memory, without a device."""

import mmap
import sys

import numpy as np
import pytest

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.memory.host_memory import large_pages


@pytest.mark.parametrize("nbytes", [1, 4096, 2 << 20, (5 << 20) + 4096])
def test_large_pages(nbytes):
    memory = large_pages(nbytes)
    if sys.platform != "linux":
        assert memory is None
        return
    assert memory.nbytes == nbytes
    assert memory.ctypes.data % (2 << 20) == 0
    assert not memory[-1]
    memory[:] = 7
    assert np.count_nonzero(memory == 7) == nbytes


def test_a_system_without_large_pages(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert large_pages(4096) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has large pages here")
def test_a_host_without_more_memory(monkeypatch):
    def refuse(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    text = "^4096 bytes: the host has no more memory available$"
    with pytest.raises(OutOfDeviceMemoryError, match=text):
        large_pages(4096)
