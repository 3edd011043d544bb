"""DirectML's and DirectMLX's names: vkops.dml has them, or says what to use."""

import re
from enum import Enum
from operator import attrgetter

import pytest

import vkops
from vkops import dml
from vkops.dml import spellings

DIRECTMLX = [
    "ACos",
    "ACosh",
    "ASin",
    "ASinh",
    "ATan",
    "ATanYX",
    "ATanh",
    "Abs",
    "ActivationCelu",
    "ActivationElu",
    "ActivationGelu",
    "ActivationHardSigmoid",
    "ActivationHardmax",
    "ActivationIdentity",
    "ActivationLeakyRelu",
    "ActivationLinear",
    "ActivationLogSoftmax",
    "ActivationParameterizedRelu",
    "ActivationParametricSoftplus",
    "ActivationRelu",
    "ActivationScaledElu",
    "ActivationScaledTanh",
    "ActivationShrink",
    "ActivationSigmoid",
    "ActivationSoftmax",
    "ActivationSoftplus",
    "ActivationSoftsign",
    "ActivationTanh",
    "ActivationThresholdedRelu",
    "Add",
    "AveragePooling",
    "BatchNormalization",
    "BatchNormalizationGrad",
    "BatchNormalizationTraining",
    "BatchNormalizationTrainingGrad",
    "BitAnd",
    "BitCount",
    "BitNot",
    "BitOr",
    "BitShiftLeft",
    "BitShiftRight",
    "BitXor",
    "Cast",
    "Ceil",
    "Clip",
    "ClipGrad",
    "Convolution",
    "ConvolutionBuilder",
    "ConvolutionInteger",
    "Cos",
    "Cosh",
    "CumulativeProduct",
    "CumulativeSummation",
    "DepthToSpace",
    "Dequantize",
    "DequantizeLinear",
    "DifferenceSquare",
    "Divide",
    "Equals",
    "Erf",
    "Exp",
    "Expression",
    "FillValueConstant",
    "FillValueSequence",
    "Floor",
    "FusedActivation",
    "GRU",
    "GRUOutputs",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gemm",
    "GemmBuilder",
    "Graph",
    "GreaterThan",
    "GreaterThanOrEqual",
    "Identity",
    "If",
    "InputTensor",
    "IsInfinity",
    "IsNaN",
    "Join",
    "LessThan",
    "LessThanOrEqual",
    "LocalResponseNormalization",
    "Log",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "LogicalXor",
    "Max",
    "MaxPooling",
    "MaxPoolingBuilder",
    "MaxPoolingOutputs",
    "Mean",
    "MeanVarianceNormalization",
    "Min",
    "ModulusFloor",
    "ModulusTruncate",
    "Multiply",
    "Negate",
    "NonZeroCoordinates",
    "NonZeroCoordinatesOutputs",
    "OneHot",
    "Padding",
    "Pow",
    "QuantizeLinear",
    "QuantizedLinearConvolution",
    "RandomGenerator",
    "RandomGeneratorOutputs",
    "Recip",
    "Reduce",
    "Reinterpret",
    "Resample",
    "ResampleGrad",
    "ReverseSubsequences",
    "RoiAlign",
    "RoiAlignGrad",
    "RoiAlignGradOutputs",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Sign",
    "Sin",
    "Sinh",
    "Slice",
    "SliceGrad",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Subtract",
    "Tan",
    "Tanh",
    "TensorDesc",
    "TensorDimensions",
    "TensorPolicy",
    "TensorProperties",
    "TensorStrides",
    "Threshold",
    "Tile",
    "TopK",
    "TopKOutputs",
    "Upsample2D",
    "ValueScale2D",
]
"""Public functions and classes of DirectMLX.h, of DirectML 1.15."""

OTHERS = {
    "DML_BUFFER_TENSOR_DESC": "dml.BufferTensorDesc",
    "DML_TENSOR_DESC": "dml.BufferTensorDesc",
    "DML_TENSOR_DATA_TYPE": "dml.TensorDataType",
    "DML_TENSOR_DATA_TYPE_FLOAT32": "dml.TensorDataType.FLOAT32",
    "DML_TENSOR_FLAG_OWNED_BY_DML": "dml.TensorFlags.OWNED_BY_DML",
    "DML_FEATURE_LEVEL_5_1": "dml.FeatureLevel.LEVEL_5_1",
    "DML_SIZE_2D": "dml.Size2D",
    "DML_GRAPH_DESC": "dml.GraphDesc",
    "DML_OPERATOR_DESC": "dml.OperatorDesc",
    "GatherND1OperatorDesc": "dml.GatherNd1OperatorDesc",
    "Upsample2DOperatorDesc": "dml.Upsample2dOperatorDesc",
    "ScatterElementsOperatorDesc": "dml.ScatterOperatorDesc",
    "DML_OPERATOR_ACTIVATION_IDENTITY": "dml.ElementWiseIdentityOperatorDesc",
    "IDMLDevice": "vkops.Device",
}


def _text(name):
    """The error for a name, after the name."""
    with pytest.raises(AttributeError) as raised:
        getattr(dml, name)
    assert (raised.value.name, raised.value.obj) == (name, dml)
    return str(raised.value).removeprefix(f"module 'vkops.dml' has no attribute {name!r}")


def _suggested(name):
    """The name that the error for another one suggests, after it was looked up."""
    (suggested,) = re.findall(r"; use (\S+?)(?:,|$)|: use (\S+?)(?:,|$)", _text(name))[0:1]
    path = "".join(suggested)
    return path, attrgetter(path.partition(".")[2])(
        {"dml": dml, "vkops": vkops}[path[: path.find(".")]]
    )


@pytest.mark.parametrize("operator", dml.OPERATORS)
def test_descriptors(operator):
    """Each spelling leads to the descriptor, or, without a suffix, to the function."""
    desc = dml.OPERATORS[operator]
    for name in (f"DML_{operator}_OPERATOR_DESC", f"DML_OPERATOR_{operator}", operator):
        assert _suggested(name) == (f"dml.{desc.__name__}", desc)


@pytest.mark.parametrize("operator", spellings._COMPUTING.split())
def test_operators_that_compute(operator):
    assert operator not in dml.OPERATORS
    camel = operator.title().replace("_", "")
    short = re.sub("^(ELEMENT_WISE|ACTIVATION)_", "", operator)
    for name in (
        *(operator, f"DML_{operator}_OPERATOR_DESC", f"DML_OPERATOR_{operator}"),
        *(f"{camel}OperatorDesc", short, short.lower()),
    ):
        text = _text(name)
        assert re.match(r": [A-Z0-9_]+ computes, and vkops\.dml only moves data; use vkops\.", text)
        assert f" {operator} " in text or short in text or short[:-1] in text
        _suggested(name)


@pytest.mark.parametrize("name", DIRECTMLX)
def test_names_of_directmlx(name):
    if not hasattr(dml, name):
        assert re.match(r": (use|[A-Z0-9_]+ computes)", _text(name))


def test_others():
    for name, suggested in OTHERS.items():
        assert _text(name) == f": use {suggested}"
    enums = [value for value in map(dml.__getattr__, dml.__all__) if isinstance(value, type)]
    for kind in (value for value in enums if issubclass(value, Enum)):
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper().removesuffix("S")
        for member in kind.__members__:
            name = f"DML_{snake}_{member.removeprefix('LEVEL_')}"
            assert _text(name) == f": use dml.{kind.__name__}.{member}"


def test_messages(message):
    for name in (
        "TensorDesc",
        "GatherND1OperatorDesc",
        "Split",
        "ELEMENT_WISE_ERF",
        "TopK",
        "spilt",
    ):
        with pytest.raises(AttributeError) as raised:
            getattr(dml, name)
        message(raised.value, name)
    assert _text("no_such_name") == _text("_private") == ""
