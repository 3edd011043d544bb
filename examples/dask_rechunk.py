"""Transpose and rechunk an array on Dask workers that have a device each, and compare with NumPy.

Usage: python examples/dask_rechunk.py [--size N] [--memory BYTES] [--numpy] [ADAPTER ...]

N x N elements of 4 bytes (default: 4096) are moved by one worker for each adapter (default: the
best one). A worker takes that much memory of its device (default: 64 MiB); results for which this
is too little are on disk. Chunks are a 32nd of it; with --numpy, they are arrays of NumPy.
"""

import argparse
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, wait

import vkops
import vkops.dask


def main(adapters, n, memory, chunk):
    chunk_bytes = dask.utils.parse_bytes(memory) // 32
    count = max(1, chunk_bytes // (4 * n))
    with (
        dask.config.set({"array.chunk-size": chunk_bytes}),
        vkops.dask.local_cluster(adapters or None, device_memory=memory) as cluster,
        Client(cluster) as client,
    ):
        for name in client.run(lambda: vkops.Device().name).values():
            print(f"a worker on {name!r}")
        rows = da.arange(n * n, dtype=np.uint32, chunks=n * count).reshape(n, n)
        rows = rows.map_blocks(chunk).persist()
        wait(rows)
        start = time.perf_counter()
        turned = rows.T.rechunk((count, n)).persist()
        wait(turned)
        seconds = time.perf_counter() - start
        size = f"{rows.nbytes >> 20} MiB"
        print(f"transposed and rechunked: {size}, {rows.nbytes / seconds / 1e6:.0f} MB/s")
        made = turned.map_blocks(np.asarray).compute()
        print("as NumPy:", np.array_equal(made, np.arange(n * n).reshape(n, n).T))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("adapters", nargs="*")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--memory", default="64 MiB")
    parser.add_argument("--numpy", action="store_true")
    arguments = parser.parse_args()
    chunk = np.asarray if arguments.numpy else vkops.asarray
    main(arguments.adapters, arguments.size, arguments.memory, chunk)
