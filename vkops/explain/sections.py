"""The explanations of the dispatchables of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vkops import dml
from vkops.errors import show
from vkops.explain.explanation import Section, TensorInfo, movements, number_list
from vkops.models.descriptors import with_dml_names
from vkops.models.model import CheckedDispatch, Dispatchable
from vkops.models.onnx import OnnxDispatchable, types_of
from vkops.models.operator import DmlDispatchable
from vkops.models.shader import ShaderDispatchable
from vkops.rules import GROUPS
from vkops.shaders.listing import describe

LEVEL_RULES = ("DEV-12", "DEV-13")
"""The rules of devices that descriptors are checked by."""


def sections(
    dispatchable: Dispatchable, dispatches: Sequence[CheckedDispatch], level: dml.FeatureLevel
) -> Iterator[Section]:
    """Explain a dispatchable; an ONNX model once for each of the shapes that dispatches bind."""
    match dispatchable:
        case DmlDispatchable():
            yield operator_section(dispatchable.name, dispatchable.desc, level)
        case ShaderDispatchable(shader=shader):
            kind = f"compute shader {shader.name}"
            yield Section(dispatchable.name, kind, describe(shader), ())
        case OnnxDispatchable():
            yield from _onnx_sections(dispatchable, dispatches)


def operator_section(name: str, desc: dml.OperatorDesc, level: dml.FeatureLevel) -> Section:
    """Explain an operator."""
    pipeline = desc.pipeline
    numbers = (*pipeline.inputs, *pipeline.outputs)
    named = zip(numbers, (*desc.inputs, *desc.outputs), strict=True)
    tensors = {
        number: TensorInfo(
            name=with_dml_names(path),
            type=tensor.data_type.name,
            sizes=tensor.sizes,
            strides=tensor.effective_strides,
            itemsize=tensor.data_type.element_size,
            nbytes=tensor.total_tensor_size_in_bytes,
            note="OWNED_BY_DML" if dml.TensorFlags.OWNED_BY_DML in tensor.flags else "",
        )
        for number, (path, tensor) in named
    }
    constants = {}
    for number, constant in pipeline.constants.items():
        note = f"from {show(constant.start)} in steps of {show(constant.delta)}"
        size, count = constant.nbytes // constant.count, (constant.count,)
        row = f"constant {number}", constant.dtype, count, (1,), size, constant.nbytes, note
        constants[number] = TensorInfo(*row)
    values = [(f.dml_name, getattr(desc, f.name)) for f in desc.FIELDS if f.role == "attribute"]
    attributes = [
        (name, number_list(value) if isinstance(value, tuple) else show(value))
        for name, value in values
        if value is not None
    ]
    lowest = desc.minimum_feature_level()
    verdict = "accepted" if lowest <= level else "refused"
    return Section(
        name=name,
        kind=desc.operator,
        details=(*attributes, ("Lowest feature level", f"{lowest}; {verdict} at {level}")),
        tensors=tuple(tensors.values()),
        movements=tuple(movements(pipeline.steps, {**tensors, **constants})),
        rules=tuple(rules_of(type(desc))),
    )


def rules_of(operator: type[dml.OperatorDesc]) -> list[str]:
    """Return the rules by which an operator is checked: of its tensors, its levels, and its own.

    >>> from vkops.dml import SplitOperatorDesc
    >>> [rule for rule in rules_of(SplitOperatorDesc) if rule.startswith("SPLIT")]
    ['SPLIT-01', 'SPLIT-02', 'SPLIT-03', 'SPLIT-04', 'SPLIT-05', 'SPLIT-06']
    """
    rules = [
        rule.id
        for group in (operator.rule_group, "T")
        for rule in GROUPS[group].rules
        if rule.enforced and (not rule.operators or operator.operator in rule.operators.split())
    ]
    return sorted([*LEVEL_RULES, *rules])


def _onnx_sections(
    onnx: OnnxDispatchable, dispatches: Sequence[CheckedDispatch]
) -> Iterator[Section]:
    from vkops.explain.onnx_sections import section

    if not dispatches:
        yield section(onnx.name, onnx.model, onnx.overrides.types(onnx.model))
    explained: list[Mapping[str, object]] = []
    for dispatch in dispatches:
        types = types_of(dispatch.inputs)
        if types not in explained:
            explained.append(types)
            sources = [(each.name, each.source) for each in dispatch.inputs]
            deferred = [
                f"{name!r} is {source.resource.name!r}"
                for name, source in sources
                if source is not None and source.resource.is_deferred
            ]
            yield section(onnx.name, onnx.model, types, deferred)
