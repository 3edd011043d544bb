"""Pipelines: kernels that are bound to heaps and to a region table, kept to run again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.gpu.adapters.kompute import Commands, Kompute
from vkops.gpu.memory.heaps import Heap
from vkops.gpu.run.dispatch import Dispatch, Work
from vkops.shaders import spirv

MAX_GROUPS_X = 32768

_NO_WORDS = np.zeros(0, np.uint32)


_Key = tuple[str, tuple[Heap, ...], Heap, int]
"""Kernel, sources, target, workgroups."""


def _key(dispatch: Dispatch) -> _Key:
    return dispatch.kernel.name, dispatch.sources, dispatch.target, dispatch.groups


def group_count(dispatch: Dispatch) -> tuple[int, int, int]:
    """Return a dispatch's workgroups in each dimension."""
    return min(dispatch.groups, MAX_GROUPS_X), max(1, dispatch.groups // MAX_GROUPS_X), 1


def make_algorithm(manager: Any, dispatch: Dispatch, table: Heap, spirv: bytes) -> Any:
    """Return Kompute's algorithm (a pipeline) for a dispatch that reads a region table."""
    first, *others = dispatch.sources
    others += [first] * (dispatch.kernel.sources - len(dispatch.sources))
    # Some kernels have the target twice, as vectors and as words; others ignore the fourth.
    targets = [dispatch.target] * (1 if dispatch.kernel.indexed else 2)
    heaps = (table, first, *targets, *others)
    tensors = [heap.tensor for heap in heaps]
    return manager.algorithm(tensors, spirv, list(group_count(dispatch)), _NO_WORDS, _NO_WORDS)


class Pipelines:
    """A region table and up to ``limit`` pipelines that read it, the least recently used first.

    Called with the queue's lock held. An interrupt (KeyboardInterrupt) can come between any two
    steps, so the table counts as unknown while it is written.
    """

    def __init__(self, kompute: Kompute, table: Heap, limit: int, *, wide: bool) -> None:
        """Make no pipelines yet; those of ``wide`` kernels move integers of 64 bits."""
        assert table.view is not None
        self._kompute = kompute
        self._table = table
        self._words: npt.NDArray[np.uint32] = table.view.view(np.uint32)
        self._limit = limit
        self._wide = wide
        self._loaded: Dispatch | None = None
        self._algorithms: OrderedDict[_Key, Any] = OrderedDict()
        self._recorded: dict[_Key, Commands] = {}
        self._copies: Commands | None = None
        self._measures = False

    def __len__(self) -> int:
        return len(self._algorithms)

    def measure(self, on: bool) -> None:
        """Have the device measure from now on."""
        self._measures = on
        self._recorded.clear()

    def run(self, dispatch: Work) -> float | None:
        """Run a dispatch, or a copy, and wait for it.

        Returns:
            The nanoseconds that the device measured, if it did.
        """
        commands = self.commands(dispatch)
        commands.run()
        if not isinstance(dispatch, Dispatch):
            commands.clear()
        return commands.nanoseconds

    def commands(self, dispatch: Work) -> Commands:
        """Return the commands of a dispatch or a copy, valid until the next call."""
        if not isinstance(dispatch, Dispatch):
            if self._copies is None:
                self._copies = self._kompute.commands()
            self._copies.record([self.operation(dispatch)], self._measures)
            return self._copies
        key = _key(dispatch)
        commands = self._recorded.get(key)
        if commands is None:
            commands = self._kompute.commands()
            commands.record([self.operation(dispatch)], self._measures)
            self._recorded[key] = commands
        else:
            self._load(dispatch)
            self._algorithms.move_to_end(key)
        return commands

    def operation(self, dispatch: Work) -> Any:
        """Return Kompute's operation of a dispatch or a copy, valid until the next call."""
        kompute = self._kompute
        if not isinstance(dispatch, Dispatch):
            return dispatch.operation(kompute.native)
        self._load(dispatch)
        return kompute.kp.OpAlgoDispatch(self._algorithm(_key(dispatch), dispatch))

    def _load(self, dispatch: Dispatch) -> None:
        if self._loaded is dispatch:
            return
        self._loaded = None
        self._words[: dispatch.words.size] = dispatch.words
        self._loaded = dispatch

    def _algorithm(self, key: _Key, dispatch: Dispatch) -> Any:
        algorithm = self._algorithms.get(key)
        if algorithm is None:
            while len(self._algorithms) >= self._limit:
                self._drop(next(iter(self._algorithms)))
            kernel = dispatch.kernel
            code = spirv(kernel.wide if kernel.wide and self._wide else kernel.name)
            algorithm = make_algorithm(self._kompute.manager, dispatch, self._table, code)
            self._algorithms[key] = algorithm
        self._algorithms.move_to_end(key)
        return algorithm

    def _drop(self, key: _Key) -> None:
        if (commands := self._recorded.pop(key, None)) is not None:
            commands.clear()
        self._algorithms.pop(key).destroy()

    def forget(self, heap: Heap) -> None:
        """Drop the pipelines that are bound to a heap, and the copies, which keep heaps alive."""
        self._loaded = None
        if self._copies is not None:
            self._copies.clear()
        for key in [key for key in self._algorithms if heap in (*key[1], key[2])]:
            self._drop(key)

    def close(self) -> None:
        """Drop everything."""
        self._loaded = self._copies = None
        for key in list(self._algorithms):
            self._drop(key)
