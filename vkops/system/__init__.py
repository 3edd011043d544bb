"""All that differs between operating systems, each part with a way that works on all of them.

Whether a feature exists is asked of Python's modules, not of the system's name; what is only a name
or a place (libraries, packages, folders of drivers) is in the tables of ``vulkan``. ``scripts/test
--driver none-portable --driver lavapipe-portable`` tests vkops without what Windows does not have.

Nothing here imports the rest of vkops.
"""
