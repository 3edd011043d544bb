"""The filters of warnings are the process's: threads that read files leave them as they were."""

import io
import warnings
from threading import Event, Thread, current_thread

import numpy as np
import numpy.lib.format as npy
import pytest
from PIL import Image

from vkops.system import npy_files, pictures

ARRAY = npy_files.header_bytes(np.dtype("f4"), (2, 3))
PICTURE = pictures.encoded(np.zeros((4, 4), np.uint8), ".png")


def read_array():
    npy_files.read_header(io.BytesIO(ARRAY))


def read_picture():
    pictures.read(io.BytesIO(PICTURE))


@pytest.mark.parametrize("second", [read_array, read_picture])
@pytest.mark.parametrize("first", [read_array, read_picture])
def test_the_file_that_was_opened_first_is_read_first(monkeypatch, first, second):
    begun, has_ended, before = [Event(), Event()], Event(), [*warnings.filters]
    threads = [Thread(target=first), Thread(target=second)]

    def pausing(read):
        def paused(*arguments, **options):
            number = threads.index(current_thread())
            begun[number].set()
            (has_ended if number else begun[1]).wait(0.5)
            return read(*arguments, **options)

        return paused

    for module, name in ((npy, "read_magic"), (Image, "open")):
        monkeypatch.setattr(module, name, pausing(getattr(module, name)))
    threads[0].start()
    assert begun[0].wait(60)
    threads[1].start()
    threads[0].join()
    has_ended.set()
    threads[1].join()
    assert [*warnings.filters] == before
