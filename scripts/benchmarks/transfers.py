"""Measure transfers. Usage: scripts/bench --transfers [options].

--json; --rounds N; --mib N; --adapter NAME; --staged: move data through staging memory, as on a
discrete GPU, also where the host sees the memory of the device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date
from time import perf_counter, process_time
from typing import Any

import numpy as np
import numpy.typing as npt

import vkops
from benchmarks import options
from vkops import console

Bytes = npt.NDArray[np.uint8]


def rows(device: vkops.Device, nbytes: int) -> dict[str, Callable[[], Any]]:
    """Functions that each move so many bytes, by name, and copies by memcpy to compare with."""
    source = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    between, out = np.zeros_like(source), np.zeros_like(source)
    tensor, pinned, pinned_out = (
        device.tensor(source),
        device.pinned_like(source),
        device.pinned_like(source),
    )
    pinned[:] = source
    pinned_out[:] = 0

    def up(array: Bytes) -> None:
        tensor[...] = array
        device.synchronize()

    def two_copies(target: Bytes | None) -> None:
        np.copyto(between, source)
        if target is None:
            between.copy()
        else:
            np.copyto(target, between)

    def check(array: Bytes) -> None:
        if not np.array_equal(array, source):
            raise SystemExit("a transfer has changed the bytes")

    check(tensor.numpy())
    check(tensor.numpy(out=out))
    check(tensor.numpy(out=pinned_out))
    up(pinned)
    check(tensor.numpy())
    return {
        "memcpy": lambda: np.copyto(out, source),
        "two memcpys": lambda: two_copies(out),
        "two memcpys, the second to a new array": lambda: two_copies(None),
        "t[...] = array": lambda: up(source),
        "t[...] = pinned": lambda: up(pinned),
        "t.numpy()": tensor.numpy,
        "t.numpy(out=array)": lambda: tensor.numpy(out=out),
        "t.numpy(out=pinned)": lambda: tensor.numpy(out=pinned_out),
    }


COMPARED = {
    "t[...] = array": "two memcpys",
    "t[...] = pinned": "memcpy",
    "t.numpy()": "two memcpys, the second to a new array",
    "t.numpy(out=array)": "two memcpys",
    "t.numpy(out=pinned)": "memcpy",
}
"""The copy with which each transfer is compared."""


def measure(
    functions: dict[str, Callable[[], Any]], rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """The least seconds that each function takes, and those of the processor; all run in turn."""
    least, least_cpu = (dict.fromkeys(functions, float("inf")) for _ in range(2))
    for _ in range(rounds):
        for name, function in functions.items():
            began, began_cpu = perf_counter(), process_time()
            function()
            least[name] = min(least[name], perf_counter() - began)
            least_cpu[name] = min(least_cpu[name], process_time() - began_cpu)
    return least, least_cpu


def main(argv: Sequence[str] | None = None) -> None:
    """Print the rates, and what they are of those of memcpy."""
    parser = options("transfers", None, rounds=9)
    parser.add_argument("--staged", action="store_true")
    parser.add_argument("--mib", type=int, default=128)
    arguments = parser.parse_args(argv)
    nbytes = arguments.mib << 20
    with vkops.Device(arguments.adapter, staged=arguments.staged) as device:
        least, least_cpu = measure(rows(device, nbytes), arguments.rounds)
        label = device.info.label
    rates = {name: nbytes / seconds / 1e9 for name, seconds in least.items()}
    ratios, ratios_cpu = (
        {name: seconds[other] / (seconds[name] or 1e-9) for name, other in COMPARED.items()}
        for seconds in (least, least_cpu)
    )
    if arguments.json:
        about = {"device": label, "date": str(date.today()), "mib": arguments.mib}
        print(json.dumps({**about, "gb_per_s": rates, "ratios": ratios, "ratios_cpu": ratios_cpu}))
        return
    title = f"{arguments.mib} MiB on {label}, best of {arguments.rounds}"
    headings = ["", "GB/s", "ratio", "of processor time", "to"]
    lines = []
    for name, rate in rates.items():
        of = COMPARED.get(name, "")
        each = [f"{ratios[name]:.2f}", f"{ratios_cpu[name]:.2f}"] if of else ["", ""]
        lines.append((name, f"{rate:.2f}", *each, of))
    console.show(console.table(title, headings, lines))


if __name__ == "__main__":
    main()
