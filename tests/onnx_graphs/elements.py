"""ONNX's element types, and random elements of them."""

from functools import cache
from math import prod

import numpy as np
from onnx import TensorProto, defs, helper

OLDEST, NEWEST = 7, defs.onnx_opset_version()
STRING = np.dtype(object)
BITS = {
    **dict.fromkeys(("INT4", "UINT4", "FLOAT4E2M1"), 4),
    **dict.fromkeys(("FLOAT6E2M3", "FLOAT6E3M2"), 6),
    **dict.fromkeys(("INT2", "UINT2"), 2),
    "BOOL": 1,
}
"""Bits of the types whose elements do not use all bits of their byte."""

WORDS = ["", "a", "ß", "strings", "of any length", "次", "x" * 40]


DTYPES = {
    f"tensor({name.lower()})": np.dtype(helper.tensor_dtype_to_np_dtype(number))
    for name, number in TensorProto.DataType.items()
    if name != "UNDEFINED"
}
TYPES = {dtype: text for text, dtype in DTYPES.items()}


def elem_type(dtype):
    """The ``TensorProto.DataType`` of a NumPy type."""
    return TensorProto.DataType.Value(TYPES[dtype][len("tensor(") : -1].upper())


def bits_of(dtype):
    """Return the bits that an element uses of its byte; None where it uses all."""
    return BITS.get(TensorProto.DataType.Name(elem_type(dtype)))


@cache
def schema_of(operator, opset):
    """Return the schema of an operator in an opset; None if the opset does not have it any more."""
    try:
        schema = defs.get_schema(operator, opset, "")
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@cache
def dtypes_of(operator, opset, output=False):
    """The types of an operator's first input, or of its output."""
    schema = schema_of(operator, opset)
    parameters = schema.outputs if output or not schema.inputs else schema.inputs
    texts = (text.removeprefix("seq(").replace("))", ")") for text in sorted(parameters[0].types))
    return list(dict.fromkeys(DTYPES[text] for text in texts if text in DTYPES))


def random_elements(rng, dtype, shape):
    """Return random elements of a type."""
    count = prod(shape)
    if dtype == STRING:
        return np.array([rng.choice(WORDS) for _ in range(count)], dtype).reshape(shape)
    data = np.frombuffer(rng.randbytes(count * dtype.itemsize), np.uint8)
    bits = bits_of(dtype)
    return (data & ((1 << bits) - 1) if bits else data).view(dtype).reshape(shape).copy()
