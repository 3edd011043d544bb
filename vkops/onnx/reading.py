"""Models from files, bytes and messages, checked by ONNX's own rules."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnx.checker
import onnx.inliner
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, ValueInfoProto

from vkops.errors import ModelError

DOMAINS = ("", "ai.onnx")
"""The names of ONNX's own operators."""


def read(source: ModelProto | bytes | str | os.PathLike[str], *, check: bool = True) -> ModelProto:
    """Read a model, check it by ONNX's rules, and put functions in place of their calls."""
    proto = source if isinstance(source, ModelProto) else _load(source)
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
    return onnx.inliner.inline_local_functions(proto) if proto.functions else proto


def _completed(proto: ModelProto) -> ModelProto:
    """What ONNX Runtime does without but the checker asks for: types, shapes, one name of a domain.

    The model itself stays as it is.
    """
    ends = (*proto.graph.input, *proto.graph.output)
    is_incomplete = any(map(_lacks_shape, ends))
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
        if isinstance(source, bytes):
            proto = ModelProto()
            proto.ParseFromString(source)
        else:
            proto = onnx.load(Path(source))
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
    """The version of ONNX's own operators that a model asks for; models of IR 2 ask for none."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in DOMAINS]
    return max(versions, default=1)
