"""``vkops devices``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

import vkops
from vkops.errors import DeviceError


def devices(
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Show the Vulkan devices, and for each driver found whether it works, or why not."""
    from dataclasses import asdict

    from vkops import gpu
    from vkops.cli import device_listings
    from vkops.runner.console import show

    drivers, problem = gpu.drivers(), None
    if not as_json and drivers:
        # At once: a driver that crashes ends this process next.
        show(device_listings.driver_table(drivers))
        sys.stdout.flush()
    try:
        found = vkops.devices()
    except DeviceError as error:
        found, problem = [], error
    if as_json:
        lists = {
            "devices": [asdict(device) for device in found],
            "drivers": [{**asdict(driver), "usable": driver.usable} for driver in drivers],
        }
        typer.echo(json.dumps(lists, indent=2))
    elif found:
        show(device_listings.device_table(found))
    if problem is not None:
        raise problem
