"""The command line, one module for each group of commands.

Everything heavy is imported by the command that needs it: help, and checking a model, work on a
machine without Vulkan.
"""

from vkops.cli.main import main

__all__ = ["main"]
