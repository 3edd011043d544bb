"""``vkops devices``, and DxDispatch's listings of adapters and versions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

import vkops
from vkops.cli import options
from vkops.errors import DeviceError

if TYPE_CHECKING:
    from vkops.gpu.adapters.adapter import DeviceInfo
    from vkops.gpu.adapters.diagnosis import Driver

_DEPENDENCIES = ("vkops", "kp", "numpy", "python-rapidjson")


@click.command()
@options.as_json
@options.flag("-v", "--verbose", help="Show the limits and features of each device.")
@options.flag("--selftest", help="Check that a driver does what kernels and shaders rely on.")
@options.adapter
def devices(as_json: bool, verbose: bool, selftest: bool, adapter: str) -> None:
    """List the Vulkan drivers and devices.

    For each driver that was found, it says whether it works, or why not, where
    it is from, and how old it is. --selftest checks one driver instead: that of
    --adapter, or of the adapter that is used by default. If adapters have the
    same name, VKOPS_ADAPTER=1 chooses the one with this number.
    """
    if selftest:
        _selftest(adapter or None, as_json)
        return
    from dataclasses import asdict

    from vkops import gpu, shaders
    from vkops.gpu.adapters import nvidia
    from vkops.gpu.adapters.adapter import LIST_DRIVERS

    drivers, problem = gpu.drivers(), None
    if not as_json and drivers:
        _show_drivers(drivers)
    try:
        infos = vkops.devices()
    except DeviceError as error:
        infos, problem = [], DeviceError(str(error).removesuffix(LIST_DRIVERS))
    if as_json:
        lists = {
            "devices": [asdict(info) for info in infos],
            "drivers": [{**asdict(driver), "usable": driver.usable} for driver in drivers],
            "native_operations": gpu.native_state(),
            "glsl_compiler": shaders.compiler_state(),
        }
        click.echo(json.dumps(lists, indent=2))
    elif infos:
        _show_devices(infos, verbose=verbose)
        if all(info.vendor_id != nvidia.VENDOR for info in infos) and (why := nvidia.missing()):
            click.echo(why)
        click.echo(f"Native operations: {gpu.native_state()}")
        click.echo(f"GLSL compiler: {shaders.compiler_state()}")
    if problem is not None:
        raise problem


def _show_drivers(drivers: Sequence[Driver]) -> None:
    from vkops.console import show, table

    rows: dict[tuple[str, ...], list[str]] = {}  # drivers that fail alike are in one
    for driver in drivers:
        result = ", ".join(driver.adapters) if driver.usable else driver.reason
        source = ", ".join(filter(None, [driver.source, driver.built]))
        row = "yes" if driver.usable else "no", result, source
        rows.setdefault(row, []).append(driver.name)
    heads = "Driver", "Usable", "Adapters, or what is wrong", "From, built"
    listed = ((", ".join(names), *cells) for cells, names in rows.items())
    # Immediately: a driver that crashes may end this process next.
    show(table("Vulkan drivers", heads, listed))
    sys.stdout.flush()


def _show_devices(infos: Sequence[DeviceInfo], *, verbose: bool) -> None:
    from rich.markup import escape
    from rich.text import Text

    from vkops.console import show, table

    cells = (
        (str(each.index), each.name, each.type, each.api_version,
         f"{each.driver} ({each.driver_version})",
         memory_size(each.memory))
        for each in infos
    )  # fmt: skip
    headings = "#", "Name", "Type", "Vulkan", "Driver", "Memory"
    show(table("Vulkan devices", headings, cells))
    for info in infos if verbose else ():
        title = f"Limits of {escape(info.label)}"
        limits = [(name, Text(value)) for name, value in info.limits.rows()]
        show(table(title, ("Device.limits", "Value"), limits))


def _selftest(adapter: str | None, as_json: bool) -> None:
    """Print each check as it is done, then the answer; exit with status 1 if one failed."""
    from vkops.debug.selftest import UNTESTED, Check
    from vkops.debug.selftest_processes import check_in_processes

    checks: list[Check] = []
    with vkops.Device(adapter) as device:
        info = device.info
        for check in check_in_processes(device):
            checks.append(check)
            if not as_json and check.reason != UNTESTED:
                state = {True: "ok", False: "FAILED", None: "not checked"}[check.passed]
                click.echo(": ".join(filter(None, [check.name, state, check.reason])))
                sys.stdout.flush()  # the next one may end this process
    failed = [check.name for check in checks if check.passed is False]
    if as_json:
        listed = [check._asdict() for check in checks]
        click.echo(json.dumps({"driver": info.driver, "passed": not failed, "checks": listed}))
    else:
        untested = sum(check.reason == UNTESTED for check in checks)
        if untested:
            click.echo(f"features without a test, which --json names: {untested}")
        answer = f"no, these fail: {', '.join(failed)}" if failed else "yes"
        click.echo(f"{info.name}, {info.driver}: {answer}")
    if failed:
        click.get_current_context().exit(1)


def adapter_block(info: DeviceInfo) -> str:
    """Return DxDispatch's lines about one adapter, and an empty one."""
    return (
        f"{info.name}\n"
        f"-Version: {info.driver_version}\n"
        f"-Hardware: {str(info.type != 'CPU').lower()}\n"
        f"-Integrated: {str(info.type == 'INTEGRATED_GPU').lower()}\n"
        f"-Dedicated Adapter Memory: {memory_size(info.dedicated_memory)}\n"
        f"-Dedicated System Memory: {memory_size(0)}\n"
        f"-Shared System Memory: {memory_size(info.shared_memory)}\n"
    )


def memory_size(nbytes: int) -> str:
    """Return a size as DxDispatch prints it; a unit is used for sizes above one of it.

    >>> [memory_size(nbytes) for nbytes in (0, 1024, 1025, 1536, 2**20, 2**30, 3 * 2**29)]
    ['0 bytes', '1024 bytes', '1.00 KB', '1.50 KB', '1024.00 KB', '1024.00 MB', '1.50 GB']
    """
    for shift, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if nbytes > 1 << shift:
            return f"{nbytes / (1 << shift):.2f} {unit}"
    return f"{nbytes} bytes"


def dependency_lines() -> Iterator[str]:
    """Yield one line for each package that a run uses, with its version."""
    from importlib import metadata

    for name in _DEPENDENCIES:
        try:
            yield f"{name}: {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name}: not installed"
