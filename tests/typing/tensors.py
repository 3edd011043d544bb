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
