# The public names and the modules they are from: type checkers read this file, and so does
# __init__.py, which imports each name at its first use.

from numpy import (
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    float32 as float32,
    float64 as float64,
    complex64 as complex64,
    complex128 as complex128,
    e as e,
    inf as inf,
    nan as nan,
    newaxis as newaxis,
    pi as pi,
)

from vkops import (
    dask as dask,
    debug as debug,
    dml as dml,
    dxdispatch as dxdispatch,
    gpu as gpu,
    kernels as kernels,
    lavapipe as lavapipe,
    onnx as onnx,
    plan as plan,
    pydirectml as pydirectml,
    shaders as shaders,
)
from vkops.debug.call_capture import (
    capture_call as capture_call,
)
from vkops.elementwise.kernel import (
    ElementwiseKernel as ElementwiseKernel,
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
from vkops.gpu.adapters.adapter import (
    DeviceInfo as DeviceInfo,
    devices as devices,
)
from vkops.gpu.run.event import Event as Event
from vkops.gpu.run.handles import (
    DeviceHandles as DeviceHandles,
    TensorHandles as TensorHandles,
)
from vkops.gpu.run.profile import (
    Profile as Profile,
    profile as profile,
)
from vkops.gpu.run.recording import RecordedProgram as RecordedProgram
from vkops.gpu.run.kompute_manager import KomputeManager as KomputeManager
from vkops.gpu.run.shared_memory import SharedHandle as SharedHandle
from vkops.kernels.compaction import (
    nonzero as nonzero,
)
from vkops.kernels.counts import (
    searchsorted as searchsorted,
)
from vkops.kernels.functions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    sum as sum,
    var as var,
)
from vkops.kernels.fusion import (
    fuse as fuse,
)
from vkops.kernels.products import (
    matmul as matmul,
    tensordot as tensordot,
    vecdot as vecdot,
)
from vkops.kernels.reduction import (
    ReductionKernel as ReductionKernel,
)
from vkops.kernels.scan import (
    ScanKernel as ScanKernel,
)
from vkops.kernels.sort import (
    argsort as argsort,
    sort as sort,
)
from vkops.kernels.standard import (
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
    std as std,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
    where as where,
)
from vkops.kernels.ufuncs import (
    abs as abs,
    absolute as absolute,
    acos as acos,
    acosh as acosh,
    add as add,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    around as around,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    conj as conj,
    conjugate as conjugate,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    divide as divide,
    divmod as divmod,
    equal as equal,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    fabs as fabs,
    floor as floor,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    greater as greater,
    greater_equal as greater_equal,
    heaviside as heaviside,
    hypot as hypot,
    imag as imag,
    invert as invert,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    mod as mod,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    power as power,
    rad2deg as rad2deg,
    radians as radians,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    right_shift as right_shift,
    rint as rint,
    round as round,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    true_divide as true_divide,
    trunc as trunc,
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
from vkops.runtime.image import Image as Image
from vkops.runtime.sampler import Sampler as Sampler
from vkops.shaders.bundle_use import use_bundle as use_bundle
from vkops.tensors.creation import (
    arange as arange,
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    linspace as linspace,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from vkops.tensors.data_types import (
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from vkops.tensors.tensor import (
    Device as Device,
    open_shared as open_shared,
)
from vkops.tensors.eager import (
    join as join,
    slice as slice,
    split as split,
)
from vkops.tensors.manipulation import (
    append as append,
    array_split as array_split,
    block as block,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    dsplit as dsplit,
    dstack as dstack,
    hsplit as hsplit,
    hstack as hstack,
    stack as stack,
    vsplit as vsplit,
    vstack as vstack,
)
from vkops.tensors.matrices import (
    diag as diag,
    diagflat as diagflat,
    eye as eye,
    identity as identity,
    tril as tril,
    triu as triu,
)
from vkops.tensors.namespace_info import (
    __array_namespace_info__ as __array_namespace_info__,
    bool as bool,
)
from vkops.tensors.rearrangement import (
    pad as pad,
    repeat as repeat,
    resize as resize,
    roll as roll,
    tile as tile,
)
from vkops.tensors.selection import (
    delete as delete,
    insert as insert,
    put_along_axis as put_along_axis,
    take as take,
    take_along_axis as take_along_axis,
)
from vkops.tensors.tensor import (
    Tensor as Tensor,
)
from vkops.tensors.view_functions import (
    astype as astype,
    broadcast_to as broadcast_to,
    copy as copy,
    diagonal as diagonal,
    expand_dims as expand_dims,
    flip as flip,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    rot90 as rot90,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    fliplr as fliplr,
    flipud as flipud,
    matrix_transpose as matrix_transpose,
    meshgrid as meshgrid,
    rollaxis as rollaxis,
    unstack as unstack,
)

__array_api_version__: str
__version__: str
