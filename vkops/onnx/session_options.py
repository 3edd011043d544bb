"""Options of sessions, with the names of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any

from vkops.errors import ModelError, show
from vkops.onnx.free_dimensions import Overrides
from vkops.onnx.value_info import ValueInfo


@dataclass(slots=True)
class SessionOptions:
    """Options of a session, with the names of ONNX Runtime's.

    Sizes of free dimensions have an effect. The others have none, because a model is one plan,
    which threads, memory patterns and optimization levels do not change: they may have any value.
    Only ``enable_profiling`` and ``optimized_model_filepath``, which ask for files that vkops does
    not write, must be left as they are.

    Source: onnxruntime.SessionOptions.

    >>> import onnx
    >>> from vkops.onnx import Session, SessionOptions
    >>> text = '''<ir_version: 9, opset_import: ["" : 18]>
    ... turn (float[batch, 4] x) => (float[4, batch] y) { y = Transpose (x) }'''
    >>> options = SessionOptions()
    >>> options.add_free_dimension_override_by_name("batch", 8)
    >>> session = Session(onnx.parser.parse_model(text), sess_options=options)
    >>> session.get_inputs()[0].shape, session.get_outputs()[0].shape
    ([8, 4], [4, 8])
    """

    enable_cpu_mem_arena: Any = True
    enable_mem_pattern: Any = True
    enable_mem_reuse: Any = True
    enable_profiling: bool = False
    execution_mode: Any = None
    execution_order: Any = None
    graph_optimization_level: Any = None
    inter_op_num_threads: Any = 0
    intra_op_num_threads: Any = 0
    log_severity_level: Any = -1
    log_verbosity_level: Any = 0
    logid: Any = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: Any = "onnxruntime_profile_"
    use_deterministic_compute: Any = False
    use_per_session_threads: Any = True
    _overrides: Overrides = field(default_factory=Overrides, init=False, repr=False)
    _entries: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Give the free dimensions of a name, such as ``batch``, a size in elements.

        Raises:
            ModelError: the name is not a string, or the size is not an integer of at least 0.
        """
        self._overrides.names[_text("name", name)] = _size(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Give the free dimensions of a denotation, such as ``DATA_BATCH``, a size in elements.

        Raises:
            ModelError: the denotation is not a string, or the size is not an integer of at least 0.
        """
        self._overrides.denotations[_text("denotation", denotation)] = _size(value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Store an entry, which has no effect.

        Raises:
            ModelError: key or value is not a string.
        """
        self._entries[_text("key", key)] = _text("value", value)

    def get_session_config_entry(self, key: str) -> str:
        """Return the value of an entry.

        Raises:
            ModelError: there is no such entry.
        """
        if not isinstance(key, str) or key not in self._entries:
            listed = ", ".join(map(repr, self._entries)) or "none"
            raise ModelError(f"key: got {show(key)}, the entries are {listed}")
        return self._entries[key]

    def check(self) -> None:
        """Raise a ModelError for options that vkops does not support."""
        if self.enable_profiling:
            message = "must be False: `vkops run` and vkops.Device.measure_dispatches measure times"
            raise ModelError(f"enable_profiling: got {show(self.enable_profiling)}, {message}")
        if self.optimized_model_filepath:
            got = show(self.optimized_model_filepath)
            message = "must be empty: a model becomes a plan, which is not a model"
            raise ModelError(f"optimized_model_filepath: got {got}, {message}")

    def resize(self, entries: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
        """Return inputs or outputs with the sizes that were given for their free dimensions."""
        return tuple(replace(entry, shape=self._overrides.sizes(entry)) for entry in entries)


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ModelError(f"{name}: got {show(value)}, must be a string")


def _size(value: Any) -> int:
    try:
        size = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        size = -1
    if size < 0:
        raise ModelError(f"value: got {show(value)}, must be an integer of at least 0")
    return size
