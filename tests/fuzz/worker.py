"""Cases in a process of their own: ``python -m fuzz.worker TARGET FIRST COUNT FOLDER``.

The number of the case at hand is in FOLDER/at for the parent, which outlives a crash; what went wrong
is in FOLDER/found, a line of JSON each.
"""

import faulthandler
import gc
import json
import mmap
import os
import signal
import struct
import sys
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from fuzz.target import scratch
from fuzz.targets import DEVICE, target_class

MAX_GROWTH = 512 << 10  # kilobytes that a case may take more than any before it
ADDRESS_SPACE = {False: 6 << 30, True: 20 << 30}  # bytes of a worker, without a device and with one
COLLECT = 500
"""Cases from one collection of all cycles to the next: what they hold is in nobody's way."""


class HangError(BaseException):
    """A case takes too long; no ``except Exception`` can swallow it."""


def made(target, number):
    """The input of a number."""
    return target.make(Random(number))


def kind_of(error):
    """What sort of fault an exception is, and the deepest place in vkops that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if "/vkops/" in f.filename] or frames
    place = f"{Path(inside[-1].filename).name}:{inside[-1].name}" if inside else "nowhere"
    name = type(error).__name__.removesuffix("Error").lower()
    return f"{name} in {place}"


def attempt(target, data):
    """Try an input for a limited time: "accepted", "refused", or the exception that is a fault."""

    def ring(*_):
        raise HangError(f"more than {target.seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, target.seconds)
    try:
        return "accepted" if target.try_(data) else "refused"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def work(target, numbers, tell, at):
    """Try the inputs of some numbers; stops after one that hangs."""
    import resource

    def peak():
        """Kilobytes that this process has taken at most."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    counts, most = Counter(), peak()
    for number in numbers:
        struct.pack_into("q", at, 0, number)
        outcome = attempt(target, made(target, number))
        if isinstance(outcome, BaseException):
            text = "".join(traceback.format_exception(outcome))[-6000:]
            tell({"number": number, "kind": kind_of(outcome), "text": text})
            counts["faults"] += 1
            if isinstance(outcome, HangError):
                break
        else:
            counts[outcome] += 1
        before, most = most, peak()  # which never becomes less
        if most > before + MAX_GROWTH:
            text = f"{most - before} kB more than before"
            tell({"number": number, "kind": "memory", "text": text})
        if number % COLLECT == 0:
            gc.collect()
    tell({"counts": counts, "peak": most})


def main(name, first, count, folder):
    import resource

    faulthandler.enable()
    limit = ADDRESS_SPACE[name in DEVICE]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What vkops prints is nobody's business; what a crash prints is.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with (
        open(Path(folder, "at"), "r+b") as slot,
        mmap.mmap(slot.fileno(), 8) as at,
        open(Path(folder, "found"), "a") as found,
        scratch(),
    ):

        def tell(line):
            print(json.dumps(line), file=found, flush=True)

        target = target_class(name)()
        work(target, range(int(first), int(first) + int(count)), tell, at)


if __name__ == "__main__":
    main(*sys.argv[1:])
