"""Shaders of Kompute alone, each evaluation of which is waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import kp
import numpy as np

from benchmarks.shaders import AXPY_GLSL, BODIES, GROUP, NBODY_GLSL, STEPS, Array, Groups, Runs
from vkops import shaders
from vkops.gpu.adapters.adapter import DeviceInfo

_NOTHING = np.zeros(0, np.uint32)


class Contender:
    """A manager of Kompute."""

    def __init__(self, info: DeviceInfo) -> None:
        self._manager = kp.Manager(info.index)
        self._kind = kp.TensorTypes.host if info.unified_memory else kp.TensorTypes.device

    def axpy(self, x: Array, y: Array, groups: Groups) -> tuple[Runs, Callable[[], Array]]:
        """See ``Library``."""
        a, b = self._tensor(x), self._tensor(y)
        sequence = self._sequence([self._algorithm(AXPY_GLSL, [a, b], groups)])
        return {"": sequence.eval}, lambda: self._fetched(b)

    def nbody(self, bodies: Array) -> tuple[Runs, Callable[[], Array]]:
        """See ``Library``."""
        one, other = self._tensor(bodies), self._tensor(bodies)
        pairs = [[one, other], [other, one]]
        algorithms = [self._algorithm(NBODY_GLSL, pair, (BODIES // GROUP, 1, 1)) for pair in pairs]
        sequence = self._sequence([algorithms[number % 2] for number in range(STEPS)])
        return {"": sequence.eval}, lambda: self._fetched(one).reshape(bodies.shape)

    def compilation(self) -> Runs:
        """See ``Library``; Kompute takes SPIR-V, and makes a pipeline of it."""
        spirv = shaders.compile(NBODY_GLSL)
        tensor = self._tensor(np.zeros(BODIES, np.float32))
        make = self._manager.algorithm
        return {"": lambda: make([tensor, tensor], spirv, [1, 1, 1], _NOTHING, _NOTHING)}

    def _tensor(self, array: Array) -> Any:
        tensor = self._manager.tensor_t(array.reshape(-1), self._kind)
        if self._kind != kp.TensorTypes.host:
            self._manager.sequence().eval(kp.OpTensorSyncDevice([tensor]))
        return tensor

    def _fetched(self, tensor: Any) -> Array:
        if self._kind != kp.TensorTypes.host:
            self._manager.sequence().eval(kp.OpTensorSyncLocal([tensor]))
        return np.array(tensor.data(), np.float32)

    def _algorithm(self, text: str, tensors: Sequence[Any], groups: Groups) -> Any:
        spirv = shaders.compile(text)
        return self._manager.algorithm(list(tensors), spirv, groups, _NOTHING, _NOTHING)

    def _sequence(self, algorithms: Sequence[Any]) -> Any:
        sequence = self._manager.sequence()
        for algorithm in algorithms:
            sequence.record(kp.OpAlgoDispatch(algorithm))
        return sequence
