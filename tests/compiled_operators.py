"""Operators that many tests run, compiled for a device."""

from vkops import dml


def compiled(device, desc):
    return device.compile_operator(device.create_operator(desc))


def reverse(device, nbytes, kind=dml.TensorDataType.UINT8):
    """The elements of a tensor of one dimension in reversed order."""
    desc = dml.BufferTensorDesc(kind, (nbytes,))
    return compiled(device, dml.Slice1OperatorDesc(desc, desc, (0,), (nbytes,), (-1,)))


def identity(device, *sizes, kind=dml.TensorDataType.INT32):
    """A copy of a packed tensor."""
    desc = dml.BufferTensorDesc(kind, sizes)
    return compiled(device, dml.ElementWiseIdentityOperatorDesc(desc, desc))
