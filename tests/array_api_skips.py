"""What vkops skips of data-apis/array-api-tests; a plugin of pytest, which scripts/test loads there."""

import re

import numpy as np
import pytest
from array_api_tests import dtype_helpers

COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
"""The commit of https://github.com/data-apis/array-api-tests that was tried."""

_COMPLEX = "vkops does not compute with complex numbers"
_AS_NUMPY = "floor_divide has NumPy's results for infinity, which the standard allows in a note"
_READ_ONLY = (
    "without a copy, DLPack before 1.0 cannot show read-only memory: a BufferError in the standard"
)
_NO_EXTENSIONS = "vkops has no linalg and no fft; the suite looks for their names nevertheless"

SKIPPED = {
    r"test_has_names\.py::test_has_names\[(linalg|fft)-": _NO_EXTENSIONS,
    r"test_dlpack\.py::test_dunder_dlpack$": _READ_ONLY,
    r"test_special_cases\.py::test_unary\[.*\b(real|imag)\(": _COMPLEX,
    r"test_operators_and_elementwise_functions\.py::test_(real|imag|conj)$": _COMPLEX,
    r"test_finfo_dtype\[complex|test_(real|imag|conj)\b": _COMPLEX,
    r"floor_?div(ide)?(__)?\(x1_i is [+-]infinity and isfinite\(x2_i\)": _AS_NUMPY,
    r"floor_?div(ide)?(__)?\(isfinite\(x1_i\) and x1_i [<>] 0 and x2_i is [+-]infinity\) -> -0": _AS_NUMPY,
}
"""The reasons by patterns of tests."""

# The suite has a variable for data types that are left out, but needs one of complex numbers.
_complex = {np.dtype(np.complex64), np.dtype(np.complex128)}
for _name, _value in list(vars(dtype_helpers).items()):
    if isinstance(_value, tuple) and any(isinstance(each, (np.dtype, type)) for each in _value):
        _kept = [each for each in _value if isinstance(each, str) or np.dtype(each) not in _complex]
        setattr(dtype_helpers, _name, tuple(_kept))
_table = dtype_helpers.promotion_table
dtype_helpers.promotion_table = type(_table)(
    [(pair, dtype) for pair, dtype in _table.items() if _complex.isdisjoint(map(np.dtype, pair))]
)


def pytest_collection_modifyitems(items):
    """Skip tests, each with its reason."""
    for item in items:
        for pattern, reason in SKIPPED.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))
