"""Vulkan's own copies and fills: ``choose`` says which regions of a plan they copy, and how."""

from vkops.gpu.copies.encoded import Copy, EncodedCopies, ImageCopy, RegionCopy, choose
from vkops.gpu.copies.rectangles import ImageLimits
from vkops.gpu.copies.rule import SHADERS, CopyRule, rule_for

__all__ = [
    "SHADERS",
    "Copy",
    "CopyRule",
    "EncodedCopies",
    "ImageCopy",
    "ImageLimits",
    "RegionCopy",
    "choose",
    "rule_for",
]
