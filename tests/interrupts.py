"""KeyboardInterrupt at each point of some work at which Python can serve a signal."""

import sys


def interrupted_at(number, work):
    """Whether work was interrupted at the point of this number, from 1: it may end before.

    Python serves signals where a function begins and where a call of C code has returned.
    """
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        if event in ("call", "c_return"):
            count += 1
            if count == number:
                sys.setprofile(None)
                raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        work()
        sys.setprofile(None)
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return count >= number
