"""Chains of everything that uses a device, made from a seed and compared with NumPy step by step.

Most steps read what the ones before them wrote, overwrite what they read, or overwrite what they
wrote, and nobody waits in between. Tensors are dropped at random, so that their memory is used
again while the device still works on it.
"""

from random import Random
from threading import Lock

import numpy as np
from compiled_operators import reverse

import vkops
from vkops import dml

MOST = 14  # tensors of a chain, of which the others are dropped

SHADERS = {
    "change": """
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint factor, summand; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] = data[i] * factor + summand;
}""",
    "combine": """
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer From { uint from[]; };
layout(std430, binding = 1) buffer To { uint to[]; };
layout(std140, binding = 2) uniform Four { uvec4 four; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < from.length() && i < to.length()) to[i] = from[i] + to[i] * four.y + four.w;
}""",
    "copy": """
layout(local_size_x = 8) in;
layout(std430, set = 1, binding = 3) readonly buffer From { uint from[]; };
layout(std430, set = 0, binding = 1) writeonly buffer To { uint to[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < from.length() && i < to.length()) to[i] = from[i];
}""",
}


class ChainSetup:
    """The devices of a chain, their shaders, and tensors that all threads read."""

    def __init__(self, devices):
        self.devices = devices
        self.shaders = [
            {name: device.compile_shader("#version 450" + text) for name, text in SHADERS.items()}
            for device in devices
        ]
        arrays = [np.arange(n, dtype=np.uint32) * 3 for n in (40, 1000, 9000)]
        self.shared = [(devices[0].tensor(array), array) for array in arrays]
        self.seven = devices[0].tensor(np.uint32([7]))
        self.recording = Lock()  # an adapter records one program at a time


class Chain:
    """Tensors with the arrays that they must equal; ``step`` does anything with them."""

    def __init__(self, setup, seed):
        self.setup, self.random = setup, Random(seed)
        self.pairs, self.bound, self.programs = [], [], []
        self.log = []
        for _ in range(4):
            self.make()

    def run(self, steps):
        names = [*KINDS]
        for number in range(steps):
            (name,) = self.random.choices(names, KINDS.values())
            self.log.append(name)
            try:
                if name in RECORDED:
                    getattr(self, name)(*self.any(written=RECORDED[name]), self.pairs)()
                else:
                    getattr(self, name)()
                while len(self.pairs) > MOST or (
                    len(self.pairs) > 4 and self.random.random() < 0.1
                ):
                    self.pairs.pop(self.random.randrange(len(self.pairs)))
                if self.random.random() < 0.05:
                    self.compare(*self.any())
            except Exception as error:
                message = f"step {number}, after {self.log[-30:]}: {error!r}"
                raise AssertionError(message) from error
        for pair in self.pairs:
            self.compare(*pair)

    # -- choices -----------------------------------------------------------------------------------

    def compare(self, tensor, array):
        np.testing.assert_array_equal(tensor.numpy(), array, str(self.log[-30:]), strict=True)

    def add(self, tensor, array):
        assert tensor.shape == array.shape
        self.pairs.append((tensor, array))

    def device(self):
        return self.random.choice(self.setup.devices)

    def any(self, *, written=False):
        known = self.pairs if written else [*self.pairs, *self.setup.shared]
        return self.random.choice(known)

    def array(self, shape):
        random = np.random.default_rng(self.random.randrange(1 << 30))
        return random.integers(0, 1 << 32, shape, np.uint32)

    def index(self, shape):
        """An index that selects a part of every dimension."""
        index = []
        for size in shape:
            start, stop = sorted(self.random.choices(range(size + 1), k=2))
            if start == stop:
                start, stop = 0, size
            step = self.random.choice((1, 1, 1, 2, 3))
            backwards = slice(stop - 1, start - 1 if start else None, -step)
            index.append(backwards if self.random.random() < 0.2 else slice(start, stop, step))
        return tuple(index)

    # -- steps: making tensors ---------------------------------------------------------------------

    def make(self):
        size = self.random.choice((7, 64, 1000, 5000, 40_000))
        shape = self.random.choice(([size], [size // 7, 7], [2, size // 2 // 3 or 1, 3]))
        array = self.array(shape)
        tensor = self.device().tensor(array)
        self.add(tensor, array)

    def empty_then_written(self):
        array = self.array([self.random.randrange(1, 3000)])
        tensor = self.device().empty(array.shape, np.uint32)
        tensor.buffer.write(array)
        self.add(tensor, array.copy())
        array[...] = 0  # it was read at once

    def view(self):
        tensor, array = self.any(written=True)
        if self.random.random() < 0.3:
            order = self.random.sample(range(array.ndim), array.ndim)
            self.add(tensor.transpose(order), array.transpose(order))
        else:
            index = self.index(array.shape)
            self.add(tensor[index], array[index])

    def copy(self):
        tensor, array = self.any()
        self.add(tensor.copy(), array.copy())

    def split_and_join(self):
        tensor, array = self.any()
        axis = self.random.randrange(array.ndim)
        at = self.random.randrange(array.shape[axis] + 1)
        if at in (0, array.shape[axis]):
            return
        parts = vkops.split(tensor, [at, array.shape[axis] - at], axis)
        expected = np.split(array, [at], axis)
        self.add(vkops.join(parts[::-1], axis), np.concatenate(expected[::-1], axis))
        self.add(parts[0], expected[0].copy())

    def take(self):
        tensor, array = self.any()
        axis = self.random.randrange(array.ndim)
        places = np.array(self.random.choices(range(array.shape[axis]), k=9), np.int32)
        at = self.device().tensor(places) if self.random.random() < 0.5 else places
        self.add(vkops.take(tensor, at, axis=axis), array.take(places, axis))

    def imported(self):
        tensor, array = self.any()
        imported = vkops.asarray(np.from_dlpack(tensor.copy()), device=self.device(), copy=True)
        self.add(imported, array.copy())

    # -- steps: writing ----------------------------------------------------------------------------

    def assign(self):
        tensor, array = self.any(written=True)
        index = self.index(array.shape)
        part = array[index]
        kind = self.random.choice(("scalar", "array", "tensor"))
        if kind == "scalar":
            tensor[index] = array[index] = self.random.randrange(1 << 32)
        elif kind == "array":
            value = self.array(part.shape)
            tensor[index] = value
            array[index] = value
            value[...] = 0
        else:
            value = self.array(part.shape[-1:])
            tensor[index] = self.device().tensor(value)
            array[index] = value

    def assign_other(self):
        """From one chain of writes to another."""
        tensor, array = self.any(written=True)
        source, expected = self.any()
        shape = [min(a, b) for a, b in zip(array.shape[::-1], expected.shape[::-1], strict=False)]
        shape = shape[::-1]
        to = (*[0] * (array.ndim - len(shape)), *map(slice, shape))
        of = (*[0] * (expected.ndim - len(shape)), *map(slice, shape))
        value = expected[of].copy()
        tensor[to] = source[of]
        array[to] = value

    def scatter(self):
        tensor, array = self.any(written=True)
        rows = range(array.shape[0])
        places = np.array(self.random.sample(rows, min(6, len(rows))), np.int64)
        value = self.array([len(places), *array.shape[1:]])
        indices = self.device().tensor(places) if self.random.random() < 0.5 else places
        tensor[indices] = self.device().tensor(value) if self.random.random() < 0.5 else value
        array[places] = value

    def fill(self):
        tensor, array = self.any(written=True)
        value = self.random.randrange(1 << 32)
        tensor.fill(value)
        array.fill(value)

    # -- steps: operators --------------------------------------------------------------------------

    def operator(self):
        """Reverse a tensor into another one; some of them are bound, and run again later."""
        tensor, array = self.any()
        n = array.size
        device = self.device()
        backwards = reverse(device, n, dml.TensorDataType.UINT32)
        out, expected = device.empty(n, np.uint32), array.reshape(-1)[::-1].copy()
        if self.random.random() < 0.5 and tensor.owns_buffer:
            bound = backwards.bind([tensor], [out])
            bound.dispatch()
            self.bound.append((bound, tensor, array, out, expected))
            del self.bound[:-4]
        else:
            pending = backwards.dispatch([tensor], [out], wait=self.random.random() < 0.5)
            if pending is not None and self.random.random() < 0.2:
                pending.wait()
        self.add(out, expected)

    def again(self):
        if self.bound:
            bound, _, array, _, expected = self.random.choice(self.bound)
            bound.dispatch()
            expected[...] = array.reshape(-1)[::-1]

    # -- steps: shaders ----------------------------------------------------------------------------

    def shader(self, name):
        return self.random.choice(self.setup.shaders)[name]

    def change_often(self):
        tensor, array = self.any(written=True)
        groups = -(-array.size // 32)
        run = self.shader("change").bound({"Data": tensor}, groups, [3, 5])
        for _ in range(self.random.randrange(1, 5)):
            run.dispatch()
            array[...] = array * np.uint32(3) + np.uint32(5)

    def combine(self):
        (tensor, array), (target, expected) = self.any(), self.any(written=True)
        four = self.array(4)
        if self.random.random() < 0.3:
            values = four
        else:
            start = self.random.randrange(9)
            whole = self.device().tensor(np.concatenate([np.zeros(start, np.uint32), four]))
            values = whole[start:]
        flat = expected.flatten()
        n = min(array.size, flat.size)
        flat[:n] = array.reshape(-1)[:n] + flat[:n] * four[1] + four[3]
        overlap = np.shares_memory(array, expected)
        try:
            self.shader("combine")(tensor, target, Four=values, threads=n)
        except vkops.BindingError as error:
            if error.rule != "SH-06" or not overlap:
                raise
            return
        if overlap and (array.strides, array.shape) != (expected.strides, expected.shape):
            flat = target.numpy()  # each invocation may read what another one has written
        expected[...] = flat.reshape(expected.shape)

    # -- steps: recorded programs ------------------------------------------------------------------

    def record(self):
        """Record a few steps, and run them; the program may run again later."""
        new, effects = [], []
        with self.setup.recording, self.device().record() as program:
            for _ in range(self.random.randrange(1, 6)):
                name = self.random.choice([*RECORDED])
                self.log.append(name)
                effects.append(getattr(self, name)(*self.random.choice([*self.pairs, *new]), new))
        for tensor, array in new:
            assert tensor.shape == array.shape
        self.programs.append((program, effects))
        del self.programs[:-3]
        self.run_program()
        self.pairs += new

    def run_program(self):
        if self.programs:
            program, effects = self.programs[-1]
            self.random.shuffle(self.programs)
            times = self.random.randrange(1, 4)
            program.run(times=times)
            for effect in effects * times:
                effect()

    # Steps that may be recorded: each returns what they do to the arrays whenever they run.

    def roll(self, tensor, array, made):
        axis = self.random.randrange(array.ndim)
        shift = self.random.randrange(-5, 50)
        result = np.empty_like(array, order="C")
        made.append((vkops.roll(tensor, shift, axis), result))
        return lambda: np.copyto(result, np.roll(array, shift, axis))

    def join(self, tensor, array, made):
        n = array.shape[0]
        result = np.empty((2 * n, *array.shape[1:]), np.uint32)
        made.append((vkops.join([tensor[::-1], tensor], 0), result))
        return lambda: np.copyto(result, np.concatenate([array[::-1], array]))

    def assign_own(self, tensor, array, made):
        index = self.index(array.shape)
        tensor[index] = tensor[index][::-1]
        return lambda: np.copyto(array[index], array[index][::-1].copy())

    def assign_seven(self, tensor, array, made):
        index = self.index(array.shape)
        tensor[index] = self.setup.seven
        return lambda: array[index].fill(7)

    def change(self, tensor, array, made):
        factor, summand = self.random.randrange(1, 9), self.random.randrange(1 << 31)
        self.shader("change")(tensor, factor=factor, summand=summand, threads=array.size)
        return lambda: np.copyto(array, array * np.uint32(factor) + np.uint32(summand))

    def copy_by_shader(self, tensor, array, made):
        result = np.empty_like(array, order="C")
        copied = self.shader("copy")(From=tensor, threads=array.size, out=array.shape)
        made.append((copied, result))
        return lambda: np.copyto(result, array)

    # -- steps: the host ---------------------------------------------------------------------------

    def read(self):
        self.compare(*self.any())

    def exported(self):
        tensor, array = self.any()
        np.testing.assert_array_equal(np.from_dlpack(tensor), array)

    def part_of_buffer(self):
        tensor, array = self.any()
        if tensor.owns_buffer:
            start = self.random.randrange(array.size)
            assert tensor.buffer.read(4 * start, 4) == array.reshape(-1)[start].tobytes()

    def ready(self):
        tensor, _ = self.any()
        if not tensor.is_ready:
            tensor.device.synchronize()
        assert tensor.is_ready

    def synchronize(self):
        self.device().synchronize()


KINDS = {
    "make": 3, "empty_then_written": 2, "view": 8, "copy": 3, "roll": 3, "split_and_join": 3,
    "join": 1, "take": 3, "imported": 1, "assign": 5, "assign_own": 2, "assign_seven": 1,
    "assign_other": 4, "scatter": 2, "fill": 3, "operator": 3, "again": 5, "change": 8,
    "change_often": 4, "combine": 8, "copy_by_shader": 4, "record": 1, "run_program": 3,
    "read": 0.5, "exported": 0.3, "part_of_buffer": 0.3, "ready": 0.5, "synchronize": 0.1,
}  # fmt: skip
"""The steps, with how often each comes up."""

RECORDED = {
    "roll": False, "join": False, "copy_by_shader": False,
    "assign_own": True, "assign_seven": True, "change": True,
}  # fmt: skip
"""Those that may be recorded, and whether they write to the tensor that they are given."""
