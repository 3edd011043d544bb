"""The targets, by name: one module each, imported when it is asked for."""

import importlib

PURE = {
    "json_text": 10, "json_tree": 6, "onnx_bytes": 4, "onnx_nodes": 4, "descriptors": 60, "graphs": 12,
    "npy_files": 3.95, "commands": 0.05,
}  # fmt: skip
"""Those that need no Vulkan loader, with their shares of the cases of a campaign."""

DEVICE = {
    "json_run": 8, "onnx_run": 7, "bindings": 20, "tensors": 40, "shaders": 0.6, "run_commands": 0.2,
}  # fmt: skip
"""Those that run on the adapter that VKOPS_TEST_ADAPTERS names, or the default one."""

GROUPS = {"pure": PURE, "device": DEVICE}


def target_class(name):
    """The class of a target."""
    return importlib.import_module(f"fuzz.targets.{name}").Target
