"""Memory of drivers in a file whose size is limited (``ulimit -f``)."""

import pytest
from processes import python
from refusals import fault

from vkops.errors import DeviceError
from vkops.gpu.memory import host_memory

PROGRAM = """
import mmap, os, resource
import numpy as np
from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.memory import host_memory

def show(check, *arguments):
    try:
        print(check(*arguments))
    except OutOfDeviceMemoryError as error:
        print(error)

KIB = 1 << 10
resource.setrlimit(resource.RLIMIT_FSIZE, (256 * KIB, -1))
show(host_memory.require_in_file, 1 << 40, 0)  # no driver has its memory in a file
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
file = os.memfd_create("allocation fd")
os.ftruncate(file, 512 * KIB)
memory = np.frombuffer(mmap.mmap(file, 512 * KIB), np.uint8)
os.ftruncate(file, 256 * KIB)  # accesses to the second half end the process
show(host_memory.require_in_file, 1 << 40, 0)
resource.setrlimit(resource.RLIMIT_FSIZE, 2 * (256 * KIB,))
show(host_memory.require_in_file, 128 * KIB, 124 * KIB)
show(host_memory.require_in_file, 128 * KIB, 124 * KIB + 1)
show(host_memory.check_in_file, memory[: 256 * KIB], 0)
show(host_memory.check_in_file, memory[: 256 * KIB + 1], 0)
show(host_memory.check_in_file, memory, 16)
"""


@pytest.mark.posix("limits of a process", tests_only=True)
def test_the_file_of_a_driver_is_checked_before_its_memory_is_used():
    def refused(nbytes, size):
        return (
            f"{nbytes} bytes: the driver's memory is a file, which would have {size} bytes, and a "
            "limit of this process (ulimit -f) allows 262144"
        )

    assert python("-c", PROGRAM).splitlines() == [
        *("None", "None", "None"),  # no such file, no limit, and within it
        refused(128 << 10, (256 << 10) + 1),
        "None",
        refused((256 << 10) + 1, (260 << 10) + 1),
        refused(512 << 10, (516 << 10) + 16),
    ]


def test_a_system_that_does_not_say_what_memory_it_has(monkeypatch):
    def virtual_memory():
        raise OSError(24, "Too many open files", "/proc/meminfo")

    monkeypatch.setattr(host_memory.psutil, "virtual_memory", virtual_memory)
    assert fault(host_memory.available, DeviceError) == (
        "the memory that the host has is unknown (Too many open files: /proc/meminfo)"
    )
