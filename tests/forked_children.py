"""Children forked off the process of a test, which had opened a device."""

import os
import select
import signal
import warnings

SECONDS = 10


def in_child(work):
    """Run in a forked process and return what it says."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks in processes with threads
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, str(said).encode())
        os._exit(0)
    os.close(writing)
    answered, _, _ = select.select([reading], [], [], SECONDS)
    if not answered:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said if answered else "it hangs"


REFUSED = (
    "DeviceError: this process was forked off one that had opened a Vulkan device, and drivers do "
    "not survive that; open devices after forks only, or start processes by spawning"
)
