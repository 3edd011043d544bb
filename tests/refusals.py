"""Calls that must be refused."""

import pytest

from vkops.errors import InvalidDescError


class RefusedError(Exception):
    """Ends a test, which passes: the device lacks what is tested, and was refused for that reason."""


def fault(call, kind=InvalidDescError):
    """The text of the error, of exactly this kind, that a call raises."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    return str(caught.value)
