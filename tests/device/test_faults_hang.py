"""Signals while the host waits for a device that does not answer, imitated by a layer."""

import pytest

pytestmark = [pytest.mark.memory, pytest.mark.system("cc"), pytest.mark.posix("signals")]

WAIT = """
import signal, threading, time
N = 1 << 10
values = np.arange(N, dtype=np.int32)
x = device.tensor(values)
target, host = device.buffer(4 * N), device.host_buffer(4 * N)
desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [N])
reverse = vkops.dml.Slice1OperatorDesc(desc, desc, [0], [N], [-1])
operator = device.compile_operator(device.create_operator(reverse))
bound = operator.bind([x], [target])
for _ in range(3):
    bound.dispatch()
device.synchronize()
take_time = device.measure_dispatches()
faulty.hang()
pending = bound.start()
y = vkops.roll(x, 1)
def full(submit):
    for _ in range(100):
        submit()
waits = {
    "synchronize": device.synchronize, "numpy": y.numpy, "read": target.read, "wait": pending.wait,
    "write": lambda: target.write(bytes(4 * N)), "time": take_time, "close": device.close,
    "stream": lambda: operator.dispatch([host], [target]),
    "stream in a thread": lambda: operator.dispatch([host], [target], wait=False).wait(),
    "full": lambda: full(lambda: vkops.roll(x, 1)), "full again": lambda: full(bound.dispatch),
}
error = eval(os.environ.get("RAISED", "KeyboardInterrupt"))
def handler(*_):
    raise error("of a signal handler")
signal.signal(signal.SIGINT, handler)
def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
names = json.loads(sys.argv[3]) or waits
if not device.mapped:
    del waits["write"]  # which goes through staging memory
for name in names:
    sent, timer = [], threading.Timer(0.2, interrupt)
    try:
        timer.start()
        waits[name]()
    except error as caught:
        assert type(caught) is error and str(caught) == "of a signal handler", caught
        assert time.monotonic() - sent[0] < 20
        print(name)
    timer.join()
"""
GOES_ON = """
faulty.release()
assert y.numpy().tolist() == np.roll(values, 1).tolist()
bound.dispatch()
assert np.frombuffer(target.read(), np.int32).tolist() == values[::-1].tolist()
device.synchronize()
"""
ENDS = """
from vkops.gpu.run import open_device
open_device.EXIT_SECONDS = float(sys.argv[4])
if open_device.EXIT_SECONDS > 1:
    timer = threading.Timer(2, interrupt)
    timer.daemon = True  # Python does not wait for it
    timer.start()
"""
LEFT = r"WARNING:vkops:Python exits while '.*' still runs (.*, )?(SLICE1, roll|long).*: not waited for\n"


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("mapped", "KeyboardInterrupt"),
        ("mapped", "RuntimeError"),
        ("mapped", "MemoryError"),
        ("mapped", "vkops.DeviceError"),
        ("staged", "KeyboardInterrupt"),
        ("staged", "vkops.DeviceError"),
    ],
)
def test_an_exception_of_a_signal_handler_ends_each_wait(faulty, adapter, kind, error):
    """It is not taken for one of the driver: the work goes on, and its results are right."""
    said = faulty(WAIT + GOES_ON, adapter.index, kind, "[]", RAISED=error).splitlines()
    assert len(said) == (11 if "write" in said else 10)
    assert ("write" in said) == (kind == "mapped" and adapter.unified_memory)


@pytest.mark.parametrize("kind", ["mapped", "staged"])
@pytest.mark.parametrize("seconds", [0.3, 10**6], ids=["time", "interrupt"])
def test_python_exits_while_the_device_does_not_answer(faulty, adapter, kind, seconds):
    """After a limited time, or at an interrupt, and it names the work."""
    done = faulty(WAIT + ENDS, adapter.index, kind, '["numpy"]', seconds, errors=LEFT)
    assert done == "numpy\n"


def test_python_exits_while_a_stream_waits_for_the_device(faulty, adapter):
    names = '["stream in a thread"]'
    done = faulty(WAIT + ENDS, adapter.index, "mapped", names, 0.3, errors=LEFT)
    assert done == "stream in a thread\n"


DROPPED = """
import gc, threading, time
released = threading.Event()
def work():
    for _ in range(40):  # in each of which it needs Python's lock again
        time.sleep(0.005)
    released.set()
    faulty.release()
x = vkops.roll(device.tensor(np.arange(64)), 1)
x.numpy()
faulty.hang()
y = vkops.roll(x, 1)
thread = threading.Thread(target=work)
thread.start()
if sys.argv[3] == "closed":
    device.close()
del x, y, device
gc.collect()
assert released.is_set()  # it was waited for
thread.join()
"""


@pytest.mark.parametrize("how", ["closed", "dropped"])
@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_other_threads_run_while_a_device_that_is_freed_waits_for_its_work(
    faulty, adapter, kind, how
):
    faulty(DROPPED, adapter.index, kind, how)


LONG = """
shader = device.compile_shader('''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, v = data[i];
    for (uint k = 0; k < 4000000; ++k) v = v * 5 + (v >> 3) + data[(i + v) & 0xFFFF];
    data[i] = v;
}''', name="long")
N = 64 * 65535
x = device.tensor(np.zeros(N, np.uint32))
shader(x, threads=N)
import threading
from vkops.gpu.run import open_device
open_device.EXIT_SECONDS = 0.2
"""


@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_python_exits_while_a_driver_really_runs_a_shader(faulty, adapter, kind):
    assert faulty(LONG, adapter.index, kind, errors=LEFT) == ""
