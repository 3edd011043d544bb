"""Executes compute shaders on NumPy arrays, without Vulkan.

The first axis of the arrays has one entry for each invocation of a dispatch. ``program`` decodes a
module, and ``values`` has the classes of the values of ids. ``operations``, ``composites``,
``glsl_functions`` and ``subgroups`` compute; ``undefined_results`` says for which operands a result
is undefined, and ``selections`` whether a selection uses a result. ``memory``, ``addresses`` and
``images`` implement variables. ``state`` and ``instructions`` execute an instruction, and
``scheduler`` runs blocks.

They notify each ``observer`` of events. Checks and records are observers: ``aliases``,
``barriers``, ``bounds``, ``races`` (with ``order`` and ``shadow``) and ``undefined`` report
``findings``; ``printing``, ``recorder`` and ``tracing`` record.
"""
