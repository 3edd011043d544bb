"""Base of all operator descriptors: their fields, inference, validation and lowering."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

from vkops.dml.enums import FeatureLevel, TensorDataType
from vkops.dml.fields import FLOAT, TENSOR, TENSORS, Field, Role, declared_fields
from vkops.dml.levels import OPERATOR_OF, SUPPORT, Support, support_of
from vkops.dml.tensor_desc import BufferTensorDesc, check_tensor, dimensions
from vkops.errors import FeatureLevelError, InvalidDescError, show
from vkops.plan import CopyPlan, Output, Pipeline, Read, Region
from vkops.plan.algebra import coalesce
from vkops.plan.indexing import OutOfRange
from vkops.plan.region import Progression
from vkops.plan.view import Ints
from vkops.system.threads import cached_property

if TYPE_CHECKING:
    from typing_extensions import Self

NamedTensor = tuple[str, BufferTensorDesc]
"""A tensor and the path of its field: ``("output_tensors[1]", desc)``."""


class Size(NamedTuple):
    """A size that a dimension of an output must have.

    Attributes:
        value: the size.
        origin: the expression for it in error messages, such as ``"input_tensor.sizes[0]"``.
        rule: the rule that requires it.
    """

    value: int
    origin: str
    rule: str

    @classmethod
    def each(cls, values: Iterable[int], origin: str, rule: str) -> list[Size]:
        """Return a size for each dimension; its number replaces ``{0}`` in the expression."""
        return [cls(value, origin.format(i), rule) for i, value in enumerate(values)]


@dataclass(frozen=True)
class OperatorDesc(ABC):
    """Base of the operator descriptors.

    A subclass, which ``vkops.dml.fields.descriptor`` decorates, adds its own rules, which infer the
    sizes of its outputs, and the regions that it copies. Sequences become tuples.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind.
    """

    operator: ClassVar[str]
    """DirectML's name of the operator without ``DML_OPERATOR_``, found by the name of the class."""
    FIELDS: ClassVar[tuple[Field, ...]]
    rule_group: ClassVar[str]
    """The word with which the identifiers of the operator's own rules begin."""
    same_data_type: ClassVar[str]
    """The rule that requires all tensors, except those of indices, to have one data type."""
    same_dimension_count: ClassVar[str]
    """The rule that requires all tensors to have one rank; empty where ranks differ."""
    first_dimension: ClassVar[int] = 0
    """The first dimension of the input for which arrays of attributes have an entry."""
    supports_in_place: ClassVar[bool] = False
    """Whether DirectML lets input and output be one range (B-09)."""

    def __init_subclass__(cls) -> None:
        cls.FIELDS = (*getattr(cls, "FIELDS", ()), *declared_fields(cls))
        if cls.__name__ in OPERATOR_OF:
            cls.operator = OPERATOR_OF[cls.__name__]
        # Shared base classes may leave these rules to their subclasses.
        if "same_data_type" in vars(cls):
            cls.rule_group = cls.same_data_type.rpartition("-")[0]

    @classmethod
    def of_tensors(
        cls,
        inputs: Sequence[BufferTensorDesc],
        outputs: Sequence[BufferTensorDesc],
        attributes: Mapping[str, Any],
    ) -> Self:
        """Return a descriptor of tensors in binding order, and of attributes by name.

        Raises:
            InvalidDescError: there are not as many tensors as the operator has (G-04).
        """
        values = dict(attributes)
        for role, tensors in (("input", inputs), ("output", outputs)):
            fields = [field for field in cls.FIELDS if field.role == role]
            if len(tensors) < len(fields):  # then those that are optional are left out
                values |= {field.name: None for field in fields if field.optional}
                fields = [field for field in fields if not field.optional]
            if any(field.kind is TENSORS for field in fields):
                values[fields[0].name] = tensors
                continue
            if len(tensors) != len(fields):
                message = f"got {len(tensors)} tensors, must be {len(fields)}"
                raise InvalidDescError(cls.operator, f"{role}s", message, "G-04")
            values |= {field.name: t for field, t in zip(fields, tensors, strict=True)}
        return cls(**values)

    def __post_init__(self) -> None:
        for field in self.FIELDS:
            vars(self)[field.name] = field.convert(self.operator, getattr(self, field.name))

    @cached_property
    def inputs(self) -> tuple[NamedTensor, ...]:
        """The input tensors with their field paths, in binding order."""
        return self._tensors("input")

    @cached_property
    def outputs(self) -> tuple[NamedTensor, ...]:
        """The output tensors with their field paths, in binding order."""
        return self._tensors("output")

    @property
    def data_type(self) -> TensorDataType:
        """The data type of all tensors except those that hold indices."""
        return self._first_tensor[1].data_type

    # -- rules ------------------------------------------------------------------------------------

    def validate(
        self,
        feature_level: FeatureLevel | int | str = FeatureLevel.LATEST,
        alternative_levels: Sequence[str] = (),
    ) -> None:
        """Check every rule (docs/rules.md) at a feature level.

        Args:
            feature_level: the level of the device: a member, its value or a name like "5_0".
            alternative_levels: operators that take the ranks of DirectML's other sources where
                these contradict the operator's page: for "JOIN" 1 to 8 from 3_1 (JOIN-09).

        Raises:
            InvalidDescError: the first rule that is broken.
            FeatureLevelError: the same, where a higher level would accept it.
        """
        level = FeatureLevel.of(feature_level, self.operator)
        support = support_of(self.operator, alternative_levels)
        found_valid = level, support is SUPPORT[self.operator]
        if found_valid in self._validated:
            return
        roles: Sequence[Role] = ("input", "output")
        if not self._validated:
            self._check_tensors(roles)
        inferred = self._inferred(level, support, roles)
        for (path, tensor), sizes in zip(self.outputs, inferred, strict=True):
            self._check_sizes(path, tensor, sizes)
        self._validated.add(found_valid)

    def infer(
        self, feature_level: FeatureLevel | int | str = FeatureLevel.LATEST
    ) -> tuple[tuple[TensorDataType, Ints], ...]:
        """Return data type and sizes of each output, from inputs and attributes.

        The output tensors count only where the operator leaves sizes to them: SPLIT and SLICE, and
        operators without inputs.

        Raises:
            InvalidDescError: the inputs or attributes break a rule.
            FeatureLevelError: the same, where a higher level would accept them.
        """
        level = FeatureLevel.of(feature_level, self.operator)
        roles: Sequence[Role] = ("input",) if self.inputs else ("output",)
        self._check_tensors(roles)
        inferred = self._inferred(level, SUPPORT[self.operator], roles)
        return tuple((self.data_type, tuple(size.value for size in sizes)) for sizes in inferred)

    def minimum_feature_level(self, alternative_levels: Sequence[str] = ()) -> FeatureLevel:
        """Return the lowest feature level that accepts this operator.

        Raises:
            InvalidDescError: none does; it is that of the latest level.
        """
        self.validate(FeatureLevel.LATEST, alternative_levels)

        def accepts(level: FeatureLevel) -> bool:
            try:
                self.validate(level, alternative_levels)
            except FeatureLevelError:
                return False
            return True

        return next(filter(accepts, FeatureLevel))

    @abstractmethod
    def _infer(self) -> Sequence[Sequence[Size]]:
        """Check the operator's own rules, and return the sizes that each output must have.

        When this is called, all tensors have passed the T rules and the data types and ranks of
        levels.json; all have one rank, and all but indices have one data type. ``validate``
        compares the sizes of each output tensor with the returned ones; its error names their
        origin and rule.
        """

    def _check_tensors(self, roles: Sequence[Role]) -> None:
        """Check the rules of tensors of some roles that hold at every feature level."""
        for field, tensors in self._tensor_fields:
            if not tensors:
                self._refuse(field.name, "got no tensors, must be at least 1", field.rule)
            if field.role in roles:
                for path, tensor in tensors:
                    check_tensor(self.operator, path, tensor, is_output=field.role == "output")

    def _inferred(
        self, level: FeatureLevel, support: Support, roles: Sequence[Role]
    ) -> Sequence[Sequence[Size]]:
        """Check the rules of the level and of attributes; return the sizes of the outputs."""
        fields = [(field, tensors) for field, tensors in self._tensor_fields if field.role in roles]
        if level not in support:
            message = f"not available at feature level {level}; allowed from {support.introduced}"
            raise FeatureLevelError(self.operator, "", message, "DEV-12")
        for field, tensors in fields:
            for path, tensor in tensors:
                support.check(level, field.dml_name, self.operator, path, tensor)
        self._check_32_bits()
        self._check_data_types(fields)
        self._check_ranks()
        self._check_level(level)
        self._check_attributes()
        return self._infer()

    def _check_level(self, level: FeatureLevel) -> None:  # noqa: B027  # most have none
        """Raise an error for values of attributes that only higher levels allow."""

    def _check_32_bits(self) -> None:
        """Check that signed integers and the entries of arrays have 32 bits.

        An attribute that is a single unsigned integer may have any size: ``_infer`` checks it.
        """
        for field in self.FIELDS:
            if field.kind.bounds is not None:
                low, high = field.kind.bounds
                value, is_array = getattr(self, field.name), field.kind.entry is not None
                for i, entry in enumerate(value if is_array else [value]):
                    if not low <= entry <= high:
                        path = f"{field.name}[{i}]" if is_array else field.name
                        message = f"got {show(entry)}, must be {low} to {high}"
                        self._refuse(path, message, field.rule)

    def _check_data_types(self, fields: Iterable[tuple[Field, Sequence[NamedTensor]]]) -> None:
        """Check that all tensors of some fields, except indices, have one data type."""
        path, first = self._first_tensor
        data_type = first.data_type
        for field, tensors in fields:
            for other_path, other in tensors:
                if other.data_type is not data_type and not field.holds_indices:
                    message = f"got {other.data_type.name}, must equal {path}.data_type = "
                    path = f"{other_path}.data_type"
                    self._refuse(path, message + data_type.name, self.same_data_type)

    def _check_ranks(self) -> None:
        path, first = self._ranked_tensor
        rank = len(first.sizes)
        for field, tensors in self._tensor_fields:
            for other_path, other in tensors:
                if len(other.sizes) == rank or field.any_rank or not self.same_dimension_count:
                    continue
                message = f"got {dimensions(other.dimension_count)}, must have {rank} like {path}"
                self._refuse(f"{other_path}.sizes", message, self.same_dimension_count)

    def _check_attributes(self) -> None:
        """Check attributes against the tensors.

        Each scalar must have the tensors' data type, each array one entry for each dimension of the
        input, and the axis must be one of the dimensions.
        """
        path, tensor = self._ranked_tensor
        rank, first = tensor.dimension_count, self.first_dimension
        for field in self.FIELDS:
            value = getattr(self, field.name)
            if field.enum is TensorDataType and value is not tensor.data_type:
                expected = f"{path}.data_type = {tensor.data_type.name}"
                self._refuse(field.name, f"got {value.name}, must equal {expected}", field.rule)
            is_array = field.role == "attribute" and field.count is not None
            if is_array and len(value) != rank - first:
                message = f"got length {len(value)}, must be {rank - first}, one entry for each "
                message += f"dimension{f' from {first} on' if first else ''} of {path}"
                self._refuse(field.name, message, self.same_dimension_count or self.same_data_type)
            if field.name == "axis" and not 0 <= value < rank:
                allowed = f"0 to {rank - 1} ({path} has {dimensions(rank)})"
                self._refuse("axis", f"got {show(value)}, must be {allowed}", field.rule)

    # -- checks that several operators use ---------------------------------------------------------

    def _refuse(self, field: str, message: str, rule: str) -> NoReturn:
        """Raise the error of a broken rule.

        The message reads "got ..., must ..."; integers of unbounded size are written with
        ``vkops.errors.show``.
        """
        raise InvalidDescError(self.operator, field, message, rule)

    def _refuse_by_bound(self, field: str, message: str, rule: str) -> NoReturn:
        """Raise the error for a value beyond a limit that vkops has and DirectML has not."""
        self._refuse(field, f"{message} (DirectML accepts this)", rule)

    def _check_sizes(self, path: str, tensor: BufferTensorDesc, sizes: Sequence[Size]) -> None:
        if tensor.sizes == tuple([value for value, _, _ in sizes]):
            return
        if tensor.dimension_count != len(sizes):
            message = f"got {dimensions(tensor.dimension_count)}, must have {len(sizes)}"
            self._refuse(f"{path}.sizes", message, sizes[0].rule)
        for i, (got, (value, origin, rule)) in enumerate(zip(tensor.sizes, sizes, strict=True)):
            if got != value:
                requirement = f"equal {origin} = {value}" if origin else f"be {value}"
                self._refuse(f"{path}.sizes[{i}]", f"got {got}, must {requirement}", rule)

    def _check_positive(self, path: str, value: int, rule: str) -> None:
        """Check that an attribute, or an entry of one, is 1 or more."""
        if value < 1:
            self._refuse(path, f"got {show(value)}, must be 1 or more", rule)

    def _element(self, name: str, value: float) -> bytes:
        """Return an element of the tensors' data type with the value of an attribute.

        A FLOAT is converted to the data type; any other value must be one of the data type.

        Raises:
            InvalidDescError: the data type cannot hold the value.
        """
        field = next(field for field in self.FIELDS if field.name == name)
        if field.kind is FLOAT:
            return self.data_type.convert(value)
        try:
            return self.data_type.pack(value)
        except ValueError as error:
            self._refuse(name, f"got {show(value)}, must be {error}", field.rule)

    def _sizes_of_input(self, rule: str) -> list[Size]:
        """Return the sizes of the first input, which a rule requires an output to have."""
        path, tensor = self.inputs[0]
        return Size.each(tensor.sizes, f"{path}.sizes[{{0}}]", rule)

    def _scaled_sizes(self, values: Iterable[int], factors: Sequence[str], rule: str) -> list[Size]:
        """Return sizes computed from the first input's; errors show ``factors``, as `` * 2``."""
        sizes = zip(self._sizes_of_input(rule), values, factors, strict=True)
        return [Size(value, size.origin + factor, rule) for size, value, factor in sizes]

    def _sizes_of(self, path: str, rule: str) -> list[Size]:
        """Return the sizes of a tensor, which a rule requires another one to have."""
        return Size.each(getattr(self, path).sizes, f"{path}.sizes[{{0}}]", rule)

    # -- lowering ---------------------------------------------------------------------------------

    def lower(self, indices: OutOfRange = "vkops") -> CopyPlan:
        """Return the copy plan, after validating at the latest level. The plan is cached.

        Args:
            indices: the rule of indices that are out of range; see ``vkops.Device``.

        Raises:
            InvalidDescError: the first rule that is broken.
        """
        return self._plan if indices == "vkops" else self._plan_with_limits

    def lower_to_pipeline(self, indices: OutOfRange = "vkops") -> Pipeline:
        """Return a pipeline of the plan; see ``lower``."""
        return Pipeline.of(self.lower(indices))

    @property
    def pipeline(self) -> Pipeline:
        """A pipeline of the plan."""
        return self.lower_to_pipeline()

    @property
    def runs_in_place(self) -> bool:
        """Whether input and output may be one range, as no element moves (B-09, IDENT-04)."""
        return self.supports_in_place and all(
            region.source == Read(0, region.target) for _, region in coalesce(self.lower()).regions
        )

    @abstractmethod
    def _regions(self) -> Sequence[Iterable[Region]]:
        """Return the regions of each output, some of which may be empty, of a valid descriptor."""

    @cached_property
    def _plan(self) -> CopyPlan:
        if not self._validated:
            self.validate()
        outputs = zip(self.outputs, self._regions(), strict=True)
        return CopyPlan(
            element_size=self.data_type.element_size,
            inputs=tuple(tensor.total_tensor_size_in_bytes for _, tensor in self.inputs),
            outputs=tuple(
                Output(
                    tensor.total_tensor_size_in_bytes, tuple(r for r in regions if prod(r.sizes))
                )
                for (_, tensor), regions in outputs
            ),
            constants=self._constants,
        )

    @property
    def _plan_with_limits(self) -> CopyPlan:
        """The plan whose indices address memory; the ordinary plan if it has no such indices."""
        return self._plan

    @property
    def _constants(self) -> tuple[Progression, ...]:
        """Constant data of the plan, numbered after the inputs."""
        return ()

    # -- fields -----------------------------------------------------------------------------------

    @cached_property
    def _validated(self) -> set[tuple[FeatureLevel, bool]]:
        """Levels at which this was found valid, and whether without alternative rows."""
        return set()

    @cached_property
    def _first_tensor(self) -> NamedTensor:
        """The first input without indices; of an operator without inputs, the first output."""
        tensors = (each for field, each in self._tensor_fields if each and not field.holds_indices)
        return next(tensors)[0]

    @cached_property
    def _ranked_tensor(self) -> NamedTensor:
        """The first tensor whose rank other tensors must have."""
        tensors = (each for field, each in self._tensor_fields if each and not field.any_rank)
        return next(tensors)[0]

    def _tensors(self, role: Role) -> tuple[NamedTensor, ...]:
        named = [tensors for field, tensors in self._tensor_fields if field.role == role]
        return tuple(chain.from_iterable(named))

    @cached_property
    def _tensor_fields(self) -> Sequence[tuple[Field, Sequence[NamedTensor]]]:
        """The fields that have tensors, each with its tensors and their paths."""
        fields: list[tuple[Field, Sequence[NamedTensor]]] = []
        for field in self.FIELDS:
            value = getattr(self, field.name)
            if field.role == "attribute" or value is None:
                continue
            if field.kind is TENSOR:
                fields.append((field, [(field.name, value)]))
            else:
                paths = [f"{field.name}[{i}]" for i in range(len(value))]
                fields.append((field, list(zip(paths, value, strict=True))))
        return fields
