"""JSON text as DxDispatch reads it, and the cursor over it."""

import os
import sys

import pytest
from processes import cpu_time
from refusals import NO_FILE, fault

from vkops.dml import TensorDataType
from vkops.errors import ModelError, one_line
from vkops.models.json_reader import MAX_TEXT_BYTES, Document, Node, parse, quote, read_text


def read(text):
    return parse(text if isinstance(text, bytes) else text.encode(), "m.json")


def refusal(text):
    return fault(lambda: read(text), ModelError)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2]}',
        '{"a": [1, 2,],}',
        '// one\n/* two * / ** */ {"a": /* three */ [1, 2]} // four',
        '{"a": [1, 2]} and so on',
        '{"a": [1, 2]}}',
        '{"a": [1, 2]} /* never closed',
        b'{"a": [1, 2]} \xff\x00',
        ' \t\r\n{"a": [1, 2]}',
    ],
)
def test_comments_trailing_commas_and_text_after_the_root_object(text):
    assert read(text).value == {"a": [1, 2]}


def test_numbers_are_exact():
    node = read('{"a": [18446744073709551615, -9223372036854775808, 0.1, 1e-320]}')
    assert node["a"].value == [2**64 - 1, -(2**63), 0.1, 1e-320]


def test_first_of_equal_names_counts_and_a_warning_says_so():
    node = read('{"a": 1, "b": {"c": 1, "c": 2}, "a": 2}')
    assert node.value == {"a": 1, "b": {"c": 1}}
    assert list(node.document.warnings) == [
        'm.json: member "c" is given more than once in an object; the first one counts',
        'm.json: member "a" is given more than once in an object; the first one counts',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/*/ {}", "m.json:1:7: the document is empty"),
        ("\x00{}", "m.json:1:1: the document must be an object"),
        ('{"a" 1}', "m.json:1:6: Missing a colon after a name of object member"),
        ('{"a": [1, 2', "m.json:1:12: Missing a comma or ']' after an array element"),
        ('{\n"é":\n "éé" x}', "m.json:3:7: Missing a comma or '}' after an object member"),
        (b'{"a": "\xc3', "m.json:1:8: not UTF-8 (byte 0xC3)"),
        (b'{"a" 1, "b": "\xff"}', "m.json:1:15: not UTF-8 (byte 0xFF)"),
        ('{"a": /* 1}', "m.json:1:12: a comment that does not end"),
    ],
)
def test_text_that_is_not_a_model_is_refused(text, message):
    assert refusal(text) == message


@pytest.mark.parametrize(("opening", "column"), [("[", 261), ('{"a":', 1281)])
def test_deep_nesting_is_refused(opening, column):
    """Whatever the interpreter's own limit is: the stack has one too."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000_000)
    try:
        message = refusal('{"a":' + opening * 10_000_000)
    finally:
        sys.setrecursionlimit(limit)
    assert message == f"m.json:1:{column}: nested too deeply, must be 256 levels at most"


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' + "[" * 255 + "]" * 255 + "}",
        '{"a": [' + "{}, [], " * 1000 + "1]}",
        '{"a": "' + "[" * 1000 + '"}',
        '{"a": "' + '\\"[' * 1000 + '"}',
        '{"a": "\\\\", "b": "' + "{" * 1000 + '"}',
        '{/* " ' + "[" * 1000 + ' */"a": 1 // "' + "{" * 1000 + "\n}",
        '{"a": 1}' + "[" * 1000,
    ],
)
def test_nesting_within_the_limit_is_read(text):
    assert read(text).value["a"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "' + '\\"' * 1_000_000 + "\\",  # an open string that is full of quotes
        '{"a": [' + ("1" * 4300 + ",") * 500 + "1" * 5000 + "]}",
        '{"a": ' + "/*" * 1_000_000,
        '{"a": 0' + " " * 2_000_000,
    ],
)
def test_faulty_text_is_refused_in_linear_time(text):
    with cpu_time(below=2):
        refusal(text)


def test_text_above_the_limit_is_refused(tmp_path):
    file = tmp_path / "long.json"
    file.touch()
    os.truncate(file, MAX_TEXT_BYTES + 1)
    assert fault(lambda: read_text(file), ModelError) == (
        f"{file}: longer than 64 MiB; keep large initial values in .npy or raw files ('sourcePath')"
    )
    os.truncate(file, MAX_TEXT_BYTES)
    assert len(read_text(file)) == MAX_TEXT_BYTES


@pytest.mark.posix("named pipes", tests_only=True)
def test_a_path_that_is_not_a_file_is_refused(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for path, reason in (
        (pipe, "cannot be read: not a regular file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "missing.json", f"cannot be read: {NO_FILE}"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
        (tmp_path / "a\0b", "cannot be read: not a file name"),
    ):
        said = fault(lambda path=path: read_text(path), ModelError)
        assert said == one_line(f"{path}: {reason}")


def test_paths_name_the_place():
    root = read('{"resources": {"a b": [{"x-1": 5}], "": {"\\n": 1}}}')
    assert root["resources"]["a b"].item(0)["x-1"].path == 'resources["a b"][0].x-1'
    assert root["resources"][""]["\n"].path == 'resources[""]["\\n"]'


@pytest.mark.parametrize(
    ("getter", "value", "message"),
    [
        (Node.uint, -1, "got -1, must be 0 to 4294967295"),
        (Node.uint, 2**32, "got 4294967296, must be 0 to 4294967295"),
        (Node.uint, 1.0, "got 1.0, must be an integer from 0 to 4294967295"),
        (Node.uint, True, "got true, must be an integer from 0 to 4294967295"),
        (Node.uint, 10**50, "got an integer of more than 40 digits, must be 0 to 4294967295"),
        (Node.string, None, "got null, must be a string"),
        (Node.boolean, 0, "got 0, must be true or false"),
        (Node.items, {}, "got an object, must be an array"),
        (Node.object, [1], "got an array, must be an object"),
        (Node.object, "x" * 100, f'got "{"x" * 57}...", must be an object'),
        (lambda node: node.required("b", "B"), {"a": 1}, "'b' is missing"),
        (lambda node: node.choice("x", "y"), "z", 'got "z", must be "x" or "y"'),
    ],
)
def test_getters_name_what_is_allowed(getter, value, message):
    said = fault(lambda: getter(Node(value, "a.b[1]", Document("m.json"))), ModelError)
    assert said == f"m.json: a.b[1]: {message}"


def test_enums_are_read_with_and_without_prefix():
    prefix = "DML_TENSOR_DATA_TYPE_"
    for text in ("INT8", "DML_TENSOR_DATA_TYPE_INT8"):
        node = Node(text, "", Document("m.json"))
        assert node.enum(TensorDataType, prefix) is TensorDataType.INT8
    with pytest.raises(ModelError, match=r'^m\.json: got "int8", must be UNKNOWN, FLOAT32, '):
        Node("int8", "", Document("m.json")).enum(TensorDataType, prefix)


def test_quoting_stays_on_one_line():
    assert quote('a"b\n\u2028') == '"a\\"b\\n\\u2028"'
    assert quote("\udcff") == '"\\\\udcff"'  # a byte of a file name that is no UTF-8
    assert quote("x" * 61) == '"' + "x" * 57 + '..."'
