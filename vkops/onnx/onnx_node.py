"""Nodes, checked against ONNX's own schemas, and the arguments of a node that is lowered."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, defs, helper

from vkops.errors import ModelError
from vkops.onnx.lowering import LoweredSequence, LoweredTensor, LoweredValue, Lowering
from vkops.onnx.tensor_data import TensorReader
from vkops.onnx.value_info import ValueInfo
from vkops.plan.size_limits import MAX_DIMENSIONS, LimitError
from vkops.plan.view import Ints

T = TypeVar("T")
_Schema = Any
_REQUIRED = defs.OpSchema.FormalParameterOption.Single


@lru_cache(maxsize=1024)
def schema_of(operator: str, opset: int) -> _Schema | None:
    """Return the schema of an operator as of an opset; None if the opset does not have it."""
    try:
        return defs.get_schema(operator, opset, "")
    except defs.SchemaError:
        return None


def label(proto: NodeProto, index: int, operator: str) -> str:
    """Name a node in errors: by its name, or by its index and first output."""
    if proto.name:
        return f"node {proto.name!r} ({operator})"
    suffix = f", which makes {proto.output[0]!r}" if proto.output else ""
    return f"node {index}{suffix} ({operator})"


class InnerGraph(Protocol):
    """A graph in an attribute of a node."""

    outputs: tuple[ValueInfo, ...]

    def lower(
        self,
        lowering: Lowering,
        inputs: Sequence[LoweredValue],
        scope: ChainMap[str, LoweredValue],
    ) -> list[LoweredValue]:
        """Lower the graph; ``scope`` has the values of the enclosing graphs."""


class OnnxNode:
    """A node whose arguments and attributes are as its schema says; ModelError if they are not.

    An attribute that is a graph becomes a function that reads the graph when it is first called,
    because a branch of If that is not taken may have operators that vkops does not have.
    """

    def __init__(
        self,
        proto: NodeProto,
        index: int,
        schema: _Schema,
        reader: TensorReader | None = None,
        read_graph: Callable[[GraphProto], InnerGraph] | None = None,
    ) -> None:
        self.operator: str = proto.op_type
        self.schema = schema
        self.version: int = schema.since_version
        self.label: str = label(proto, index, f"{self.operator}-{self.version}")
        self.inputs: tuple[str, ...] = tuple(proto.input)
        self.outputs: tuple[str, ...] = tuple(proto.output)
        self._check_count("inputs", self.inputs, schema.min_input, schema.max_input)
        self._check_count("outputs", self.outputs, schema.min_output, schema.max_output)
        reader = reader or TensorReader()
        self.attributes: dict[str, Any] = {
            a.name: self._read(a, reader, read_graph) for a in proto.attribute
        }
        for name, attribute in schema.attributes.items():
            if attribute.required and name not in self.attributes:
                self.refuse(name, "is missing")
            default = attribute.default_value
            if name not in self.attributes and default.type != AttributeProto.UNDEFINED:
                self.attributes[name] = helper.get_attribute_value(default)

    def refuse(self, what: str, message: str) -> NoReturn:
        """Raise the ModelError for an argument or attribute."""
        raise ModelError(f"{self.label}: {what}: {message}")

    def require(self, holds: bool, what: str, got: object, allowed: object) -> None:
        """Raise the error for an argument or attribute unless ``holds`` is true."""
        if not holds:
            self.refuse(what, f"got {got}, must be {allowed}")

    def choice(self, name: str, *allowed: str, reason: str = "") -> str:
        """Return an attribute that must be one of some words; the first one if it is left out."""
        value = self.attributes.get(name)
        text = allowed[0] if value is None else value.decode("utf-8", "replace")
        self.require(text in allowed, name, repr(text), ", ".join(map(repr, allowed)) + reason)
        return text

    def parameters(self, inputs: Sequence[T]) -> Iterator[tuple[Any, T]]:
        """Yield each input with the parameter of the schema that it belongs to."""
        formal = self.schema.inputs
        for index, value in enumerate(inputs):
            # Inputs beyond the schema's parameters belong to the last one, which is variadic.
            yield formal[min(index, len(formal) - 1)], value

    def check_types(self, inputs: Sequence[str | None]) -> None:
        """Check the types of inputs; None is for an input that is left out or of unknown type."""
        first: dict[str, str] = {}
        type_parameters = {constraint.type_param_str for constraint in self.schema.type_constraints}
        for parameter, got in self.parameters(inputs):
            if got is None:
                continue
            if got not in parameter.types:
                allowed = ", ".join(sorted(parameter.types))
                self.refuse(parameter.name, f"got type {got}, must be {allowed}")
            if parameter.is_homogeneous and parameter.type_str in type_parameters:
                expected = first.setdefault(parameter.type_str, got)
                as_first = f"{expected} as the first one"
                self.require(got == expected, parameter.name, f"type {got}", as_first)

    def _check_count(self, what: str, names: Sequence[str], minimum: int, maximum: int) -> None:
        allowed = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
        if maximum > 2**30:
            allowed = f"at least {minimum}"
        self.require(minimum <= len(names) <= maximum, what, len(names), allowed)

    def _read(
        self,
        attribute: AttributeProto,
        reader: TensorReader,
        read_graph: Callable[[GraphProto], InnerGraph] | None,
    ) -> Any:
        known = self.schema.attributes.get(attribute.name)
        if known is None:
            allowed = ", ".join(sorted(self.schema.attributes)) or "none"
            name = str(attribute.name)  # bytes where it is not valid UTF-8
            name = name if name.isprintable() else repr(name)
            self.refuse(name, f"is not an attribute of this version; it has {allowed}")
        expected = known.type.value
        if attribute.type != expected:
            got, must = map(AttributeProto.AttributeType.Name, (attribute.type, expected))
            self.refuse(attribute.name, f"got an attribute of type {got}, must be {must}")
        value = helper.get_attribute_value(attribute)
        if isinstance(value, GraphProto):
            assert read_graph is not None  # it is given for each node of a graph
            return cache(partial(read_graph, value))
        if not isinstance(value, (TensorProto, SparseTensorProto)):
            return value
        try:
            return reader.read(value)
        except ModelError as error:
            self.refuse(attribute.name, str(error))


class Call:
    """A node, and its inputs as tensors of a lowering; ModelError if it cannot have their types."""

    def __init__(
        self,
        node: OnnxNode,
        lowering: Lowering,
        values: Sequence[LoweredValue],
        scope: ChainMap[str, LoweredValue] | None = None,
    ) -> None:
        self.node = node
        self._scope: ChainMap[str, LoweredValue] = ChainMap() if scope is None else scope
        self.refuse: Callable[[str, str], NoReturn] = node.refuse
        self.require: Callable[[bool, str, object, object], None] = node.require
        self.lowering = lowering
        self.version: int = node.version
        self.output_count: int = len(node.outputs)
        self._inputs: dict[str, list[LoweredValue]] = {p.name: [] for p in node.schema.inputs}
        for parameter, value in node.parameters(values):
            self._inputs[parameter.name].append(value)
            if value is None and parameter.option == _REQUIRED:
                self.refuse(parameter.name, "is missing")
        node.check_types([None if value is None else value.type for value in values])

    def require_at_least(self, minimum: int, name: str, values: Iterable[int]) -> None:
        """Raise the error for a list with a number below a minimum."""
        for i, value in enumerate(values):
            self.require(value >= minimum, f"{name}[{i}]", value, f"at least {minimum}")

    def require_single(self, name: str, array: npt.NDArray[Any] | LoweredTensor) -> None:
        """Raise the error for a tensor that does not have exactly one element."""
        self.require(array.size == 1, name, f"{array.size} elements", 1)

    # -- inputs -----------------------------------------------------------------------------------

    def tensor(self, name: str) -> LoweredTensor:
        """Return an input that must be a tensor."""
        value = self.optional(name)
        assert isinstance(value, LoweredTensor)  # the schema requires the input, and a tensor
        return value

    def optional(self, name: str) -> LoweredValue:
        """Return an input of any kind; None if it is left out."""
        values = self._inputs.get(name)
        return values[0] if values else None

    def values(self, name: str) -> Sequence[LoweredValue]:
        """Return the values of a variadic input."""
        return self._inputs[name]

    def tensors(self, name: str) -> list[LoweredTensor]:
        """Return the tensors of a variadic input, or of one that is a sequence."""
        values = self._inputs[name]
        if values and isinstance(values[0], LoweredSequence):
            return list(values[0].items)
        for i, value in enumerate(values):
            if not isinstance(value, LoweredTensor):
                self.refuse(f"{name}[{i}]", "is missing")
        return [value for value in values if isinstance(value, LoweredTensor)]

    # -- attributes, and inputs whose elements are needed ------------------------------------------

    def attribute(self, name: str) -> Any:
        """Return an attribute, or its default; None where there is neither."""
        return self.node.attributes.get(name)

    def graph(self, name: str, inputs: Sequence[LoweredValue] = ()) -> list[LoweredValue]:
        """Lower the graph in an attribute for these inputs, and return its outputs."""
        try:
            graph: InnerGraph = self.attribute(name)()
            return graph.lower(self.lowering, inputs, self._scope)
        except (ModelError, LimitError) as error:
            self.refuse(name, str(error))

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return the only element of an input; the default where it is left out."""
        value = self.optional(name)
        return default if value is None else self.truth(name, value)

    def truth(self, name: str, value: LoweredValue) -> bool:
        """Return the only element of a tensor as a Boolean; NeedsValueError if it is not known."""
        if not isinstance(value, LoweredTensor):
            self.refuse(name, "got no tensor as a condition")
        self.require_single(name, value)
        return bool(self.lowering.values(value).item())

    def array(self, name: str) -> npt.NDArray[Any] | None:
        """Return the elements of an input or attribute; NeedsValueError if they are not known."""
        attribute = self.attribute(name)
        value = self.optional(name)
        if value is None:
            return None if attribute is None else np.asarray(attribute)
        if attribute is not None:
            self.refuse(name, "is given as an attribute and as an input, must be one of them")
        assert isinstance(value, LoweredTensor)  # as for ``tensor``
        return self.lowering.values(value)

    def ints(
        self, name: str, *, scalar: bool = False, max_size: int = MAX_DIMENSIONS
    ) -> Ints | None:
        """Return a list of integers from an input or attribute; None if it is left out."""
        array = self.array(name)
        if array is None:
            return None
        if array.ndim != 1 and not (scalar and array.ndim == 0):
            self.refuse(name, f"got {array.ndim} dimensions, must have 1")
        self.require(array.size <= max_size, name, f"{array.size} elements", f"{max_size} at most")
        numbers = array.reshape(-1).tolist()
        for i, number in enumerate(numbers):
            if number != number or number in (np.inf, -np.inf) or int(number) != number:
                self.refuse(f"{name}[{i}]", f"got {number}, must be an integer")
        return tuple(map(int, numbers))

    def integer(self, name: str, default: int = 0) -> int:
        """Return one integer."""
        numbers = self.ints(name, scalar=True)
        if numbers is None:
            return default
        self.require(len(numbers) == 1, name, f"{len(numbers)} values", 1)
        return numbers[0]

    # -- axes -------------------------------------------------------------------------------------

    def axis(self, name: str, rank: int, *, default: int = 0) -> int:
        """Return an axis of a tensor of that rank; negative ones count from the end.

        ONNX has negative axes from opset 11 on; ONNX Runtime accepts them in all versions.
        """
        return self.in_rank(name, self.integer(name, default), rank)

    def axes(
        self, name: str, rank: int, default: Iterable[int] = (), *, lowest: int | None = None
    ) -> Ints:
        """Return different axes of a tensor of that rank."""
        values = self.ints(name, scalar=True)
        if values is None:
            return tuple(default)
        axes = tuple(
            self.in_rank(f"{name}[{i}]", axis, rank, lowest) for i, axis in enumerate(values)
        )
        self.require(len(set(axes)) == len(axes), name, list(values), "different axes")
        return axes

    def in_rank(self, what: str, axis: int, rank: int, lowest: int | None = None) -> int:
        """Check an axis, and count it from the start."""
        lowest = -rank if lowest is None else lowest
        if not lowest <= axis < rank:
            allowed = f"must be {lowest} to {rank - 1}" if rank else "the input has no axes"
            self.refuse(what, f"got {axis}, {allowed}")
        return axis % rank
