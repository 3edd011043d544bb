"""Tensors with NumPy's manners: views that cost nothing, and functions that move data at once."""
