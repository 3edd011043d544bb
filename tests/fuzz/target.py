"""What all targets share."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path

import broken_models

import vkops
from vkops.errors import VkopsError

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples"


class WrongResultError(AssertionError):
    """A result is not what the oracle says, or an error is not what users are promised."""


class Target(ABC):
    """A way into vkops, and what is sent down it.

    One object tries many cases; the current folder is one to write to.
    """

    suffix = ".bin"  # of files with inputs
    refusals: tuple[type[BaseException], ...] = (VkopsError,)  # what it may raise
    seconds = 20  # that a case may take

    def make(self, random) -> bytes:
        """An input."""
        return random.randbytes(random.choice((16, 40, 100, 250)))

    @abstractmethod
    def check(self, data):
        """Try an input: returns if it was accepted, and the results are right."""

    def try_(self, data):
        """Whether an input was accepted; it may be refused in one line, too."""
        try:
            self.check(data)
        except self.refusals as error:
            if isinstance(error, VkopsError) and len(str(error).splitlines()) != 1:
                raise WrongResultError(f"{error!r} is not one line") from error
            return False
        return True


def require(condition, message):
    """Fail with a wrong result."""
    if not condition:
        raise WrongResultError(message)


def opened(**options):
    """A device on the adapter under test."""
    import adapters

    return vkops.Device(adapters.wanted()[0].index, **options)


@contextlib.contextmanager
def scratch():
    """Be in a folder of one's own, three deep, with the examples beside one."""
    before = Path.cwd()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files change all the time
    with tempfile.TemporaryDirectory(prefix="vkops-fuzz-", dir=memory) as top:
        folder = Path(top, "a", "b", "c")
        shutil.copytree(EXAMPLES, folder)
        for path in (broken_models.FOLDER / "data").glob("*"):
            shutil.copy(path, folder / "data")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)
