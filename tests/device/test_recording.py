"""Programs that are recorded once, and bound operators and shaders: all run again and again."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from threading import Event

import numpy as np
import onnx
import pytest
from compiled_operators import identity, reverse

import vkops
from vkops import dml
from vkops.errors import DeviceError, InvalidDescError
from vkops.gpu.copies.rule import COPY
from vkops.onnx import Session

pytestmark = pytest.mark.memory

N = 300
ADD = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer From { int from[]; };
layout(std430, binding = 1) buffer To { int to[]; };
layout(push_constant) uniform Push { int n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < to.length()) to[i] = from[i] + n; }"""


def test_functions_operators_shaders_and_models_together(any_device):
    device = any_device
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (int32[6] x) => (int32[12] y) { y = Concat <axis = 0> (x, x) }"""
    session = Session(onnx.parser.parse_model(text), device=device)
    backwards = reverse(device, 12, dml.TensorDataType.INT32)
    shader = device.compile_shader(ADD)
    x, turned = device.tensor(np.arange(6, dtype=np.int32)), device.buffer(48)
    with device.record() as program:
        (y,) = session.run({"x": vkops.roll(x, 1)})
        backwards.dispatch([y], [turned])
        z = shader((turned, 0, 48), n=100, threads=12, out=((12,), np.int32))
        w = vkops.join([z[::2], z[1::2]])
        shader(z.reshape(4, 3).T, w, n=0, threads=3)  # a view that is copied
        x[2:4] = w[:2]
    for start in (0, 7):
        values = np.arange(start, start + 6, dtype=np.int32)
        x[...] = values
        program.run()
        doubled = np.concatenate([np.roll(values, 1)] * 2)[::-1] + 100
        expected = doubled.reshape(4, 3).T.ravel()
        np.testing.assert_array_equal(w.numpy(), expected)
        values[2:4] = expected[:2]
        np.testing.assert_array_equal(x.numpy(), values)


def test_what_is_made_inside_stays(any_device):
    """Its memory is not used again, though nothing else refers to it."""
    x = any_device.tensor(np.arange(1000))
    with any_device.record() as program:
        y = vkops.roll(vkops.flip(vkops.roll(x, 1)).copy(), 1)
    gc.collect()
    others = [any_device.tensor(np.full(1000, 7)) for _ in range(10)]
    program.run()
    expected = np.roll(np.roll(np.arange(1000), 1)[::-1], 1)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert all((other.numpy() == 7).all() for other in others)


@pytest.mark.parametrize("wanted", ["shader", "regions"])
def test_copies_and_images(adapter, monkeypatch, wanted):
    monkeypatch.setenv(COPY, wanted)
    with vkops.Device(adapter.index) as device:
        x = np.random.default_rng(3).integers(0, 256, (1 << 12, 256), np.uint8)
        tensor = device.tensor(x)
        with device.record() as program:
            parts = vkops.split(tensor, 4, axis=1)
            zeros = vkops.zeros((1 << 12, 64), np.uint8, device=device)
            joined = vkops.concat([zeros, *parts[::-1]], axis=1)
        for number in range(3):
            tensor[0, :] = np.uint8(number)
            x[0] = number
            program.run()
            columns = [x[:, 64 * n : 64 * n + 64] for n in (3, 2, 1, 0)]
            expected = np.concatenate([np.zeros((1 << 12, 64), np.uint8), *columns], 1)
            np.testing.assert_array_equal(joined.numpy(), expected)


def test_indirect_groups_that_an_earlier_step_wrote(device):
    text = """#version 450
    layout(std430, binding = 0) buffer Counts { uint counts[3]; };
    layout(push_constant) uniform Push { uint n; };
    void main() { counts[0] = n; counts[1] = counts[2] = 1u; }"""
    count = """#version 450
    layout(std430, binding = 0) buffer Data { uint data[]; };
    void main() { data[gl_WorkGroupID.x] += 1u; }"""
    counts = device.tensor(np.zeros(4, np.uint32))
    data = device.tensor(np.zeros(8, np.uint32))
    first, second = map(device.compile_shader, (text, count))
    with device.record() as program:
        first(counts, n=5, groups=1)
        second(data, groups=(counts, 0))
        first(counts, n=2, groups=1)
        second(data, groups=(counts, 0))
    program.run(times=2)
    assert data.numpy().tolist() == [4, 4, 2, 2, 2, 0, 0, 0]


REFUSED = {
    "reading": (lambda d, x: x.numpy(), "elements cannot be read, because nothing runs yet"),
    "an element": (lambda d, x: int(x[0]), "elements cannot be read"),
    "a stream": (
        lambda d, x: identity(d, 12).dispatch([d.host_buffer(48)], [d.buffer(48)]),
        "host memory cannot be streamed",
    ),
    "another recording": (lambda d, x: d.record().__enter__(), "is recording already"),
    "another program": (lambda d, x: d.record().run(), "not recorded yet"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(any_device, case):
    use, said = REFUSED[case]
    x = any_device.tensor(np.arange(4))
    with pytest.raises(DeviceError, match=said), any_device.record():
        use(any_device, x)
    with any_device.record() as program:  # the error ended the first recording
        y = vkops.flip(x).copy()
    program.run()
    assert y.numpy().tolist() == [3, 2, 1, 0]


def written(target, write):
    """A tensor after something is written to it."""
    write(target)
    return target


def in_buffer(device, data):
    buffer = device.buffer(8)
    buffer.write(bytes(8))
    buffer.write(data, 3)
    return vkops.asarray(0, np.int64, device=device).over(device, buffer, (1,), np.dtype("<i8"))


CONSTANTS = {
    "arange": lambda d, a: vkops.arange(6, device=d),
    "linspace": lambda d, a: vkops.linspace(0, 1, 6, device=d),
    "asarray": lambda d, a: vkops.asarray(a, device=d),
    "converted": lambda d, a: vkops.asarray(a, np.int8, device=d),
    "from_dlpack": lambda d, a: vkops.from_dlpack(a, device=d),
    "device.tensor": lambda d, a: d.tensor(a),
    "zeros": lambda d, a: vkops.zeros(6, device=d),
    "full": lambda d, a: vkops.full(6, 7, device=d),
    "eye": lambda d, a: vkops.eye(3, device=d),
    "fill": lambda d, a: written(d.empty(6), lambda x: x.fill(0)),
    "an element": lambda d, a: written(d.tensor(a), lambda x: x.__setitem__(1, 7)),
    "a number": lambda d, a: written(d.empty(6), lambda x: x.__setitem__(..., 7)),
    "an array": lambda d, a: written(d.empty(6, a.dtype), lambda x: x.__setitem__(..., a)),
    "a part": lambda d, a: written(d.tensor(a), lambda x: x[::2].__setitem__(..., a[:3])),
    "indexed": lambda d, a: written(d.tensor(a), lambda x: x.__setitem__([3, 0], [7, 8])),
    "write": lambda d, a: in_buffer(d, b"abcd"),
    "an argument": lambda d, a: vkops.join([d.tensor(a), a[::-1]]),
    "a large argument": lambda d, a: vkops.concat([np.resize(a, 1 << 15)] * 2, device=d),
    "indices": lambda d, a: vkops.take(d.tensor(a), a[::-1]),
    "a kernel's argument": lambda d, a: vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y")(
        d.tensor(a), a
    ),
    "a shader's argument": lambda d, a: d.compile_shader(ADD)(
        a.astype(np.int32), n=1, threads=6, out=((6,), np.int32)
    ),
}


@pytest.mark.features
@pytest.mark.parametrize("case", CONSTANTS)
def test_each_run_has_the_same_values_of_the_host(any_device, case):
    """They are those of the recording, though the array changes and the program itself writes."""
    array = np.arange(6)
    expected = CONSTANTS[case](any_device, array.copy()).numpy().copy()
    with any_device.record() as program:
        constant = CONSTANTS[case](any_device, array)
        result = constant.copy()
        constant[...] = vkops.flip(result)
    array[:] = 5
    for _ in range(3):
        program.run()
        np.testing.assert_array_equal(result.numpy(), expected)
        np.testing.assert_array_equal(constant.numpy(), np.flip(expected))


def test_a_program_cannot_be_part_of_another(device):
    x = device.tensor(np.arange(3))
    with device.record() as program:
        vkops.flip(x).copy()
    with pytest.raises(DeviceError, match="cannot be part of another one"), device.record():
        program.run()


def test_closed_programs_and_wrong_numbers(device):
    x = device.tensor(np.arange(3))
    with device.record() as program:
        x[...] = vkops.flip(x).copy()
    for times in (-1, 1.5, "2"):
        with pytest.raises(InvalidDescError, match=r"times: got .* \[REC-01\]"):
            program.run(times)
    with pytest.raises(DeviceError, match="was recorded already"), program:
        pass
    program.close()
    program.close()
    with pytest.raises(DeviceError, match="the recorded program is closed"):
        program.run()
    before = x.numpy().tolist()
    with device.record() as program:
        x[...] = vkops.flip(x).copy()
        program.close()
        x[...] = vkops.roll(x, 1)
    with pytest.raises(DeviceError, match="the recorded program is closed"):
        program.run()
    assert x.numpy().tolist() == before


def test_a_program_keeps_memory_until_it_is_closed(adapter):
    with vkops.Device(adapter.index) as device:
        x = device.tensor(np.arange(1 << 10))
        before = device.memory_report().used
        with device.record() as program:
            vkops.flip(x).copy()
        assert device.memory_report().used == before + (8 << 10)
        program.run()
        program.close()
        assert device.memory_report().used == before
        del x
        gc.collect()
        assert device.memory_report().used == 0


@pytest.mark.parametrize("measures", [False, True])
def test_a_program_that_is_closed_while_it_runs(device, monkeypatch, measures):
    """As by another thread: it closes the program whenever ``run`` is about to submit it."""
    x, make_ready = device.tensor(np.zeros(100, np.int32)), device.make_ready
    shader = device.compile_shader(ADD)
    with device.record() as program:
        shader(x, x, n=1, threads=100)

    def close_first():
        program.close()
        return make_ready()

    take = device.measure_dispatches() if measures else None
    monkeypatch.setattr(device, "make_ready", close_first)
    program.run(times=2)
    monkeypatch.undo()
    if take is not None:
        take(stop=True)
    assert (x.numpy() == 2).all()
    with pytest.raises(DeviceError, match="the recorded program is closed"):
        program.run()


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return thread.ident


def unfinished(device):
    with device.record() as program:
        yield program


@pytest.mark.parametrize("drop", [lambda drop: drop(), in_a_thread], ids=["here", "elsewhere"])
def test_a_generator_that_records_and_is_dropped(device, drop):
    x = device.tensor(np.arange(4))
    generators = [unfinished(device)]
    program = next(generators[0])
    x.copy()
    assert program.steps == ("copy_view",)
    drop(generators.clear)
    assert x.copy().tolist() == [0, 1, 2, 3]
    with pytest.raises(DeviceError, match="not recorded: an error ended its block"):
        program.run()


def test_a_thread_that_ends_inside_of_a_recording(device):
    """Other threads get its number."""
    x, program, found = device.tensor(np.arange(4)), device.record(), []
    number = in_a_thread(program.__enter__)
    for _ in range(1000):
        if in_a_thread(lambda: found.append(x.copy().tolist())) == number:
            break
    assert found == [[0, 1, 2, 3]] * len(found)
    assert program.steps == ()


def test_a_thread_that_begins_to_record_what_another_one_records(device):
    """``with`` reads ``__exit__`` first: another thread may do so before the first one enters."""
    x, program, has_read, go_on = device.tensor(np.arange(4)), device.record(), Event(), Event()

    def other():
        end = program.__exit__
        has_read.set()
        assert go_on.wait(60)
        del end

    thread, end = threading.Thread(target=other), program.__exit__
    thread.start()
    assert has_read.wait(60)
    program.__enter__()
    go_on.set()
    thread.join()
    y = vkops.flip(x).copy()
    end(None, None, None)
    del end
    assert program.steps == ("copy_view",)
    program.run()
    assert y.tolist() == [3, 2, 1, 0]


def test_an_interrupt_instead_of_the_end(device, monkeypatch):
    """Python calls ``__exit__``, and serves a signal before the first line of it."""
    x, program = device.tensor(np.arange(4)), device.record()
    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(vkops.RecordedProgram.__exit__, "__code__", _interrupted.__code__)
        with program:
            x.copy()
    assert x.copy().tolist() == [0, 1, 2, 3]
    with program:  # begins anew
        y = vkops.flip(x).copy()
    assert program.steps == ("copy_view",)
    program.run()
    assert y.tolist() == [3, 2, 1, 0]


def _interrupted(self, *_):
    raise KeyboardInterrupt


def test_a_stack_of_contexts(device):
    x = device.tensor(np.arange(4))
    with ExitStack() as stack:
        program = stack.enter_context(device.record())
        gc.collect()
        y = vkops.flip(x).copy()
    assert x.copy().tolist() == [0, 1, 2, 3]
    program.run()
    assert y.tolist() == [3, 2, 1, 0]
    with suppress(StopIteration), ExitStack() as stack:
        program = stack.enter_context(device.record())
        x.copy()
        raise StopIteration
    assert x.copy().tolist() == [0, 1, 2, 3]
    with pytest.raises(DeviceError, match="not recorded: an error ended its block"):
        program.run()


def test_threads_that_run_and_record_meanwhile(device):
    x, found, programs = device.tensor(np.arange(4)), [], []

    def record():
        with device.record() as program:
            programs.append((program, vkops.roll(x, 1), [3, 0, 1, 2]))

    with device.record() as program:
        y = vkops.flip(x).copy()
        in_a_thread(lambda: found.append(vkops.roll(x, 2).numpy().tolist()))
        in_a_thread(record)
    assert found == [[2, 3, 0, 1]]
    for each, result, expected in [(program, y, [3, 2, 1, 0]), *programs]:
        each.run()
        assert result.tolist() == expected
        assert len(each.steps) == 1


# -- bound operators and shaders -------------------------------------------------------------------


def operator(device, source, target):
    """An operator that turns a list around, bound; it copies by a shader."""
    return reverse(device, N, dml.TensorDataType.INT32).bind([source], [target])


def copying(device, source, target):
    """An operator that copies a list, bound; Vulkan's own copies may do that."""
    return identity(device, N).bind([source], [target])


def shader(device, source, target):
    """A shader that adds 7, bound."""
    return device.compile_shader(ADD).bound({"From": source, "To": target}, 5, [7])


def shader_of_views(device, source, target):
    """A shader that adds 7, bound to views, which are copied before and after it."""
    views = {"From": source[::-1], "To": target[::-1]}
    return device.compile_shader(ADD).bound(views, 5, [7])


EXPECTED = {
    operator: lambda x: x[::-1],
    copying: lambda x: x,
    shader: lambda x: x + 7,
    shader_of_views: lambda x: x + 7,
}
each_kind = pytest.mark.parametrize("bind", EXPECTED, ids=lambda bind: bind.__name__)


def tensors(device):
    return device.tensor(np.arange(N, dtype=np.int32)), device.tensor(np.zeros(N, np.int32))


@each_kind
def test_each_dispatch_reads_what_is_there(any_device, bind):
    source, target = tensors(any_device)
    bound = bind(any_device, source, target)
    for number in range(6):
        x = np.arange(N, dtype=np.int32) * number
        source[:] = x
        target[:] = -1
        bound.dispatch()
        np.testing.assert_array_equal(target.numpy(), EXPECTED[bind](x))


@each_kind
def test_two_that_alternate_without_waiting(any_device, bind):
    one, other = tensors(any_device)
    there, back = bind(any_device, one, other), bind(any_device, other, one)
    expected = one.numpy()
    for _ in range(50):
        there.dispatch()
        back.dispatch()
        expected = EXPECTED[bind](EXPECTED[bind](expected))
    np.testing.assert_array_equal(one.numpy(), expected)


@each_kind
def test_a_recorded_program_contains_what_was_dispatched_before(any_device, bind):
    source, target = tensors(any_device)
    bound = bind(any_device, source, target)
    for _ in range(3):
        bound.dispatch()
    target[:] = -1
    with any_device.record() as program:
        bound.dispatch()
    program.run(times=0)
    np.testing.assert_array_equal(target.numpy(), np.full(N, -1))
    program.run()
    np.testing.assert_array_equal(target.numpy(), EXPECTED[bind](source.numpy()))


@each_kind
def test_threads_that_dispatch_the_same(device, bind):
    source, target = tensors(device)
    bound = bind(device, source, target)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: bound.dispatch(), range(40)))
    np.testing.assert_array_equal(target.numpy(), EXPECTED[bind](source.numpy()))
