"""The Vulkan device of an adapter: its queue, memory and pipelines, which all Devices share.

Work is submitted in order. The host waits for it only before it looks at memory: each allocation
has the numbers of the last submissions that use it and that write it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from threading import RLock, local
from time import monotonic, perf_counter_ns, sleep
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize, ref

from vkops.errors import DeviceError, OutOfDeviceMemoryError, refuse_reentry
from vkops.gpu.adapters import adapter, forks
from vkops.gpu.adapters.kompute import Native, load_kompute, load_native, native_error
from vkops.gpu.adapters.layer_messages import ShaderOutput
from vkops.gpu.adapters.pipeline_cache import PipelineCache
from vkops.gpu.kernels.choice import Kernel
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.pools import (
    FIRST_NBYTES,
    Allocation,
    DeviceMemory,
    Pool,
    held_bytes,
    living,
)
from vkops.gpu.run.cuda_device import CudaDevice, find
from vkops.gpu.run.pending import BackgroundTask
from vkops.plan.rounding import round_up
from vkops.shaders import for_records, spirv
from vkops.shaders.module import DESCRIPTOR_TYPES
from vkops.system.processes import can_start_threads
from vkops.system.threads import new_lock

MAX_SUBMISSIONS = 64
"""The maximum number of submissions that have not ended: one more waits for the oldest of them."""

MAX_SHADERS = 64
"""Pipelines of users' shaders that are kept: Mesa 22.3's CPU driver leaks memory with each."""

MAX_OPEN = 16
"""Operations that are collected for a submission while the device runs others."""

SMALL_NBYTES = 16 << 20
"""Bytes that small data of submissions may take of the driver's memory; nothing checks each."""

THREAD_BYTES = 72 << 20
"""Bytes of address space that a thread of a CPU driver takes: its stack, and a heap of glibc."""

TRANSFER_QUEUE = "VKOPS_TRANSFER_QUEUE"
"""If this environment variable is 1, discrete GPUs that have a queue for transfers use it."""

SYNC = "VKOPS_SYNC"
"""If this environment variable is 1, vkops waits for each submission at once, for debugging."""


@dataclass(slots=True)
class RecordedSteps:
    """The steps of a program that is being recorded, and the memory that they use."""

    operations: list[Native] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    used: set[Allocation] = field(default_factory=set)
    written: set[Allocation] = field(default_factory=set)


NOT_RECORDING: ref[partial[None]] = ref(partial(print))
"""A reference to an object that was freed: the thread records no program."""


class RecordingThread(local):
    """The program that a thread records, if any; each thread sees its own attribute.

    Attributes:
        end: a weak reference to the callable that ends the recording, whose argument is the
            program. Only the ``with`` statement holds the callable. However the statement ends, it
            lets go of it, and the recording ends, even if an interrupt comes before the callable
            is called. The callable is a ``partial`` because a function would have a frame, which
            the traceback of an error could keep.
    """

    end: ref[partial[None]] = NOT_RECORDING


class AddressedMemory(Protocol):
    """The part of ``Buffer`` that is needed here, as its module imports this one.

    Such a buffer's address was given to shaders.
    """

    allocation: Allocation
    nbytes: int

    def device_address(self) -> int:
        """Return the address of the first byte."""
        ...


class SubmissionObserver:
    """The base of classes whose methods a device calls when it runs work or has waited for it.

    Threads may add an observer to ``VulkanDevice.submission_observers`` and remove it at any time;
    after that, its methods may still be called for work that began before.
    """

    def submitted(self, device: VulkanDevice, name: str, number: int, began: int) -> None:
        """Handle a call that was submitted, and that began at a time of ``perf_counter_ns``."""

    def waited(self, device: VulkanDevice, began: int) -> None:
        """Handle a wait that has ended, and that began at a time of ``perf_counter_ns``."""


class SynchronousCalls(SubmissionObserver):
    """An observer that waits for each call at once."""

    def submitted(self, device: VulkanDevice, name: str, number: int, began: int) -> None:
        """Wait for the call."""
        device.wait(number)


class PrintedOutput(SynchronousCalls):
    """An observer that prints the output of shaders after each wait."""

    def __init__(self, output: ShaderOutput) -> None:
        self._output = output

    def waited(self, device: VulkanDevice, began: int) -> None:
        """Print the output of the shaders that have ended."""
        self._output.show()


class VulkanDevice:
    """A VkDevice, its queue, memory and pipelines; made by ``open_vulkan_device``.

    Devices of one adapter can bind each other's memory, because it belongs to the same VkDevice.
    Vulkan wants a queue used by one thread at a time: work is submitted under ``lock``. Threads
    that wait do not hold it. Submissions are numbered from 1; the number 0 stands for none.

    Attributes:
        info: the adapter.
        key: the adapter, the layers and the settings; a device with an equal key is opened once.
        native: the native device; ``module`` is the native module.
        features: the optional features for shaders, with which it was opened.
        lost: the message of the error by which the device was lost; empty before.
        validated: whether it was opened under the validation layer.
        submission_observers: objects that are called after calls and waits of this device, in this
            order: for debugging, those that wait at once (VKOPS_SYNC) or print the output of
            shaders; while the device measures, its ``Timestamps`` and the recorder of profiles.
        addressed: the buffers whose addresses were given out, by their ids.
        kompute: the tensors that Kompute has made on it; see ``KomputeManager``.
        prepared: the native steps of each program, with the tuning for which they were encoded.
        observers: functions that return a context manager for the ``BoundCall`` of each dispatch of
            a shader, which is submitted inside of it; that of the newest function is the outermost.
            They observe all devices and threads. Blocks of several threads, fixtures and generators
            overlap without nesting, so nobody restores an old list: each adds and removes its own
            function by ``append`` and ``remove``, which are atomic, as copies of a list are.
    """

    observers: ClassVar[list[Callable[[VulkanDevice, Any], AbstractContextManager[None]]]] = []

    def __init__(self, info: adapter.DeviceInfo, key: object, mode: adapter.Mode = "") -> None:
        self.info: adapter.DeviceInfo = info
        self.key: object = key
        self.lock: RLock = new_lock()
        self._finding_cuda: RLock = new_lock()
        self._cuda: CudaDevice | str | None = None
        self.streams: list[BackgroundTask] = []
        self.lost: str = ""
        self.thread: RecordingThread = RecordingThread()
        self.submission_observers: list[SubmissionObserver] = []
        self.addressed: WeakValueDictionary[int, AddressedMemory] = WeakValueDictionary()
        self.validated: bool = mode != "" or adapter.under_validation()
        if info.type == "CPU":
            threads = 2 * adapter.threads() + 2
            reason = (
                f"opening {info.label} needs that much address space for its {threads} threads, "
                "and limits of this process (ulimit -v, -d) leave less; LP_NUM_THREADS=1 needs less"
            )
            host_memory.require(2 * FIRST_NBYTES + threads * THREAD_BYTES, reason)
        self.module: Native = load_native()
        load_kompute()
        self._adapter: Native = adapter.native_adapters(mode)[info.index]
        forks.state.opened = True
        try:
            self._stored = PipelineCache(self._adapter)
            cached = self._stored.load()
            count = info.limits.max_memory_allocation_count
            make = self.module.Device
            most = MAX_SUBMISSIONS, MAX_OPEN
            validated = adapter.validation_version() if self.validated else 0
            transfers = os.environ.get(TRANSFER_QUEUE) == "1"
            self.native: Native = make(self._adapter, validated, *most, count, cached, transfers)
        except native_error() as error:
            message = f"{info.label} cannot be opened: {error}{forks.hint()}"
            if info.type == "CPU" and not can_start_threads():
                message += "; it needs threads, and limits allow no more of them (ulimit -u)"
            raise DeviceError(message) from error
        self.features: frozenset[str] = frozenset(self.native.features) & {*info.limits.features}
        self._wide = "shaderInt64" in self.features and adapter.prefers_int64(info)
        # Store compiled pipelines when this is freed or Python exits, unless the device is lost.
        self._saving = finalize(self, self._stored.save, self.native)
        self._pipelines: dict[tuple[str, bool], Native] = {}
        self.kompute: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.prepared: WeakKeyDictionary[object, tuple[object, list[Native]]] = WeakKeyDictionary()
        self.shader_pipeline: Callable[..., Native] = lru_cache(MAX_SHADERS)(self._new_pipeline)
        self._waited = 0  # the last submission that was waited for, with all before it
        self._waited_for: set[int] = set()  # transfers that were waited for alone, after that one
        if mode == "printf":
            output = ShaderOutput(self._adapter)
            output.check_printing()
            self.submission_observers.append(PrintedOutput(output))
        elif os.environ.get(SYNC) == "1":
            self.submission_observers.append(SynchronousCalls())
        self._pools: WeakValueDictionary[int, Pool] = WeakValueDictionary()
        # Staging memory, through which the host writes and reads memory that it does not see: one
        # pool for copies on the queue of dispatches, and one for those on the queue for transfers.
        # The host waits for each queue alone, so the queues must not share staging memory.
        self.upload: list[Pool] = [self.new_pool("upload") for _ in range(2)]
        self.readback: list[Pool] = [self.new_pool("readback") for _ in range(2)]

    def forget_driver(self) -> None:
        """In a forked child, drop the native device, so that each use of it is a DeviceError."""
        del self.native, self.module

    if not TYPE_CHECKING:  # to type checkers, all attributes would exist

        def __getattr__(self, name: str) -> NoReturn:
            forks.check_not_forked()
            raise AttributeError(name, name=name, obj=self)

    def check_usable(self) -> None:
        """Check that this thread can use the device now; see ``OpenDevice.check_usable``."""
        forks.check_not_forked()
        refuse_reentry(self.lock, "the device {} is in use", self.info.label)
        if self.lost:
            raise DeviceError(self.lost)

    # -- memory -----------------------------------------------------------------------------------

    def new_pool(self, use: str, max_range: int = 0) -> Pool:
        """Make a pool of memory for a use that the native class ``Memory`` knows."""
        pool = Pool(self, use, max_range)
        self._pools[id(pool)] = pool
        return pool

    def new_memory(self, nbytes: int, use: str, *, is_shared: bool = False) -> DeviceMemory:
        """Take memory from the driver after a check that it is available; hold the lock.

        Other processes can see the memory if it ``is_shared``.
        """
        available = self.available(use, limited=False)
        if nbytes > available:
            message = f"{nbytes} bytes: the device has {max(available, 0)} bytes available"
            raise OutOfDeviceMemoryError(message)
        is_cpu = self.info.type == "CPU"
        if is_cpu:
            host_memory.require(nbytes)
        held = held_bytes(self._source(use), imported=False)
        imported = self._import_pages(nbytes, use, held) if is_cpu and not is_shared else None
        if imported is not None:
            return self.adopt(imported, nbytes)
        if is_cpu:
            host_memory.require_in_file(nbytes, held)
        try:
            make = self.module.SharedMemory if is_shared else self.module.Memory
            native = make(self.native, nbytes, use)
        except self.module.DeviceLostError as error:
            self._refuse(error)
        except native_error() as error:
            message = f"{nbytes} bytes: the driver has no memory ({error})"
            raise OutOfDeviceMemoryError(message) from error
        memory = self.adopt(native, nbytes, is_shared=is_shared)
        if is_cpu and memory.view is not None:
            host_memory.check_in_file(memory.view, held)
            host_memory.touch(memory.view)
        return memory

    def _import_pages(self, nbytes: int, use: str, held: int) -> Native | None:
        """Return imported memory of the host; None if it must be memory of the driver.

        ``held`` are the bytes of the driver's own memory that this process has.

        A CPU driver's own memory has pages of 4 KiB. With the large ones that NumPy's arrays have,
        too, dispatches and copies are up to three times as fast. Images are not bound to imported
        memory: they have memory for "device", as tensors of staged devices do.
        """
        alignment = self.native.import_alignment
        if not alignment or use == "device":
            return None
        host_memory.require_in_file(SMALL_NBYTES, held)
        pages = host_memory.large_pages(round_up(nbytes, alignment))
        try:
            return None if pages is None else self.module.Memory(self.native, pages, use)
        except self.module.DeviceLostError as error:
            self._refuse(error)
        except native_error():
            return None

    def adopt(self, native: Any, nbytes: int, *, is_shared: bool = False) -> DeviceMemory:
        """Return native memory as an object that owns it and counts it as held."""
        heap = self._adapter.memory_types[native.type][0]
        return DeviceMemory(self, native, nbytes, (self.info.index, heap), is_shared=is_shared)

    @property
    def cuda(self) -> CudaDevice | str:
        """CUDA's device that is the same GPU, or why there is none."""
        with self._finding_cuda:  # only one thread makes a stream and semaphores
            if self._cuda is None:
                self._cuda = find(self)
            return self._cuda

    @property
    def uuids(self) -> tuple[bytes, bytes]:
        """Vulkan's UUIDs of the device and of the driver, which processes can compare."""
        return self._adapter.uuids  # type: ignore[no-any-return]

    def available(self, use: str, *, limited: bool = True) -> int:
        """Return the bytes that this process can still get; ``limited`` applies its own limit."""
        native, source = self._adapter, self._source(use)
        heap, held = source[1], held_bytes(source)
        free = adapter.available_memory(native, heap, held)
        if self.info.type == "CPU":
            free = min(free, host_memory.available())
        if limited and use in ("device", "mapped"):
            free = min(free, adapter.memory_limit(native.memory_heaps[heap][0]) - held)
        return free

    def _source(self, use: str) -> tuple[int, int]:
        """Return the heap from which memory for a use is taken first: (adapter, heap)."""
        native = self._adapter
        return self.info.index, native.memory_types[native.memory_types_for(use)[0]][0]

    def release_empty_heaps(self) -> None:
        """Give the memory that nothing uses back to the driver."""
        self.settle()
        with self.lock:
            for pool in living(self._pools):
                pool.release_empty_heaps()

    # -- running ----------------------------------------------------------------------------------

    def pipeline(self, kernel: Kernel, *, aligned: bool) -> Native:
        """Return the pipeline of a kernel, made when it is first used."""
        pipeline = self._pipelines.get((kernel.name, aligned))
        if pipeline is None:
            name = kernel.wide if kernel.wide and self._wide else kernel.name
            bindings = [
                (number, DESCRIPTOR_TYPES["storage"], 1) for number in range(kernel.bindings)
            ]
            code = for_records(spirv(name), aligned=aligned)
            with self.lock:
                pipeline = self._new_pipeline(code, [bindings], robust=False)
                pipeline.set_name(self.native, name)
                self._pipelines[kernel.name, aligned] = pipeline
        return pipeline

    def addressed_memory(self) -> list[Allocation]:
        """Return the memory that shaders can access by addresses."""
        return [buffer.allocation for buffer in living(self.addressed)]

    def _new_pipeline(
        self,
        code: bytes,
        bindings: Sequence[Sequence[tuple[int, int, int]]],
        entry: str = "main",
        push_nbytes: int = 0,
        *,
        robust: bool = True,
    ) -> Native:
        """Make a pipeline of SPIR-V.

        ``bindings`` are those of each descriptor set; see ``Shader.bindings``. A ``robust``
        pipeline discards accesses out of bounds, if the driver can do that.
        """
        try:
            pipeline = self.module.Pipeline(self.native, code, entry, bindings, push_nbytes, robust)
        except self.module.DeviceLostError as error:
            self._refuse(error)
        except native_error() as error:
            raise DeviceError(f"the driver does not compile the shader: {error}") from error
        self._stored.changed = True
        return pipeline

    def submit(
        self,
        work: Sequence[Native],
        reads: Iterable[Allocation] = (),
        writes: Iterable[Allocation] = (),
        name: str = "",
        *,
        now: bool = False,
    ) -> int:
        """Submit native operations, to run after all work submitted before; return their number.

        While the device is busy, work is collected; it begins when the device is idle or somebody
        asks for results. While this thread records a program, the work becomes a part of the
        program instead, unless it must be done ``now``; the number is then 0.

        ``reads`` and ``writes`` are the memory that the work uses; errors call it ``name``.
        """
        if not work:
            return 0
        recording = None if now else self.recording
        if recording is not None:
            recording.operations += work
            recording.names.append(name)
            recording.written.update(writes)
            recording.used.update(reads, writes)
            return 0
        observers = self.observers[::-1]  # once: other threads add and remove theirs meanwhile
        if not observers:
            return self.start(self.native.submit, work, reads, writes, name)
        number = 0
        for each in work:
            call = getattr(each, "call", None)
            with ExitStack() as contexts:
                for observer in observers if call is not None else ():
                    contexts.enter_context(observer(self, call))
                number = self.start(self.native.submit, [each], reads, writes, name)
        return number

    def start(self, function: Callable[..., int], *arguments: Any) -> int:
        """Submit work by a function of the native device; return the number that it returns."""
        observers = [*self.submission_observers]  # which other threads may add and remove
        began = perf_counter_ns() if observers else 0
        try:
            while (number := function(*arguments)) < 0:  # too many submissions have not ended
                self.native.make_room()
        except native_error() as error:
            self._refuse(error)
        for observer in observers if number else ():
            observer.submitted(self, arguments[-1], number, began)
        return number

    @property
    def recording(self) -> RecordedSteps | None:
        """The steps of the program that this thread records."""
        end = self.thread.end()
        return None if end is None else end.args[0].recorded

    def refuse_recording(self, what: str) -> None:
        """Raise a DeviceError if this thread records a program: ``what`` cannot be part of one."""
        if self.recording is not None:
            raise DeviceError(f"record: {what}")

    def wait(self, number: int) -> None:
        """Wait for a call and all before it; other threads can submit work meanwhile."""
        if number <= self._waited:
            return
        # A number that was never submitted, as its submission failed, may go to another thread's
        # work during the wait: wait only for what is submitted now.
        number = min(number, self.native.submitted)
        observers = [*self.submission_observers]
        began = perf_counter_ns() if observers else 0
        self.call(self.native.wait, number)
        self._note_waited(number)
        for observer in observers:
            observer.waited(self, began)

    def _note_waited(self, number: int) -> None:
        """Note that somebody has waited for a call and all before it."""
        self._waited = max(self._waited, number)
        for each in [*self._waited_for]:  # a copy: other threads add to the set
            if each <= self._waited:
                self._waited_for.discard(each)

    def wait_for(self, number: int) -> None:
        """Wait for a transfer alone, or for a call of another kind and all before it."""
        if not self.native.transfers:
            self.wait(number)
            return
        if self.has_waited(number):
            return
        observers = [*self.submission_observers]
        began = perf_counter_ns() if observers else 0
        self.call(self.native.wait_for, number)
        self._waited_for.add(number)
        if len(self._waited_for) > MAX_SUBMISSIONS:
            self._note_waited(self.call(lambda: self.native.completed))
        for observer in observers:
            observer.waited(self, began)

    def is_done(self, number: int) -> bool:
        """Whether a submission has ended."""
        done: int = self.call(lambda: self.native.completed)
        number = min(number, self.native.submitted)  # less than ``number`` if submitting it failed
        if number <= done:
            self._waited = max(self._waited, number)
        return number <= done

    def has_waited(self, number: int) -> bool:
        """Whether somebody has waited for a submission, or seen that it has ended."""
        return number <= self._waited or number in self._waited_for

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the native module, whose errors become those of vkops."""
        try:
            return function(*arguments)
        except native_error() as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        """Raise a driver's error, with the names of the work that it may have been doing."""
        if isinstance(error, self.module.OutOfMemoryError):
            message = f"the driver has no memory for commands ({error})"
            raise OutOfDeviceMemoryError(message) from error
        names = ", ".join(self.pending_names)
        doing = f" while it ran {names}" if names else ""
        message = f"{self.info.label} failed{doing}: {error}"
        if isinstance(error, self.module.DeviceLostError):
            if not self.lost:
                self.lost = f"{message}; it must be opened again"
                self._saving.detach()  # do not read pipelines of a lost device to store them
            message = self.lost
        raise DeviceError(message) from error

    @contextmanager
    def tolerating_loss(self) -> Iterator[None]:
        """In this block, ignore the error that the device is lost, but no other.

        Not every DeviceError is ignored: signal handlers may run in the block and raise their own.
        """
        try:
            yield
        except DeviceError as error:
            if not self.lost or str(error) != self.lost:
                raise

    @property
    def pending_names(self) -> list[str]:
        """The names of work that may not have ended."""
        return list(dict.fromkeys(filter(None, self.native.pending)))

    def settle(self) -> None:
        """Wait for all submissions."""
        self.wait(self.native.submitted)

    def finish_streams(self) -> None:
        """Wait for streams that run in threads; the thread of one does not wait for itself."""
        for stream in list(self.streams):
            if stream.is_current:
                return  # those behind it in the list began later
            stream.finish()
            with suppress(ValueError):  # another thread was faster
                self.streams.remove(stream)

    def finish(self) -> None:
        """Wait for all streams and submissions."""
        self.finish_streams()
        self.settle()

    def finish_within(self, seconds: float) -> bool:
        """Wait for all work until a time limit or an interrupt; return whether it has ended.

        If it has not, the work is left to the driver, and the device is never destroyed.
        """
        last, streams, until = self.native.submitted, [*self.streams], monotonic() + seconds
        with suppress(KeyboardInterrupt):
            while monotonic() < until:
                if self.is_done(last) and not any(stream.is_running for stream in streams):
                    return True
                sleep(0.001)
        self.native.patience = 0
        return False
