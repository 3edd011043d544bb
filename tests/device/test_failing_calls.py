"""One call of Vulkan fails while a program uses a device in every way (tests/imitated/every_feature.py).

The result is one clear error, or none, and afterwards the device, or one that is opened again, is in order.
"""

import json
import os
import sys

import pytest
from imitated import LOST, NO_DEVICE_MEMORY, VALIDATED_BELOW, environment, every_feature
from processes import outcome

pytestmark = pytest.mark.system("cc")

CHUNK = 100
"""Attempts of a process."""

CAN_REPORT_LOSS = {
    "vkCreateDevice",
    "vkQueueSubmit",
    "vkWaitForFences",
    "vkGetFenceStatus",
    "vkGetQueryPoolResults",
}


def run(adapter, kind, attempts, **more):
    """The status of a process and what it says, and values: the numbers of calls, and what is wrong by attempt."""
    variables = environment(PYTHONPATH=os.pathsep.join(sys.path), **more)
    variables["NODEVICE_SELECT"] = "1"  # Mesa's layer of that name ignores failures, and crashes
    program = "-W", "ignore", every_feature.__file__, adapter.index, kind, json.dumps(attempts)
    status, printed, said = outcome(*program, **variables)
    values = []
    for line in printed.splitlines():
        if line.startswith(every_feature.LINE):
            values.append(json.loads(line.removeprefix(every_feature.LINE)))
        else:
            said += line
    return status, said, values


def failures(adapter, kind, attempts, **more):
    """What is wrong, by attempt. A process that ends in one is started again for those behind it."""
    wrong = []
    while attempts:
        status, said, (_, *found) = run(adapter, kind, attempts[:CHUNK], **more)
        wrong += [(*attempt, why) for attempt, why in zip(attempts, found, strict=False) if why]
        attempts = attempts[len(found) :]
        if status:
            wrong.append((*attempts.pop(0), f"status {status}: {said}"))
        elif said:
            wrong.append(said)
    return wrong


def attempts(adapter, kind, count):
    """For each function, its first calls: the name, the calls before, and the result."""
    *_, (calls,) = run(adapter, kind, [])
    return [
        (name, skipped, result)
        for result in (NO_DEVICE_MEMORY, LOST)
        for name, number in calls.items()
        for skipped in range(min(number, count))
        if "vkCmd" not in name
        if result != LOST or name in CAN_REPORT_LOSS
    ]


@pytest.mark.parametrize("kind", ["mapped", pytest.param("staged", marks=pytest.mark.memory)])
def test_the_first_call_of_each_function_fails(adapter, kind):
    assert failures(adapter, kind, attempts(adapter, kind, 1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_each_call_fails(adapter, kind):
    assert failures(adapter, kind, attempts(adapter, kind, 10**6)) == []


@pytest.mark.slow
@pytest.mark.system("VkLayer_khronos_validation")
@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_the_validation_layer_finds_nothing_wrong_when_a_call_fails(adapter, kind):
    """It does not know that objects in use may be destroyed when the device is lost."""
    chosen = [a for a in attempts(adapter, kind, 2) if a[2] != LOST]
    assert failures(adapter, kind, chosen, **VALIDATED_BELOW) == []
