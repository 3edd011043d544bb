"""The rules of copy plans, checked for plans that callers make."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

from vkops.errors import InvalidDescError, InvalidDescTypeError, show
from vkops.plan.region import CopyPlan, Fill, Output, Read, Region
from vkops.plan.view import View

ELEMENT_SIZES = (1, 2, 4, 8, 16)


def validate(plan: CopyPlan) -> None:
    """Check a plan; making one checks nothing.

    Regions may overlap as long as they write no more elements than the output has: finding all
    overlaps would take too long.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind (PLAN-01).
        InvalidDescError: a size or count is wrong (PLAN-02), a region leaves an output or an input
            (PLAN-03), a constant has another size than an element (PLAN-04), or regions write more
            elements than the output has, or one of them twice (PLAN-05).

    >>> from vkops.plan import CopyPlan, validate
    >>> validate(CopyPlan(4, (16,), ()))
    """
    _kind(plan, CopyPlan, "plan")
    _integer(plan.element_size, "element_size")
    if plan.element_size not in ELEMENT_SIZES:
        refuse(
            "element_size", f"got {show(plan.element_size)}, must be 1, 2, 4, 8 or 16", "PLAN-02"
        )
    _integers(plan.inputs, "inputs", least=0)
    _kind(plan.outputs, tuple, "outputs")
    for i, output in enumerate(plan.outputs):
        _output(plan, output, f"outputs[{i}]")


def _output(plan: CopyPlan, output: Output, field: str) -> None:
    _kind(output, Output, field)
    _integer(output.nbytes, f"{field}.nbytes", least=0)
    _kind(output.regions, tuple, f"{field}.regions")
    count = output.nbytes // plan.element_size
    written = 0
    for i, region in enumerate(output.regions):
        written += _region(plan, region, count, f"{field}.regions[{i}]")
    if written > count:
        message = f"write {written} elements, the output has {count}"
        refuse(f"{field}.regions", message, "PLAN-05")


def _region(plan: CopyPlan, region: Region, count: int, field: str) -> int:
    """Check a region of an output of so many elements; return how many it writes."""
    _kind(region, Region, field)
    target = region.target
    _view(target, f"{field}.target", count)
    for i, (size, stride) in enumerate(zip(target.sizes, target.strides, strict=True)):
        if size > 1 and not stride:
            refuse(f"{field}.target.strides[{i}]", "got 0, must be another number", "PLAN-05")
    source = region.source
    if isinstance(source, Fill):
        _kind(source.pattern, bytes, f"{field}.source.pattern")
        if len(source.pattern) != plan.element_size:
            message = f"got {len(source.pattern)} bytes, must be {plan.element_size}"
            refuse(f"{field}.source.pattern", message, "PLAN-04")
        return prod(target.sizes)
    if not isinstance(source, Read):
        _refuse_kind(source, "a Read or a Fill", f"{field}.source")
    _integer(source.input, f"{field}.source.input")
    if not 0 <= source.input < len(plan.inputs):
        allowed = f"must be 0 to {len(plan.inputs) - 1}" if plan.inputs else "there are no inputs"
        refuse(f"{field}.source.input", f"got {show(source.input)}, {allowed}", "PLAN-03")
    elements = plan.inputs[source.input] // plan.element_size
    _view(source.view, f"{field}.source.view", elements)
    if source.view.sizes != target.sizes:
        message = f"got {show(source.view.sizes)}, must equal target.sizes = {show(target.sizes)}"
        refuse(f"{field}.source.view.sizes", message, "PLAN-02")
    return prod(target.sizes)


def _view(view: View, field: str, count: int) -> None:
    """Check a view of so many elements."""
    _kind(view, View, field)
    _integers(view.sizes, f"{field}.sizes", least=1)
    _integers(view.strides, f"{field}.strides", length=len(view.sizes))
    _integer(view.offset, f"{field}.offset")
    first, last = view.bounds
    if first < 0 or last >= count:
        message = f"reaches elements {show(first)} to {show(last)}, there are {count}"
        refuse(f"{field}.offset", message, "PLAN-03")


# -- kinds -----------------------------------------------------------------------------------------


def refuse(field: str, message: str, rule: str) -> NoReturn:
    """Refuse a field of a plan, or an argument of ``execute``."""
    raise InvalidDescError("", field, message, rule)


def _refuse_kind(value: object, allowed: str, field: str) -> NoReturn:
    raise InvalidDescTypeError("", field, f"got {show(value)}, must be {allowed}", "PLAN-01")


def _kind(value: object, kind: type, field: str) -> None:
    if not isinstance(value, kind):
        name = kind.__name__
        article = {"bytes": "", "Output": "an "}.get(name, "a ")
        _refuse_kind(value, article + name, field)


def _integer(value: Any, field: str, least: int | None = None) -> None:
    if type(value) is not int:
        _refuse_kind(value, "an int", field)
    if least is not None and value < least:
        refuse(field, f"got {show(value)}, must be at least {least}", "PLAN-02")


def _integers(
    values: Any, field: str, *, length: int | None = None, least: int | None = None
) -> None:
    _kind(values, tuple, field)
    if length is not None and len(values) != length:
        message = f"got {len(values)} numbers, must be {length}, one for each size"
        refuse(field, message, "PLAN-02")
    for i, value in enumerate(values):
        _integer(value, f"{field}[{i}]", least)
