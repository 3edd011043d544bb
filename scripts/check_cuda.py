"""Check on an NVIDIA GPU that vkops and CUDA share memory (docs/moving_data.md, "With CUDA").

    .venv/bin/pip install torch && .venv/bin/python scripts/check_cuda.py [MiB]

It prints a line for each check, and GB/s of copies; it exits with 1 if a check fails.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

import vkops

SLOW = 200_000_000  # cycles of the GPU, some 0.1 s


def stream_of(stream: Any = None) -> int:
    """Return the handle of a stream of PyTorch, or of the current one."""
    return int((stream or torch.cuda.current_stream()).cuda_stream)


def same_memory(device: vkops.Device, elements: int) -> bool:
    """Let each side write, and the other one read."""
    x = device.tensor(np.arange(elements, dtype=np.int32), shared=True)
    t = torch.from_dlpack(x)
    is_there = t.is_cuda and bool((t == torch.arange(elements, device=t.device)).all())
    t.neg_()
    device.wait_stream(stream_of())
    is_back = bool((x.numpy() == -np.arange(elements)).all())
    x[:5] = 7
    return is_there and is_back and torch.from_dlpack(x)[:6].tolist() == [7] * 5 + [-5]


def views(device: vkops.Device, elements: int) -> bool:
    """Show views, and the array interface."""
    x = device.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4), shared=True)
    all_ = (x, x[1:], x.T, x[:, ::2, 1], x[::-1], x.view("int32"))
    by_dlpack = all((torch.from_dlpack(v).cpu().numpy() == v.numpy()).all() for v in all_)
    shown = torch.as_tensor(x, device="cuda")
    address = x.__cuda_array_interface__["data"][0]
    return by_dlpack and bool(
        (shown.cpu().numpy() == x.numpy()).all() and shown.data_ptr() == address
    )


def both_wait_on_the_gpu(device: vkops.Device, elements: int) -> bool:
    """Let a chain of slow work be waited for on the GPU alone, in both directions."""
    x = device.empty(elements, "int32", shared=True)
    y = device.empty(elements, "int32", shared=True)
    t, source = torch.from_dlpack(x), torch.arange(elements, dtype=torch.int32, device="cuda")
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    began = perf_counter()
    with torch.cuda.stream(first):
        torch.cuda._sleep(SLOW)
        t.copy_(source)
    device.wait_stream(stream_of(first))
    y[...] = vkops.flip(x)
    with torch.cuda.stream(second):
        result = torch.from_dlpack(y).clone()
    given = perf_counter() - began
    second.synchronize()
    took = perf_counter() - began
    print(f"    the host gave the work in {given * 1e3:.1f} ms; it took {took * 1e3:.1f} ms")
    return bool((result == source.flip(0)).all()) and given < took / 2


def imports(device: vkops.Device, elements: int) -> bool:
    """Copy tensors that are freed at once, and whose memory PyTorch uses again."""
    for seed in range(20):
        source = torch.full((elements,), seed, dtype=torch.int32, device="cuda")
        result = vkops.from_dlpack(source, device=device)
        del source
        torch.full((elements,), -1, dtype=torch.int32, device="cuda")
        if not (result.numpy() == seed).all() or result.__dlpack_device__()[0] != 2:
            return False
    t = torch.arange(24, device="cuda").reshape(4, 6).to(torch.bfloat16)
    return all(
        bool((torch.from_dlpack(vkops.from_dlpack(v, device=device)) == v).all())
        for v in (t, t.T, t[:, 1::2], t[0, 0])
    )


def freed_while_used(device: vkops.Device, elements: int) -> bool:
    """Free memory that both have given up, but that a stream is still to read."""
    x = device.tensor(np.full(elements, 3, np.int32), shared=True)
    t = torch.from_dlpack(x)
    torch.cuda._sleep(SLOW)
    result = t.clone()
    del x, t
    others = [device.tensor(np.full(elements, 4, np.int32), shared=True) for _ in range(4)]
    device.synchronize()
    return bool((result == 3).all()) and len(others) == 4


def nothing_is_left(device: vkops.Device, elements: int) -> bool:
    """Make and free memory a hundred times."""
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(100):
        x = device.empty(elements, "int32", shared=True)
        torch.from_dlpack(x).zero_()
        del x
    gc.collect()
    torch.cuda.synchronize()
    device.synchronize()
    return bool(torch.cuda.mem_get_info()[0] > free - 8 * elements * 4)


def rate(name: str, nbytes: int, call: Callable[[], object], device: vkops.Device) -> None:
    """Print the median of ten times of a call, with all that it has begun."""
    times = []
    for _ in range(12):
        began = perf_counter()
        call()
        device.synchronize()
        torch.cuda.synchronize()
        times.append(perf_counter() - began)
    took = median(times[2:])
    print(f"{name}: {nbytes / took / 1e9:.1f} GB/s, {took * 1e6:.0f} us")


def main() -> int:
    nbytes = int(sys.argv[1] if len(sys.argv) > 1 else 256) << 20
    device = vkops.Device(expect="gpu")
    print(f"{device.info.label}; PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    cuda = device.vulkan.cuda
    if isinstance(cuda, str):
        print(f"FAIL: {cuda}")
        return 1
    print(f"device {cuda.number} of CUDA; waits on the {'GPU' if cuda.is_ordered else 'HOST'}")
    failed = not cuda.is_ordered
    for check in (
        same_memory,
        views,
        both_wait_on_the_gpu,
        imports,
        freed_while_used,
        nothing_is_left,
    ):
        passed = check(device, 1 << 22)
        failed |= not passed
        print(f"{'pass' if passed else 'FAIL'}: {check.__name__}")
    x = device.empty(nbytes // 4, "int32", shared=True)
    t = torch.from_dlpack(x)
    rate("torch.from_dlpack(x) again", nbytes, lambda: torch.from_dlpack(x), device)
    rate("vkops.from_dlpack(t)", nbytes, lambda: vkops.from_dlpack(t, device=device), device)
    rate("t.clone() of PyTorch", nbytes, t.clone, device)
    rate("vkops.flip(x)", nbytes, lambda: vkops.flip(x).copy(), device)
    rate("device.tensor(t.cpu())", nbytes, lambda: device.tensor(t.cpu()), device)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
