"""Tensors as chunks of Dask arrays: operations, errors, sizes, and how they are sent and spilled."""

import json
import pickle
import re
import subprocess
import sys
from functools import partial
from glob import glob

import dask
import dask.array as da
import dask_cluster
import numpy as np
import pytest
from adapters import MANIFESTS, memory_used
from arrays import equal, on_device, small, viewed
from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize
from distributed.spill import SpillBuffer
from hypothesis import given
from hypothesis import strategies as st
from processes import outcome

import vkops
import vkops.dask
from vkops.gpu.run.buffer import Buffer, HostBuffer

ARRAY = np.arange(240, dtype=np.int32).reshape(4, 6, 10)


def assigned(x, index, value):
    x = x.copy()
    x[index] = value
    return x


# Each call is made with dask.array and an array of tensors, and with numpy and an array.
CALLS = {
    "append": lambda m, x: m.append(x, x, axis=0),
    "assign a chunk": lambda m, x: assigned(x, (0, 0), np.arange(10)),
    "assign a row": lambda m, x: assigned(x, 1, 5),
    "assign backwards": lambda m, x: assigned(
        x, (slice(None, None, -1), 0, slice(2, 5)), np.arange(12).reshape(4, 3)
    ),
    "assign by indices": lambda m, x: assigned(x, (slice(None), [1, 4]), 3),
    "assign by steps": lambda m, x: assigned(x, (slice(1, 3), slice(None, None, 2)), 7),
    "astype": lambda m, x: x.astype(np.float64),
    "block": lambda m, x: m.block([[x, x], [x, x]]),
    "broadcast_arrays": lambda m, x: m.broadcast_arrays(x, x[:1])[1],
    "broadcast_to": lambda m, x: m.broadcast_to(x, (3, 4, 6, 10)),
    "compress": lambda m, x: m.compress([True, False, True, True], x, axis=0),
    "concatenate": lambda m, x: m.concatenate([x, x[::-1]], axis=1),
    "delete": lambda m, x: m.delete(x, [1], axis=1),
    "diag": lambda m, x: m.diag(x[0, :, 0]),
    "diagonal": lambda m, x: m.diagonal(x),
    "expand_dims": lambda m, x: m.expand_dims(x, 0),
    "flip": lambda m, x: m.flip(x, 1),
    "full_like": lambda m, x: m.full_like(x, 3),
    "index": lambda m, x: x[1],
    "index by Booleans": lambda m, x: x[:, np.array([True, False] * 3)],
    "index by indices": lambda m, x: x[:, [3, 0, 5]],
    "index by slices": lambda m, x: x[1:, ::2, ::-1],
    "insert": lambda m, x: m.insert(x, 2, m.asarray(np.full((4, 10), 9, x.dtype)), axis=1),
    "map_overlap": lambda m, x: (
        m.map_overlap(lambda block: block[::1], x, depth=1, boundary="reflect", dtype=x.dtype)
        if m is da
        else x
    ),
    "pad": lambda m, x: m.pad(x, ((1, 2), (0, 1), (3, 0)), constant_values=7),
    "pad, edge": lambda m, x: m.pad(x, 1, mode="edge"),
    "pad, reflect": lambda m, x: m.pad(x, 2, mode="reflect"),
    "pad, symmetric": lambda m, x: m.pad(x, 2, mode="symmetric"),
    "pad, wrap": lambda m, x: m.pad(x, 2, mode="wrap"),
    "ravel": lambda m, x: x.ravel(),
    "rechunk": lambda m, x: x.rechunk((4, 2, 7)) if m is da else x,
    "rechunk to one": lambda m, x: x.rechunk(-1) if m is da else x,
    "repeat": lambda m, x: m.repeat(x, 3, axis=1),
    "reshape": lambda m, x: x.reshape(24, 10),
    "reshape to more dimensions": lambda m, x: x.reshape(2, 2, 6, 10),
    "roll": lambda m, x: m.roll(x, 3, axis=2),
    "squeeze": lambda m, x: m.squeeze(x[:1]),
    "stack": lambda m, x: m.stack([x, x], axis=1),
    "take": lambda m, x: m.take(x, [5, 1, 1], axis=1),
    "tile": lambda m, x: m.tile(x, (2, 1, 2)),
    "transpose": lambda m, x: m.transpose(x, (1, 2, 0)),
    "vindex": lambda m, x: (x.vindex if m is da else x)[[0, 1, 3], [2, 4, 5]],
}


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


def chunked(device, source):
    """A Dask array of tensors: of a tensor that is cut, or of arrays that are sent."""
    if source == "tensor":
        return da.from_array(device.tensor(ARRAY), chunks=(2, 3, 5), asarray=False)
    send = partial(vkops.asarray, device=device)
    return da.from_array(ARRAY, chunks=(2, 3, 5)).map_blocks(send)


@pytest.mark.parametrize("source", ["tensor", "arrays"])
@pytest.mark.parametrize("name", CALLS)
def test_operations(device, name, source, monkeypatch):
    """Each has NumPy's result, made of tensors only: Dask converts none to an array on the way.

    To assign a tensor, vkops itself reads it as an array.
    """
    result = CALLS[name](da, chunked(device, source))
    assert isinstance(result._meta, vkops.Tensor)
    assert result.dtype == CALLS[name](np, ARRAY).dtype
    with monkeypatch.context() as patch:
        if not name.startswith("assign"):
            patch.setattr(vkops.Tensor, "__array__", None)
        computed = result.compute()
    assert computed.device is device
    equal(computed, CALLS[name](np, ARRAY))


def test_functions_of_numpy_take_dask_arrays_and_tensors(device):
    tensor = device.tensor(ARRAY)
    both = np.concatenate([chunked(device, "tensor"), tensor, ARRAY])
    assert isinstance(both, da.Array)
    equal(both.compute(), np.concatenate([ARRAY] * 3))


def test_chunks_are_converted_by_map_blocks(device):
    x = chunked(device, "tensor").map_blocks(np.asarray)
    assert isinstance(x._meta, np.ndarray)
    assert x.sum().compute() == ARRAY.sum()
    assert np.asarray(chunked(device, "tensor")).tolist() == ARRAY.tolist()


@pytest.mark.features
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(),
        lambda x: x.mean(axis=0),
        lambda x: x.max(axis=1),
        lambda x: da.where(x > 3, x, 0),
        lambda x: x.std(),
        lambda x: (x[0] @ x[1].T).sum(axis=0),
    ],
)
def test_chunks_are_computed_with(device, call):
    result = call(chunked(device, "tensor")).compute()
    expected = call(da.from_array(ARRAY, (2, 3, 5))).compute()
    assert isinstance(result, vkops.Tensor)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_what_vkops_lacks_is_refused(device):
    message = "tensor: numpy.cbrt is not available for tensors; use .numpy() to compute [ARRAY-08]"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        np.cbrt(chunked(device, "tensor")).compute()


# -- sizes and memory ------------------------------------------------------------------------------


def test_sizes(device):
    """Dask counts the elements, of a view those that it shows; so does Python."""
    tensor = device.tensor(np.zeros((100, 1000), np.float32))
    empty = sizeof(tensor[:0])
    assert 0 < empty < 300
    assert sizeof(tensor) == sys.getsizeof(tensor) == 400_000 + empty
    assert sizeof(tensor[::2].T) == 200_000 + empty
    assert sizeof(tensor[0].broadcast_to((1000, 1000))) == 400_000 + empty


def test_a_small_part_of_a_chunk_does_not_hold_the_whole(device):
    before = memory_used(device)
    x = da.from_array(np.zeros((1000, 1000), np.float32), chunks=-1)
    (part,) = dask.compute(x.map_blocks(partial(vkops.asarray, device=device))[:10, :10])
    assert part.shape == (10, 10)
    assert memory_used(device) - before < 4096


# -- sending and spilling --------------------------------------------------------------------------


@on_device
@given(array=small, data=st.data(), as_part=st.booleans())
def test_tensors_are_sent(device, array, data, as_part):
    """Alone or as a part of an object: what is sent has the elements and no object of the device."""
    tensor, array = viewed(data, device.tensor(array), array)
    header, frames = serialize([{"x": tensor}] if as_part else tensor)
    assert b"Device" not in bytes(frames[0])
    assert sum(memoryview(frame).nbytes for frame in frames[1:]) == tensor.nbytes
    received = deserialize(header, [bytes(frame) for frame in frames])
    equal(received[0]["x"] if as_part else received, array)


@pytest.mark.usefixtures("shared_memory")
def test_elements_are_sent_from_where_they_are(device):
    tensor = device.tensor(np.arange(1 << 16))
    for sent in (tensor, tensor[1000:], tensor.reshape(256, 256)[3:]):
        _, frames = serialize(sent)
        assert sum(memoryview(frame).nbytes for frame in frames) < sent.nbytes + 500
        assert np.shares_memory(np.frombuffer(frames[1], sent.dtype), tensor.numpy())


def test_spilling(device, tmp_path):
    """Results beyond the target are written to disk, which frees their memory, and read again."""
    arrays = [np.full((256, 1024), value, np.uint32) for value in range(4)]
    before = memory_used(device)
    spilled = SpillBuffer(str(tmp_path), target=2_200_000)
    for number, array in enumerate(arrays):
        spilled[f"x-{number}"] = device.tensor(array)
    assert (len(spilled.fast), len(spilled.slow)) == (2, 2)
    assert memory_used(device) - before <= 2 << 20
    for number, array in enumerate(arrays):
        equal(spilled[f"x-{number}"], array)


def test_what_does_not_fit_is_unpickled_on_the_host(device, monkeypatch):
    pickled = pickle.dumps(device.tensor(np.arange(1000)), 5)
    monkeypatch.setattr("vkops.tensors.tensor.default_device", lambda: device)
    assert isinstance(pickle.loads(pickled).buffer, Buffer)

    def allocate(*_):
        raise vkops.OutOfDeviceMemoryError("full")

    monkeypatch.setattr(device.pool, "allocate", allocate)
    received = pickle.loads(pickled)
    assert isinstance(received.buffer, HostBuffer)
    assert received.numpy().tolist() == list(range(1000))


def test_a_client_and_a_scheduler_without_a_device():
    """Where the kind of chunks is given, making and reading a graph needs no driver."""
    code = """
import cloudpickle
import dask.array as da
import numpy as np
import vkops.dask

x = da.from_array(np.arange(24).reshape(4, 6), chunks=(2, 3))
x = x.map_blocks(vkops.asarray, dtype=x.dtype, meta=np.empty((0, 0), x.dtype))
y = da.concatenate([x[:, ::-1], da.roll(x, 1, axis=1)]).rechunk((8, 2)).T
print(cloudpickle.loads(cloudpickle.dumps(y)).chunks)
try:
    vkops.Device()
except vkops.DeviceError as error:
    print(error)
"""
    nowhere = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "/nowhere")
    assert outcome("-c", code, **nowhere)[1].splitlines() == [
        "((2, 2, 2), (8,))", "no Vulkan driver: VK_DRIVER_FILES names none"
    ]  # fmt: skip


# -- clusters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            ({"devices": wrong}, f"devices: got {wrong!r}, must be a list with an entry for each worker")
            for wrong in (2, True, np.int64(2), "llvmpipe", b"0", {"VKOPS_ADAPTER": "0"}, {0}, [], ())
        ),
        *(
            (
                {"devices": wrong},
                f"devices[{len(wrong) - 1}]: got {wrong[-1]!r}, must be an index, part of an adapter's name, "
                "or environment variables",
            )
            for wrong in ([0, 1.5], [True], [""])
        ),
        *(
            ({"device_memory": wrong}, f"device_memory: got {wrong!r}, must be a number of bytes, such as '2 GiB'")
            for wrong in (0, True, "much")
        ),
    ],
)  # fmt: skip
def test_wrong_arguments_of_clusters(arguments, message):
    with pytest.raises(vkops.DeviceError, match=rf"^{re.escape(message)} \[DEV-14\]$"):
        vkops.dask.local_cluster(**{"devices": [0], **arguments})


def run_cluster(entries, *arguments):
    """Run the program ``dask_cluster``; return what it reports."""
    done = subprocess.run(
        [sys.executable, dask_cluster.__file__, json.dumps(entries), *arguments],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def entries(adapter):
    """Two workers: one on this adapter, and one on that of another driver, where it is installed."""
    variables = {"VKOPS_ADAPTER": adapter.name, "VKOPS_EXPECT": adapter.name}
    name = "llvmpipe" if "SwiftShader" in adapter.name else "SwiftShader"
    manifests = ":".join(glob(MANIFESTS[name]))
    if not manifests:
        return [variables, variables]
    other = {"VK_DRIVER_FILES": manifests, "VK_ICD_FILENAMES": manifests}
    return [variables, {**other, "VKOPS_ADAPTER": name, "VKOPS_EXPECT": name}]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--kill",)], ids=["", "killed"])
def test_two_workers_move_an_array_larger_than_their_memory(entries, arguments):
    """On two drivers: NumPy's result, also where one worker is killed in the middle."""
    said = run_cluster(entries, *arguments)
    for entry, name in zip(entries, said["adapters"], strict=True):
        assert entry["VKOPS_ADAPTER"] in name
    assert said["array_bytes"] > sum(said["limits"])
    assert all(
        reserved <= limit for reserved, limit in zip(said["reserved"], said["limits"], strict=True)
    )
    assert said["spilled"] > 0
    assert said["restarted"] == bool(arguments)
    assert said["tasks_when_killed"] == [] or min(said["tasks_when_killed"]) > 0
    assert said["equal"]
