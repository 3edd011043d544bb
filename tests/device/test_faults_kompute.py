"""What Kompute would crash on is an error before it gets there: in a process that would go down with it."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import numpy as np
import vkops
from vkops import dml, shaders
U8 = dml.TensorDataType.UINT8
device = vkops.Device(int(sys.argv[1]))
def desc(*sizes): return dml.BufferTensorDesc(U8, sizes)
def compiled(desc): return device.compile_operator(device.create_operator(desc))
def glsl(body, head="layout(local_size_x = 1) in;", more=""):
    block = "layout(std430, binding = 0) buffer B { uint b[]; };"
    return f"#version 450\\n{head}\\n{block}\\n{more}\\nvoid main() {{ {body} }}"
for case, statement in json.loads(sys.argv[2]).items():
    try:
        exec(statement)
        said = "no error"
    except vkops.VkopsError as error:
        said = f"{type(error).__name__}: {error}"
    after = vkops.split(np.arange(4), 2, device=device)[1].numpy().tolist()
    print(json.dumps([case, said, after]), flush=True)
"""

CASES = {
    "four_gib_buffer": (
        "kept = [device.buffer(1 << 40), device.buffer(1 << 32)]",
        "OutOfDeviceMemoryError: a buffer of 1099511627776 bytes",
    ),
    "four_gib_tensor": (
        "device.tensor(np.broadcast_to(np.uint8(1), (1 << 20, 1 << 20)))",
        "OutOfDeviceMemoryError: ",
    ),
    "empty_buffer": ("device.buffer(0)", "InvalidDescError: nbytes: got 0"),
    "negative_buffer": ("device.buffer(-4)", "InvalidDescError: nbytes: got -4"),
    "empty_descriptor": (
        "compiled(dml.ElementWiseIdentityOperatorDesc(desc(0), desc(0)))",
        "InvalidDescError: ",
    ),
    "no_tensors": ("vkops.join([], device=device)", "InvalidDescError: "),
    "no_outputs": ("compiled(dml.SplitOperatorDesc(desc(4), (), 0))", "InvalidDescError: "),
    "no_bindings": (
        "compiled(dml.ElementWiseIdentityOperatorDesc(desc(4), desc(4))).dispatch([], [])",
        "BindingError: ",
    ),
    "none_bound": (
        "compiled(dml.ElementWiseIdentityOperatorDesc(desc(4), desc(4))).dispatch([None], [None])",
        "BindingError: ",
    ),
    "small_buffer": (
        "compiled(dml.ElementWiseIdentityOperatorDesc(desc(400), desc(400)))"
        ".dispatch([device.buffer(4)], [device.buffer(400)])",
        "BindingError: ",
    ),
    "empty_graph": ("device.compile_graph(dml.Graph())", "InvalidDescError: GRAPH"),
    "no_shader": ("device.compile_shader(b'')", "ShaderCompileError: "),
    "unaligned_spirv": (
        "device.compile_shader(shaders.compile(glsl('b[0] = 1;')) + b'x')",
        "ShaderCompileError: ",
    ),
    "invalid_spirv": (
        "s = shaders.compile(glsl('b[0] = 1;')); device.compile_shader(s[:40] + bytes(len(s) - 40))",
        "ShaderCompileError: ",
    ),
    "truncated_spirv": (
        "s = shaders.compile(glsl('b[0] = 1;')); device.compile_shader(s[:len(s) // 8 * 4])",
        "ShaderCompileError: ",
    ),
    "too_many_groups": (
        "device.compile_shader(glsl('b[0] = 1;')).dispatch({'B': device.buffer(4)}, [1 << 31])",
        "InvalidDescError: <source> groups[0]: got 2147483648",
    ),
    "no_groups": (
        "device.compile_shader(glsl('b[0] = 1;')).dispatch({'B': device.buffer(4)}, [0])",
        "InvalidDescError: <source> groups[0]: got 0",
    ),
    "large_workgroup": (
        "device.compile_shader(glsl('b[0] = 1;', 'layout(local_size_x_id = 7) in;'), constants={7: 65535})",
        "InvalidDescError: <source> local_size_x: got 65535",
    ),
    "many_bindings": (
        "device.compile_shader(glsl('b[0] = c[0];', more='layout(std430, binding = 16777216) buffer C { uint c[]; };'))",
        "",
    ),
    "long_push_constants": (
        "device.compile_shader(glsl('b[0] = p[9];', more='layout(push_constant) uniform P { uint p[1024]; };'))",
        "InvalidDescError: <source> bytes of push constants: got 4096",
    ),
    "missing_push_constants": (
        "device.compile_shader(glsl('b[0] = p;', more='layout(push_constant) uniform P { uint p; };'))"
        ".dispatch({'B': device.buffer(4)})",
        "InvalidDescError: ",
    ),
    "nothing_bound": ("device.compile_shader(glsl('b[0] = 1;')).dispatch({})", "BindingError: "),
}


@pytest.fixture(scope="module")
def answers(adapter):
    """What became of each case, as far as the process came."""
    statements = json.dumps({case: statement for case, (statement, _) in CASES.items()})
    command = [sys.executable, "-c", PROGRAM, str(adapter.index), statements]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    lines = map(json.loads, done.stdout.splitlines())
    return done, {case: (said, after) for case, said, after in lines}


@pytest.mark.parametrize("case", CASES)
def test_an_error_and_not_a_crash(answers, case):
    done, found = answers
    assert case in found, f"status {done.returncode} {done.stderr}"
    said, after = found[case]
    assert CASES[case][1] in said
    assert said != "no error"
    assert "\n" not in said
    assert after == [2, 3]


def test_the_process_ends_well(answers):
    done, _ = answers
    assert (done.returncode, done.stderr) == (0, "")
