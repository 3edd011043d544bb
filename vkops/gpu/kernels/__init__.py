"""Kernels: the choice of one for a plan, and the region table that it reads."""
