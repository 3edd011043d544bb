"""Event loops of asyncio that go on while a device, imitated by a layer, does not answer."""

import asyncio

import numpy as np
import pytest

import vkops

pytestmark = [pytest.mark.memory, pytest.mark.system("cc")]

START = """
import asyncio, gc, signal, threading, time
from _thread import _count as count_threads
from vkops.gpu.run import asynchronous, open_device
N = 1 << 16
values = np.arange(N, dtype=np.int32)
x = device.tensor(values)
device.synchronize()
threads, started, start = count_threads(), [], asynchronous.start_new_thread
asynchronous.start_new_thread = lambda *arguments: started.append(start(*arguments))
faulty.hang()
y, rolled = vkops.roll(x, 1), np.roll(values, 1)
equal = np.testing.assert_array_equal
async def begin(*coroutines):
    "Begin to wait, and let the loop go round a hundred times."
    tasks = [asyncio.create_task(each) for each in coroutines]
    for _ in range(100):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    return tasks
"""
WAITS = """
async def a_hundred_tasks_share_a_thread():
    held, two, square = vkops.roll(x, 2), np.roll(values, 2), (256, 256)
    buffer = held.buffer  # so that it is copied
    read = [y, y[::-1], y[3:], held, held[5:-1], held.reshape(square).T, x.reshape(square)[:, 1]]
    expected = [rolled, rolled[::-1], rolled[3:], two, two[5:-1], two.reshape(square).T, values[1::256]]
    waits = [device.synchronize_async() for _ in range(100 - len(read))]
    if device.mapped:  # x is ready, and no copy is needed
        equal(await read.pop().numpy_async(), expected.pop())
    tasks = await begin(*(each.numpy_async() for each in read), *waits)
    assert len(started) == 1
    y[...] = x  # after the calls
    held[...] = x
    faulty.release()
    for one, other in zip(await asyncio.gather(*tasks), expected):
        assert not one.flags.writeable
        equal(one, other)
    equal(await held.numpy_async(), values)
async def a_stream():
    desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [N])
    reverse = vkops.dml.Slice1OperatorDesc(desc, desc, [0], [N], [-1])
    operator = device.compile_operator(device.create_operator(reverse))
    source, target = device.host_buffer(4 * N), device.buffer(4 * N)
    source.fill(values)
    operator.dispatch([source], [target], wait=False)
    on_host = vkops.Tensor.over(device, source, (N,), values.dtype)
    tasks = await begin(device.synchronize_async(), on_host[::-1].numpy_async())
    faulty.release()
    equal((await asyncio.gather(*tasks))[1], values[::-1])
    assert device.vulkan.is_done(target.allocation.written)
async def cancelled_tasks():
    tasks = await begin(y.numpy_async(), device.synchronize_async(), y[::-1].numpy_async())
    for task in tasks[:2]:
        task.cancel()
    results = await asyncio.gather(*tasks[:2], return_exceptions=True)
    assert [type(each) for each in results] == 2 * [asyncio.CancelledError]
    faulty.release()
    equal(await tasks[2], rolled[::-1])
async def a_loop_in_another_thread():
    thread = threading.Thread(target=lambda: equal(asyncio.run(y.numpy_async()), rolled))
    thread.start()
    task, = await begin(y.numpy_async())
    assert len(started) == 1
    faulty.release()
    equal(await task, rolled)
    thread.join()
def a_loop_that_is_closed():
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # of the task that never ends
    loop.run_until_complete(begin(y.numpy_async()))
    loop.close()
def an_interrupt():
    async def main():
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
        await y.numpy_async()
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        faulty.release()
async def a_fork():
    tasks = await begin(y.numpy_async())
    child = os.fork()
    if not child:
        try:
            device.synchronize_async().send(None)
        except vkops.DeviceError:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    faulty.release()
    equal(await tasks[0], rolled)
for wait in (WAYS_TO_WAIT):
    started.clear()
    faulty.hang()
    y = vkops.roll(x, 1)
    asyncio.run(wait()) if asyncio.iscoroutinefunction(wait) else wait()
    faulty.release()
    equal(asyncio.run(vkops.roll(x, 1).numpy_async()), rolled)  # the device works
    gc.collect()
    while count_threads() > threads:
        time.sleep(0.001)
    print(wait.__name__)
"""
LOST = """
async def main():
    tasks = await begin(*(wait() for wait in (y.numpy_async, device.synchronize_async) * 2))
    faulty.lose(b"vkWaitForFences")
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        print(f"{type(error).__name__}: {error}")
asyncio.run(main())
"""
ENDS = """
open_device.EXIT_SECONDS = 0.2
asyncio.run(begin(y.numpy_async(), device.synchronize_async()))
"""


WAYS_TO_WAIT = [
    "a_hundred_tasks_share_a_thread", "a_stream", "cancelled_tasks", "a_loop_in_another_thread",
    "a_loop_that_is_closed", "an_interrupt",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["mapped", "staged"])
@pytest.mark.parametrize("ways", [
    pytest.param(WAYS_TO_WAIT, marks=pytest.mark.posix("signals", tests_only=True), id="no fork"),
    pytest.param(["a_fork"], marks=pytest.mark.posix("forks"), id="a fork"),
])  # fmt: skip
def test_the_loop_goes_on_and_the_device_works_afterwards(faulty, adapter, kind, ways):
    program = START + WAITS.replace("WAYS_TO_WAIT", ", ".join(ways) + ",")
    said = faulty(program, adapter.index, kind, PYTHONWARNINGS="ignore")
    assert said.split() == ways


def test_each_task_is_told_that_the_device_is_lost(faulty, adapter):
    said = faulty(START + LOST, adapter.index, "mapped").replace("roll, a transfer", "roll")
    lost = "failed while it ran roll: vkWaitForFences: ErrorDeviceLost; it must be opened again"
    assert said == f"DeviceError: {adapter.label} {lost}\n" * 4


def test_python_exits_while_a_task_waits(faulty, adapter):
    left = "WARNING:vkops:Python exits while .* still runs roll.*: not waited for\n"
    assert faulty(START + ENDS, adapter.index, "mapped", errors=left) == ""


def test_a_recording_is_refused(device):
    x = device.tensor(np.arange(3))
    with device.record(), pytest.raises(vkops.DeviceError, match="record: elements cannot be read"):
        asyncio.run(x.numpy_async())
