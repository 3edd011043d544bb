"""Executes compute shaders on NumPy arrays, without Vulkan.

The invocations of a dispatch are the first axis of NumPy arrays. ``program`` decodes a module,
``values`` has what ids stand for, ``operations``, ``composites``, ``glsl_functions`` and
``subgroups`` compute, ``undefined_results`` says where that has no result, ``selections`` which
results are not chosen, ``memory``, ``addresses`` and ``images`` keep variables, ``state`` and
``instructions`` execute an instruction, and ``scheduler`` runs blocks.
They tell an ``observer`` what happens. Checks and records are observers: ``aliases``,
``barriers``, ``bounds``, ``races`` (with ``order`` and ``shadow``) and ``undefined`` make
``findings``; ``printing``, ``recorder`` and ``tracing`` remember.
"""
