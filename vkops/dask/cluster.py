"""Dask clusters on one machine, whose workers have a device each."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dask.utils
from distributed import Nanny, Scheduler, SpecCluster
from distributed.spill import SpillBuffer

from vkops.errors import DeviceError, VkopsError, show
from vkops.gpu.adapters import adapter
from vkops.tensors.tensor import default_device

HOST = "127.0.0.1"
MESSAGE_BYTES = "distributed.worker.transfer.message-bytes-limit"
MESSAGE_PARTS = 16
"""The chunks that a worker fetches at once take at most this part of its device's memory."""


def local_cluster(
    devices: Sequence[int | str | Mapping[str, str]] | None = None,
    *,
    device_memory: int | str | None = None,
    dashboard_address: str | None = None,
    **worker_options: Any,
) -> SpecCluster:
    """Start a Dask cluster on this machine: a process for each entry of ``devices``.

    The default device of each worker is the adapter of its entry, so that ``vkops.asarray`` and all
    functions use it. Adapters that are named several times are shared. A worker has one thread,
    because a device executes one operation at a time. It writes results to disk once those that it
    holds take half of its device's memory. The other half is for the inputs and outputs of the
    operation that runs, and for chunks on their way, so chunks should be small: a 32nd of the
    device's memory, for example. Dask's setting ``array.chunk-size`` (128 MiB) limits the chunks
    that ``rechunk`` makes on its way. A worker that ends is started again, with the same device.

    Workers are new processes, which import the program that starts them: its statements belong
    under ``if __name__ == "__main__":``.

    Args:
        devices: for each worker the index of an adapter, part of its name, or the environment
            variables of the worker, such as VKOPS_ADAPTER and VK_DRIVER_FILES; default: one worker
            for each GPU, or for the adapter that ``Device()`` opens if there is none.
        device_memory: the bytes, or a text such as ``"2 GiB"``, that a worker may take from its
            device (VKOPS_MEMORY_LIMIT); default: what the device has, shared equally by the workers
            with the same entry.
        dashboard_address: where Dask's dashboard is served, such as ``":8787"``; default: nowhere.
        worker_options: further options of ``distributed.Nanny``, such as ``nthreads`` and
            ``memory_limit``.

    Returns:
        The cluster, which ``distributed.Client`` takes; ``close`` or a ``with`` block ends it.

    Raises:
        DeviceError: an argument of the wrong kind, or no entry (DEV-14), or a worker has no such
            adapter.

    >>> import dask.array, numpy as np, vkops
    >>> from distributed import Client
    >>> with local_cluster([0], device_memory="64 MiB") as cluster, Client(cluster):
    ...     x = dask.array.from_array(np.arange(12).reshape(3, 4), chunks=2)
    ...     y = x.map_blocks(vkops.asarray).rechunk((3, 1)).T
    ...     y.map_blocks(np.asarray).compute()[1].tolist()
    [1, 5, 9]
    """
    entries = _default_entries() if devices is None else devices
    if isinstance(entries, (str, bytes)) or not (isinstance(entries, Sequence) and entries):
        kinds = "a list with an entry for each worker"
        raise DeviceError(f"devices: got {show(entries)}, must be {kinds} [DEV-14]")
    environments = [_environment(number, entry) for number, entry in enumerate(entries)]
    limit: dict[str, str] = {}
    if device_memory is not None:
        nbytes = _bytes(device_memory)
        limit = {adapter.MEMORY_LIMIT: str(nbytes)}
        worker_options = {"config": {MESSAGE_BYTES: nbytes // MESSAGE_PARTS}, **worker_options}
    scheduler = {
        "host": HOST,
        "port": 0,
        "dashboard": dashboard_address is not None,
        "dashboard_address": dashboard_address or f"{HOST}:0",
    }
    try:
        return SpecCluster(
            workers=_workers(environments, limit, worker_options),
            scheduler={"cls": Scheduler, "options": scheduler},
            silence_logs=logging.WARNING,
            name="vkops.dask.local_cluster",
        )
    except RuntimeError as error:  # a worker did not start; its own error says why
        raise error.__cause__ if isinstance(error.__cause__, VkopsError) else error from None


def _workers(
    environments: Sequence[Mapping[str, str]], limit: Mapping[str, str], options: Mapping[str, Any]
) -> dict[int, dict[str, Any]]:
    """Return the class of each worker, and its options."""
    common = {
        "host": HOST,
        "nthreads": 1,
        "dashboard": False,
        "dashboard_address": f"{HOST}:0",  # the server is there without a dashboard, too
        "silence_logs": logging.WARNING,
        **options,
    }
    return {
        number: {
            "cls": Nanny,
            "options": {
                "env": {**environment, **limit},
                "data": (_storage, {"workers": 1 if limit else environments.count(environment)}),
                **common,
            },
        }
        for number, environment in enumerate(environments)
    }


def _storage(worker_local_directory: str, workers: int) -> SpillBuffer:
    """A worker's results: those beyond half of its share of the device's memory are on disk."""
    available = default_device().pool.available() // workers
    return SpillBuffer(str(Path(worker_local_directory, "storage")), target=available // 2)


def _default_entries() -> list[int]:
    """The indices of all GPUs; if there are none, that of the adapter that ``Device()`` opens."""
    gpus = [info.index for info in adapter.devices() if info.type.endswith("_GPU")]
    return gpus or [adapter.choose(None).index]


def _environment(number: int, entry: Any) -> dict[str, str]:
    if isinstance(entry, Mapping):
        return {str(name): str(value) for name, value in entry.items()}
    if isinstance(entry, bool) or not isinstance(entry, (int, str)) or entry == "":
        kinds = "an index, part of an adapter's name, or environment variables"
        raise DeviceError(f"devices[{number}]: got {show(entry)}, must be {kinds} [DEV-14]")
    return {adapter.CHOSEN: str(entry)}


def _bytes(size: int | str) -> int:
    try:
        nbytes = int(dask.utils.parse_bytes(size))
    except (TypeError, ValueError, OverflowError, AttributeError):
        nbytes = 0
    if isinstance(size, bool) or nbytes < 1:
        message = f"got {show(size)}, must be a number of bytes, such as '2 GiB'"
        raise DeviceError(f"device_memory: {message} [DEV-14]")
    return nbytes
