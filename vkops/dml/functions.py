"""The functions of DirectMLX as data: their signatures and docstrings.

A function makes a node of one operator. Its parameters are the input tensors and the attributes of
the operator's descriptor, and the sizes of the outputs where the operator leaves them to the
caller. ``function_table`` lists the functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any, NamedTuple

from vkops.arguments.values import Place, integer, integers
from vkops.dml.fields import TENSORS, Field, texts_of
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.operators import OPERATORS
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan.view import Ints

Given = Mapping[str, Any]
"""The arguments of a call, but for the expressions, by name."""

OutputSizes = Callable[[Sequence[BufferTensorDesc], Given], Sequence[Ints]]
"""A function from the descriptors of the inputs, and the arguments, to the sizes of each output."""


class SizeArgument(NamedTuple):
    """A parameter that stands for output sizes, which the descriptor has as output tensors.

    Attributes:
        name: its name, DirectMLX's in snake case.
        rule: the rule that a value of the wrong kind breaks.
        text: what the documentation says about it.
        is_last: whether it comes after the attributes; otherwise it comes before them.
        annotation: its type.
    """

    name: str
    rule: str
    text: str = "extent of each dimension of the output."
    is_last: bool = False
    annotation: str = "Sequence[int]"


class GraphFunction(NamedTuple):
    """One function.

    Attributes:
        operator: the newest version of DirectML's operator, which the function makes a node of.
        source: DirectMLX's name of the function; empty where DirectMLX has none.
        example: sizes of the inputs of the example in the docstring, a call, and what it prints.
        output_sizes: how the sizes of the outputs are found, where the operator does not infer
            them.
        size: the parameter for these sizes.
        defaults: defaults of attributes; a function is called with the descriptors of the inputs
            and the arguments.
    """

    operator: str
    source: str
    example: tuple[Sequence[Ints], str, str]
    output_sizes: OutputSizes | None = None
    size: SizeArgument | None = None
    defaults: Given = MappingProxyType({})

    @property
    def kind(self) -> type[OperatorDesc]:
        """The class of the operator's descriptor."""
        return OPERATORS[self.operator]

    def inputs(self, *, optional: bool = False) -> list[Field]:
        """The fields of input tensors, those that are required or the others."""
        fields = self.kind.FIELDS
        return [f for f in fields if f.role == "input" and f.optional is optional]

    @property
    def attributes(self) -> list[Field]:
        """The fields of attributes."""
        return [field for field in self.kind.FIELDS if field.role == "attribute"]

    @property
    def returns_list(self) -> bool:
        """Whether the operator has a list of outputs."""
        return any(f.role == "output" and f.kind is TENSORS for f in self.kind.FIELDS)

    def complete(
        self, descs: Sequence[BufferTensorDesc], arguments: Given
    ) -> tuple[Sequence[Ints] | None, dict[str, Any]]:
        """Return the output sizes, or None if they are inferred, and all attributes."""
        arguments = dict(arguments)
        if self.size is not None:
            place = Place(self.operator, self.size.name, self.size.rule)
            convert = integer if self.size.annotation == "int" else integers
            arguments[self.size.name] = convert(arguments[self.size.name], place)
        sizes = None if self.output_sizes is None else self.output_sizes(descs, arguments)
        for name, default in self.defaults.items():
            if callable(default) and arguments.get(name) is None:
                arguments[name] = default(descs, arguments)
        names = [field.name for field in self.attributes]
        return sizes, {name: arguments[name] for name in names if name in arguments}

    # -- what is written from the table ------------------------------------------------------------

    @property
    def signature(self) -> Signature:
        """The signature, with types as text."""
        inputs = [] if self.inputs() else [_parameter("graph", "Graph")]
        for field in self.inputs():
            kind = "Sequence[Expression]" if field.kind is TENSORS else "Expression"
            inputs.append(_parameter(parameter_name(field), kind))
        attributes = [self._attribute(field) for field in self.attributes]
        if self.size is not None:
            argument = _parameter(self.size.name, self.size.annotation)
            attributes.insert(len(attributes) if self.size.is_last else 0, argument)
        optional = self.inputs(optional=True)
        others = [
            _parameter(parameter_name(field), "Expression | None", None) for field in optional
        ]
        result = "list[Expression]" if self.returns_list else "Expression"
        return Signature([*inputs, *attributes, *others], return_annotation=result)

    def _attribute(self, field: Field) -> Parameter:
        annotation, name = field.kind.annotation, field.name
        if field.optional or (name in self.defaults and callable(self.defaults[name])):
            return _parameter(name, f"{annotation} | None", None)
        return _parameter(name, annotation, self.defaults.get(name, Parameter.empty))

    @property
    def summary(self) -> str:
        """The first sentence of the descriptor's docstring."""
        return (self.kind.__doc__ or "").split("\n\n")[0]

    def docstring(self) -> str:
        """The docstring, from those of the descriptor's fields."""
        told = texts_of(self.kind)
        texts = {"graph": "the graph that gets the node."}
        texts |= {parameter_name(field): told.get(field.name, "") for field in self.kind.FIELDS}
        if self.size is not None:
            texts[self.size.name] = self.size.text
        source = f"DML_{self.operator}_OPERATOR_DESC"
        source = f"dml::{self.source}, {source}" if self.source else f"{source}, not in DirectMLX"
        lines = [self.summary, "", f"Source: {source}.", "", "Args:"]
        lines += [f"    {name}: {texts[name]}" for name in self.signature.parameters]
        lines += [
            "",
            "Raises:",
            f"    InvalidDescError: a rule of {self.operator} is broken.",
            "    InvalidDescTypeError: an argument is of the wrong kind, or an expression is of",
            "        another graph (G-03).",
            "    FeatureLevelError: the operator needs a higher feature level than the graph has.",
            "",
            *self._example(),
        ]
        return "\n".join(lines)

    def _example(self) -> Iterator[str]:
        shapes, call, printed = self.example
        yield ">>> from vkops import dml"
        yield ">>> graph = dml.Graph()"
        fields = [f for f in self.kind.FIELDS if f.role == "input"] or self.kind.FIELDS[:1]
        for i, (name, sizes) in enumerate(zip("xyz", shapes, strict=False)):
            data_type = "UINT32" if fields[min(i, len(fields) - 1)].holds_indices else "FLOAT32"
            desc = f"dml.BufferTensorDesc(dml.TensorDataType.{data_type}, {list(sizes)})"
            yield f">>> {name} = dml.input_tensor(graph, {i}, {desc})"
        if self.returns_list:
            yield f">>> [part.desc.sizes for part in {call}]"
        else:
            yield f">>> {call}.desc.sizes"
        yield printed


def _parameter(name: str, annotation: str, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def parameter_name(field: Field) -> str:
    """Return DirectMLX's name of a tensor field, or the name of another field."""
    return re.sub("_tensors?$", "s" if field.name.endswith("tensors") else "", field.name)
