"""The Vulkan device of an adapter: its queue, memory and pipelines, which all Devices share.

Work is submitted in order, and nobody waits for it but the host where it looks at memory: each
allocation has the numbers of the last submissions that use it and that write it.
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

import numpy.typing as npt

from vkops.errors import DeviceError, OutOfDeviceMemoryError, refuse_reentry
from vkops.extent import Extent
from vkops.gpu.adapters import adapter, forks
from vkops.gpu.adapters.kompute import Native, load_kompute, load_native, native_error
from vkops.gpu.adapters.pipeline_cache import PipelineCache
from vkops.gpu.adapters.shader_output import ShaderOutput
from vkops.gpu.copies.rectangles import ImageLimits
from vkops.gpu.kernels.choice import Kernel
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.pools import (
    FIRST_NBYTES,
    Allocation,
    DeviceMemory,
    ImportedMemory,
    Pool,
    held_bytes,
    living,
)
from vkops.gpu.run.pending import BackgroundTask
from vkops.shaders import for_records, spirv
from vkops.shaders.module import DESCRIPTOR_TYPES
from vkops.system.processes import can_start_threads
from vkops.system.threads import new_lock

MAX_SUBMISSIONS = 64
"""Submissions that the device can have at a time: the next one waits for the first of them."""

MAX_SHADERS = 64
"""Pipelines of users' shaders that are kept: Mesa 22.3's CPU driver leaks memory with each."""

MAX_OPEN = 16
"""Operations that are collected for a submission while the device runs others."""

THREAD_BYTES = 72 << 20
"""Bytes of address space that a thread of a CPU driver takes: its stack, and a heap of glibc."""

MIN_IMPORTED_BYTES = 32 << 10
"""Bytes of the smallest arrays that are imported: smaller ones are uploaded faster."""

SYNC = "VKOPS_SYNC"
"""With 1 in this environment variable, each submission is waited for at once, for debugging."""


@dataclass(slots=True)
class RecordedSteps:
    """The steps of a program that is being recorded, and the memory that they use."""

    operations: list[Native] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    used: set[Allocation] = field(default_factory=set)
    written: set[Allocation] = field(default_factory=set)


NOT_RECORDING: ref[partial[None]] = ref(partial(print))
"""A reference to a call that was freed."""


class RecordingThread(local):
    """Whether a thread records a program: each thread has its own attribute.

    Attributes:
        end: refers to the call that ends the recording, with the program as its argument. Nothing
            but the ``with`` statement holds this call. However the statement ends, it lets go of
            the call, and the recording ends, even if an interrupt comes before the call begins. A
            ``partial`` has no frame, which a traceback would keep.
    """

    end: ref[partial[None]] = NOT_RECORDING


class AddressedMemory(Protocol):
    """A ``Buffer`` whose address was given out: its module imports this one."""

    allocation: Allocation
    nbytes: int

    def device_address(self) -> int:
        """Return the address of the first byte."""
        ...


class SubmissionObserver:
    """Is told what a device runs, and when the host has waited for it; here, it does nothing.

    Threads add it to ``VulkanDevice.submission_observers`` and remove it at any time: it may still
    be told of a call that began before.
    """

    def submitted(self, device: VulkanDevice, name: str, number: int, began: int) -> None:
        """Take notice of a call that was submitted, and of when it began (``perf_counter_ns``)."""

    def waited(self, device: VulkanDevice, began: int) -> None:
        """Take notice of a wait that has ended, and of when it began."""


class SynchronousCalls(SubmissionObserver):
    """Waits for each call at once."""

    def submitted(self, device: VulkanDevice, name: str, number: int, began: int) -> None:
        """Wait for the call."""
        device.wait(number)


class PrintedOutput(SynchronousCalls):
    """Prints what shaders print, after each call."""

    def __init__(self, output: ShaderOutput) -> None:
        self._output = output

    def waited(self, device: VulkanDevice, began: int) -> None:
        """Print the texts of what has ended."""
        self._output.show()


class VulkanDevice:
    """A VkDevice, its queue, memory and pipelines; made by ``open_vulkan_device``.

    Devices of one adapter can bind each other's memory, because it belongs to the same VkDevice.
    Vulkan wants a queue used by one thread at a time: work is submitted under ``lock``. Threads
    that wait do not hold it. Submissions are numbered from 1; the number 0 stands for none.

    Attributes:
        info: the adapter.
        key: the adapter and the layers, by which the device is found again.
        native: the device of the native module, and ``module`` that module.
        features: the optional features for shaders, with which it was opened.
        images: the limits of linear images, if they can be used.
        lost: what happened, if the device is lost.
        validated: whether it was opened under the validation layer.
        submission_observers: are told of calls and waits of this device, in this order: for
            debugging, to wait at once (VKOPS_SYNC) or to print what shaders print; while the device
            measures, its ``Timestamps`` and the recorder of profiles.
        addressed: the buffers whose addresses were given out, by their ids.
        prepared: the steps of the native module that each program has become, with the tuning.
        observers: functions that return a context for the ``BoundCall`` of each dispatch of a
            shader, which is submitted in these contexts; that of the newest function is the
            outermost. They observe all devices and threads. Blocks of several threads, fixtures and
            generators overlap without nesting, so each adds and removes its own function alone: by
            ``append`` and ``remove``, which are atomic, as copies of a list are.
    """

    observers: ClassVar[list[Callable[[VulkanDevice, Any], AbstractContextManager[None]]]] = []

    def __init__(self, info: adapter.DeviceInfo, key: object, mode: adapter.Mode = "") -> None:
        self.info: adapter.DeviceInfo = info
        self.key: object = key
        self.lock: RLock = new_lock()
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
            self.native: Native = make(self._adapter, validated, *most, count, cached)
            alignment = self.native.pitch_alignment
        except native_error() as error:
            message = f"{info.label} cannot be opened: {error}{forks.hint()}"
            if info.type == "CPU" and not can_start_threads():
                message += "; it needs threads, and limits allow no more of them (ulimit -u)"
            raise DeviceError(message) from error
        side = info.limits.max_linear_image_dimension_2d
        self.images: ImageLimits | None = ImageLimits(alignment, side) if alignment else None
        self.features: frozenset[str] = frozenset(self.native.features) & {*info.limits.features}
        self._wide = "shaderInt64" in self.features and adapter.prefers_int64(info)
        # When this is dropped or Python exits, unless the device is lost.
        self._saving = finalize(self, self._stored.save, self.native)
        self._pipelines: dict[tuple[str, bool], Native] = {}
        self.prepared: WeakKeyDictionary[object, tuple[object, list[Native]]] = WeakKeyDictionary()
        self.shader_pipeline: Callable[..., Native] = lru_cache(MAX_SHADERS)(self._new_pipeline)
        self._waited = 0  # the last submission that was waited for
        if mode == "printf":
            output = ShaderOutput(self._adapter)
            output.check()
            self.submission_observers.append(PrintedOutput(output))
        elif os.environ.get(SYNC) == "1":
            self.submission_observers.append(SynchronousCalls())
        self._pools: WeakValueDictionary[int, Pool] = WeakValueDictionary()
        # Through these, the host writes and reads memory that it does not see.
        self.upload: Pool = self.new_pool("upload")
        self.readback: Pool = self.new_pool("readback")

    def forget_driver(self) -> None:
        """Make each use of the driver a DeviceError, in a forked child."""
        del self.native, self.module

    if not TYPE_CHECKING:  # to type checkers, all attributes would exist

        def __getattr__(self, name: str) -> NoReturn:
            forks.check()
            raise AttributeError(name, name=name, obj=self)

    def check(self) -> None:
        """Check that this thread can use the device now; see ``OpenDevice.check``."""
        forks.check()
        refuse_reentry(self.lock, "the device {} is in use", self.info.label)
        if self.lost:
            raise DeviceError(self.lost)

    # -- memory -----------------------------------------------------------------------------------

    def new_pool(self, use: str, max_range: int = 0) -> Pool:
        """Make a pool of memory for a use: one of those of ``Memory`` in the native module."""
        pool = Pool(self, use, max_range)
        self._pools[id(pool)] = pool
        return pool

    def new_memory(self, nbytes: int, use: str, *, is_shared: bool = False) -> DeviceMemory:
        """Take memory from the driver after a check that it is available, with the lock held.

        Other processes can see what ``is_shared``.
        """
        available, is_cpu = self.available(use, limited=False), self.info.type == "CPU"
        held = held_bytes(self._source(use))
        if nbytes > available:
            message = f"{nbytes} bytes: the device has {max(available, 0)} bytes available"
            raise OutOfDeviceMemoryError(message)
        if is_cpu:
            host_memory.require(nbytes)
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

    def adopt(self, native: Any, nbytes: int, *, is_shared: bool = False) -> DeviceMemory:
        """Return what has and counts memory of the native module."""
        heap = self._adapter.memory_types[native.type][0]
        return DeviceMemory(self, native, nbytes, (self.info.index, heap), is_shared=is_shared)

    @property
    def uuids(self) -> tuple[bytes, bytes]:
        """Vulkan's UUIDs of the device and of the driver, which processes can compare."""
        return self._adapter.uuids  # type: ignore[no-any-return]

    def available(self, use: str, *, limited: bool = True) -> int:
        """Return the bytes that this process can still get, within its own limit or without it."""
        native, source = self._adapter, self._source(use)
        heap, held = source[1], held_bytes(source)
        free = adapter.available_memory(native, heap, held)
        if self.info.type == "CPU":
            free = min(free, host_memory.available())
        if limited and use in ("device", "mapped"):
            free = min(free, adapter.memory_limit(native.memory_heaps[heap][0]) - held)
        return free

    def _source(self, use: str) -> tuple[int, int]:
        """Return where memory for a use is taken from first: (adapter, heap)."""
        native = self._adapter
        return self.info.index, native.memory_types[native.memory_types_for(use)[0]][0]

    def release_empty_heaps(self) -> None:
        """Give the memory that nothing uses back to the driver."""
        self.settle()
        with self.lock:
            for pool in living(self._pools):
                pool.release_empty_heaps()

    def import_array(self, array: npt.NDArray[Any]) -> Extent | None:
        """Return the memory of an array, for copies to read; None if it must be sent.

        The array must not change until the copies have ended.
        """
        page = self.native.import_alignment
        # Both ends are extended to whole pages.
        fits = page and array.nbytes + 2 * page <= self.info.limits.max_allocation
        if not fits or array.nbytes < MIN_IMPORTED_BYTES or not array.flags.c_contiguous:
            return None
        native = self._made(self.module.Memory, array)
        return None if native is None else Extent(ImportedMemory(native), 0, array.nbytes)

    def image(
        self, memory: DeviceMemory, offset: int, pitch: int, height: int, unit: int
    ) -> Native:
        """Lay a linear image over a part of memory; None if the driver refuses.

        It has rows of ``pitch`` bytes, and texels of ``unit`` bytes.
        """
        if self.images is None or pitch > self.images.side * unit:
            return None
        image = self._made(self.module.LinearImage, memory.native, offset, pitch, height, unit)
        if image is not None:
            self.start(self.native.submit, [self.module.OpLayout(image)], (), (), "")
        return image

    def _made(self, make: Callable[..., Native], *arguments: Any) -> Native:
        """Make an object of the native module; None if the driver refuses."""
        try:
            return make(self.native, *arguments)
        except native_error():
            return None

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

        ``bindings`` are those of each descriptor set; see ``Shader.bindings``. A ``robust`` one
        discards accesses out of bounds, if the driver can.
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
        """Begin to run native operations, after all that was submitted before; return a number.

        While the device is busy, work is collected, and begins when the device has nothing to do or
        somebody asks for results. While this thread records a program, the work becomes a part of
        it, unless it is ``now``; the number is 0.

        ``reads`` and ``writes`` are the memory that it uses, ``name`` says in errors what it is.
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
        """Begin to run work by a function of the native device; return what it returns."""
        observers = [*self.submission_observers]  # which other threads may add and remove
        began = perf_counter_ns() if observers else 0
        try:
            while (number := function(*arguments)) < 0:  # no room
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
        """Raise a DeviceError for what no program has, if this thread is recording one."""
        if self.recording is not None:
            raise DeviceError(f"record: {what}")

    def wait(self, number: int) -> None:
        """Wait for a call and all before it; other threads can submit work meanwhile."""
        if number <= self._waited:
            return
        # Before the wait: the number may be one that another thread's work gets meanwhile.
        number = min(number, self.native.submitted)
        observers = [*self.submission_observers]
        began = perf_counter_ns() if observers else 0
        self.call(self.native.wait, number)
        self._waited = max(self._waited, number)
        for observer in observers:
            observer.waited(self, began)

    def is_done(self, number: int) -> bool:
        """Whether a submission has ended."""
        done: int = self.call(lambda: self.native.completed)
        number = min(number, self.native.submitted)  # which is less if that failed
        if number <= done:
            self._waited = max(self._waited, number)
        return number <= done

    def has_waited(self, number: int) -> bool:
        """Whether somebody has waited for a submission, or seen that it has ended."""
        return number <= self._waited

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the native module, whose errors become those of vkops."""
        try:
            return function(*arguments)
        except native_error() as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        """Raise the error of the driver; the names are those of what it may have been doing."""
        if isinstance(error, self.module.OutOfMemoryError):
            message = f"the driver has no memory for commands ({error})"
            raise OutOfDeviceMemoryError(message) from error
        names = ", ".join(self.pending_names)
        doing = f" while it ran {names}" if names else ""
        message = f"{self.info.label} failed{doing}: {error}"
        if isinstance(error, self.module.DeviceLostError):
            if not self.lost:
                self.lost = f"{message}; it must be opened again"
                self._saving.detach()
            message = self.lost
        raise DeviceError(message) from error

    @contextmanager
    def tolerating_loss(self) -> Iterator[None]:
        """Ignore in this block that the device is lost, but no other error.

        Signal handlers run in it, too, and may raise a DeviceError of their own.
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
                return  # the others began after it
            stream.finish()
            with suppress(ValueError):  # another thread was faster
                self.streams.remove(stream)

    def finish(self) -> None:
        """Wait for everything."""
        self.finish_streams()
        self.settle()

    def finish_within(self, seconds: float) -> bool:
        """Wait for everything, for so many seconds or until an interrupt; return whether it ended.

        If not, the work is left to the driver, and the device is never destroyed.
        """
        last, streams, until = self.native.submitted, [*self.streams], monotonic() + seconds
        with suppress(KeyboardInterrupt):
            while monotonic() < until:
                if self.is_done(last) and not any(stream.is_running for stream in streams):
                    return True
                sleep(0.001)
        self.native.patience = 0
        return False
