"""The objects that run on a device: devices, compiled operators and compiled shaders."""
