"""Vulkan adapters: what they are and can do, and their opening by Kompute."""
