"""DxDispatch models with one fault each, and what their errors must name.

Most are one of two sound models, ``split.json`` and ``shader.json``, with the values at some places replaced.
The files that they refer to are in ``data``.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import NamedTuple

from vkops import dml

FOLDER = Path(__file__).parent
OPERATOR_NAMES = ", ".join(sorted(dml.OPERATORS))
GONE = object()  # in the place of a value: the member is removed


class Case(NamedTuple):
    """A broken model.

    Attributes:
        text: the file.
        at: the place in it that the error names: a path in the JSON, or a line and a column.
        rule: the rule of DirectML or of shaders that the error names, if it names one.
    """

    text: bytes
    at: str
    rule: str | None = None


def _case(base, edits, at=None, rule=None):
    """A model with the values at these paths replaced, added or, where GONE, removed.

    A place that begins with "." or "[" goes on from the path of the last edit.
    """
    model = json.loads(base)
    for path, value in edits.items():
        *parents, last = (int(n) if n.isdecimal() else n for n in re.findall(r"\w+", path))
        holder = reduce(getitem, parents, model)
        if value is GONE:
            del holder[last]
        else:
            holder[last] = value
    if at is None or at.startswith((".", "[")):
        at = list(edits)[-1] + (at or "")
    return Case(json.dumps(model, indent=4).encode(), at, rule)


SPLIT, SHADER = ((FOLDER / f"{name}.json").read_bytes().rstrip() for name in ("split", "shader"))
split, shader = partial(_case, SPLIT), partial(_case, SHADER)


def text(old, new, at):
    """The text of the model of a SPLIT, with bytes replaced."""
    assert SPLIT.count(old) == 1
    return Case(SPLIT.replace(old, new), at)


CASES: dict[str, Case] = {
    "axis_beyond_rank": split({"dispatchables.split.desc.Axis": 2}, rule="SPLIT-02"),
    "axis_is_string": split({"dispatchables.split.desc.Axis": "1"}),
    "axis_missing": split({"dispatchables.split.desc.Axis": GONE}, at="dispatchables.split.desc"),
    "binding_of_too_few": split({"commands[0].bindings.OutputTensors": ["Left"]}, at="commands[0].bindings", rule="B-01"),
    "binding_of_too_many": split({"commands[0].bindings.InputTensor": ["In", "In"]}, at="commands[0].bindings", rule="B-01"),
    "binding_of_unknown_counter": split({"commands[0].bindings.InputTensor": {"name": "In", "counter": "Count"}}, at=".counter"),
    "binding_of_unknown_resource": split({"commands[0].bindings.OutputTensors[1]": "Write"}),
    "binding_without_name": split({"commands[0].bindings.InputTensor": {"elementOffset": 0}}),
    "bindings_is_array": split({"commands[0].bindings": ["In", "Left", "Right"]}),
    "bindings_missing": split({"commands[0].bindings": GONE}, at="commands[0]"),
    "buffer_too_short": split({"resources.Right.initialValues.valueCount": 3}, at="commands[0].bindings.OutputTensors[1]", rule="B-06"),
    "command_is_string": split({"commands[0]": "dispatch split"}),
    "command_unknown": split({"commands[0].type": "display"}),
    "command_without_type": split({"commands[0].type": GONE}, at="commands[0]"),
    "commands_is_object": split({"commands": {}}),
    "compile_type_unknown": split({"dispatchables.split.dmlCompileType": "dmlcompilegraph"}),
    "deferred": split({"resources.In.initialValues": "deferred"}, at="commands[0].bindings.InputTensor"),
    "desc_is_array": split({"dispatchables.split.desc": []}),
    "dimension_count_wrong": split({"dispatchables.split.desc.InputTensor.DimensionCount": 3}),
    "dispatchable_dmlserializedgraph": split({"dispatchables.split.type": "dmlSerializedGraph"}),
    "dispatchable_hlsl": split({"dispatchables.split.type": "hlsl"}, at="dispatchables.split"),
    "dispatchable_onnx": split({"dispatchables.split.type": "onnx"}, at="dispatchables.split"),
    "dispatchable_unknown": split({"commands[0].dispatchable": "spilt"}),
    "dispatchable_without_type": split({"dispatchables.split.type": GONE}, at="dispatchables.split"),
    "dispatchables_is_null": split({"dispatchables": None}),
    "execution_flag_unknown": split({"dispatchables.split.executionFlags": "FASTER"}),
    "file_is_folder": split({"resources.In.initialValues": {"sourcePath": "data"}}, at=".sourcePath"),
    "file_is_image": split({"resources.In.initialValues": {"sourcePath": "data/not_a_picture.PNG"}}, at=".sourcePath"),
    "file_missing": split({"resources.In.initialValues": {"sourcePath": "nowhere.bin"}}, at=".sourcePath"),
    "file_name_is_number": split({"resources.In.initialValues": {"sourcePath": 7}}, at=".sourcePath"),
    "file_name_with_nul": split({"resources.In.initialValues": {"sourcePath": "a\0b"}}, at=".sourcePath"),
    "file_raw_empty": split({"resources.In.initialValues": {"sourcePath": "data/empty.bin"}}, at=".sourcePath"),
    "file_raw_without_type": split({"resources.In": {"initialValues": {"sourcePath": "data/raw.bin"}}}, at=".initialValues.sourcePath"),
    "flags_unknown": split({"dispatchables.split.desc.InputTensor.Flags": ["NONE", "MINE"]}, at="[1]"),
    "group_count_of_two": split({"commands[0].threadGroupCount": [1, 1]}),
    "in_place_transposed": split({"dispatchables.turn": {"type": "ELEMENT_WISE_IDENTITY", "desc": {"InputTensor": {"DataType": "INT32", "Sizes": [2, 2], "Strides": [1, 2]}, "OutputTensor": {"DataType": "INT32", "Sizes": [2, 2]}}}, "commands[1]": {"type": "dispatch", "dispatchable": "turn", "bindings": {"InputTensor": "In", "OutputTensor": "In"}}}, at=".bindings.OutputTensor", rule="B-09"),
    "initial_binding_not_owned": split({"dispatchables.split.bindings": {"InputTensor": "In"}}, at=".InputTensor", rule="B-03"),
    "initial_binding_too_short": split({"dispatchables.split.desc.InputTensor.Flags": "OWNED_BY_DML", "dispatchables.split.bindings": {"InputTensor": "Left"}, "commands[0].bindings.InputTensor": GONE}, at="dispatchables.split.bindings.InputTensor", rule="B-06"),
    "input_unbound": split({"commands[0].bindings.InputTensor": GONE}, at="commands[0].bindings", rule="B-02"),
    "list_mixed": split({"resources.In": {"initialValues": [{"type": "UINT32", "value": 1}, 2]}}, at=".initialValues[1]"),
    "list_of_float16": split({"resources.In": {"initialValues": [{"type": "FLOAT16", "value": 1}]}}, at=".initialValues[0].type"),
    "list_of_unknown": split({"resources.In": {"initialValues": [{"type": "UNKNOWN", "value": 1}]}}, at=".initialValues[0].type"),
    "list_with_data_type": split({"resources.In.initialValues": [{"type": "UINT32", "value": 1}]}),
    "list_without_value": split({"resources.In": {"initialValues": [{"type": "UINT32", "name": "n"}]}}, at=".initialValues[0]"),
    "name_with_line_break": split({"commands[1].resource": "Le\nft"}),
    "no_commands": split({"commands": GONE}, at=""),
    "no_dispatchables": split({"dispatchables": GONE}, at=""),
    "no_resources": split({"resources": GONE}, at=""),
    "npy_huge_shape": split({"resources.In": {"initialValues": {"sourcePath": "data/huge_shape.npy"}}}, at=".initialValues.sourcePath"),
    "npy_negative_shape": split({"resources.In": {"initialValues": {"sourcePath": "data/negative_shape.npy"}}}, at=".initialValues.sourcePath"),
    "npy_no_values": split({"resources.In": {"initialValues": {"sourcePath": "data/no_values.npy"}}}, at=".initialValues.sourcePath"),
    "npy_not_one": split({"resources.In": {"initialValues": {"sourcePath": "data/not_one.npy"}}}, at=".initialValues.sourcePath"),
    "npy_of_objects": split({"resources.In": {"initialValues": {"sourcePath": "data/objects.npy"}}}, at=".initialValues.sourcePath"),
    "npy_truncated": split({"resources.In": {"initialValues": {"sourcePath": "data/truncated.npy"}}}, at=".initialValues.sourcePath"),
    "offset_below_alignment": split({"resources.In.sizeInBytes": 64, "dispatchables.split.desc.InputTensor.GuaranteedBaseOffsetAlignment": 64, "commands[0].bindings.InputTensor": {"name": "In", "elementOffset": 4}}, rule="B-05"),
    "offset_beyond_32_bits": split({"dispatchables.eye": {"type": "DIAGONAL_MATRIX", "desc": {"OutputTensor": {"DataType": "INT32", "Sizes": [1, 1, 2, 2]}, "ValueDataType": "INT32", "Value": 1, "Offset": 2**31}}}, at=".desc.Offset"),
    "offset_misaligned": split({"resources.In.sizeInBytes": 64, "commands[0].bindings.InputTensor": {"name": "In", "elementOffset": 1}}, rule="B-05"),
    "offset_negative": split({"commands[0].bindings.InputTensor": {"name": "In", "elementOffset": -4}}, at=".elementOffset"),
    "offset_overflows": split({"commands[0].bindings.InputTensor": {"name": "In", "elementOffset": 2**64 - 1, "elementSizeInBytes": 4}}, rule="B-04"),
    "offset_without_element_size": split({"resources.In": {"initialValues": [{"type": "INT32", "value": 0}]}, "commands[0].bindings.InputTensor": {"name": "In", "elementOffset": 4}}),
    "operator_in_lower_case": split({"dispatchables.split.type": "split"}),
    "operator_not_available": split({"dispatchables.split.type": "DML_OPERATOR_CONVOLUTION"}),
    "operator_unknown": split({"dispatchables.split.type": "SPLITT"}),
    "output_count_wrong": split({"dispatchables.split.desc.OutputCount": 3}),
    "output_overlaps_input": split({"commands[0].bindings.OutputTensors[1]": "In"}, rule="B-09"),
    "output_unbound": split({"commands[0].bindings.OutputTensors": GONE}, at="commands[0].bindings", rule="B-02"),
    "outputs_overlap": split({"commands[0].bindings.OutputTensors[1]": "Left"}, rule="B-07"),
    "owned_input_bound_twice": split({"dispatchables.split.desc.InputTensor.Flags": "OWNED_BY_DML", "dispatchables.split.bindings": {"InputTensor": "In"}}, at="commands[0].bindings.InputTensor", rule="T-17"),
    "owned_input_not_initialised": split({"dispatchables.split.desc.InputTensor.Flags": "OWNED_BY_DML", "commands[0].bindings.InputTensor": GONE}, at="dispatchables.split.desc", rule="B-02"),
    "print_verbose_is_number": split({"commands[1].verbose": 1}),
    "print_without_resource": split({"commands[1].resource": GONE}, at="commands[1]"),
    "print_without_type": split({"resources.List": {"initialValues": [{"type": "INT32", "value": 1}]}, "commands[1].resource": "List"}, at="commands[1]"),
    "resource_is_number": split({"resources.In": 5}),
    "resource_of_int4": split({"resources.In.initialValuesDataType": "INT4"}),
    "resource_of_unknown_type": split({"resources.In.initialValuesDataType": "FLOAT33"}),
    "resource_type_is_number": split({"resources.In.initialValuesDataType": 1}),
    "resource_without_type": split({"resources.In.initialValuesDataType": GONE}, at="resources.In.initialValues"),
    "resource_without_values": split({"resources.In.initialValues": GONE}, at="resources.In"),
    "resources_exceed_limit": split({"resources.In.sizeInBytes": 2**35, "resources.Left.sizeInBytes": 2**35, "resources.Right.sizeInBytes": 16}, at="resources"),
    "resources_is_array": split({"resources": []}),
    "scale_bias": split({"dispatchables.copy": {"type": "ELEMENT_WISE_IDENTITY", "desc": {"InputTensor": {"DataType": "FLOAT32", "Sizes": [4]}, "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4]}, "ScaleBias": {"Scale": 2, "Bias": 10}}}}, at=".desc.ScaleBias", rule="IDENT-02"),
    "scale_without_bias": split({"dispatchables.copy": {"type": "ELEMENT_WISE_IDENTITY", "desc": {"InputTensor": {"DataType": "FLOAT32", "Sizes": [4]}, "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4]}, "ScaleBias": {"Scale": 2}}}}, at=".desc.ScaleBias"),
    "sequence_without_delta": split({"resources.In.initialValues": {"valueStart": 1, "valueCount": 8}}),
    "shader_block_of_two": shader({"commands[0].bindings.Source": ["A", "B"]}, at="commands[0].bindings", rule="B-01"),
    "shader_block_past_end": shader({"commands[0].bindings.Source": {"name": "A", "elementOffset": 2, "elementCount": 3}}, rule="SH-05"),
    "shader_block_unbound": shader({"commands[0].bindings.Target": GONE}, at="commands[0].bindings", rule="SH-04"),
    "shader_block_unknown": shader({"commands[0].bindings": {"Source": "A", "Taget": "B"}}, at=".Taget", rule="SH-04"),
    "shader_compiler_dxc": shader({"dispatchables.scale.compiler": "dxc"}),
    "shader_constant_fraction": shader({"dispatchables.scale.specializationConstants": {"OFFSET": 0.5}}, rule="SH-10"),
    "shader_constant_unknown": shader({"dispatchables.scale.specializationConstants": {"OFSET": 1}}, rule="SH-10"),
    "shader_counter": shader({"commands[0].bindings.Source": {"name": "A", "counter": "B"}}, at=".counter"),
    "shader_for_graphics": shader({"dispatchables.scale.type": "spirv", "dispatchables.scale.sourcePath": "data/shader_for_graphics.spv"}),
    "shader_groups_too_many": shader({"commands[0].threadGroupCount": [65536, 1, 1]}, at="[0]", rule="SH-07"),
    "shader_groups_zero": shader({"commands[0].threadGroupCount": [1, 0, 1]}, at="[1]", rule="SH-07"),
    "shader_missing": shader({"dispatchables.scale.sourcePath": "data/shader_missing.comp"}),
    "shader_not_spirv": shader({"dispatchables.scale.type": "spirv", "dispatchables.scale.sourcePath": "data/shader_not_spirv.spv"}),
    "shader_of_other_suffix": shader({"dispatchables.scale.type": "spirv"}, at="dispatchables.scale.sourcePath"),
    "shader_push_constant_of_other_type": shader({"dispatchables.scale.pushConstants[0].type": "FLOAT32"}),
    "shader_push_constants_missing": shader({"dispatchables.scale.pushConstants": GONE}, at="dispatchables.scale", rule="SH-09"),
    "shader_undeclared": shader({"dispatchables.scale.sourcePath": "data/shader_undeclared.comp"}),
    "shader_with_image": shader({"dispatchables.scale": {"type": "glsl", "sourcePath": "data/shader_with_image.comp"}}, at="commands[0].bindings.Source"),
    "size_below_data": split({"resources.In.sizeInBytes": 31}),
    "size_beyond_64_bits": split({"resources.In.sizeInBytes": 2**64}),
    "size_huge": split({"resources.In.sizeInBytes": 2**60}),
    "sizes_beyond_32_bits": split({"dispatchables.split.desc.OutputTensors[1].Sizes[1]": 2**32}),
    "sizes_do_not_add_up": split({"dispatchables.split.desc.OutputTensors[0].Sizes[1]": 3}, at="dispatchables.split.desc.OutputTensors", rule="SPLIT-06"),
    "sizes_with_zero": split({"dispatchables.split.desc.OutputTensors[1]": {"Type": "BUFFER", "Desc": {"DataType": "INT32", "Sizes": [2, 0]}}}, at=".Desc.Sizes[1]", rule="T-04"),
    "strides_negative": split({"dispatchables.split.desc.InputTensor.Strides": [4, -1]}, at="[1]"),
    "tensor_kind_unknown": split({"dispatchables.split.desc.InputTensor": {"Type": "TEXTURE", "Desc": {"DataType": "INT32", "Sizes": [2, 4]}}}, at=".Type"),
    "tensor_missing": split({"dispatchables.split.desc.InputTensor": GONE}, at="dispatchables.split.desc"),
    "tensor_null": split({"dispatchables.split.desc.InputTensor": None}),
    "tensor_of_misspelt_type": split({"dispatchables.split.desc.InputTensor.DataType": "INT31"}),
    "tensor_without_data_type": split({"dispatchables.split.desc.InputTensor.DataType": GONE}, at="dispatchables.split.desc.InputTensor"),
    "tensor_without_sizes": split({"dispatchables.split.desc.InputTensor.Sizes": GONE}, at="dispatchables.split.desc.InputTensor"),
    "total_size_beyond_64_bits": split({"dispatchables.split.desc.InputTensor.TotalTensorSizeInBytes": 2**64}),
    "total_size_too_small": split({"dispatchables.split.desc.InputTensor.TotalTensorSizeInBytes": 16}, rule="T-12"),
    "value_count_beyond_64_bits": split({"resources.In.initialValues": {"value": 1, "valueCount": 2**64}}, at=".valueCount"),
    "value_count_huge": split({"resources.In.initialValues": {"value": 1, "valueCount": 10**12}}, at="resources.In"),
    "value_count_missing": split({"resources.In.initialValues": {"value": 1}}),
    "value_count_zero": split({"resources.In.initialValues": {"value": 1, "valueCount": 0}}, at=".valueCount"),
    "values_boolean_in_integers": split({"resources.In.initialValues": [1, True, 3]}, at="[1]"),
    "values_empty": split({"resources.In.initialValues": []}),
    "values_infinity_literal": split({"resources.In.initialValuesDataType": "FLOAT32", "resources.In.initialValues[1]": float("inf")}),
    "values_is_string": split({"resources.In.initialValues": "1, 2, 3"}),
    "values_nan_in_integers": split({"resources.In.initialValues[1]": float("nan")}),
    "values_nested": split({"resources.In.initialValues": [1, [2], 3]}, at="[1]"),
    "values_of_no_form": split({"resources.In.initialValues": {"count": 3}}),
    "values_of_two_forms": split({"resources.In.initialValues": {"value": 1, "valueStart": 1, "valueDelta": 1, "valueCount": 8}}),
    "values_offset_past_size": split({"resources.In.initialValuesOffsetInBytes": 4, "resources.In.sizeInBytes": 32}),
    "values_word_in_floats": split({"resources.In": {"initialValuesDataType": "FLOAT32", "initialValues": [1, "many", 3]}}, at=".initialValues[1]"),
    "write_empty_target": split({"commands[2].targetPath": ""}),
    "write_image": split({"commands[2].targetPath": "written/right.png"}),
    "write_npy_dimension_negative": split({"commands[2].dimensions": [-2, 2]}, at="[0]"),
    "write_npy_many_dimensions": split({"commands[2].dimensions": [1] * 40}),
    "write_npy_too_large": split({"commands[2].dimensions": [3, 2]}),
    "write_npy_without_type": split({"resources.List": {"initialValues": [{"type": "INT32", "value": 1}]}, "commands[2].resource": "List"}, at="commands[2].targetPath"),
    "write_without_target": split({"commands[2].targetPath": GONE}, at="commands[2]"),
    "text_byte_order_mark": Case("\ufeff".encode() + SPLIT, "1:1"),
    "text_hexadecimal": text(b"2, 3", b"0x10, 3", "3:72"),
    "text_line_break_in_string": text(b'"Left": {', b'"Le\nft": {', "4:12"),
    "text_lone_surrogate": text(b'"Left": {', rb'"\ud800": {', "4:10"),
    "text_number_beyond_double": text(b"2, 3", b"1e400, 3", "3:71"),
    "text_number_of_5000_digits": text(b"2, 3", b"7" * 5000 + b", 3", "3:71"),
    "text_root_is_array": Case(b"[" + SPLIT + b"]", "1:1"),
    "text_truncated": Case(SPLIT[: SPLIT.index(b"}\n        }\n    },")], "17:13"),
    "text_utf16": Case(SPLIT.decode().encode("utf-16"), "1:1"),
}  # fmt: skip
"""By name."""


def write(folder):
    """Write each model as ``NAME.json``, and the files that they refer to."""
    shutil.copytree(FOLDER / "data", folder / "data")
    for name, case in CASES.items():
        (folder / f"{name}.json").write_bytes(case.text)
