"""DirectML's enumerations, with DirectML's values."""

from __future__ import annotations

import math
import re
import struct
from enum import Enum, IntEnum, IntFlag

from vkops.arguments.values import ArgumentName, integer
from vkops.errors import InvalidDescError, InvalidDescTypeError, show


class TensorDataType(IntEnum):
    """Type of a tensor's elements. Source: DML_TENSOR_DATA_TYPE."""

    size_bits: int

    def __new__(cls, value: int, size_bits: int) -> TensorDataType:
        """Make a member from its value and the bits of one element (0 for UNKNOWN)."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.size_bits = size_bits
        return member

    UNKNOWN = 0, 0
    FLOAT32 = 1, 32
    FLOAT16 = 2, 16
    UINT32 = 3, 32
    UINT16 = 4, 16
    UINT8 = 5, 8
    INT32 = 6, 32
    INT16 = 7, 16
    INT8 = 8, 8
    FLOAT64 = 9, 64
    UINT64 = 10, 64
    INT64 = 11, 64
    UINT4 = 12, 4
    INT4 = 13, 4

    @property
    def element_size(self) -> int:
        """Bytes of one element.

        Raises:
            InvalidDescError: it is UNKNOWN (T-02), or of 4 bits (T-19).

        >>> TensorDataType.FLOAT16.element_size
        2
        """
        if self.size_bits < 8:
            rule = "T-19" if self.size_bits else "T-02"
            raise InvalidDescError("", "data_type", f"{self.name} has no size in whole bytes", rule)
        return self.size_bits // 8

    @property
    def numpy_code(self) -> str:
        """NumPy's code of the type: its kind and its bytes.

        >>> TensorDataType.UINT32.numpy_code
        'u4'
        """
        return f"{self.name[0].lower()}{self.element_size}"

    def pack(self, number: float) -> bytes:
        r"""Return the bytes of an element with that value, in memory order.

        Floating-point types round the number to the nearest value that they have. For integer
        types, the number gives all bits of the element, as a signed or an unsigned integer.

        Raises:
            ValueError: the type cannot hold the number; the text says what it holds.
            InvalidDescError: an element has no size in whole bytes.

        >>> TensorDataType.FLOAT16.pack(-2).hex()
        '00c0'
        >>> TensorDataType.UINT8.pack(-2).hex(), TensorDataType.INT8.pack(254).hex()
        ('fe', 'fe')
        """
        size = self.element_size
        if not self._is_float:
            count = 1 << self.size_bits
            low, high = -(count // 2), count - 1
            if low <= number <= high and number == int(number):  # NaN is in no range
                return (int(number) % count).to_bytes(size, "little")
            raise ValueError(f"an integer from {low} to {high}, which are the bits of {self.name}")
        try:
            return struct.pack(f"<{_FLOAT_CODES[size]}", number)
        except (struct.error, OverflowError):
            raise ValueError(f"a number in the range of {self.name}") from None

    def convert(self, number: float) -> bytes:
        r"""Return the bytes of the element to which DirectML converts a FLOAT attribute.

        Integer types drop the fraction. NaN and numbers out of range are converted as an x86
        processor does it: to a signed integer of 32 bits (64 bits for UINT32 and types of 64 bits),
        or to its least value if the number is out of that range, too; the element has the lowest
        bits of the result. FLOAT16 becomes infinite.

        >>> TensorDataType.UINT8.convert(300.7).hex(), TensorDataType.INT32.convert(math.nan).hex()
        ('2c', '00000080')
        """
        size = self.element_size
        if self._is_float:
            try:
                return self.pack(number)
            except ValueError:
                return self.pack(math.copysign(math.inf, number))
        bits = 64 if size == 8 or self.name == "UINT32" else 32
        half = 1 << (bits - 1)
        end = 2 * half if self.name == "UINT64" else half
        integer = int(number) if -half <= number < end else -half  # NaN is in no range
        return (integer % 2**64).to_bytes(8, "little")[:size]

    @property
    def _is_float(self) -> bool:
        return self.name.startswith("FLOAT")


_FLOAT_CODES = {2: "e", 4: "f", 8: "d"}
"""The codes of the module struct for floating-point numbers, by their bytes."""


class TensorFlags(IntFlag):
    """Properties of a tensor. Source: DML_TENSOR_FLAGS."""

    NONE = 0
    OWNED_BY_DML = 1


class FeatureLevel(IntEnum):
    """Set of features that a device supports; each level includes the ones below.

    Source: DML_FEATURE_LEVEL.

    >>> FeatureLevel("5_0") is FeatureLevel(0x5000) is FeatureLevel("DML_FEATURE_LEVEL_5_0")
    True
    >>> str(FeatureLevel.LATEST)
    '6_4'
    """

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400
    LATEST = LEVEL_6_4

    def __str__(self) -> str:
        return self.name[len("LEVEL_") :]

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec) if spec else str(self)

    @classmethod
    def _missing_(cls, value: object) -> FeatureLevel | None:
        if not isinstance(value, str):
            return None
        match = re.fullmatch(r"(?:(?:DML_FEATURE_)?LEVEL_)?([0-9])[._]([0-9])", value)
        return cls.__members__.get("LEVEL_{}_{}".format(*match.groups())) if match else None

    @classmethod
    def of(cls, value: object, operator: str = "", field: str = "feature_level") -> FeatureLevel:
        """Return the level a user names: ``FeatureLevel(value)`` with vkops' errors.

        Raises:
            InvalidDescTypeError: neither a string nor an integer (DEV-04).
            InvalidDescError: there is no such level (DEV-04).
        """
        if isinstance(value, cls):
            return value
        argument = ArgumentName(operator, field, "DEV-04")
        if isinstance(value, Enum):
            raise argument.wrong_kind(value, "a feature level, its name or its value")
        try:
            return cls(value if isinstance(value, str) else integer(value, argument))  # type: ignore
        except InvalidDescTypeError:
            raise argument.wrong_kind(value, "a feature level, its name or its value") from None
        except ValueError:
            levels = ", ".join(str(level) for level in cls)
            message = f"got {show(value)}, must be one of {levels}"
            raise InvalidDescError(operator, field, message, "DEV-04") from None


class ExecutionFlags(IntFlag):
    """Options of the compilation of an operator. Source: DML_EXECUTION_FLAGS."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class PaddingMode(IntEnum):
    """Elements that PADDING writes around its input. Source: DML_PADDING_MODE."""

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4


class DepthSpaceOrder(IntEnum):
    """Order of depth, row and column in the depth dimension. Source: DML_DEPTH_SPACE_ORDER."""

    DEPTH_COLUMN_ROW = 0
    COLUMN_ROW_DEPTH = 1


class AxisDirection(IntEnum):
    """Direction along an axis. Source: DML_AXIS_DIRECTION."""

    INCREASING = 0
    DECREASING = 1


class InterpolationMode(IntEnum):
    """Computation of values between samples. Source: DML_INTERPOLATION_MODE."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1
