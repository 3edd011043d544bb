"""All code that differs between operating systems; each part also has a way that works everywhere.

Code asks Python's modules whether a feature exists, and not the name of the system. Names and paths
(of libraries, packages, folders of drivers) are in the tables of ``vulkan``. ``scripts/test
--driver none-portable --driver lavapipe-portable`` tests vkops without features that Windows lacks.

Nothing here imports the rest of vkops.
"""
