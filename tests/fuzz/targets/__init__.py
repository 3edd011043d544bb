"""The targets, by name: one module each, imported when it is asked for."""

import importlib

PURE = (
    "json_text", "json_tree", "onnx_bytes", "onnx_nodes", "descriptors", "graphs", "npy_files", "commands",
)  # fmt: skip
"""Those that need no Vulkan loader."""

DEVICE = ("json_run", "onnx_run", "bindings", "tensors", "shaders", "run_commands")
"""Those that run on the adapter that VKOPS_TEST_ADAPTERS names, or the default one."""

GROUPS = {"pure": PURE, "device": DEVICE}


def target_class(name):
    """The class of a target."""
    return importlib.import_module(f"fuzz.targets.{name}").Target
