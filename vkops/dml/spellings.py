"""DirectML's and DirectMLX's spellings of names of vkops.dml, and their operators that compute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any

from vkops.dml.levels import SUPPORT, class_name
from vkops.errors import import_late

_COMPUTING = """
ELEMENT_WISE_ABS ELEMENT_WISE_ACOS ELEMENT_WISE_ADD ELEMENT_WISE_ASIN ELEMENT_WISE_ATAN
ELEMENT_WISE_CEIL ELEMENT_WISE_CLIP ELEMENT_WISE_COS ELEMENT_WISE_DIVIDE ELEMENT_WISE_EXP
ELEMENT_WISE_FLOOR ELEMENT_WISE_LOG ELEMENT_WISE_LOGICAL_AND ELEMENT_WISE_LOGICAL_EQUALS
ELEMENT_WISE_LOGICAL_GREATER_THAN ELEMENT_WISE_LOGICAL_LESS_THAN ELEMENT_WISE_LOGICAL_NOT
ELEMENT_WISE_LOGICAL_OR ELEMENT_WISE_LOGICAL_XOR ELEMENT_WISE_MAX ELEMENT_WISE_MEAN
ELEMENT_WISE_MIN ELEMENT_WISE_MULTIPLY ELEMENT_WISE_POW ELEMENT_WISE_CONSTANT_POW
ELEMENT_WISE_RECIP ELEMENT_WISE_SIN ELEMENT_WISE_SQRT ELEMENT_WISE_SUBTRACT ELEMENT_WISE_TAN
ELEMENT_WISE_THRESHOLD ELEMENT_WISE_QUANTIZE_LINEAR ELEMENT_WISE_DEQUANTIZE_LINEAR
ELEMENT_WISE_SIGN ELEMENT_WISE_IS_NAN ELEMENT_WISE_ERF ELEMENT_WISE_SINH ELEMENT_WISE_COSH
ELEMENT_WISE_TANH ELEMENT_WISE_ASINH ELEMENT_WISE_ACOSH ELEMENT_WISE_ATANH ELEMENT_WISE_IF
ELEMENT_WISE_ADD1 ELEMENT_WISE_BIT_SHIFT_LEFT ELEMENT_WISE_BIT_SHIFT_RIGHT ELEMENT_WISE_ROUND
ELEMENT_WISE_IS_INFINITY ELEMENT_WISE_MODULUS_TRUNCATE ELEMENT_WISE_MODULUS_FLOOR
ELEMENT_WISE_BIT_AND ELEMENT_WISE_BIT_OR ELEMENT_WISE_BIT_XOR ELEMENT_WISE_BIT_NOT
ELEMENT_WISE_BIT_COUNT ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL
ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL ELEMENT_WISE_ATAN_YX ELEMENT_WISE_CLIP_GRAD
ELEMENT_WISE_DIFFERENCE_SQUARE ELEMENT_WISE_QUANTIZED_LINEAR_ADD ELEMENT_WISE_CLIP1
ELEMENT_WISE_CLIP_GRAD1 ELEMENT_WISE_NEGATE
ACTIVATION_ELU ACTIVATION_HARDMAX ACTIVATION_HARD_SIGMOID
ACTIVATION_LEAKY_RELU ACTIVATION_LINEAR ACTIVATION_LOG_SOFTMAX ACTIVATION_PARAMETERIZED_RELU
ACTIVATION_PARAMETRIC_SOFTPLUS ACTIVATION_RELU ACTIVATION_SCALED_ELU ACTIVATION_SCALED_TANH
ACTIVATION_SIGMOID ACTIVATION_SOFTMAX ACTIVATION_SOFTPLUS ACTIVATION_SOFTSIGN ACTIVATION_TANH
ACTIVATION_THRESHOLDED_RELU ACTIVATION_SHRINK ACTIVATION_CELU ACTIVATION_RELU_GRAD
ACTIVATION_GELU ACTIVATION_SOFTMAX1 ACTIVATION_LOG_SOFTMAX1 ACTIVATION_HARDMAX1 ACTIVATION_SWISH
ACTIVATION_HARD_SWISH
CONVOLUTION GEMM REDUCE AVERAGE_POOLING LP_POOLING MAX_POOLING ROI_POOLING CAST VALUE_SCALE_2D
TOP_K BATCH_NORMALIZATION MEAN_VARIANCE_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION
LP_NORMALIZATION RNN LSTM GRU MAX_POOLING1 MAX_UNPOOLING CUMULATIVE_SUMMATION MAX_POOLING2 TOP_K1
MEAN_VARIANCE_NORMALIZATION1 MATRIX_MULTIPLY_INTEGER QUANTIZED_LINEAR_MATRIX_MULTIPLY
CONVOLUTION_INTEGER QUANTIZED_LINEAR_CONVOLUTION AVERAGE_POOLING_GRAD MAX_POOLING_GRAD
RANDOM_GENERATOR NONZERO_COORDINATES RESAMPLE_GRAD ADAM_OPTIMIZER ARGMIN ARGMAX ROI_ALIGN
LOCAL_RESPONSE_NORMALIZATION_GRAD CUMULATIVE_PRODUCT BATCH_NORMALIZATION_GRAD
DYNAMIC_QUANTIZE_LINEAR ROI_ALIGN1 ROI_ALIGN_GRAD BATCH_NORMALIZATION_TRAINING
BATCH_NORMALIZATION_TRAINING_GRAD RESAMPLE_GRAD1 MULTIHEAD_ATTENTION LP_POOLING1 AVERAGE_POOLING1
QUANTIZED_LINEAR_AVERAGE_POOLING MATRIX_MULTIPLY_INTEGER_TO_FLOAT MEAN_VARIANCE_NORMALIZATION2
MULTIHEAD_ATTENTION1 QUANTIZE DEQUANTIZE FOLD FUSED_ACTIVATION
"""
"""DirectML's operators that compute, up to level 6_4; source: DML_OPERATOR_TYPE."""

_OTHERS = {
    "tensordesc": "dml.BufferTensorDesc",
    "tensorproperties": "dml.TensorPolicy",
    "tensordimensions": "a list of integers",
    "tensorstrides": "a list of integers",
    "tensortype": "dml.BufferTensorDesc, the only type",
    "scalarunion": "a Python number",
    "operatortype": "dml.OPERATORS",
    "scatterelementsoperatordesc": "dml.ScatterOperatorDesc",
    "activationidentity": "dml.identity",
    "activationidentityoperatordesc": "dml.ElementWiseIdentityOperatorDesc",
    "bufferbinding": "a buffer, or (buffer, offset, size), as an argument of dispatch",
    "bufferarraybinding": "a list of buffers, as an argument of dispatch",
    "bindingdesc": "a buffer, or (buffer, offset, size), as an argument of dispatch",
    "bindingtable": "CompiledOperator.bind",
    "idmlbindingtable": "CompiledOperator.bind",
    "idmldevice": "vkops.Device",
    "createdevice": "vkops.Device",
    "createdevice1": "vkops.Device",
    "device": "vkops.Device",
    "idmloperator": "device.create_operator",
    "operator": "device.create_operator",
    "idmlcompiledoperator": "device.compile_operator",
    "compiledoperator": "device.compile_operator",
    "idmlcommandrecorder": "CompiledOperator.dispatch, or device.record()",
    "idmloperatorinitializer": "CompiledOperator.initialize",
    "graphbuilder": "dml.Graph",
    "feature": "dml.check_feature_support",
}
"""Names without a counterpart of the same name, by their keys."""

_FUNCTIONS = {
    "cumulativesummation": "cumsum", "cumulativeproduct": "cumprod",
    "nonzerocoordinates": "nonzero", "randomgenerator": "random", "recip": "reciprocal",
    "negate": "negative", "atanyx": "arctan2", "greaterthan": "greater", "lessthan": "less",
    "greaterthanorequal": "greater_equal", "lessthanorequal": "less_equal", "equals": "equal",
    "isinfinity": "isinf", "bitand": "bitwise_and", "bitor": "bitwise_or",
    "bitxor": "bitwise_xor", "bitnot": "bitwise_not", "bitcount": "bitwise_count",
    "bitshiftleft": "left_shift", "bitshiftright": "right_shift", "modulusfloor": "remainder",
    "modulustruncate": "fmod", "max": "maximum", "min": "minimum", "and": "logical_and",
    "or": "logical_or", "xor": "logical_xor", "not": "logical_not", "if": "where",
    "cast": "astype",
}  # fmt: skip
"""NumPy's names of operators, where they differ."""


def _key(name: str) -> str:
    """Return a name in lower case, without underscores and DirectML's prefix."""
    return re.sub(r"^dml(operator(?!desc))?", "", name.lower().replace("_", ""))


def _short(key: str) -> str:
    """Return the key of an operator without the parts that DirectMLX leaves out."""
    key = re.sub(r"(operator)?desc$|builder$|outputs$", "", key)
    return re.sub(r"^(elementwise|activation)", "", key)


@lru_cache(maxsize=1)
def _own() -> dict[str, str]:
    """Return the names of vkops.dml by their keys: the descriptors, functions and others."""
    dml = import_late("vkops.dml")

    def names() -> Iterator[tuple[str, str]]:
        for operator in SUPPORT:
            key = _key(operator)
            yield from dict.fromkeys((key, f"{key}operatordesc"), class_name(operator)).items()
        for name in dml.__all__:
            yield _key(name), name
            value: Any = getattr(dml, name)
            if isinstance(value, type) and issubclass(value, Enum):
                for member in value.__members__:
                    key = _key(name).removesuffix("s") + _key(member).removeprefix("level")
                    yield key, f"{name}.{member}"

    return dict(names())


def hint(name: str) -> str:
    """Return the end of the error for a name that vkops.dml lacks: what to use; "" if unknown.

    >>> hint("GatherND1OperatorDesc"), hint("DML_PADDING_MODE_EDGE")
    (': use dml.GatherNd1OperatorDesc', ': use dml.PaddingMode.EDGE')
    """
    if name[:1] == "_":
        return ""
    key = _key(name)
    is_descriptor = name.isupper() or key.endswith("desc")
    keys = [f"{key}operatordesc", key] if is_descriptor else [key]
    for each in keys:
        if each in _OTHERS:
            return f": use {_OTHERS[each]}"
        if each in _own():
            return f": use dml.{_own()[each]}"
    short = _short(key)
    computing = {_short(_key(operator)): operator for operator in _COMPUTING.split()}
    computing |= {each.removeprefix("logical"): operator for each, operator in computing.items()}
    if short not in computing:
        return ""
    function = _FUNCTIONS.get(short.removeprefix("logical"), short.rstrip("1"))
    vkops, kernels = import_late("vkops"), import_late("vkops.kernels")
    instead = "vkops.ElementwiseKernel, or functions of vkops.kernels"
    if function in vkops.__all__:
        instead = f"vkops.{function}"
    elif hasattr(kernels, function):
        instead = f"vkops.kernels.{function}"
    return f": {computing[short]} computes, and vkops.dml only moves data; use {instead}"
