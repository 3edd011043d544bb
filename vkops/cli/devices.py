"""``vkops devices``."""

from __future__ import annotations

import json
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

    drivers, problem = gpu.drivers(), None
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
    else:
        from vkops.dxdispatch import listings

        tables = [listings.device_table(found)] if found else []
        listings.show(*tables, *([listings.driver_table(drivers)] if drivers else []))
    if problem is not None:
        raise problem
