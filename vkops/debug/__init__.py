"""Tools to find errors: captures, validation, output and traces of shaders, bug reports."""
