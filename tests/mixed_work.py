"""Work of every kind that programs give a device, made from a seed and compared with NumPy.

Threads may share a ``WorkSetup``: each piece of work is right whatever others do meanwhile.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from math import prod
from random import Random

import chains
import numpy as np
import operator_table
from onnx import parser
from operator_cases import DTYPES

import vkops
from vkops import dml
from vkops.gpu.run import streaming
from vkops.kernels.random import Philox
from vkops.onnx import Model, Session

LARGEST = (900, 60, 20, 8, 5)  # elements of a dimension, by rank
SHARED = 64  # tensors that wait for another thread
STEPS = 6  # steps of a chain
CHUNK = 1 << 16  # bytes that are streamed at a time: of little work there are several chunks, too

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (int32[N, M] x) => (int32[P, Q] y) {
  t = Transpose (x)
  a, b = Split <axis = 0, num_outputs = 2> (t)
  y = Concat <axis = 0> (b, a)
}"""


def stream_in_small_chunks():
    """From now on, in this process."""
    streaming.CHUNK = CHUNK


class WorkSetup:
    """A device, and what those who work on it share."""

    def __init__(self, device):
        self.device = device
        self.session = Session(Model(parser.parse_model(MODEL)), device)
        self.chains = chains.ChainSetup([device])
        self.shared = deque()
        self.generator, self.drawn = Philox(1), set()
        self.kernel = vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y")

    def compile(self, desc):
        return self.device.compile_operator(self.device.create_operator(desc))


def work(setup, seed):
    """A piece of work of any kind; the number of operators that were run, and found right."""
    random = Random(seed)
    (kind,) = random.choices([*KINDS], KINDS.values())
    try:
        return kind(setup, random)
    except Exception as error:
        raise AssertionError(f"{kind.__name__}, seed {seed}: {error!r}") from error


def some_array(random, kind=None, rank=None):
    """Random bytes of any type and shape."""
    dtype = DTYPES[kind or random.choice(operator_table.KINDS)]
    rank = rank or random.randint(1, len(LARGEST))
    shape = [random.randint(1, LARGEST[rank - 1]) for _ in range(rank)]
    return np.frombuffer(random.randbytes(prod(shape) * dtype.itemsize), dtype).reshape(shape)


def same(found, expected):
    """Compare bytes: not-a-numbers are equal here."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


# -- functions over tensors, and shaders -----------------------------------------------------------


def chain(setup, random):
    """A short chain, of which all tensors go when it ends."""
    chains.Chain(setup.chains, random.getrandbits(32)).run(STEPS)
    return 1


def shared(setup, random):
    """Take a tensor that another thread has made, and leave one for others."""
    x = some_array(random)
    setup.shared.append((setup.device.tensor(x), x))
    if len(setup.shared) < SHARED:
        return 0
    try:
        tensor, expected = setup.shared.popleft()
    except IndexError:  # others were faster
        return 0
    same(vkops.join([tensor[::-1], tensor]).numpy(), np.concatenate([expected[::-1], expected]))
    if random.random() < 0.5:
        tensor.release()
    return 1


def drawn(setup, random):
    """Numbers of the generator of all threads, which are all different."""
    count = random.randint(1, 50)
    numbers = setup.generator.integers(
        2**32, size=(count, 4), dtype="uint32", device=setup.device
    ).numpy()
    first = numbers[0].tobytes()
    assert first not in setup.drawn
    setup.drawn.add(first)
    return 1


def computed(setup, random):
    """The kernel of all threads, for any data type that all devices have."""
    dtype = random.choice([np.int32, np.uint32, np.float32])
    x = np.array([random.randint(0, 1000) for _ in range(random.randint(1, 99))], dtype)
    y = setup.device.tensor(x)
    same(setup.kernel(y, y[::-1]).numpy(), x + x[::-1])
    return 1


# -- operators -------------------------------------------------------------------------------------


def compiled(setup, random, case=None, on_host=(), *, wait=True):
    """An operator of any kind, type and layout."""
    case = case or operator_table.random_case(random)
    inputs, outputs = bindings(setup.device, random, case, on_host)
    setup.compile(case.desc).dispatch(inputs, outputs, wait=wait)
    check(case, inputs, outputs)
    return 1


def not_waited_for(setup, random):
    """Operators that run while the host goes on; some are waited for, some forgotten."""
    cases = [operator_table.random_case(random) for _ in range(3)]
    bound = [(case, *bindings(setup.device, random, case)) for case in cases]
    handles = [
        setup.compile(case.desc).dispatch(inputs, outputs, wait=False)
        for case, inputs, outputs in bound
    ]
    if random.random() < 0.3:
        return 0
    handles[random.randrange(3)].wait()
    for each in bound:
        check(*each)
    return 3


def streamed(setup, random):
    """An operator on host memory, which goes through the device; others run meanwhile."""
    case = operator_table.random_case(random)
    # Indices need all tensors on the device (B-22).
    on_host = () if case.indices else random.sample((0, 1, 2), 2)
    return compiled(setup, random, case, on_host, wait=random.random() < 0.5)


def graph(setup, random):
    """Halves change places, and again along another axis: one compiled graph."""
    x = some_array(random, dml.TensorDataType.INT16, rank=3)
    result = dml.Graph()
    y = result.input(dml.BufferTensorDesc(dml.TensorDataType.INT16, x.shape))
    expected = x
    for axis in random.sample(range(3), 2):
        cut = random.randint(1, x.shape[axis] - 1) if x.shape[axis] > 1 else 0
        if cut:
            left, right = result.split(y, axis, [cut, x.shape[axis] - cut])
            y = result.join([right, left], axis)
            expected = np.roll(expected, -cut, axis)
    result.output(result.identity(y))
    out = setup.device.buffer(-(-x.nbytes // 4) * 4)
    setup.device.compile_graph(result).dispatch([setup.device.tensor(x)], [out])
    same(np.frombuffer(out.read(0, x.nbytes), x.dtype).reshape(x.shape), expected)
    return 1


def session(setup, random):
    """The one session of all threads, with more shapes than it keeps."""
    x = some_array(random, dml.TensorDataType.INT32, rank=2)
    x = np.repeat(x, 2, axis=1)
    (y,) = setup.session.run({"x": setup.device.tensor(x) if random.random() < 0.5 else x})
    half = x.shape[1] // 2
    same(y.numpy(), np.concatenate([x.T[half:], x.T[:half]]))
    return 1


# -- what goes wrong, and what ends ----------------------------------------------------------------


def refused(setup, random):
    """Errors, with their tracebacks, hold nothing once they are caught."""
    x = setup.device.tensor(some_array(random))
    desc = dml.BufferTensorDesc(dml.TensorDataType.UINT8, [16 * random.randint(1, 9)])
    identity = setup.compile(dml.ElementWiseIdentityOperatorDesc(desc, desc))
    released = setup.device.tensor(np.arange(9))
    released.release()
    calls = (
        lambda: vkops.split(x, [x.shape[0], 1]),
        lambda: vkops.slice(x, [0] * (x.ndim + 1), x.shape),
        lambda: identity.dispatch([setup.device.buffer(256)], [setup.device.buffer(4)]),
        lambda: identity.dispatch([setup.device.buffer(256)], [None], wait=False),
        lambda: setup.device.buffer(1 << 50),
        lambda: released.numpy(),
        lambda: setup.session.run({"x": np.zeros((1, 2, 3), np.int32)}),
        lambda: setup.chains.shaders[0]["copy"].dispatch({"From": x}),
        lambda: setup.device.compile_shader(b"\x03\x02\x23\x07 and no more"),
    )
    try:
        random.choice(calls)()
    except vkops.VkopsError:
        return 0
    raise AssertionError("nothing was raised")


def thread_that_ends(setup, random):
    """A thread's work, after which it ends."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(chain, setup, random).result()


def cycle(setup, random):
    """Objects that hold each other, for Python's collector to find."""
    x = some_array(random)
    tensor = setup.device.tensor(x)
    held = [tensor, tensor[::-1], tensor.numpy()]
    held.append(held)
    same(held[1].numpy(), x[::-1])
    return 1


KINDS = {
    chain: 40, shared: 20, compiled: 20, refused: 5, cycle: 5, thread_that_ends: 3, session: 3,
    drawn: 3, computed: 3, graph: 2, not_waited_for: 2, streamed: 0.5,  # which makes pipelines, in 10 to 100 ms
}  # fmt: skip
"""Each with how often it comes up."""


# -- pieces of work --------------------------------------------------------------------------------


def bindings(device, random, case, on_host=()):
    """Inputs of random bytes and outputs to write, each in memory of its own.

    ``on_host``: 0 or 1 in it puts the inputs or the outputs into host memory.
    """

    def make(tensor, side):
        new = device.host_buffer if side in on_host else device.buffer
        return new(tensor.total_tensor_size_in_bytes)

    inputs = [make(tensor, 0) for _, tensor in case.desc.inputs]
    outputs = [make(tensor, 1) for _, tensor in case.desc.outputs]
    fill(random, case, inputs)
    return inputs, outputs


def fill(random, case, inputs):
    """Write random bytes to the inputs, and indices where they are read."""
    for buffer, data in zip(inputs, case.inputs(random), strict=True):
        buffer.write(data)


def check(case, inputs, outputs):
    """Compare each output with NumPy's result of the same inputs."""
    result = [buffer.array() for buffer in outputs]
    expected = [array.copy() for array in result]
    case.write([buffer.array() for buffer in inputs], expected)
    for one, other in zip(result, expected, strict=True):
        same(one, other)
