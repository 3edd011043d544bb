"""The rules of copy plans, checked for plans that callers make."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

from vkops.errors import InvalidDescError, InvalidDescTypeError, show
from vkops.plan.region import (
    MAX_TERMS,
    CopyPlan,
    Fill,
    Indices,
    Output,
    Progression,
    Read,
    Region,
    Term,
)
from vkops.plan.view import View

ELEMENT_SIZES = (1, 2, 4, 8, 16)


def validate(plan: CopyPlan) -> None:
    """Check a plan, whose constructor checks nothing.

    Regions may overlap as long as they write no more elements than the output has: finding all
    overlaps would take too long.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind (PLAN-01).
        InvalidDescError: a size or count is wrong (PLAN-02), a region leaves an output or an input
            (PLAN-03), a constant has another size than an element (PLAN-04), regions write more
            elements than the output has, or one of them twice (PLAN-05), or indices are of an
            unknown kind (PLAN-07).

    >>> from vkops.plan import CopyPlan, validate
    >>> validate(CopyPlan(4, (16,), ()))
    """
    _kind(plan, CopyPlan, "plan")
    _integer(plan.element_size, "element_size")
    if plan.element_size not in ELEMENT_SIZES:
        message = f"got {show(plan.element_size)}, must be 1, 2, 4, 8 or 16"
        refuse("element_size", message, "PLAN-02")
    _integers(plan.inputs, "inputs", minimum=0)
    _kind(plan.constants, tuple, "constants")
    for i, constant in enumerate(plan.constants):
        _kind(constant, Progression, f"constants[{i}]")
    _kind(plan.outputs, tuple, "outputs")
    for i, output in enumerate(plan.outputs):
        _output(plan, output, f"outputs[{i}]")


def _output(plan: CopyPlan, output: Output, field: str) -> None:
    _kind(output, Output, field)
    _integer(output.nbytes, f"{field}.nbytes", minimum=0)
    _kind(output.regions, tuple, f"{field}.regions")
    count = output.nbytes // plan.element_size
    written = 0
    for i, region in enumerate(output.regions):
        written += _region(plan, region, count, f"{field}.regions[{i}]")
    if written > count:
        refuse(f"{field}.regions", f"write {written} elements, the output has {count}", "PLAN-05")


def _region(plan: CopyPlan, region: Region, count: int, field: str) -> int:
    """Check a region of an output of ``count`` elements; return how many it must write."""
    _kind(region, Region, field)
    target, source = region.target, region.source
    if region.indices is not None:
        _indices(plan, region.indices, f"{field}.indices")
    _moved_view(region, "scatter", target, f"{field}.target", count)
    if region.kind != "scatter":
        for i, (size, stride) in enumerate(zip(target.sizes, target.strides, strict=True)):
            if size > 1 and not stride:
                refuse(f"{field}.target.strides[{i}]", "got 0, must not be 0", "PLAN-05")
    for name, view in zip(("view", "position"), region.index_views, strict=False):
        _same_sizes(view, target, f"{field}.indices.{name}")
    is_limited = region.indices is not None and region.indices.within is not None
    written = 0 if is_limited or region.kind == "scatter" else prod(target.sizes)
    if isinstance(source, Fill):
        _kind(source.pattern, bytes, f"{field}.source.pattern")
        if len(source.pattern) != plan.element_size:
            message = f"got {len(source.pattern)} bytes, must be {plan.element_size}"
            refuse(f"{field}.source.pattern", message, "PLAN-04")
        return written
    if not isinstance(source, Read):
        _refuse_kind(source, "a Read or a Fill", f"{field}.source")
    elements = _input(plan, source.input, f"{field}.source.input") // plan.element_size
    _moved_view(region, "gather", source.view, f"{field}.source.view", elements)
    _same_sizes(source.view, target, f"{field}.source.view")
    return written


def _input(plan: CopyPlan, number: int, field: str) -> int:
    """Check the number of an input; return its size in bytes."""
    _integer(number, field)
    sizes = (*plan.inputs, *(constant.nbytes for constant in plan.constants))
    if not 0 <= number < len(sizes):
        allowed = f"must be 0 to {len(sizes) - 1}" if sizes else "there are no inputs"
        refuse(field, f"got {show(number)}, {allowed}", "PLAN-03")
    return sizes[number]


def _indices(plan: CopyPlan, indices: Indices, field: str) -> None:
    _kind(indices, Indices, field)
    nbytes = _input(plan, indices.input, f"{field}.input")
    for name, got, allowed in (
        ("dtype", indices.dtype, ("i4", "i8", "u4", "u8")),
        ("rule", indices.rule, ("clamp", "skip", "reverse")),
    ):
        if got not in allowed:
            message = f"got {show(got)}, must be one of {', '.join(allowed)}"
            refuse(f"{field}.{name}", message, "PLAN-07")
    _kind(indices.terms, tuple, f"{field}.terms")
    maximum = 1 if indices.rule == "reverse" else MAX_TERMS
    if not 1 <= len(indices.terms) <= maximum:
        message = f"got {len(indices.terms)} terms, must be 1 to {maximum}"
        refuse(f"{field}.terms", message, "PLAN-07")
    if indices.rule == "reverse" and indices.limits is not None:
        refuse(f"{field}.limits", f"got {show(indices.limits)}, lengths have none", "PLAN-07")
    count = nbytes // (4 * indices.words)
    for i, term in enumerate(indices.terms):
        path = f"{field}.terms[{i}]"
        _kind(term, Term, path)
        for name, value in term._asdict().items():
            _integer(value, f"{path}.{name}", minimum=1 if name == "size" else None)
        _view(indices.view, f"{field}.view", count, (term.offset, term.offset))
    _view(indices.position, f"{field}.position", None)
    first, last = indices.position.bounds
    if indices.rule == "reverse" and not 0 <= first <= last < indices.terms[0].size:
        message = f"reaches positions {show(first)} to {show(last)}, must be 0 to "
        refuse(f"{field}.position", message + str(indices.terms[0].size - 1), "PLAN-07")


def _moved_view(region: Region, kind: str, view: View, field: str, count: int) -> None:
    """Check a view of ``count`` elements; indices move it in regions of ``kind``."""
    if region.indices is None or region.kind != kind:
        _view(view, field, count)
    elif region.indices.within is None and region.indices.limits is None:
        moves = [(term.size - 1) * term.stride for term in region.indices.terms]
        reach = sum(min(0, move) for move in moves), sum(max(0, move) for move in moves)
        _view(view, field, count, reach)
    else:
        path = f"{field.rpartition('].')[0]}].indices"
        _view(view, field, None)
        limits, within = region.indices.limits, region.indices.within
        if limits is not None:
            _kind(limits, range, f"{path}.limits")
            if limits.step != 1 or not 1 <= limits.stop - limits.start <= 2**32:
                message = f"got {show(limits)}, must have 1 to 2**32 elements in steps of 1"
                refuse(f"{path}.limits", message, "PLAN-07")
        # Elements at addresses outside of the limits are not moved.
        name = "limits" if within is None else "within"
        allowed: Any = getattr(region.indices, name)
        _kind(allowed, range, f"{path}.{name}")
        if allowed.step != 1 or allowed.start < 0 or allowed.stop > count:
            message = f"got {show(allowed)}, must be within range(0, {count})"
            refuse(f"{path}.{name}", message, "PLAN-03")


def _view(view: View, field: str, count: int | None, reach: tuple[int, int] = (0, 0)) -> None:
    """Check a view of ``count`` elements; ``reach`` says how far indices move its addresses."""
    _kind(view, View, field)
    _integers(view.sizes, f"{field}.sizes", minimum=1)
    _integers(view.strides, f"{field}.strides", length=len(view.sizes))
    _integer(view.offset, f"{field}.offset")
    first, last = (bound + moved for bound, moved in zip(view.bounds, reach, strict=True))
    if count is not None and (first < 0 or last >= count):
        message = f"reaches elements {show(first)} to {show(last)}, there are {count}"
        refuse(f"{field}.offset", message, "PLAN-03")


def _same_sizes(view: View, target: View, field: str) -> None:
    if view.sizes != target.sizes:
        message = f"got {show(view.sizes)}, must equal target.sizes = {show(target.sizes)}"
        refuse(f"{field}.sizes", message, "PLAN-02")


# -- kinds -----------------------------------------------------------------------------------------


def refuse(field: str, message: str, rule: str) -> NoReturn:
    """Raise an InvalidDescError for a field of a plan, or an argument of ``execute``."""
    raise InvalidDescError("", field, message, rule)


def _refuse_kind(value: object, allowed: str, field: str) -> NoReturn:
    raise InvalidDescTypeError("", field, f"got {show(value)}, must be {allowed}", "PLAN-01")


def _kind(value: object, kind: type, field: str) -> None:
    if not isinstance(value, kind):
        name = kind.__name__
        article = {"bytes": "", "Output": "an ", "Indices": ""}.get(name, "a ")
        _refuse_kind(value, article + name, field)


def _integer(value: Any, field: str, minimum: int | None = None) -> None:
    if type(value) is not int:
        _refuse_kind(value, "an int", field)
    if minimum is not None and value < minimum:
        refuse(field, f"got {show(value)}, must be at least {minimum}", "PLAN-02")


def _integers(
    values: Any, field: str, *, length: int | None = None, minimum: int | None = None
) -> None:
    _kind(values, tuple, field)
    if length is not None and len(values) != length:
        refuse(field, f"got {len(values)} numbers, must be {length}, one for each size", "PLAN-02")
    for i, value in enumerate(values):
        _integer(value, f"{field}[{i}]", minimum)
