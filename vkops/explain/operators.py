"""DirectML operators: descriptors, the rules that they are checked against, and their plans."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from vkops.dml import (
    BufferTensorDesc,
    FeatureLevel,
    OperatorDesc,
    TensorFlags,
    operator_desc,
    tensor_desc,
)
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.model import DmlDispatchable
from vkops.explain.facts import Section, Tensor, numbers
from vkops.explain.movements import movements

_RULE = re.compile(r'"([A-Z][A-Z0-9]*)-(\d\d)"')


def operator_section(dispatchable: DmlDispatchable, level: FeatureLevel) -> Section:
    """All about an operator that is valid at the latest feature level."""
    desc, pipeline = dispatchable.desc, dispatchable.desc.pipeline
    named = (
        *zip(pipeline.inputs, desc.inputs, strict=True),
        *zip(pipeline.outputs, desc.outputs, strict=True),
    )
    found = {number: _tensor(path, tensor) for number, (path, tensor) in named}
    lowest = desc.minimum_feature_level()
    verdict = "accepted" if lowest <= level else "refused"
    return Section(
        name=dispatchable.name,
        kind=desc.operator,
        facts=(
            *_attributes(desc),
            ("Lowest feature level", f"{lowest}; {verdict} at {level}"),
            ("Rules checked", ", ".join(rules(type(desc)))),
        ),
        tensors=tuple(found.values()),
        movements=tuple(movements(pipeline.steps, found)),
    )


def rules(operator: type[OperatorDesc]) -> list[str]:
    """The rules that the code names that checks an operator: its tensors', levels' and its own.

    >>> from vkops.dml import SplitOperatorDesc
    >>> [rule for rule in rules(SplitOperatorDesc) if rule.startswith("SPLIT")]
    ['SPLIT-01', 'SPLIT-02', 'SPLIT-03', 'SPLIT-04', 'SPLIT-05', 'SPLIT-06']
    """
    own = _named(sys.modules[operator.__module__])
    shared = _named(tensor_desc) | _named(operator_desc)
    groups = {"T", "DEV", *(group for group, _ in own)}
    found = sorted(own | {rule for rule in shared if rule[0] in groups})
    return [f"{group}-{number}" for group, number in found]


def _named(module: ModuleType) -> set[tuple[str, str]]:
    """The rules that a module's source names."""
    return set(_RULE.findall(inspect.getsource(module)))


def _attributes(desc: OperatorDesc) -> Iterator[tuple[str, str]]:
    for field in desc.FIELDS:
        value = getattr(desc, field.name)
        if field.role == "attribute" and value is not None:
            yield field.dml_name, numbers(value) if isinstance(value, tuple) else str(value)


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
