"""The arguments of shaders that are not elements of buffers, one module for each kind.

Each has a class with the methods of ``Argument``, and a function ``resolved`` that makes it, as the
module ``vkops.runtime.elements`` has.
"""
