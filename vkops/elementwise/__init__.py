"""Kernels of one operation on each element, written by the user.

A call goes through these modules in this order: ``parameters`` parses the declarations,
``arguments`` checks arguments and chooses data types, ``indexing`` describes where the elements of
each view are, ``source`` generates the GLSL, and ``kernel`` runs it.
"""
