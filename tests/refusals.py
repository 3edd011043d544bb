"""Calls that must be refused."""

from __future__ import annotations

import pytest

from vkops.errors import InvalidDescError


def fault(call, kind=InvalidDescError):
    """The text of the error, of exactly this kind, that a call raises."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    return str(caught.value)
