"""Executes compute shaders on NumPy arrays, without Vulkan.

The invocations of a dispatch are the first axis of NumPy arrays. ``program`` decodes a module,
``values`` has what ids stand for, ``operations``, ``glsl_functions`` and ``subgroups`` compute,
``memory`` keeps variables, ``races`` remembers who accessed them, ``state`` and ``instructions``
execute an instruction, ``scheduler`` runs blocks, and ``findings`` collects what is wrong.
"""
