"""SPIR-V modules made by spirv-tools."""

import re
import subprocess

from vkops.shaders.grammar import OPCODES


def tool(name, *options, spirv):
    """Return the output of a program of spirv-tools."""
    command = [name, *options, "-", "-o", "-"]
    return subprocess.run(command, input=spirv, capture_output=True, check=True).stdout


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
