"""Rechunk and transpose an array that is larger than the memory of two workers' devices.

A program, since workers import the program that starts them: ENTRIES [--kill], where ENTRIES is
the argument of ``vkops.dask.local_cluster`` in JSON. With ``--kill``, a worker is killed meanwhile.
It prints what it found in JSON.
"""

import json
import os
import signal
import sys
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, wait

import vkops
import vkops.dask
from vkops.tensors.tensor import default_device

LIMIT = 64 << 20
ROWS = 6144


def report(dask_worker):
    """What a worker can say of itself."""
    device = default_device()
    return {
        "adapter": device.name,
        "limit": int(os.environ["VKOPS_MEMORY_LIMIT"]),
        "process": os.getpid(),
        "reserved": device.memory_report().reserved,
        "spilled": len(dask_worker.data.slow),
    }


def reports(client):
    """The reports of all workers, in the order of the entries."""
    names = {address: info["name"] for address, info in client.scheduler_info()["workers"].items()}
    by_address = client.run(report)
    return [by_address[address] for address in sorted(by_address, key=names.__getitem__)]


def counts(dask_scheduler):
    """How many tasks have a result, and how many have none yet."""
    states = [task.state for task in dask_scheduler.tasks.values()]
    done = sum(state in ("memory", "released", "forgotten") for state in states)
    return [states.count("memory"), len(states) - done]


def kill_one(client):
    """Kill the first worker when it has results, and others are to come; return the counts."""
    numbers = [0, 0]
    while numbers[0] < 8:
        time.sleep(0.05)
        numbers = client.run_on_scheduler(counts)
    os.kill(reports(client)[0]["process"], signal.SIGKILL)
    return numbers


def main(entries, kill):
    chunk_size = {"array.chunk-size": LIMIT // 32}  # of chunks that rechunk makes on its way
    with (
        dask.config.set(chunk_size),
        vkops.dask.local_cluster(entries, device_memory=LIMIT) as cluster,
        Client(cluster) as client,
    ):
        before = reports(client)
        numbers = da.arange(ROWS * ROWS, dtype=np.uint32, chunks=ROWS * 64).reshape(ROWS, ROWS)
        rows = numbers.map_blocks(vkops.asarray)
        columns = rows.rechunk((1024, 512)).T[::-1].rechunk((64, ROWS)).persist()
        killed = kill_one(client) if kill else []
        wait(columns)
        client.wait_for_workers(len(entries))
        after = reports(client)
        computed = columns.map_blocks(np.asarray).compute()
        expected = np.arange(ROWS * ROWS, dtype=np.uint32).reshape(ROWS, ROWS).T[::-1]
        report = {
            "adapters": [worker["adapter"] for worker in before],
            "limits": [worker["limit"] for worker in before],
            "reserved": [worker["reserved"] for worker in after],
            "spilled": sum(worker["spilled"] for worker in after),
            "restarted": before[0]["process"] != after[0]["process"],
            "tasks_when_killed": killed,
            "array_bytes": expected.nbytes,
            "equal": bool(np.array_equal(computed, expected)),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), "--kill" in sys.argv)
