"""Settings of all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("vkops", deadline=None)
settings.load_profile("vkops")

# Shells start background jobs with SIGINT ignored, and their children inherit that. Programs that tests
# interrupt would not notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
