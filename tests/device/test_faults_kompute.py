"""What Vulkan would crash on is an error before it gets there: in a process that would go down with it."""

import json

from processes import python

PROGRAM = """
import json, sys
import numpy as np
import vkops
from vkops import shaders
device = vkops.Device(int(sys.argv[1]))
def glsl(head="layout(local_size_x = 1) in;", more="", value="1"):
    block = "layout(std430, binding = 0) buffer B { uint b[]; };"
    return f"#version 450\\n{head}\\n{block}\\n{more}\\nvoid main() {{ b[0] = {value}; }}"
spirv = shaders.compile(glsl())
said = []
for statement in json.loads(sys.argv[2]):
    try:
        exec(statement)
        said.append("no error")
    except vkops.VkopsError as error:
        said.append(f"{type(error).__name__}: {error}")
    assert vkops.split(np.arange(4), 2, device=device)[1].numpy().tolist() == [2, 3], said
print(json.dumps(said))
"""

BINDING = "layout(std430, binding = 16777216) buffer C { uint c[]; };"
CASES = {
    "kept = [device.buffer(1 << 40), device.buffer(1 << 32)]": (
        "OutOfDeviceMemoryError: a buffer of 1099511627776 bytes"
    ),
    "device.tensor(np.broadcast_to(np.uint8(1), (1 << 20, 1 << 20)))": "OutOfDeviceMemoryError: ",
    "device.compile_shader(b'')": "ShaderCompileError: ",
    "device.compile_shader(spirv + b'x')": "ShaderCompileError: ",
    "device.compile_shader(spirv[:40] + bytes(len(spirv) - 40))": "ShaderCompileError: ",
    "device.compile_shader(spirv[: len(spirv) // 8 * 4])": "ShaderCompileError: ",
    "device.compile_shader(glsl()).dispatch({'B': device.buffer(4)}, [1 << 31])": (
        "InvalidDescError: <source> groups[0]: got 2147483648"
    ),
    "device.compile_shader(glsl('layout(local_size_x_id = 7) in;'), constants={7: 65535})": (
        "InvalidDescError: <source> local_size_x: got 65535"
    ),
    f"device.compile_shader(glsl(more='{BINDING}', value='c[0]'))": "",
}


def test_an_error_and_not_a_crash(adapter):
    texts = json.loads(python("-c", PROGRAM, adapter.index, json.dumps([*CASES])))
    for said, expected in zip(texts, CASES.values(), strict=True):
        assert said.startswith(expected)
        assert said != "no error"
        assert "\n" not in said
