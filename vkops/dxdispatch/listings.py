"""Listings: adapters and versions as DxDispatch prints them, and the tables of the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from vkops.dml import FeatureLevel
from vkops.dxdispatch.model import DmlDispatchable, Model, ShaderDispatchable
from vkops.errors import one_line

if TYPE_CHECKING:
    from vkops.device import DeviceInfo
    from vkops.gpu import Driver

_DEPENDENCIES = ("vkops", "kp", "numpy", "vulkan", "python-rapidjson")


class _Console(Console):
    """Leaves it to the command line what to say when nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise


def show(*parts: RenderableType) -> None:
    """Print tables and texts as wide as the terminal."""
    console = _Console()
    for part in parts:
        console.print(part)


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


def level_table(model: Model, feature_level: FeatureLevel) -> Table:
    """Return a table of the lowest level each operator needs; all are valid at the latest."""
    table = Table()
    for heading in ("Dispatchable", "Operator", "Lowest level", f"At {feature_level}"):
        table.add_column(heading, overflow="fold")
    for dispatchable in model.dispatchables.values():
        if not isinstance(dispatchable, DmlDispatchable):
            shader = isinstance(dispatchable, ShaderDispatchable)
            kind = "a shader" if shader else "an ONNX model"
            table.add_row(escape(one_line(dispatchable.name)), kind, "none", "accepted")
            continue
        lowest = dispatchable.desc.minimum_feature_level()
        verdict = "accepted" if lowest <= feature_level else "refused"
        table.add_row(
            escape(one_line(dispatchable.name)), dispatchable.desc.operator, str(lowest), verdict
        )
    return table
