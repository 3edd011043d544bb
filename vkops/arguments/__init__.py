"""Conversion of what callers pass to plain values."""
