"""What differs between operating systems, each with a way that works on all of them.

Whether a feature exists is asked of Python's modules, not of the system's name; what is only a name
or a place (libraries, packages, folders of drivers) is in the tables of ``vulkan``. ``scripts/test
--portable`` runs the tests without all features that Windows does not have.

Nothing here imports the rest of vkops.
"""
