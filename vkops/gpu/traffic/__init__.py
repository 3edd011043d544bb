"""The memory traffic of plans on a GPU, counted without a device."""
