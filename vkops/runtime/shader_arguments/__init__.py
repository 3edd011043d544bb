"""The arguments of shaders that are not elements of buffers, one module for each kind."""
