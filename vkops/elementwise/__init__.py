"""Kernels of one operation on each element, written by the user.

A call goes through these modules in this order: ``parameters`` are the declarations, ``arguments``
checks arguments and chooses data types, ``indexing`` says where the elements of each view are,
``source`` writes the GLSL, and ``kernel`` runs it.
"""
