"""Dask arrays whose chunks are tensors, and workers that have a device each.

Importing this package makes ``Tensor`` a chunk type of ``dask.array``, so that functions of NumPy
may be given Dask arrays and tensors together. Nothing has to be registered in workers: tensors are
pickled with their elements out of band (protocol 5), which Dask sends, and writes to disk, from
where they are, and a tensor that is unpickled is on the default device of its process.

Needs the packages ``dask`` and ``distributed``: ``pip install 'vkops[dask]'``.
"""

from vkops.errors import MissingPackageError

try:
    import dask.array
    import distributed  # noqa: F401  # which the cluster needs
except ImportError as _error:
    raise MissingPackageError(
        f"Dask arrays of tensors need the package {_error.name or 'dask'}: "
        "pip install 'vkops[dask]'",
        name=_error.name,
    ) from _error

from vkops.dask.cluster import local_cluster
from vkops.tensors.tensor import Tensor

__all__ = ["local_cluster"]

dask.array.register_chunk_type(Tensor)
# Dask's other method, "p2p", takes only chunks that have the buffer protocol, as NumPy's arrays do.
dask.config.update_defaults({"array": {"rechunk": {"method": "tasks"}}})
