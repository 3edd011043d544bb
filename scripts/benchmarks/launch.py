"""Measure what a call costs. Usage: scripts/bench --launch [--json] [--rounds N] [--adapter NAME].

numba-vulkan and slangpy take part if they are installed: .venv/bin/pip install numba-vulkan slangpy
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import vkops
from benchmarks import is_installed, options, print_json
from benchmarks.shaders import with_kompute
from vkops import console, shaders

N, STEPS, FACTOR = 1024, 100, 0.5
X = np.arange(N, dtype=np.float32)
NOTHING = np.zeros_like(X)

GLSL = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { float a; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = a * x[i] + y[i]; }"""
SLANG = "float axpy(float a, float x, float y) { return a * x + y; }"


@dataclass(frozen=True)
class Row:
    """``run`` makes so many launches; after the first time, ``read`` is FACTOR * X for each."""

    name: str
    run: Callable[[], Any]
    wait: Callable[[], Any]
    read: Callable[[], Any]
    launches: int = 1


def numba_rows(device: vkops.Device) -> Iterator[Row]:
    """A kernel, whose arrays are on the device."""
    import numba_vulkan as nv

    nv.select_device(device.name)

    @nv.jit  # type: ignore[untyped-decorator, unused-ignore]
    def axpy(a, x, y):  # type: ignore[no-untyped-def]
        i = nv.global_id(0)
        if i < x.shape[0]:
            y[i] = a * x[i] + y[i]

    x, y, a = nv.to_device(X), nv.to_device(NOTHING), np.float32(FACTOR)
    yield Row("numba-vulkan", lambda: axpy.forall(N)(a, x, y), nv.synchronize, y.copy_to_host)


def slang_rows(device: vkops.Device) -> Iterator[Row]:
    """The functional interface, whose tensors are on the device."""
    import slangpy as spy

    if device.info.api_version.startswith("1.1."):
        raise vkops.DeviceError("it ends the process on a device of Vulkan 1.1")
    opened = spy.create_device(type=spy.DeviceType.vulkan)
    if opened.info.adapter_name != device.name:
        raise vkops.DeviceError(f"it chose {opened.info.adapter_name}")
    axpy = spy.Module(opened.load_module_from_source("launch", SLANG)).axpy
    x, y = (spy.Tensor.from_numpy(opened, each) for each in (X, NOTHING))
    yield Row("slangpy", lambda: axpy(FACTOR, x, y, _result=y), opened.wait, y.to_numpy)


def vkops_rows(device: vkops.Device) -> Iterator[Row]:
    """Shaders, elementwise kernels, functions, and a program of STEPS launches."""
    wait, shader, x = device.synchronize, device.compile_shader(GLSL), device.tensor(X)
    kernel = vkops.ElementwiseKernel("float32 a, T x, T y", "T z", "z = a * x + y")

    def row(name: str, make: Callable[[vkops.Tensor], Callable[[], Any]], launches: int = 1) -> Row:
        y = device.tensor(NOTHING)
        return Row(f"vkops: {name}", make(y), wait, lambda: y, launches)

    def program(y: vkops.Tensor) -> Callable[[], Any]:
        with device.record() as recorded:
            for _ in range(STEPS):
                shader(x, y, a=FACTOR, threads=N)
        return recorded.run

    yield row("call", lambda y: partial(shader, x, y, a=FACTOR, threads=N))
    yield row("bound", lambda y: shader.bound({"X": x, "Y": y}, N // 64, {"a": FACTOR}).dispatch)
    yield row("ElementwiseKernel, out=", lambda y: partial(kernel, FACTOR, x, y, out=y))
    half = device.tensor(FACTOR * X)
    roll, split = partial(vkops.roll, half, 1), partial(vkops.split, half, 2)
    concat = partial(vkops.concat, [half, half])
    yield Row("vkops: roll(x, 1)", roll, wait, lambda: vkops.roll(roll(), -1))
    yield Row("vkops: split(x, 2)", split, wait, lambda: vkops.concat(split()))
    yield Row("vkops: concat of two", concat, wait, lambda: concat()[N:])
    yield row("recorded, a step", program, STEPS)


def kompute_rows(device: vkops.Device) -> Iterator[Row]:
    """One sequence of STEPS dependent dispatches."""
    alone = with_kompute.Contender(device.info)
    x, y, constants = alone._tensor(X), alone._tensor(NOTHING), np.array([FACTOR], np.float32)
    make, spirv = alone._manager.algorithm, shaders.compile(GLSL)
    algorithm = make([x, y], spirv, (N // 64, 1, 1), NOTHING[:0], constants)
    sequence, read = alone._sequence([algorithm] * STEPS), partial(alone._fetched, y)
    yield Row("Kompute: a step", sequence.eval_async, sequence.eval_await, read, STEPS)


def measure(device: vkops.Device, rounds: int) -> dict[str, dict[str, float]]:
    """Return the least microseconds for each launch, by the names of rows, which take turns.

    ``chain`` is that of STEPS launches before a wait, ``one`` a launch and a wait, and ``cpu`` the
    time of the calling thread in the chain without the wait.

    Raises:
        DeviceError: a result differs from NumPy's.
    """
    rows: list[Row] = []
    for package, make in {"numba_vulkan": numba_rows, "slangpy": slang_rows}.items():
        try:
            rows += make(device) if is_installed(package) else ()
        except Exception as error:  # of the other library
            console.complain(f"{package} is left out: {error}")
    rows += [*vkops_rows(device), *kompute_rows(device)]
    for row in rows:
        row.run()
        row.wait()
        if not np.allclose(row.read(), row.launches * FACTOR * X):
            raise vkops.DeviceError(f"{row.name}: the result differs from NumPy's")
    costs: dict[str, dict[str, float]] = {row.name: {} for row in rows}
    for _ in range(rounds):
        for row in rows:
            for key, seconds in _seconds(row):
                costs[row.name][key] = min(1e6 * seconds, costs[row.name].get(key, np.inf))
    return costs


def _seconds(row: Row) -> Iterator[tuple[str, float]]:
    row.run()  # the rows before may have used the processor's caches
    row.wait()
    start, busy = perf_counter(), thread_time()
    for _ in range(STEPS // row.launches):
        row.run()
    busy = thread_time() - busy
    row.wait()
    yield "chain", (perf_counter() - start) / STEPS
    if row.launches == 1:
        start = perf_counter()
        row.run()
        row.wait()
        yield "one", perf_counter() - start
    yield "cpu", busy / STEPS


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print a table or JSON."""
    arguments = options("launch", __doc__, rounds=30).parse_args(argv)
    device = vkops.Device(arguments.adapter)
    costs = measure(device, arguments.rounds)
    if arguments.json:
        packages = ("kp", "numba_vulkan", "numpy", "slangpy")
        print_json(device, packages, rounds=arguments.rounds, microseconds=costs)
        return
    console.info(f"{device.name} ({device.info.driver}), {os.cpu_count()} processors")
    console.info(f"Microseconds for {N} elements, the best of {arguments.rounds} rounds")
    rows = (
        [name, *(f"{cost[k]:.1f}" if k in cost else "" for k in ("chain", "one", "cpu"))]
        for name, cost in costs.items()
    )
    headings = "", f"chain of {STEPS}", "one, and a wait", "CPU time"
    console.show(console.table(None, headings, rows))


if __name__ == "__main__":
    main()
