"""Listings of devices: adapters and versions as DxDispatch prints them, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from vkops.device import DeviceInfo
    from vkops.gpu import Driver

_DEPENDENCIES = ("vkops", "kp", "numpy", "vulkan", "python-rapidjson")


def adapter_block(found: DeviceInfo) -> str:
    """Return the lines about one adapter, and an empty one."""
    return "\n".join(
        (
            found.name,
            f"-Version: {found.driver_version}",
            f"-Hardware: {str(found.type != 'CPU').lower()}",
            f"-Integrated: {str(found.type == 'INTEGRATED_GPU').lower()}",
            f"-Dedicated Adapter Memory: {memory_size(found.dedicated_memory)}",
            f"-Dedicated System Memory: {memory_size(0)}",
            f"-Shared System Memory: {memory_size(found.shared_memory)}",
            "",
        )
    )


def memory_size(nbytes: int) -> str:
    """Return a size as DxDispatch prints it; a unit is used for sizes above one of it.

    >>> memory_size(1024), memory_size(1536), memory_size(2**30)
    ('1024 bytes', '1.50 KB', '1024.00 MB')
    """
    for shift, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if nbytes > 1 << shift:
            return f"{nbytes / (1 << shift):.2f} {unit}"
    return f"{nbytes} bytes"


def dependency_lines() -> Iterator[str]:
    """Yield one line per package that a run uses, with its version."""
    for name in _DEPENDENCIES:
        try:
            yield f"{name}: {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name}: not installed"


def device_table(devices: Iterable[DeviceInfo]) -> Table:
    """Return a table of the adapters that can be used."""
    table = Table(title="Vulkan devices", title_justify="left")
    for heading in ("#", "Name", "Type", "Vulkan", "Driver", "Memory"):
        table.add_column(heading, overflow="fold")
    for found in devices:
        table.add_row(
            str(found.index),
            escape(found.name),
            found.type,
            found.api_version,
            f"{found.driver} ({found.driver_version})",
            memory_size(found.dedicated_memory + found.shared_memory),
        )
    return table


def driver_table(drivers: Iterable[Driver]) -> Table:
    """Return a table of the driver manifests found: what each offers, or why it does not."""
    table = Table(title="Vulkan drivers", title_justify="left")
    for heading in ("Driver", "Usable", "Adapters, or what is wrong"):
        table.add_column(heading, overflow="fold")
    for driver in drivers:
        found = ", ".join(driver.adapters) if driver.usable else driver.reason
        table.add_row(escape(driver.name), "yes" if driver.usable else "no", escape(found))
    return table
