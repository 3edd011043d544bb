"""The operator that many tests run: bytes in reversed order."""

from vkops import dml


def reverse(device, nbytes):
    desc = dml.BufferTensorDesc(dml.TensorDataType.UINT8, (nbytes,))
    slice1 = dml.Slice1OperatorDesc(desc, desc, (0,), (nbytes,), (-1,))
    return device.compile_operator(device.create_operator(slice1))
