"""The resources of a model, and the parts of them that tensors and blocks are bound to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from vkops.dml import TensorDataType
from vkops.errors import ModelError, VkopsError
from vkops.models.folders import Folders
from vkops.models.initial_values import InitialValues, read_values
from vkops.models.json_reader import Node, quote
from vkops.plan.rounding import round_up

# Two of the largest tensors DirectML can address (2**32 elements of 8 bytes, T-13).
MAX_RESOURCE_BYTES = 2 << 35

# Members of a binding that a kind of dispatchable reads, or that DxDispatch reads.
SOURCE_FIELDS = (
    "elementCount", "elementSizeInBytes", "elementOffset", "format", "counter",
    "counterOffsetBytes", "shape",
)  # fmt: skip

Shape = tuple[int, ...]
_T = TypeVar("_T")


@contextmanager
def errors_after(prefix: str) -> Iterator[None]:
    """Convert errors of vkops to ModelErrors whose text begins with ``prefix``."""
    try:
        yield
    except VkopsError as error:
        raise ModelError(f"{prefix}: {error}") from error


def lookup(node: Node, table: Mapping[str, _T], kind: str) -> _T:
    """Return the entry that a node names; ModelError if the table does not have it."""
    if node.string() not in table:
        raise node.error(f"there is no {kind} {quote(node.string())}")
    return table[node.string()]


@dataclass(frozen=True)
class Resource:
    """A buffer of ``size`` bytes that starts with ``values`` and ends with zeros.

    A resource that ``is_deferred`` has no buffer: it is an output of an ONNX model, whose type and
    shape are known only after the model has run.
    """

    name: str
    size: int
    data_type: TensorDataType
    values: InitialValues
    is_deferred: bool = False

    def element_size(self, node: Node, needed_by: str) -> int:
        """Return the size of an element in bytes; ``needed_by`` names the member that needs it."""
        size_node = node.optional("elementSizeInBytes")
        if size_node is not None:
            return size_node.uint(64)
        if self.data_type is not TensorDataType.UNKNOWN:
            return self.data_type.element_size
        if needed_by:
            raise node.error(
                f"'{needed_by}' needs 'elementSizeInBytes': {quote(self.name)} has no data type"
            )
        return 0


@dataclass(frozen=True)
class BindingSource:
    """The resource that a tensor or block is bound to, from an offset in bytes on.

    ``shape`` is the shape that the tensor of an ONNX model must have; or, for a shader, the shape
    of its texels of type ``dtype``. ``count`` is the number of bytes that are bound; None means up
    to the end.
    """

    resource: Resource
    offset: int
    node: Node
    shape: Shape | None = None
    count: int | None = None
    dtype: np.dtype[Any] | None = None

    @property
    def nbytes(self) -> int:
        """The number of bytes that are bound."""
        return max(0, self.resource.size - self.offset) if self.count is None else self.count


Bindings = Mapping[str, tuple[BindingSource, ...]]
"""The sources of each bind point, one for each tensor."""


def wrong_count(node: Node, point: str, needed: int, sources: Sequence[object]) -> ModelError:
    """Return the error for a bind point that has more or fewer sources than tensors (B-01)."""
    message = f"requires {needed} resources, but {len(sources)} were bound. [B-01]"
    return node.error(f"Bind point '{point}' {message}")


class Resources(dict[str, Resource]):
    """The resources of a model, by name."""

    @classmethod
    def read(cls, node: Node, folders: Folders) -> Resources:
        """Read the section ``resources``."""
        resources = cls((name, _read(name, each, folders)) for name, each in node.members())
        total = sum(buffer.size for buffer in resources.buffers)
        if total > MAX_RESOURCE_BYTES:
            raise node.error(f"got {total} bytes in all, must be 0 to {MAX_RESOURCE_BYTES}")
        return resources

    @property
    def buffers(self) -> list[Resource]:
        """The resources that are not deferred."""
        return [resource for resource in self.values() if not resource.is_deferred]

    def named(self, node: Node) -> Resource:
        """Return the resource that a node names."""
        return lookup(node, self, "resource")

    def source(self, node: Node) -> BindingSource:
        """Read a source of a tensor or a block: the name of a resource, or an object."""
        name = node.required("name") if isinstance(node.value, dict) else node
        resource = self.named(name)
        if resource.is_deferred:
            raise name.error(
                f"{quote(resource.name)} is deferred, only ONNX models can be bound to it"
            )
        if name is node:
            return BindingSource(resource, 0, node)
        node.known(*SOURCE_FIELDS)
        for ignored in ("elementCount", "counterOffsetBytes"):  # operators do not use them
            node.optional_uint(ignored, 64)
        counter = node.optional("counter")
        if counter is not None:
            self.named(counter)
        offset = node.optional_uint("elementOffset", 64)
        element_size = resource.element_size(node, "elementOffset" if offset else "")
        return BindingSource(resource, offset * element_size, node)


def _read(name: str, node: Node, folders: Folders) -> Resource:
    # Buffers are the only type, and their values are not resampled.
    node.known("type", "resampleSize", "resampleMode")
    node.known("initialValuesDataType", "sizeInBytes", "initialValuesOffsetInBytes")
    values_node = node.optional("initialValues")
    if values_node is not None and values_node.value == "deferred":
        nothing = InitialValues(0, lambda: iter(()))
        return Resource(name, 0, TensorDataType.UNKNOWN, nothing, is_deferred=True)
    data_type, values = read_values(node, folders)
    size_node = node.optional("sizeInBytes")
    size = size_node.uint(64) if size_node else round_up(values.nbytes, 4)
    offset = node.optional_uint("initialValuesOffsetInBytes", 64)
    if values.nbytes + offset > size:
        raise (size_node or node).error(
            f"got a size of {size} bytes for {values.nbytes} bytes of initial values"
            + (f" at offset {offset}" if offset else "")
        )
    if size > MAX_RESOURCE_BYTES:
        raise (size_node or node).error(f"got {size} bytes, must be 0 to {MAX_RESOURCE_BYTES}")
    return Resource(name, size, data_type, values)


DataTypes = Mapping[str, tuple[TensorDataType | None, ...]]
"""The data types of the tensors of each bind point; None for a type that DirectML does not have."""


def read_bindings(
    node: Node, owner: str, points: DataTypes, read: Callable[[Node], BindingSource]
) -> Bindings:
    """Read bindings; warn of unknown bind points, and of resources of other data types."""
    bindings = {}
    for point, sources in node.members():
        bindings[point] = tuple(map(read, sources.one_or_more()))
        if point not in points:
            sources.warn(f"{owner} has no such bind point (it has {', '.join(points)})")
        for source, data_type in zip(bindings[point], points.get(point, ()), strict=False):
            resource = source.resource
            if (
                data_type is not None
                and data_type.size_bits >= 8  # no initial values have smaller types
                and resource.data_type not in (TensorDataType.UNKNOWN, data_type)
            ):
                source.node.warn(
                    f"{quote(resource.name)} has initial values of type "
                    f"{resource.data_type.name}, the tensor {quote(point)} is of {data_type.name}"
                )
    return bindings
