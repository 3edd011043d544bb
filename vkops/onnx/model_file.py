"""Read models from files, bytes and messages, and check them by ONNX's own rules."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.checker
import onnx.inliner
from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from vkops.errors import ModelError
from vkops.onnx.tensor_data import MAX_MODEL_BYTES, Detached, detach_data
from vkops.system.files import read_regular

DOMAINS = ("", "ai.onnx")
"""The domain of ONNX's own operators has two names."""

MAX_NODES = 1_000_000
"""Number of nodes of a model after its functions have been inlined."""

_Function = tuple[str, str, str]  # domain, name and overload


class Content(NamedTuple):
    """A model's message, and the data that ``detach_data`` took out of it."""

    proto: ModelProto
    detached: Sequence[Detached]


def read(
    source: ModelProto | bytes | str | os.PathLike[str],
    *,
    check: bool = True,
    allow_paths: bool = False,
) -> Content:
    """Read a model, check it by ONNX's rules, and inline its functions.

    External data must lie in the folder of the model's file, unless ``allow_paths`` is true. They
    are not read yet.
    """
    folder = Path(source).parent if isinstance(source, (str, os.PathLike)) else None
    try:
        if isinstance(source, ModelProto):
            proto = ModelProto()
            proto.CopyFrom(source)  # by functions of Python's where protobuf has no others
        else:
            proto = _load(source)
        proto, detached = detach_data(proto, folder, allow_paths=allow_paths)
    except (RecursionError, EncodeError) as error:
        raise ModelError("its graphs are nested too deeply, or it is too large") from error
    newest = onnx.defs.onnx_opset_version()
    if opset_of(proto) > newest:
        raise ModelError(
            f"the model needs opset {opset_of(proto)}, the installed onnx {onnx.__version__} knows "
            f"those up to {newest}"
        )
    if check:
        try:
            onnx.checker.check_model(_completed(proto))
        except Exception as error:  # the checker raises errors of many kinds
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise ModelError(f"the model breaks ONNX's rules: {' '.join(lines[:3])}") from error
    if not proto.functions:
        return Content(proto, detached)
    _check_calls(proto)
    try:
        return Content(onnx.inliner.inline_local_functions(proto), detached)
    except Exception as error:  # the inliner finds faults that the checker does not
        raise ModelError(f"its functions: {' '.join(str(error).split())}") from error


def _check_calls(proto: ModelProto) -> None:
    """Check that names are unique, no function calls itself, and inlining makes few enough nodes.

    Of several functions with one name, versions of onnx inline different ones, or refuse them.
    """
    called: dict[_Function, Counter[_Function]] = {}
    for function in proto.functions:
        key = (function.domain, function.name, function.overload)
        if key in called:
            raise ModelError(f"its functions: more than one is named {function.name!r}")
        called[key] = _calls(function.node)
    order = TopologicalSorter({key: calls.keys() & called for key, calls in called.items()})
    counts: dict[_Function, int] = {}  # nodes of each function after inlining
    try:
        for key in order.static_order():
            counts[key] = _total(called[key], counts)
    except CycleError as error:
        raise ModelError(f"function {error.args[1][0][1]!r} calls itself") from None
    total = _total(_calls(proto.graph.node), counts)
    if total > MAX_NODES:
        raise ModelError(f"got {total} nodes with those of functions, must be {MAX_NODES} at most")


def _calls(nodes: Iterable[NodeProto]) -> Counter[_Function]:
    return Counter((node.domain, node.op_type, node.overload) for node in all_nodes(nodes))


def _total(calls: Mapping[_Function, int], counts: Mapping[_Function, int]) -> int:
    return sum(count * counts.get(key, 1) for key, count in calls.items())


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, and the nodes of the graphs in their attributes."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from all_nodes(graph.node)


def _completed(proto: ModelProto) -> ModelProto:
    """Add types, shapes and a domain name, which ONNX's checker requires and ONNX Runtime does not.

    If nothing is missing, return the model itself, else a copy.
    """
    is_incomplete = any(map(_lacks_shape, (*proto.graph.input, *proto.graph.output)))
    if not is_incomplete and all(node.domain != DOMAINS[1] for node in proto.graph.node):
        return proto
    copy = ModelProto()
    copy.CopyFrom(proto)
    for info in (*copy.graph.input, *copy.graph.output):
        if _lacks_shape(info):
            tensor = info.type.tensor_type
            tensor.elem_type = tensor.elem_type or TensorProto.FLOAT
            tensor.shape.SetInParent()
    for named in (*copy.graph.node, *copy.opset_import):
        if named.domain == DOMAINS[1]:
            named.domain = DOMAINS[0]
    return copy


def _lacks_shape(info: ValueInfoProto) -> bool:
    kind = info.type.WhichOneof("value")
    return kind is None or (kind == "tensor_type" and not info.type.tensor_type.HasField("shape"))


def _load(source: bytes | str | os.PathLike[str]) -> ModelProto:
    try:
        data = source if isinstance(source, bytes) else read_regular(source, MAX_MODEL_BYTES)
        proto = ModelProto()
        proto.ParseFromString(data)
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}") from error
    except DecodeError as error:
        raise ModelError("not an ONNX model") from error
    except Exception as error:
        raise ModelError(f"cannot be read: {' '.join(str(error).split())}") from error
    if not proto.ir_version:
        raise ModelError("not an ONNX model: it has no IR version")
    return proto


def opset_of(proto: ModelProto) -> int:
    """Return the version of ONNX's own operators that a model asks for; 1 if it names none."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in DOMAINS]
    return max(versions, default=1)
