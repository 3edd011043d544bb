"""What tests find in place of vkops_lavapipe."""

raise ModuleNotFoundError("vkops_lavapipe is hidden from tests", name="vkops_lavapipe")
