"""SPIR-V modules made by spirv-tools."""

import re
import subprocess

from vkops.shaders.grammar import OPCODES


def tool(name, *options, spirv):
    """Return the output of a program of spirv-tools."""
    command = [name, *options, "-", "-o", "-"]
    return subprocess.run(command, input=spirv, capture_output=True, check=True).stdout


VOID = "%void = OpTypeVoid\n%function = OpTypeFunction %void\n"


def head(*capabilities, model="Logical GLSL450", interface="", local=1, more=""):
    """The start of a module with the entry point %main; ``more`` are its extensions."""
    declared = "".join(f"OpCapability {each}\n" for each in ("Shader", *capabilities))
    point = f'OpEntryPoint GLCompute %main "main" {interface}'.rstrip()
    mode = f"OpExecutionMode %main LocalSize {local} 1 1"
    return f"{declared}{more}OpMemoryModel {model}\n{point}\n{mode}\n"


def bound(*names):
    """The names and the bindings of blocks, from 0 on."""
    named = "".join(f'OpName %{each} "{each}"\n' for each in names)
    return named + "".join(
        f"OpDecorate %{each} DescriptorSet 0\nOpDecorate %{each} Binding {number}\n"
        for number, each in enumerate(names)
    )


def entry_point(code=""):
    """The function %main."""
    start = "%main = OpFunction %void None %function\n%label = OpLabel\n"
    return f"{start}{code}OpReturn\nOpFunctionEnd\n"


def assembled(text, version="spv1.3"):
    """Return the module of a text."""
    return tool("spirv-as", "--preserve-numeric-ids", "--target-env", version, spirv=text.encode())


def stripped(spirv):
    """Return a module without names and other debug information."""
    return tool("spirv-opt", "--strip-debug", spirv=spirv)


def cooperative(text):
    """Return the module of a text with cooperative matrices, which older versions do not know."""

    def words(line):
        result, name, operands = line.groups()
        first, *others = operands.split()
        is_type = name.startswith("Type")
        ids = [result, first] if is_type else [first, result] if result else [first]
        ids = [f"!{each}" if each.isdigit() else each for each in (*ids, *others)]
        end = "" if is_type else "OpNop\n"  # ends the operands of the instruction before
        return f"{end}!{(len(ids) + 1 << 16) + OPCODES[name]} {' '.join(ids)}"

    pattern = r"(?m)^(?:(%\w+) = )?Op((?:Type)?CooperativeMatrix\w+) (.*)$"
    return assembled(re.sub(pattern, words, text), "spv1.6")
