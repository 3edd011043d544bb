"""SPIR-V modules made by spirv-tools."""

import subprocess


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
