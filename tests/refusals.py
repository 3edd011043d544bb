"""Calls that must be refused."""

import os

import pytest

from vkops.errors import InvalidDescError, VkopsError


class RefusedError(Exception):
    """Ends a test, which passes: the device lacks what is tested, and was refused for that reason."""


def fault(call, kind=InvalidDescError):
    """The text of the error, of exactly this kind, that a call raises."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    return str(caught.value)


def check_refusals(message, *calls):
    """Compare the texts of the errors that calls raise, with the fixture ``message``."""
    for call in calls:
        with pytest.raises(VkopsError) as caught:
            call()
        message(caught.value)


def _text_of_no_file():
    try:
        os.stat("no such file")
    except FileNotFoundError as error:
        return error.strerror
    raise AssertionError("there is such a file")


NO_FILE = _text_of_no_file()
"""What this system says of a file that does not exist."""
