"""What all tests have in common."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("vkops", deadline=None)
settings.load_profile("vkops")
