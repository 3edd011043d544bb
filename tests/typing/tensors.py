"""Tensors and the functions on them: what type checkers say, and what happens."""

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import vkops
from vkops import Tensor

device = vkops.Device()
x = device.tensor(np.ones((3, 4), np.float32))
assert_type(x, Tensor)

assert_type(x.device, vkops.Device)
assert_type(x.dtype, np.dtype[Any])
assert_type(x.base, Tensor | None)
assert_type(x.buffer, vkops.Buffer | vkops.HostBuffer | None)
assert_type(repr(x), str)
assert_type(float(x[0, 1]), float)
assert_type(complex(x[0, 1]), complex)
assert_type(x.__dlpack_device__(), tuple[int, int])
assert_type(x.fill(1), None)
for shape in (x.shape, x.strides):
    assert_type(shape, tuple[int, ...])
for array in (x.numpy(), np.asarray(x)):
    assert_type(array, npt.NDArray[Any])
for number in (x.size, x.nbytes, x.itemsize, x.ndim, len(x), int(x[0, 1])):
    assert_type(number, int)
for flag in (x.flags.owndata, x.owns_buffer, bool(x[0, 1])):
    assert_type(flag, bool)
x.item(1, 0)
x.tolist()
x[1:, 0] = [1, 2]
x[...] = x[::-1]
x[[0, 2], 1:] = 3
assert_type(Tensor.from_array(device, [1, 2], on_host=True), Tensor)

for computed in (
    x + 1,
    2 - x,
    x * x,
    x / 3,
    x // 2,
    x % 2,
    x**2,
    -x,
    abs(x),
    x == 1,
    x < x,
    (x > 1) & (x < 3),
):
    assert_type(computed, Tensor)
assert_type(divmod(x, 2), tuple[Tensor, Tensor])
assert_type(vkops.add(x, 1, where=x > 0, out=x.copy()), Tensor)
assert_type(vkops.clip(x, 0, 1), Tensor)
assert_type(vkops.exp(x, dtype="float32"), Tensor)
x += 1
x *= 2

for made in (
    x[1:, ::-1], x[None, ..., 0], x[[2, 0]], x[np.array([1]), None, device.tensor([0])],
    x.T, x.mT, x.swapaxes(0, 1), x.moveaxis((0, 1), (1, 0)), x.rot90(k=3),
    x.ravel(), x.flatten(order="F"), x.view("int32"), x.astype(np.int8, copy=False),
    x.to("llvmpipe" if "llvmpipe" in device.name else device.info.index), x.to_device(device),
    x.transpose(), x.transpose(1, 0), x.transpose((1, 0)),
    x.reshape(2, -1), x.reshape((2, 6), order="F", copy=True), x.broadcast_to((2, 3, 4)),
    x.flip(), x.flip(0), x.expand_dims((0, 2)), x.expand_dims(0).squeeze(0), x.copy(), x.T.pack(),
):  # fmt: skip
    assert_type(made, Tensor)
assert_type([row.shape for row in x], list[tuple[int, ...]])
with x.copy() as y:
    assert_type(y, Tensor)
    assert_type(y.release(), None)


def progress(done: int, total: int) -> None:
    """What is told where data is streamed."""


for made in (
    # Views
    vkops.broadcast_to(x, (2, 3, 4)), vkops.expand_dims(x, 0), vkops.transpose(x),
    vkops.matrix_transpose(x), vkops.swapaxes(x, 0, 1), vkops.moveaxis(x, 0, (1,)),
    vkops.rot90(x, 2, axes=(1, 0)), vkops.reshape(x, -1, copy=False), vkops.ravel(x),
    vkops.flip(x, (0, 1)), vkops.permute_dims(x, (1, 0)), vkops.squeeze(x[None]),
    # One dispatch each
    vkops.join([x, x.numpy()], axis=0, device=device, progress=progress),
    vkops.slice(x, [0, 0], [2, 2], [1, 2], device=device, progress=progress),
    vkops.concat([x, x], axis=None), vkops.concatenate([x, x]), vkops.hstack([x, x]),
    vkops.vstack([x, x]), vkops.dstack([x, x]), vkops.column_stack([x, x], device=device),
    vkops.block([[x, x], [x, x]]), vkops.stack((x, x), axis=-1),
    vkops.copy(x), vkops.astype(x, vkops.int8), vkops.roll(x, (1, 2), (0, 1)),
    vkops.take(x, [2, 0], axis=1, device=device),
    vkops.take_along_axis(x, np.zeros((3, 1), int), 1), vkops.tile([1, 2], 2),
    vkops.pad(x, ((1, 2), (0, 1)), constant_values=3), vkops.repeat(x, [1, 0, 2], axis=0),
    vkops.tril(x, -1), vkops.triu(x, k=1, device=device, progress=progress),
    vkops.diag([1, 2], 1), vkops.diagonal(x, 1, 0, 1),
    vkops.eye(3, 4, k=1, dtype="int8", device=device),
    vkops.from_dlpack(np.arange(3), device=device),
    # Short forms
    vkops.append(x, x[:1], axis=0, device=device), vkops.delete(x, [0, 1], axis=1),
    vkops.diagflat(x, k=1), vkops.fliplr(x), vkops.flipud(x),
    vkops.identity(3, "int8", device=device), vkops.insert(x, slice(1, 2), 5, axis=0),
    vkops.resize(x, (5, 5)), vkops.rollaxis(x, 1, 0),
    # Creation
    vkops.asarray([1, 2], dtype="int8", device=0, copy=True),
    vkops.empty((2, 3), dtype=vkops.float32), vkops.zeros(3, device=device),
    vkops.ones((1, 2), bool), vkops.full((2,), 7), vkops.full(1, vkops.nan)[vkops.newaxis],
    vkops.empty_like(x), vkops.zeros_like(x, shape=(3,)),
    vkops.ones_like(x, dtype=vkops.complex128), vkops.full_like(x, vkops.inf),
    vkops.arange(3), vkops.linspace(0, vkops.pi, 5, endpoint=False),
):  # fmt: skip
    assert_type(made, Tensor)

for several in (
    vkops.broadcast_arrays(x, [1]), vkops.meshgrid([1, 2], x[0], indexing="ij"),
    vkops.split(x, [1, 2], axis=0, device=device, progress=progress), vkops.split(x, 2, 1),
    vkops.array_split(x, [1], axis=0), vkops.array_split(x, 2),
    vkops.dsplit(x.reshape(2, 3, 2), 2), vkops.hsplit(x, [1]), vkops.vsplit(x, 3),
):  # fmt: skip
    assert_type(several, list[Tensor])
assert_type(vkops.unstack(x, axis=1), tuple[Tensor, ...])
assert_type(vkops.put_along_axis(x, [[0]], 5, axis=1), None)
vkops.atleast_1d(x)
vkops.atleast_2d(x, [1])
vkops.atleast_3d(x, device=device)

# Transfers
out = device.pinned(3, "int32")
assert_type(device.pinned_like(x), npt.NDArray[Any])
assert_type(x.numpy(out=np.empty(x.shape, x.dtype)), npt.NDArray[Any])
sent, event = device.tensor(out, wait=False)
assert_type(sent, Tensor)
assert_type(event, vkops.Event)
assert_type(sent.set(out, wait=False), vkops.Event)
sent.numpy(out=out, wait=False)
assert_type(device.event().done, bool)
if device.vulkan.native.shares_memory:
    shared = device.tensor(out, shared=True)
    handle = shared.share(timeout=5)
    assert_type(handle, vkops.SharedHandle)
    assert_type(vkops.open_shared(handle, device), Tensor)
    assert_type(shared.__dlpack_device__(), tuple[int, int])
    if shared.__dlpack_device__()[0] == 2:
        assert_type(device.wait_stream(1), None)
        assert_type(shared.__cuda_array_interface__, dict[str, Any])
device.synchronize()
assert_type(device.handles, vkops.DeviceHandles)
assert_type(device.kompute, vkops.KomputeManager)
assert_type(x.handles, vkops.TensorHandles)
with device.handles.locked():
    assert_type(device.handles.queue, int)

# The array API
info = vkops.__array_namespace_info__()
assert_type(info.devices(), list[vkops.Device])
assert_type(info.dtypes(kind="bool"), dict[str, np.dtype[Any]])
assert x.__array_namespace__(api_version="2024.12") is vkops
dtypes: list[npt.DTypeLike] = [
    vkops.bool, vkops.int8, vkops.int16, vkops.int32, vkops.int64, vkops.uint8, vkops.uint16,
    vkops.uint32, vkops.uint64, vkops.float32, vkops.float64, vkops.complex64, vkops.complex128,
]  # fmt: skip
for dtype in dtypes:
    vkops.zeros(1, dtype=dtype)
assert vkops.e < vkops.pi
