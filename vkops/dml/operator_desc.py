"""What all operator descriptors share: their field table, validation and lowering."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Literal, NoReturn

from vkops.dml.enums import FeatureLevel
from vkops.dml.rules import NamedTensor
from vkops.dml.scale_bias import ScaleBias
from vkops.dml.support import ALTERNATIVE_ROWS, ROWS, Row
from vkops.dml.tensor_desc import UINT32_MAX, BufferTensorDesc, check_tensor, dimensions
from vkops.dml.values import Place, array, integer, integers
from vkops.errors import FeatureLevelError, InvalidDescError, show
from vkops.plan import CopyPlan, Output, Pipeline, Read, Region
from vkops.plan.algebra import coalesce

Kind = Literal["tensor", "tensor_array", "uint", "int", "uint_array", "int_array", "scale_bias"]
Role = Literal["input", "output", "attribute"]


@dataclass(frozen=True)
class Field:
    """One field of an operator descriptor.

    Attributes:
        name: name in Python; dml_name is DirectML's.
        kind: what it holds.
        role: tensors are bound in the order of the table, attributes are fixed at creation.
        rule: the rule that a value of the wrong kind, or out of 32 bits, breaks.
        optional: whether None is allowed.
        count: DirectML's field for the length of this array; Python needs none.
    """

    name: str
    dml_name: str
    kind: Kind
    role: Role
    rule: str
    optional: bool = False
    count: str | None = None


@dataclass(frozen=True)
class OperatorDesc(ABC):
    """Base of the operator descriptors.

    A subclass is a frozen dataclass of the fields in its table, in this order; it adds the rules
    of its own and the regions it copies. Sequences become tuples.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind.
    """

    operator: ClassVar[str]
    FIELDS: ClassVar[tuple[Field, ...]]
    supports_in_place: ClassVar[bool] = False
    """Whether DirectML lets input and output be one range (B-09)."""

    def __post_init__(self) -> None:
        for field in self.FIELDS:
            value = getattr(self, field.name)
            if not (value is None and field.optional):
                place = Place(self.operator, field.name, field.rule)
                vars(self)[field.name] = _CONVERSIONS[field.kind](value, place)

    @property
    def inputs(self) -> tuple[NamedTensor, ...]:
        """The input tensors with their field paths, in binding order."""
        return self._tensors("input")

    @property
    def outputs(self) -> tuple[NamedTensor, ...]:
        """The output tensors with their field paths, in binding order."""
        return self._tensors("output")

    def validate(
        self,
        feature_level: FeatureLevel | int | str = FeatureLevel.LATEST,
        alternative_levels: Sequence[str] = (),
    ) -> None:
        """Check every rule (docs/rules.md) at a feature level.

        Args:
            feature_level: the level of the device: a member, its value or a name like "5_0".
            alternative_levels: operators for which the sources that disagree with the operator's
                own page are believed; "JOIN" takes ranks 1 to 8 from 3_1 that way (JOIN-09).

        Raises:
            InvalidDescError: the first rule that is broken.
            FeatureLevelError: the same, where a higher level would accept it.
        """
        level = FeatureLevel.of(feature_level, self.operator)
        rows = self._rows(alternative_levels)
        for field in self.FIELDS:
            if field.kind == "tensor_array" and not getattr(self, field.name):
                self._refuse(field.name, "got no tensors, must be at least 1", field.rule)
        for path, tensor in self.inputs:
            check_tensor(self.operator, path, tensor, is_output=False)
        for path, tensor in self.outputs:
            check_tensor(self.operator, path, tensor, is_output=True)
        self._check_level(level, rows)
        self._check_32_bits()
        self._check()

    def minimum_feature_level(self, alternative_levels: Sequence[str] = ()) -> FeatureLevel:
        """Return the lowest feature level that accepts this operator.

        Raises:
            InvalidDescError: none does; it is that of the latest level.
        """
        rows = self._rows(alternative_levels)
        self.validate(FeatureLevel.LATEST, alternative_levels)

        def accepts(level: FeatureLevel) -> bool:
            try:
                self._check_level(level, rows)
            except FeatureLevelError:
                return False
            return True

        return next(filter(accepts, FeatureLevel))

    def lower(self) -> CopyPlan:
        """Return what to copy where, after validating at the latest level. The plan is cached.

        Raises:
            InvalidDescError: the first rule that is broken.
        """
        return self._plan

    @property
    def pipeline(self) -> Pipeline:
        """What to run: the plan by itself."""
        return Pipeline.of(self.lower())

    @property
    def runs_in_place(self) -> bool:
        """Whether input and output may be one range: no element moves (B-09, IDENT-04)."""
        return self.supports_in_place and all(
            region.source == Read(0, region.target)
            for output in coalesce(self.lower()).outputs
            for region in output.regions
        )

    @abstractmethod
    def _check(self) -> None:
        """Check the operator's own rules; every tensor has passed the T-* rules and its row."""

    @abstractmethod
    def _regions(self) -> Sequence[Sequence[Region]]:
        """Return the regions of each output; the descriptor is valid."""

    @cached_property
    def _plan(self) -> CopyPlan:
        self.validate()
        outputs = zip(self.outputs, self._regions(), strict=True)
        return CopyPlan(
            element_size=self.inputs[0][1].data_type.element_size,
            inputs=tuple(tensor.total_tensor_size_in_bytes for _, tensor in self.inputs),
            outputs=tuple(
                Output(tensor.total_tensor_size_in_bytes, tuple(regions))
                for (_, tensor), regions in outputs
            ),
        )

    def _refuse(self, field: str, message: str, rule: str) -> NoReturn:
        raise InvalidDescError(self.operator, field, message, rule)

    def _tensors(self, role: Role) -> tuple[NamedTensor, ...]:
        named = [self._named_tensors(field) for field in self.FIELDS if field.role == role]
        return tuple(chain.from_iterable(named))

    def _named_tensors(self, field: Field) -> list[NamedTensor]:
        value = getattr(self, field.name)
        if field.kind == "tensor":
            return [(field.name, value)]
        return [(f"{field.name}[{i}]", tensor) for i, tensor in enumerate(value)]

    def _rows(self, alternative_levels: object) -> Mapping[FeatureLevel, Row]:
        if self.operator in alternative_operators(alternative_levels, self.operator):
            return ALTERNATIVE_ROWS[self.operator]
        return ROWS[self.operator]

    def _check_level(self, level: FeatureLevel, rows: Mapping[FeatureLevel, Row]) -> None:
        """Check what depends on the feature level: DEV-12 and DEV-13."""
        if level not in rows:
            message = f"not available at feature level {level}; allowed from {min(rows)}"
            raise FeatureLevelError(self.operator, "", message, "DEV-12")
        for field in self.FIELDS:
            if field.role == "attribute":
                continue
            support = rows[level][field.dml_name]
            later = [(other, row[field.dml_name]) for other, row in rows.items() if other > level]
            for path, tensor in self._named_tensors(field):
                rank, data_type = tensor.dimension_count, tensor.data_type
                if not support.takes_rank(rank):
                    path, got, allowed = f"{path}.sizes", dimensions(rank), support.ranks
                    levels = [other for other, row in later if row.takes_rank(rank)]
                elif data_type not in support.data_types:
                    path, got, allowed = f"{path}.data_type", data_type.name, support.types
                    levels = [other for other, row in later if data_type in row.data_types]
                else:
                    continue
                message = f"got {got}, must be {allowed} at feature level {level}"
                if not levels:
                    self._refuse(path, f"{message}; no level allows it", "DEV-13")
                message += f"; allowed from {levels[0]}"
                raise FeatureLevelError(self.operator, path, message, "DEV-13")

    def _check_32_bits(self) -> None:
        """Check the entries of arrays; an operator's own rules bound all other attributes."""
        for field in self.FIELDS:
            if field.kind in _BOUNDS:
                low, high = _BOUNDS[field.kind]
                for i, value in enumerate(getattr(self, field.name)):
                    if not low <= value <= high:
                        message = f"got {show(value)}, must be {low} to {high}"
                        self._refuse(f"{field.name}[{i}]", message, field.rule)


_BOUNDS: Mapping[Kind, tuple[int, int]] = {
    "uint_array": (0, UINT32_MAX),
    "int_array": (-(2**31), 2**31 - 1),
}


def _tensor(value: object, place: Place) -> BufferTensorDesc:
    if isinstance(value, BufferTensorDesc):
        return value
    # None stands for a null pointer; anything else is a tensor of another type than BUFFER.
    rule = place.rule if value is None else "T-01"
    raise place._replace(rule=rule).wrong_kind(value, "a BufferTensorDesc")


def _tensors(value: object, place: Place) -> tuple[BufferTensorDesc, ...]:
    return array(value, place, _tensor, "BufferTensorDesc")


def _scale_bias(value: object, place: Place) -> ScaleBias:
    if isinstance(value, ScaleBias):
        return value
    raise place.wrong_kind(value, "a ScaleBias or None")


def alternative_operators(value: object, operator: str = "") -> tuple[str, ...]:
    """Return the operators whose alternative rows are to apply (JOIN-09)."""
    place = Place(operator, "alternative_levels", "JOIN-09")
    return array(value, place, _alternative, "operator names")


def _alternative(value: object, place: Place) -> str:
    if isinstance(value, str) and value in ALTERNATIVE_ROWS:
        return value
    raise place.wrong_kind(value, "one of " + ", ".join(map(repr, ALTERNATIVE_ROWS)))


_CONVERSIONS: Mapping[Kind, Callable[[object, Place], Any]] = {
    "tensor": _tensor,
    "tensor_array": _tensors,
    "uint": integer,
    "int": integer,
    "uint_array": integers,
    "int_array": integers,
    "scale_bias": _scale_bias,
}
