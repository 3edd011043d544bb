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
assert_type(x.shape, tuple[int, ...])
assert_type(x.strides, tuple[int, ...])
assert_type(x.dtype, np.dtype[Any])
assert_type(x.size, int)
assert_type(x.nbytes, int)
assert_type(x.itemsize, int)
assert_type(x.base, Tensor | None)
assert_type(x.flags.owndata, bool)
assert_type(x.ndim, int)
assert_type(x.buffer, vkops.Buffer | vkops.HostBuffer | None)
assert_type(x.numpy(), npt.NDArray[Any])
assert_type(repr(x), str)
x.item(1, 0)
x.tolist()
assert_type(np.asarray(x), npt.NDArray[Any])
assert_type(len(x), int)
assert_type(bool(x[0, 1]), bool)
assert_type(int(x[0, 1]), int)
assert_type(float(x[0, 1]), float)
assert_type(complex(x[0, 1]), complex)
assert_type(x.__dlpack_device__(), tuple[int, int])
assert_type(x.fill(1), None)
assert_type(x.owns_buffer, bool)
x[1:, 0] = [1, 2]
x[...] = x[::-1]
x[[0, 2], 1:] = 3
assert_type(Tensor.from_array(device, [1, 2], on_host=True), Tensor)

# Views
assert_type(x[1:, ::-1], Tensor)
assert_type(x[None, ..., 0], Tensor)
assert_type(x[[2, 0]], Tensor)
assert_type(x[np.array([1]), None, device.tensor([0])], Tensor)
assert_type(x.T, Tensor)
assert_type(x.mT, Tensor)
assert_type(x.swapaxes(0, 1), Tensor)
assert_type(x.moveaxis((0, 1), (1, 0)), Tensor)
assert_type(x.rot90(k=3), Tensor)
assert_type(x.ravel(), Tensor)
assert_type(x.flatten(order="F"), Tensor)
assert_type(x.view("int32"), Tensor)
assert_type(x.astype(np.int8, copy=False), Tensor)
assert_type(x.to("llvmpipe" if "llvmpipe" in device.name else device.info.index), Tensor)
assert_type(x.transpose(), Tensor)
assert_type(x.transpose(1, 0), Tensor)
assert_type(x.transpose((1, 0)), Tensor)
assert_type(x.reshape(2, -1), Tensor)
assert_type(x.reshape((2, 6), order="F", copy=True), Tensor)
assert_type(x.broadcast_to((2, 3, 4)), Tensor)
assert_type(x.flip(), Tensor)
assert_type(x.flip(0), Tensor)
assert_type(x.expand_dims((0, 2)), Tensor)
assert_type(x.expand_dims(0).squeeze(0), Tensor)
assert_type(x.copy(), Tensor)
assert_type(x.T.pack(), Tensor)
assert_type([row.shape for row in x], list[tuple[int, ...]])
with x.copy() as y:
    assert_type(y, Tensor)
    assert_type(y.release(), None)

# Functions: views
assert_type(vkops.broadcast_to(x, (2, 3, 4)), Tensor)
assert_type(vkops.expand_dims(x, 0), Tensor)
assert_type(vkops.transpose(x), Tensor)
assert_type(vkops.matrix_transpose(x), Tensor)
assert_type(vkops.swapaxes(x, 0, 1), Tensor)
assert_type(vkops.moveaxis(x, 0, (1,)), Tensor)
assert_type(vkops.rot90(x, 2, axes=(1, 0)), Tensor)
assert_type(vkops.reshape(x, -1, copy=False), Tensor)
assert_type(vkops.ravel(x), Tensor)
assert_type(vkops.broadcast_arrays(x, [1]), list[Tensor])
assert_type(vkops.meshgrid([1, 2], x[0], indexing="ij"), list[Tensor])
vkops.atleast_1d(x)
vkops.atleast_2d(x, [1])
vkops.atleast_3d(x, device=device)
assert_type(vkops.flip(x, (0, 1)), Tensor)
assert_type(vkops.permute_dims(x, (1, 0)), Tensor)
assert_type(vkops.squeeze(x[None]), Tensor)
assert_type(vkops.unstack(x, axis=1), tuple[Tensor, ...])


# Functions: one dispatch each
def progress(done: int, total: int) -> None:
    """What is told where data is streamed."""


assert_type(vkops.split(x, [1, 2], axis=0, device=device, progress=progress), list[Tensor])
assert_type(vkops.split(x, 2, 1), list[Tensor])
assert_type(vkops.join([x, x.numpy()], axis=0, device=device, progress=progress), Tensor)
assert_type(vkops.slice(x, [0, 0], [2, 2], [1, 2], device=device, progress=progress), Tensor)
assert_type(vkops.array_split(x, [1], axis=0), list[Tensor])
assert_type(vkops.array_split(x, 2), list[Tensor])
assert_type(vkops.concat([x, x], axis=None), Tensor)
assert_type(vkops.concatenate([x, x]), Tensor)
assert_type(vkops.hstack([x, x]), Tensor)
assert_type(vkops.vstack([x, x]), Tensor)
assert_type(vkops.dstack([x, x]), Tensor)
assert_type(vkops.column_stack([x, x], device=device), Tensor)
assert_type(vkops.block([[x, x], [x, x]]), Tensor)
assert_type(vkops.copy(x), Tensor)
assert_type(vkops.astype(x, vkops.int8), Tensor)
assert_type(vkops.stack((x, x), axis=-1), Tensor)
assert_type(vkops.roll(x, (1, 2), (0, 1)), Tensor)
assert_type(vkops.take(x, [2, 0], axis=1, device=device), Tensor)
assert_type(vkops.take_along_axis(x, np.zeros((3, 1), int), 1), Tensor)
assert_type(vkops.put_along_axis(x, [[0]], 5, axis=1), None)
assert_type(vkops.tile([1, 2], 2), Tensor)
assert_type(vkops.pad(x, ((1, 2), (0, 1)), constant_values=3), Tensor)
assert_type(vkops.repeat(x, [1, 0, 2], axis=0), Tensor)
assert_type(vkops.tril(x, -1), Tensor)
assert_type(vkops.triu(x, k=1, device=device, progress=progress), Tensor)
assert_type(vkops.diag([1, 2], 1), Tensor)
assert_type(vkops.diagonal(x, 1, 0, 1), Tensor)
assert_type(vkops.eye(3, 4, k=1, dtype="int8", device=device), Tensor)
assert_type(vkops.from_dlpack(np.arange(3), device=device), Tensor)

# Functions: short forms
assert_type(vkops.append(x, x[:1], axis=0, device=device), Tensor)
assert_type(vkops.delete(x, [0, 1], axis=1), Tensor)
assert_type(vkops.diagflat(x, k=1), Tensor)
assert_type(vkops.dsplit(x.reshape(2, 3, 2), 2), list[Tensor])
assert_type(vkops.fliplr(x), Tensor)
assert_type(vkops.flipud(x), Tensor)
assert_type(vkops.hsplit(x, [1]), list[Tensor])
assert_type(vkops.identity(3, "int8", device=device), Tensor)
assert_type(vkops.insert(x, slice(1, 2), 5, axis=0), Tensor)
assert_type(vkops.resize(x, (5, 5)), Tensor)
assert_type(vkops.rollaxis(x, 1, 0), Tensor)
assert_type(vkops.vsplit(x, 3), list[Tensor])

# Functions: creation
assert_type(vkops.asarray([1, 2], dtype="int8", device=0, copy=True), Tensor)
assert_type(vkops.empty((2, 3), dtype=vkops.float32), Tensor)
assert_type(vkops.zeros(3, device=device), Tensor)
assert_type(vkops.ones((1, 2), bool), Tensor)
assert_type(vkops.full((2,), 7), Tensor)
assert_type(vkops.empty_like(x), Tensor)
assert_type(vkops.zeros_like(x, shape=(3,)), Tensor)
assert_type(vkops.ones_like(x, dtype=vkops.complex128), Tensor)
assert_type(vkops.full_like(x, vkops.inf), Tensor)
assert_type(vkops.arange(3), Tensor)
assert_type(vkops.linspace(0, vkops.pi, 5, endpoint=False), Tensor)

# The array API
info = vkops.__array_namespace_info__()
assert_type(info.devices(), list[vkops.Device])
assert_type(info.dtypes(kind="bool"), dict[str, np.dtype[Any]])
assert_type(x.to_device(device), Tensor)
assert x.__array_namespace__(api_version="2024.12") is vkops
dtypes: list[npt.DTypeLike] = [
    vkops.bool, vkops.int8, vkops.int16, vkops.int32, vkops.int64, vkops.uint8, vkops.uint16,
    vkops.uint32, vkops.uint64, vkops.float32, vkops.float64, vkops.complex64, vkops.complex128,
]  # fmt: skip
for dtype in dtypes:
    vkops.zeros(1, dtype=dtype)
assert_type(vkops.full(1, vkops.nan)[vkops.newaxis], Tensor)
assert vkops.e < vkops.pi
