"""Tensors and the layouts of blocks: a shader reads each number where it is, or refuses the tensor."""

import itertools
import re
from contextlib import suppress

import ml_dtypes
import numpy as np
import pytest

from vkops import BindingError, dml
from vkops.debug.arguments import arguments
from vkops.shaders import load

COUNT = 4
DECLARED = {  # the shape of an element of an array in memory, and the component of each number
    "float A[]": ((), ""),
    "vec2 A[]": ((2,), "[X]"),
    "vec3 A[]": ((3,), "[X]"),
    "vec4 A[]": ((4,), "[X]"),
    "mat2 A[]": ((2, 2), "[X][Y]"),
    "mat3 A[]": ((3, 3), "[X][Y]"),
    "mat4 A[]": ((4, 4), "[X][Y]"),
    "mat2x3 A[]": ((2, 3), "[X][Y]"),
    "mat3x2 A[]": ((3, 2), "[X][Y]"),
    "layout(row_major) mat3x2 A[]": ((2, 3), "[Y][X]"),
    "layout(row_major) mat2 A[]": ((2, 2), "[Y][X]"),
    "float A[][3]": ((3,), "[X]"),
    "vec3 A[][2]": ((2, 3), "[X][Y]"),
    "Point A[]": ((4,), ""),
    "Pair A[]": ((2, 3), ""),
}
STRUCTS = """struct Point { vec3 place; float mass; };
struct Pair { vec3 one; vec3 two; };
"""
MEMBERS = {
    "Point A[]": [".place.x", ".place.y", ".place.z", ".mass"],
    "Pair A[]": [f".{name}.{axis}" for name in ("one", "two") for axis in "xyz"],
}


def loads(declared, block, first):
    """Statements that write all numbers of a block to the output, and how many these are."""
    shape, components = DECLARED[declared]
    paths = MEMBERS.get(declared)
    if paths is None:
        paths = [
            components.replace("X", str(index[0] if index else 0)).replace("Y", str(index[-1] if index else 0))
            for index in np.ndindex(shape)
        ]  # fmt: skip
    read = [f"{block}.A[{n}]{path}" for n in range(COUNT) for path in paths]
    return "".join(f"o[{first + n}] = {each}; " for n, each in enumerate(read)), len(read)


def compiled(device, standard, declarations):
    blocks, body, first, parts = "", "", 0, []
    for number, declared in enumerate(declarations):
        layout = f"layout({standard}, binding = {number + 1}) readonly buffer"
        blocks += f"{layout} B{number} {{ {declared}; }} b{number};\n"
        text, count = loads(declared, f"b{number}", first)
        body, first = body + text, first + count
        parts.append(slice(first - count, first))
    text = f"#version 450\n{STRUCTS}{blocks}layout(std430, binding = 0) writeonly buffer O {{ float o[]; }};\n"
    return device.compile_shader(f"{text}void main() {{ {body} }}", name="x"), parts, first


def refused(call, *args, **kwargs):
    """Return the shape that an error about a layout names; None if there is none."""
    try:
        return call(*args, **kwargs), None
    except BindingError as error:
        named = re.search(r"of shape \(([\d, ]+)\), of one axis, or uint8 .*\[SH-16\]$", str(error))
        return None, tuple(map(int, named[1].split(",")))


@pytest.mark.parametrize("standard", ["std430", "std140"])
def test_arrays(device, standard):
    """What is accepted is read as NumPy has it; what is refused is right once it is padded."""
    most = min(8, device.limits.max_per_stage_descriptor_storage_buffers) - 1
    seen = {True: set(), False: set()}
    for start in range(0, len(DECLARED), most):
        declarations = [*DECLARED][start : start + most]
        shader, parts, total = compiled(device, standard, declarations)
        others = {f"B{number}": device.buffer(1024) for number in range(len(declarations))}
        for number, (declared, part) in enumerate(zip(declarations, parts, strict=True)):
            shape = (COUNT, *DECLARED[declared][0])
            array = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
            name = f"B{number}"
            host = {**dict.fromkeys(others, 1024), "O": 4 * total}
            result, padded = refused(
                shader, **{**others, name: device.tensor(array)}, out=total, groups=1
            )
            _, again = refused(arguments, shader.shader, {**host, name: array}, {})
            assert padded == again
            if array.ndim > 1:
                seen[padded is None].add(declared)
            elif standard == "std140":  # floats of one axis are all that the block has
                continue
            if padded is not None:
                larger = np.zeros(padded, np.float32)
                if declared.startswith("float"):  # each has the room of four
                    larger.reshape(*shape, -1)[..., 0] = array
                else:
                    larger[tuple(map(slice, shape))] = array
                for each in (larger, larger.reshape(COUNT, -1), larger.reshape(-1)):
                    result = shader(**{**others, name: device.tensor(each)}, out=total, groups=1)
                    np.testing.assert_array_equal(result.numpy()[part], array.reshape(-1), declared)
                raw = device.tensor(larger.reshape(-1).view(np.uint8))
                result = shader(**{**others, name: raw}, out=total, groups=1)
            np.testing.assert_array_equal(result.numpy()[part], array.reshape(-1), declared)
    if standard == "std430":
        expected = {
            name
            for name in DECLARED
            if re.search(r"vec3|mat3 |mat2x3|mat3x2 A.*row|row.*mat3x2|Pair", name)
        }
        assert seen[False] == expected
    else:
        assert seen[True] == {"vec4 A[]", "mat4 A[]", "Point A[]"}


def test_rows_of_several_elements(device):
    """Arrays of numbers and vectors without gaps are read in any shape, as in copies by vectors."""
    shader, _, total = compiled(device, "std430", ["float A[]", "vec4 A[]", "vec3 A[]"])
    fine = {"B0": (5, 7), "B1": (6, 3), "B2": (2, 8)}
    tensors = {name: device.tensor(np.zeros(shape, np.float32)) for name, shape in fine.items()}
    shader(**tensors, out=total, groups=1)
    for shape in ((8, 3), (2, 4, 3), (4, 6), (1, 8, 3), (8, 3, 1), (8, 2)):
        wrong = device.tensor(np.zeros(shape, np.float32))
        assert refused(shader, **{**tensors, "B2": wrong}, out=total, groups=1)[1] is not None


def test_errors(device, message):
    shader, _, total = compiled(device, "std430", ["vec3 A[]", "mat3 A[]", "Point A[]"])
    right = {f"B{number}": device.buffer(1024) for number in range(3)}
    fields = [("mass", "f4"), ("place", "f4", 3)]
    for name, array in (
        ("B0", np.zeros((4, 3), np.float32)), ("B1", np.zeros((4, 3, 3), np.float32)),
        ("B2", np.zeros((4, 3), np.float32)), ("B2", np.zeros(4, fields)),
    ):  # fmt: skip
        with pytest.raises(BindingError) as caught:
            shader(**{**right, name: device.tensor(array)}, out=total, groups=1)
        message(caught.value, "x", name, "[SH-16]")


RECORD = """#version 450
struct Item { float weight; uint id; vec2 at; };
layout(binding = 0) readonly buffer A { Item a[]; };
layout(binding = 1) writeonly buffer O { vec4 o[]; };
void main() { uint i = gl_GlobalInvocationID.x;
  o[i] = vec4(a[i].weight, float(a[i].id), a[i].at); }"""
FIELD = [("weight", "f4"), ("id", "u4"), ("at", "f4", 2)]
FIELDS = {"weight": "f4", "id": "u4", "at": ("f4", (2,))}


@pytest.mark.parametrize("order", [*itertools.permutations(FIELDS)])
def test_the_order_of_fields(device, order):
    """By name or by place: names of its own may stand for the same numbers."""
    dtype = np.dtype([(name, FIELDS[name]) for name in order])
    array = np.zeros(3, dtype)
    array["weight"], array["id"], array["at"] = [1, 2, 3], [4, 5, 6], [[7, 8], [9, 10], [11, 12]]
    shader = device.compile_shader(RECORD, name="x")
    if order == tuple(FIELDS):
        result = shader(device.tensor(array), out=(3, 4), groups=3).numpy()
        np.testing.assert_array_equal(result, [[1, 4, 7, 8], [2, 5, 9, 10], [3, 6, 11, 12]])
        renamed = array.view([("a", "f4"), ("b", "i4"), ("c", "f4"), ("d", "f4")])
        np.testing.assert_array_equal(shader(device.tensor(renamed), out=(3, 4), groups=3), result)
        arguments(shader.shader, {"A": array, "O": 48}, {})
        return
    for call in (
        lambda: shader(device.tensor(array), out=(3, 4), groups=3),
        lambda: arguments(shader.shader, {"A": array, "O": 48}, {}),
    ):
        with pytest.raises(
            BindingError, match=r"^x A: got .*, must have weight at byte 0, .*\[SH-16\]$"
        ):
            call()
    shader(device.tensor(array.view(np.uint8)), out=(3, 4), groups=3)


PADDED = """#version 450
struct Inner { vec3 at; float mass; };
struct Item { vec3 one; Inner two; dvec2 three; };
layout(binding = 0) readonly buffer A { Item a[]; };
layout(binding = 1) writeonly buffer O { vec4 o[]; };
void main() { o[0] = vec4(a[0].one, float(a[0].two.mass + a[0].three.x)); }"""
INNER = [("at", "f4", 3), ("mass", "f4")]
RIGHT = [("one", "f4", 3), ("gap", "f4"), ("two", INNER), ("three", "f8", 2)]


@pytest.mark.parametrize(
    ("fields", "is_right"),
    [
        (RIGHT, True),
        ([("x", "f4", 3), ("gap", "V4"), ("y", "f4", 4), ("z", "f8", 2)], True),
        ([("x", "f4", 8), ("z", "f8", 2)], False),  # begins with numbers, and goes on in the gap
        ([("one", "f4", 3), ("two", INNER), ("gap", "f4"), ("three", "f8", 2)], False),
        ([("one", "f4", 3), ("two", INNER), ("three", "f8", 2)], False),  # 4 bytes less
        ([("one", "f4", 3), ("gap", "f4"), ("two", INNER[::-1]), ("three", "f8", 2)], False),
        ([("one", "f4", 3), ("gap", "f4"), ("two", INNER), ("three", "f4", 4)], False),
        ([("one", "f4", 3), ("gap", "f4"), ("x", "f8", 2), ("three", "f8", 2)], False),
        ([("one", "f2", 6), ("gap", "f4"), ("two", INNER), ("three", "f8", 2)], False),
    ],
)
def test_fields_of_records(fields, is_right):
    """Numbers of their sizes, also within structs; fields of any type are in gaps alone."""
    array = np.zeros(2, fields)
    shader = load(PADDED, name="x")
    for given in (array, array.reshape(1, 2, 1)):
        if is_right:
            arguments(shader, {"A": given, "O": 16}, {})
        else:
            with pytest.raises(BindingError, match=r"^x A: got .* \[SH-16\]$"):
                arguments(shader, {"A": given, "O": 16}, {})


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 0), np.float32), np.zeros(0, FIELD), np.zeros((2, 0), FIELD), np.zeros(4, []),
        np.zeros(2, [("weight", "f4"), ("none", "V0"), ("id", "u4"), ("at", "f4", 2)]),
    ],
)  # fmt: skip
def test_arrays_without_elements_or_fields(array):
    """They are refused like others, if at all: for their size, or their layout."""
    for text in (RECORD, RECORD.replace("{ Item a[]; }", "{ vec3 first; Item a[]; }")):
        with suppress(BindingError):
            arguments(load(text, name="x"), {"A": array, "O": 64}, {})


@pytest.mark.parametrize("dtype", ["i8", "f8", "f2", "?", "i2", ">f4", "f4", "u4", "u1"])
def test_types_in_blocks_of_several(device, dtype):
    """Numbers have as many bytes as one of the block's; uint8 stands for bytes."""
    shader = device.compile_shader(RECORD, name="x")
    tensor = device.tensor(np.zeros(64 // np.dtype(dtype).itemsize, dtype))
    if np.dtype(dtype).itemsize == 4 or dtype == "u1":
        shader(tensor, out=(4, 4), groups=3)
        return
    for call in (
        lambda: shader(tensor, out=(4, 4), groups=3),
        lambda: arguments(shader.shader, {"A": tensor.numpy(), "O": 64}, {}),
    ):
        with pytest.raises(
            BindingError, match=r"^x A: got .*, must be numbers of 4 bytes.* \[SH-11\]$"
        ):
            call()


DTYPES = (
    "?",
    "u1",
    "i1",
    "u2",
    "i2",
    "f2",
    "u4",
    "i4",
    "f4",
    "u8",
    "i8",
    "f8",
    "c16",
    ml_dtypes.bfloat16,
)


@pytest.mark.parametrize("kind", [each for each in dml.TensorDataType if each.size_bits >= 8])
def test_types_of_descriptors(device, kind, message):
    """Of the same size they are moved as they are; uint8 stands for bytes; others are refused."""
    desc = dml.BufferTensorDesc(kind, [4])
    owned = dml.BufferTensorDesc(kind, [4], flags=dml.TensorFlags.OWNED_BY_DML)
    identity = dml.ElementWiseIdentityOperatorDesc

    def owning():
        return device.compile_operator(device.create_operator(identity(owned, desc)))

    operators = [device.compile_operator(device.create_operator(identity(desc, desc))), owning()]
    nbytes = 4 * kind.size_bits // 8
    for dtype in map(np.dtype, DTYPES):
        array = np.arange(max(nbytes, dtype.itemsize), dtype=np.uint8).view(dtype)
        tensor, output = device.tensor(array), device.buffer(64)
        is_right = dtype == np.uint8 or 8 * dtype.itemsize == kind.size_bits
        for call, *given in (
            (operators[0].dispatch, [tensor], [output]),
            (operators[0].dispatch, [device.buffer(64)], [tensor]),
            (operators[1].initialize, [tensor]),
        ):
            if is_right:
                call(*given)
                continue
            with pytest.raises(BindingError) as caught:
                call(*given)
            assert caught.value.rule == "B-24"
            if dtype == np.complex128:
                message(caught.value, "ELEMENT_WISE_IDENTITY", caught.value.field, "[B-24]")
        if is_right:
            assert output.read(0, nbytes) == array.tobytes()
            operators[1] = owning()
        elif array.nbytes >= nbytes:  # a part of a tensor is bytes
            operators[0].dispatch([(tensor, 0, nbytes)], [output])
            assert output.read(0, nbytes) == array.tobytes()[:nbytes]
