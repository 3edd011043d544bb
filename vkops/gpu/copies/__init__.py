"""Vulkan's own copies and fills, and the rule when they are used instead of kernels."""
