"""The filters of warnings, which all threads of a process share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from vkops.system.threads import new_lock

_changing = new_lock()


@contextmanager
def filtered(action: Literal["error", "ignore"], category: type[Warning]) -> Iterator[None]:
    """Raise or ignore a kind of warnings in this block.

    Only one thread is in such a block at a time: Python saves the filters and restores them, so
    that one would restore those of another thread.
    """
    with _changing, warnings.catch_warnings():
        warnings.simplefilter(action, category)
        yield
