"""The choice and the encoding of regions that Vulkan's copy and fill commands execute."""
