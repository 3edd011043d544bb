# The public names and the modules they are from: type checkers read this file, and so does
# __init__.py, which imports each name at its first use.

from vkops import (
    dml as dml,
    dxdispatch as dxdispatch,
    gpu as gpu,
    onnx as onnx,
    plan as plan,
    shaders as shaders,
)
from vkops.errors import (
    BindingError as BindingError,
    DeviceError as DeviceError,
    FeatureLevelError as FeatureLevelError,
    InvalidDescBufferError as InvalidDescBufferError,
    InvalidDescError as InvalidDescError,
    InvalidDescIndexError as InvalidDescIndexError,
    InvalidDescOverflowError as InvalidDescOverflowError,
    InvalidDescTypeError as InvalidDescTypeError,
    MissingPackageError as MissingPackageError,
    ModelError as ModelError,
    OutOfDeviceMemoryError as OutOfDeviceMemoryError,
    ShaderCompileError as ShaderCompileError,
    VkopsError as VkopsError,
)
from vkops.gpu.adapter import (
    DeviceInfo as DeviceInfo,
    devices as devices,
)
from vkops.runtime.device import (
    BoundOperator as BoundOperator,
    Buffer as Buffer,
    CompiledOperator as CompiledOperator,
    CompiledShader as CompiledShader,
    HostBuffer as HostBuffer,
    Operator as Operator,
    Pending as Pending,
    StreamedOperator as StreamedOperator,
)
from vkops.tensors.eager import (
    join as join,
    slice as slice,
    split as split,
)
from vkops.tensors.manipulation import (
    array_split as array_split,
    broadcast_to as broadcast_to,
    concat as concat,
    concatenate as concatenate,
    expand_dims as expand_dims,
    flip as flip,
    from_dlpack as from_dlpack,
    permute_dims as permute_dims,
    squeeze as squeeze,
    stack as stack,
    unstack as unstack,
)
from vkops.tensors.matrices import (
    diag as diag,
    diagonal as diagonal,
    eye as eye,
    tril as tril,
    triu as triu,
)
from vkops.tensors.rearrangement import (
    pad as pad,
    repeat as repeat,
    roll as roll,
    tile as tile,
)
from vkops.tensors.selection import (
    put_along_axis as put_along_axis,
    take as take,
    take_along_axis as take_along_axis,
)
from vkops.tensors.tensor import (
    Device as Device,
    Tensor as Tensor,
)

__version__: str
