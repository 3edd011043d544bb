"""Litmus tests of Vulkan's memory model, those of Khronos and of Dat3M, in vkops' debugger."""
