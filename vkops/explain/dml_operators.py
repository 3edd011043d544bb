"""DirectML operators: descriptors, the rules that they are checked against, and their plans."""

from __future__ import annotations

from vkops.dml import BufferTensorDesc, FeatureLevel, OperatorDesc, TensorFlags
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.json_model import DmlDispatchable
from vkops.errors import show
from vkops.explain.explained_plans import movements
from vkops.explain.explanation import Section, Tensor
from vkops.explain.tables import numbers
from vkops.plan.region import Progression
from vkops.rules import GROUPS

LEVEL_RULES = ("DEV-12", "DEV-13")
"""The rules of devices that descriptors are checked by."""


def operator_section(dispatchable: DmlDispatchable, level: FeatureLevel) -> Section:
    """All about an operator that is valid at the latest feature level."""
    desc, pipeline = dispatchable.desc, dispatchable.desc.pipeline
    named = (
        *zip(pipeline.inputs, desc.inputs, strict=True),
        *zip(pipeline.outputs, desc.outputs, strict=True),
    )
    found = {number: _tensor(path, tensor) for number, (path, tensor) in named}
    constants = {number: _constant(number, c) for number, c in pipeline.constants.items()}
    values = [(f.dml_name, getattr(desc, f.name)) for f in desc.FIELDS if f.role == "attribute"]
    attributes = [
        (name, numbers(value) if isinstance(value, tuple) else show(value))
        for name, value in values
        if value is not None
    ]
    lowest = desc.minimum_feature_level()
    verdict = "accepted" if lowest <= level else "refused"
    return Section(
        name=dispatchable.name,
        kind=desc.operator,
        details=(*attributes, ("Lowest feature level", f"{lowest}; {verdict} at {level}")),
        tensors=tuple(found.values()),
        movements=tuple(movements(pipeline.steps, {**found, **constants})),
        rules=tuple(rules_of(type(desc))),
    )


def rules_of(operator: type[OperatorDesc]) -> list[str]:
    """The rules by which an operator is checked: of its tensors, its levels, and its own.

    >>> from vkops.dml import SplitOperatorDesc
    >>> [rule for rule in rules_of(SplitOperatorDesc) if rule.startswith("SPLIT")]
    ['SPLIT-01', 'SPLIT-02', 'SPLIT-03', 'SPLIT-04', 'SPLIT-05', 'SPLIT-06']
    """
    groups = (operator.rule_group, "T")
    found = [
        rule.id
        for group in groups
        for rule in GROUPS[group].rules
        if rule.enforced and (not rule.operators or operator.operator in rule.operators.split())
    ]
    return sorted([*LEVEL_RULES, *found])


def _tensor(path: str, tensor: BufferTensorDesc) -> Tensor:
    owned = TensorFlags.OWNED_BY_DML in tensor.flags
    return Tensor(
        name=with_dml_names(path),
        type=tensor.data_type.name,
        sizes=tensor.sizes,
        strides=tensor.effective_strides,
        itemsize=tensor.data_type.element_size,
        nbytes=tensor.total_tensor_size_in_bytes,
        note="OWNED_BY_DML" if owned else "",
    )


def _constant(number: int, constant: Progression) -> Tensor:
    code, size = constant.dtype, constant.nbytes // constant.count
    note = f"from {show(constant.start)} in steps of {show(constant.delta)}"
    return Tensor(f"constant {number}", code, (constant.count,), (1,), size, constant.nbytes, note)
