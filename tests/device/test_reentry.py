"""vkops called in the middle of vkops: by signal handlers, finalizers, callbacks and imports.

Each call either works or raises one DeviceError that says why, and no result is wrong.
"""

import gc
from collections import Counter
from random import Random

import numpy as np
import pytest
from compiled_operators import reverse
from processes import call, python

import vkops

REFUSED = (
    "by this thread: a signal handler, finalizer or callback that runs in the middle of an "
    "operation cannot start another one"
)
N = 1 << 10
X = np.arange(N, dtype=np.int32)


def workloads(device):
    """Each way to use a device, as a function that asserts its result."""
    import onnx

    from vkops.onnx import Model, Session

    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (int32[N] x) => (int32[M] y) { y = Concat <axis = 0> (x, x) }"""
    session = Session(Model(onnx.parser.parse_model(text)), device)
    tensor = device.tensor(X)
    operator = reverse(device, X.nbytes)
    x, y, z = device.buffer(X.nbytes), device.buffer(X.nbytes), device.host_buffer(X.nbytes)
    x.write(X)
    backwards = X.tobytes()[::-1]
    count = iter(range(1, 10**9))

    def function():
        shift = next(count) % N  # a new movement each time
        np.testing.assert_array_equal(vkops.roll(tensor, shift).numpy(), np.roll(X, shift))

    def dispatch():
        operator.dispatch([x], [y])
        assert y.read() == backwards

    def submission():
        y.write(bytes(X.nbytes))
        operator.dispatch([x], [y], wait=False).wait()
        assert y.read() == backwards

    def stream():
        operator.dispatch([x], [z])
        assert z.read() == backwards

    def upload():
        size = next(count) % N + 1
        np.testing.assert_array_equal(device.tensor(X[:size]).numpy(), X[:size])

    def model():
        size = next(count) % N + 1
        (made,) = session.run({"x": X[:size]})
        np.testing.assert_array_equal(made.numpy(), np.concatenate([X[:size]] * 2))

    return [function, dispatch, submission, stream, upload, model]


def storm(index, seconds, staged):
    """Run every workload in the main thread and, by a timer, in a signal handler."""
    import signal
    import time

    random, counts = Random(0), Counter()
    with vkops.Device(index, staged=staged) as device:
        mine, theirs = workloads(device), workloads(device)
        for work in [*mine, *theirs]:
            work()

        def is_enough():
            return min(counts["handled"], counts["refused"]) > 3

        def handler(number, frame):
            try:
                random.choice(theirs)()
                counts["handled"] += 1
            except vkops.DeviceError as error:
                counts["refused" if str(error).endswith(REFUSED) else str(error)] += 1
            if not ended:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.003))

        until, ended = time.monotonic() + seconds, False
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while (now := time.monotonic()) < until or (now < until + 60 and not is_enough()):
            random.choice(mine)()
        ended = True
        time.sleep(0.01)  # the last handler sets no timer
        for work in [*mine, *theirs]:
            work()
    assert set(counts) == {"handled", "refused"}, counts
    assert is_enough(), counts
    print("right")


@pytest.mark.posix("alarms", tests_only=True)
@pytest.mark.parametrize("staged", [False, True])
def test_a_storm_of_signal_handlers_that_use_the_device(adapter, staged):
    assert call(storm, adapter.index, 2, staged) == "right\n"


def test_a_handler_right_before_a_submission(device, monkeypatch):
    native, results = device.vulkan.native, []

    class Interrupted:
        def __getattr__(self, name):
            return getattr(native, name)

        def run(self, *arguments):
            if not results:
                results.append(None)
                results[0] = vkops.roll(other, 1).numpy()
            return native.run(*arguments)

    tensor, other = device.tensor(X), device.tensor(X)
    with monkeypatch.context() as patch:
        patch.setattr(device.vulkan, "native", Interrupted())
        turned = vkops.flip(tensor).copy()
    np.testing.assert_array_equal(turned.numpy(), X[::-1])
    np.testing.assert_array_equal(results[0], np.roll(X, 1))


def test_finalizers_that_use_the_device(device):
    """Python collects cycles whenever it makes objects, also inside of vkops."""
    tensor, right = device.tensor(X), []

    class Cycle:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            try:
                right.append(np.array_equal(vkops.roll(tensor, 1).numpy(), np.roll(X, 1)))
            except vkops.DeviceError as error:
                right.append(str(error).endswith(REFUSED))

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for shift in range(100):
            Cycle()
            np.testing.assert_array_equal(vkops.roll(tensor, shift).numpy(), np.roll(X, shift))
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert all(right)
    assert right


def test_a_handler_while_a_session_prepares_its_model(device, monkeypatch):
    """One that runs the session with other shapes, whose plans are kept, too."""
    import onnx

    from vkops.onnx import Model, Session

    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (int32[N] x) => (int32[M] y) { y = Concat <axis = 0> (x, x) }"""
    session, lower, errors = Session(Model(onnx.parser.parse_model(text)), device), Model.lower, []

    def interrupted(model, *arguments):
        if not errors:
            errors.append(None)
            with pytest.raises(vkops.DeviceError) as refused:
                session.run({"x": X[:2]})
            errors.append(str(refused.value))
        return lower(model, *arguments)

    monkeypatch.setattr(Model, "lower", interrupted)
    (y,) = session.run({"x": X})
    np.testing.assert_array_equal(y.numpy(), np.concatenate([X, X]))
    assert errors[1] == f"the model is being prepared {REFUSED}"
    (y,) = session.run({"x": X[:2]})
    np.testing.assert_array_equal(y.numpy(), [0, 1, 0, 1])


def test_a_progress_callback_that_uses_the_device(device):
    n = 40 << 20
    x, y = device.host_buffer(n), device.host_buffer(n)
    x.write(b"first")
    operator = reverse(device, n).bind([x], [y])
    results = []
    operator.dispatch(lambda *_: results.append(vkops.flip(device.tensor(X)).numpy()))
    assert y.read(n - 5) == b"tsrif"
    for array in results:
        np.testing.assert_array_equal(array, X[::-1])


def test_a_progress_callback_that_closes_the_device(adapter):
    n = 40 << 20
    device = vkops.Device(adapter.index)
    x, y = device.host_buffer(n), device.host_buffer(n)
    operator = reverse(device, n).bind([x], [y])
    with pytest.raises(vkops.DeviceError, match="is closed"):
        operator.dispatch(lambda *_: device.close())


IMPORTING = """
import sys, vkops
class Finder:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            try:
                {use}
            except vkops.DeviceError as error:
                print(error)
sys.meta_path.insert(0, Finder())
print(vkops.roll([1, 2, 3], 1).numpy().tolist())
"""


@pytest.mark.parametrize(
    ("module", "use", "what"),
    [
        ("vkops.tensors.rearrangement", "vkops.flip([1])", "vkops is being imported"),
        ("vkops.tensors.operations", "vkops.devices()", "vkops is being imported"),
        ("kp", "vkops.flip([1])", "a device is being opened"),
    ],
)
def test_use_in_the_middle_of_a_lazy_import(adapter, module, use, what, monkeypatch):
    monkeypatch.setenv("VKOPS_EXPECT", adapter.name)
    said = python("-c", IMPORTING.format(module=module, use=use)).splitlines()
    assert said == [f"{what} {REFUSED}", "[3, 1, 2]"]


def test_two_threads_import_lazily_at_once(adapter, monkeypatch):
    monkeypatch.setenv("VKOPS_EXPECT", adapter.name)
    code = (
        "import vkops\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "names = ['roll', 'flip', 'stack', 'tile', 'split', 'Tensor', 'Device', 'devices'] * 4\n"
        "with ThreadPoolExecutor(len(names)) as pool:\n"
        "    print(len(list(pool.map(lambda name: getattr(vkops, name), names))))\n"
    )
    assert python("-c", code) == "32\n"
