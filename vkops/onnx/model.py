"""Models: read, checked, and specialised to the shapes of their inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import onnx.checker
import onnx.inliner
from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from vkops.errors import ModelError
from vkops.onnx.node import Call, Node, label, schema_of
from vkops.onnx.operators import OPERATORS, lowering_of
from vkops.onnx.trace import Sequence, Trace, Value
from vkops.onnx.types import dense, dtype_of, type_text
from vkops.plan.region import Ints

Array = npt.NDArray[Any]

Dimension: TypeAlias = "int | str | None"
"""A size, the name of one that is free, or None for one that has no name."""

_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Declared:
    """A graph input or output: its name and what its type says.

    ``kind`` is tensor, sequence, optional or another that vkops does not have; ``shape`` is None
    where the rank is free.
    """

    name: str
    kind: str
    dtype: np.dtype[Any] | None
    shape: tuple[Dimension, ...] | None
    denotations: tuple[str, ...] = ()


@dataclass(frozen=True)
class TensorForm:
    """What specialisation depends on in an input: its type and its shape."""

    dtype: np.dtype[Any]
    shape: Ints


@dataclass(frozen=True)
class SequenceForm:
    """The same of a sequence: the type of its tensors, and the shape of each."""

    dtype: np.dtype[Any]
    shapes: tuple[Ints, ...]


Form: TypeAlias = "TensorForm | SequenceForm | None"
"""The form of an input; None: an optional that is absent."""


@dataclass(frozen=True)
class Unsupported:
    """A node that vkops cannot run, and why."""

    label: str
    reason: str


class Model:
    """An ONNX model of operators that only move data.

    Args:
        source: a ``ModelProto``, its bytes, or the path of a file.
        check: whether to check it by ONNX's rules; its nodes are checked in any case.

    Raises:
        ModelError: the file is no model, the model breaks ONNX's rules, or a node is of an
            operator that vkops does not have; ``unsupported_nodes`` lists them all.
    """

    def __init__(
        self, source: ModelProto | bytes | str | os.PathLike[str], *, check: bool = True
    ) -> None:
        try:
            self._take(read(source, check=check))
        except ModelError as error:
            if not isinstance(source, (str, os.PathLike)):
                raise
            raise ModelError(f"{os.fspath(source)}: {error}") from error

    def _take(self, proto: ModelProto) -> None:
        found = unsupported_nodes(proto)
        if found:
            more = f", nor {len(found) - 1} more nodes" if len(found) > 1 else ""
            raise ModelError(f"{found[0].label}: {found[0].reason}{more}; {available()}")
        graph = proto.graph
        self.constants: dict[str, Array] = {}
        for tensor in graph.initializer:
            try:
                self.constants[tensor.name] = numpy_helper.to_array(tensor)
            except ValueError as error:
                raise ModelError(f"initializer {tensor.name!r}: {error}") from error
        for sparse in graph.sparse_initializer:
            self.constants[sparse.values.name] = dense(sparse)
        self.inputs = tuple(map(_declared, graph.input))
        self.outputs = tuple(map(_declared, graph.output))
        self.opset = _opset(proto)
        self.nodes = tuple(_nodes(proto))

    @property
    def required_inputs(self) -> tuple[Declared, ...]:
        """Inputs without a default."""
        return tuple(entry for entry in self.inputs if entry.name not in self.constants)

    def lower(self, forms: Mapping[str, Form], known: Mapping[str, Any]) -> Lowering:
        """What the graph's outputs are made of.

        Args:
            forms: the form of each input; those with a default may be left out.
            known: the inputs whose elements may be used.

        Raises:
            ModelError: a node's arguments break a rule of its operator.
            NeedsValueError: shapes depend on the elements of an input that is not known.
        """
        free: dict[str, int] = {}
        for entry in self.inputs:
            if entry.name in forms:
                _check_form(entry, forms[entry.name], free)
        trace = Trace()
        values: dict[str, Value] = {"": None}
        for name, array in self.constants.items():
            if name not in forms:
                values[name] = trace.constant(array)
        for name, form in forms.items():
            values[name] = _entered(trace, name, form, known)
        for node in self.nodes:
            call = Call(node, trace, [values[name] for name in node.inputs])
            made = lowering_of(node.operator, node.version)(call)
            values.update(zip(node.outputs, made, strict=False))
            values[""] = None
        outputs = [values[output.name] for output in self.outputs]
        for entry, value in zip(self.outputs, outputs, strict=True):
            if entry.dtype is not None and value is not None and value.dtype != entry.dtype:
                raise ModelError(
                    f"output {entry.name!r}: is declared {type_text(entry.dtype)}, "
                    f"its node makes {type_text(value.dtype)}"
                )
        return Lowering(trace, outputs)


@dataclass(frozen=True)
class Lowering:
    """What a model's outputs are, in a trace."""

    trace: Trace
    outputs: list[Value]


def read(source: ModelProto | bytes | str | os.PathLike[str], *, check: bool = True) -> ModelProto:
    """Read a model, check it by ONNX's rules, and put functions in place of their calls."""
    proto = source if isinstance(source, ModelProto) else _load(source)
    newest = onnx.defs.onnx_opset_version()
    if _opset(proto) > newest:
        raise ModelError(
            f"the model needs opset {_opset(proto)}, the installed onnx {onnx.__version__} knows "
            f"those up to {newest}"
        )
    if check:
        try:
            onnx.checker.check_model(_completed(proto))
        except Exception as error:  # the checker raises errors of many kinds
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise ModelError(f"the model breaks ONNX's rules: {' '.join(lines[:3])}") from error
    return onnx.inliner.inline_local_functions(proto) if proto.functions else proto


def _completed(proto: ModelProto) -> ModelProto:
    """What ONNX Runtime does without but the checker asks for: types, shapes, one name of a domain.

    The model itself stays as it is.
    """
    ends = (*proto.graph.input, *proto.graph.output)
    is_incomplete = any(map(_lacks_shape, ends))
    if not is_incomplete and all(node.domain != _DOMAINS[1] for node in proto.graph.node):
        return proto
    copy = ModelProto()
    copy.CopyFrom(proto)
    for info in (*copy.graph.input, *copy.graph.output):
        if _lacks_shape(info):
            tensor = info.type.tensor_type
            tensor.elem_type = tensor.elem_type or TensorProto.FLOAT
            tensor.shape.SetInParent()
    for named in (*copy.graph.node, *copy.opset_import):
        if named.domain == _DOMAINS[1]:
            named.domain = _DOMAINS[0]
    return copy


def _lacks_shape(info: ValueInfoProto) -> bool:
    kind = info.type.WhichOneof("value")
    return kind is None or (kind == "tensor_type" and not info.type.tensor_type.HasField("shape"))


def _load(source: bytes | str | os.PathLike[str]) -> ModelProto:
    try:
        if isinstance(source, bytes):
            proto = ModelProto()
            proto.ParseFromString(source)
        else:
            proto = onnx.load(Path(source))
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}") from error
    except DecodeError as error:
        raise ModelError("not an ONNX model") from error
    except Exception as error:
        raise ModelError(f"cannot be read: {' '.join(str(error).split())}") from error
    if not proto.ir_version:
        raise ModelError("not an ONNX model: it has no IR version")
    return proto


def available() -> str:
    """The operators that vkops has, for errors."""
    return f"it has {', '.join(OPERATORS)}"


def unsupported_nodes(proto: ModelProto) -> list[Unsupported]:
    """All nodes of a model that vkops cannot run."""
    opset = _opset(proto)
    found = []
    for index, node in enumerate(proto.graph.node):
        reason = _unsupported(node, opset)
        if reason is not None:
            domain = "" if node.domain in _DOMAINS else f"{node.domain}."
            found.append(Unsupported(label(node, index, f"{domain}{node.op_type}"), reason))
    return found


def _unsupported(node: NodeProto, opset: int) -> str | None:
    if node.domain not in _DOMAINS or node.op_type not in OPERATORS:
        return "vkops does not have this operator"
    if schema_of(node.op_type, opset) is None:
        return f"opset {opset} does not have this operator"
    return None


def _nodes(proto: ModelProto) -> Iterator[Node]:
    opset = _opset(proto)
    for index, node in enumerate(proto.graph.node):
        schema = schema_of(node.op_type, opset)
        yield Node(node, index, schema)


def _opset(proto: ModelProto) -> int:
    """The version of ONNX's own operators that a model asks for; models of IR 2 ask for none."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in _DOMAINS]
    return max(versions, default=1)


# -- inputs ----------------------------------------------------------------------------------------


def _declared(info: ValueInfoProto) -> Declared:
    proto = info.type
    kind = proto.WhichOneof("value") or ""
    inner = _innermost(proto)
    if inner is None or not inner.elem_type:
        return Declared(info.name, kind.removesuffix("_type"), None, None)
    dims = inner.shape.dim if inner.HasField("shape") else None
    shape = None if dims is None else tuple(map(_dimension, dims))
    denotations = tuple(dim.denotation for dim in dims or ())
    return Declared(
        info.name, kind.removesuffix("_type"), dtype_of(inner.elem_type), shape, denotations
    )


def _innermost(proto: TypeProto) -> Any:
    """The tensor type that a type is made of; None for maps and the like."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            return proto.tensor_type
        case "sequence_type":
            return _innermost(proto.sequence_type.elem_type)
        case "optional_type":
            return _innermost(proto.optional_type.elem_type)
    return None


def _dimension(dim: Any) -> Dimension:
    match dim.WhichOneof("value"):
        case "dim_value":
            return int(dim.dim_value) if dim.dim_value >= 0 else None
        case "dim_param":
            return str(dim.dim_param) or None
    return None


def _check_form(entry: Declared, form: Form, free: dict[str, int]) -> None:
    """Refuse what is not as declared; ``free`` has the sizes of the names that came up before."""
    name, wanted = entry.name, entry.kind
    if form is None:
        if wanted != "optional":
            raise ModelError(f"input {name!r}: got None, must be a {wanted}")
        return
    got = "tensor" if isinstance(form, TensorForm) else "sequence"
    if got != wanted and wanted != "optional":
        raise ModelError(f"input {name!r}: is a {got}, must be a {wanted}")
    if entry.dtype is not None and type_text(form.dtype) != type_text(entry.dtype):
        raise ModelError(
            f"input {name!r}: has type {type_text(form.dtype)}, must be {type_text(entry.dtype)}"
        )
    if isinstance(form, TensorForm):
        _check_shape(name, form.shape, entry.shape, free)
    else:
        for i, shape in enumerate(form.shapes):
            _check_shape(f"{name}[{i}]", shape, entry.shape, {})


def _check_shape(
    name: str, shape: Ints, declared: tuple[Dimension, ...] | None, free: dict[str, int]
) -> None:
    if declared is None:
        return
    before = dict(free)
    fits = len(shape) == len(declared) and all(
        size is None or got == (free.setdefault(size, got) if isinstance(size, str) else size)
        for got, size in zip(shape, declared, strict=True)
    )
    if not fits:
        wanted = ", ".join("?" if size is None else str(size) for size in declared)
        where = "".join(f", {d} being {before[d]}" for d in declared if d in before)
        raise ModelError(f"input {name!r}: has shape {shape}, must be ({wanted}){where}")


def _entered(trace: Trace, name: str, form: Form, known: Mapping[str, Any]) -> Value:
    """A graph input as a value of the trace."""
    if form is None:
        return None
    elements = known.get(name)
    if isinstance(form, TensorForm):
        if elements is not None:
            return trace.constant(elements)
        return trace.input(name, form.dtype, form.shape)
    if elements is not None:
        return Sequence(form.dtype, tuple(map(trace.constant, elements)))
    items = (trace.input(name, form.dtype, shape, i) for i, shape in enumerate(form.shapes))
    return Sequence(form.dtype, tuple(items))
