"""Conversion of what callers pass to plain values, and safe access to the files that they name."""
