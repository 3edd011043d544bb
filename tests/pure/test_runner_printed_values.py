"""Tensors as text, in their shape."""

import numpy as np
import pytest

from vkops.runner.printed_values import MAX_SHAPED_VALUES, format_values, shaped, text_of

SHAPES = [(), (0, 3), (2, 3), (1001,), (40, 50), (1200, 2), (5, 7, 40), (30, 6, 30), (1, 1, 1, 9)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_text_is_that_of_numpy(shape, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    data, taken = array.tobytes(), []

    def read(offset, nbytes):
        taken.append(nbytes)
        return data[offset : offset + nbytes]

    expected = np.array2string(array, max_line_width=60, precision=6, separator=", ")
    assert shaped(array.dtype, shape, read) == expected
    assert text_of(array) == expected
    assert sum(taken) <= MAX_SHAPED_VALUES * 4  # whatever the tensor holds


def test_a_tensor_of_eight_dimensions_is_short():
    assert text_of(np.zeros((10,) * 8, np.uint8)).count("0") == 2**8


def test_strings_are_quoted():
    assert format_values(np.array(["", "a\n"])) == ["''", r"'a\n'"]
