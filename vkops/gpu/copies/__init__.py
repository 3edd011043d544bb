"""Vulkan's own copies and fills: which regions of a plan they copy, and how."""
