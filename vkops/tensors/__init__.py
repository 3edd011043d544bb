"""Tensors with NumPy semantics: views that move no data, and functions that do."""
