"""A few thousand cases of the targets that run on a device, and the campaign."""

import numpy as np
import pytest
from compiled_operators import identity
from fuzz import campaign as fuzzing
from fuzz.__main__ import shares
from fuzz.targets import DEVICE

import vkops

CASES, ALL_CASES = 2500, 50_000


@pytest.fixture(autouse=True)
def _adapter(adapter, monkeypatch):
    """Children open the adapter under test."""
    monkeypatch.setenv("VKOPS_TEST_ADAPTERS", adapter.name)


LIMITS = pytest.mark.posix("alarms and limits of processes", tests_only=True)


@LIMITS
@pytest.mark.parametrize(("name", "cases"), shares(DEVICE, CASES).items())
def test_nothing_but_right_results_and_errors_of_vkops(name, cases, tmp_path):
    assert fuzzing.clean_campaign(name, cases, tmp_path).counts["accepted"]


@LIMITS
@pytest.mark.slow
@pytest.mark.parametrize(("name", "cases"), shares(DEVICE, ALL_CASES).items())
def test_the_campaign(name, cases, tmp_path):
    fuzzing.clean_campaign(name, cases, tmp_path)


@LIMITS
@pytest.mark.parametrize("name", DEVICE)
def test_what_once_went_wrong(name):
    fuzzing.replay_corpus(name)


# -- what it found, made small -----------------------------------------------------------------------


def test_axes_in_an_array(device):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert device.tensor(x).transpose(np.array([1, 0])).numpy().tolist() == x.T.tolist()


def test_host_memory_that_is_read_and_written_without_waiting(device):
    """A stream did wait for itself."""
    host = device.host_buffer(64)
    host.write(bytes(range(64)))
    copy = identity(device, 8)
    copy.dispatch([(host, 0, 32)], [(host, 32, 32)], wait=False).wait()
    assert host.read() == bytes(range(32)) * 2


class Failing:
    """An argument whose own methods have a fault."""

    def fail(self, *args, **named):
        raise ZeroDivisionError("a fault of the argument's own")

    __index__ = __int__ = __float__ = __len__ = __array__ = __repr__ = fail
    __dlpack__ = __dlpack_device__ = fail


def test_exceptions_of_an_argument_s_own_methods_are_raised_unchanged(device):
    tensor, buffer, value = (
        device.tensor(np.arange(4, dtype=np.int32)),
        device.buffer(16),
        Failing(),
    )
    copy = identity(device, 4)
    for call in (
        lambda: device.tensor(value),
        lambda: vkops.from_dlpack(value),
        lambda: tensor[value],
        lambda: tensor[slice(value, None)],
        lambda: tensor.__setitem__(0, value),
        lambda: tensor.flip(value),
        lambda: vkops.split(tensor, value),
        lambda: vkops.split(tensor, [value, 1]),
        lambda: copy.dispatch([value], [buffer]),
        lambda: copy.dispatch([(buffer, value, None)], [buffer]),
    ):
        with pytest.raises(ZeroDivisionError, match=r"^a fault of the argument's own$"):
            call()
