"""The exceptions that vkops raises, and the formatting of their messages.

Each is a ``VkopsError``; where Python users would catch a built-in exception for the same
mistake, that exception is a second base.
"""

from __future__ import annotations

import re
import sys
from enum import Enum
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from threading import RLock
    from types import FrameType, ModuleType


class VkopsError(Exception):
    """Base of all errors raised by vkops.

    The text is a single line of at most 2,000 characters, whatever names it quotes; that of a
    ``vkops.debug.CheckError`` has a line for each fault, and source lines.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(arg) if isinstance(arg, str) else arg for arg in args))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if _is_own(frame):  # pytest ends the traceback at the line of the program
                frame.f_globals["__tracebackhide__"] = _is_of_vkops
            frame = frame.f_back

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the traceback without frames of vkops but the last one."""
        trace = self.__traceback__
        while trace is not None:
            # The frames have ended: the objects in a copy of their variables live no longer by it.
            if _is_own(trace.tb_frame):
                trace.tb_frame.f_locals["__tracebackhide__"] = True
            trace = trace.tb_next
        shell = sys.modules["IPython"].get_ipython().InteractiveTB
        lines: list[str] = shell.structured_traceback(
            type(self), self, self.__traceback__, tb_offset=shell.tb_offset
        )
        return lines


def _is_own(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "vkops"


def _is_of_vkops(caught: Any) -> bool:
    """Whether what pytest caught is an error of vkops."""
    return isinstance(caught.value, VkopsError)


class _RuleError(VkopsError, ValueError):
    """An argument breaks a rule.

    Attributes:
        operator: DirectML operator name (``"SPLIT"``), or ``""`` where no operator is involved.
        field: path of the offending field, indices included (``"output_tensors[1].sizes[2]"``).
        rule: identifier of the rule (``"SPLIT-05"``), see docs/rules.md.
    """

    def __init__(self, operator: str, field: str, message: str, rule: str) -> None:
        self.operator = operator
        self.field = field
        self.message = message
        self.rule = rule
        super().__init__(f"{' '.join(filter(None, (operator, field)))}: {message} [{rule}]")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.operator, self.field, self.message, self.rule)


class InvalidDescError(_RuleError):
    """A descriptor, or an argument that stands for one, breaks a rule."""


class InvalidDescTypeError(InvalidDescError, TypeError):
    """A descriptor field, or an argument that stands for one, is of the wrong kind."""


class InvalidDescIndexError(InvalidDescError, IndexError):
    """An index of a tensor or an axis is out of range, or an index is of the wrong kind."""


class InvalidDescOverflowError(InvalidDescError, OverflowError):
    """A number is too large for the data type it is to have."""


class InvalidDescBufferError(InvalidDescError, BufferError):
    """A tensor cannot be exported as a consumer of DLPack asks for it."""


CONVERSION_ERRORS = (
    *(TypeError, ValueError, OverflowError, IndexError, SyntaxError, MemoryError),
    FloatingPointError,  # under numpy.errstate
    *(AttributeError, BufferError, RuntimeError),  # of exporters of arrays
    Warning,  # where Python raises them
)
"""The errors of Python and NumPy for objects that cannot be converted to numbers or arrays."""

_BY_BASE: dict[type[Exception], type[InvalidDescError]] = {
    TypeError: InvalidDescTypeError,
    IndexError: InvalidDescIndexError,
    OverflowError: InvalidDescOverflowError,
    BufferError: InvalidDescBufferError,
}


def from_builtin(
    error: Exception, operator: str, field: str, rule: str, prefix: str = ""
) -> InvalidDescError:
    """Convert an error of Python or NumPy: a TypeError to an InvalidDescTypeError, and so on."""
    kinds = (kind for base, kind in _BY_BASE.items() if isinstance(error, base))
    message = prefix + " ".join(str(error).split())
    return next(kinds, InvalidDescError)(operator, field, message, rule)


class FeatureLevelError(InvalidDescError):
    """A descriptor needs a higher feature level than the one it was validated against."""


class BindingError(_RuleError):
    """A buffer cannot be bound to an operator (the B-* rules)."""


class ShaderCompileError(VkopsError):
    """The GLSL compiler is missing or refused a shader.

    Attributes:
        file: source file named by the first diagnostic, or ``None``.
        line: line in that file, or ``None``.
        log: the output of the compiler.
    """

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, log: str = ""
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.log = log
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        rebuild = partial(type(self), file=self.file, line=self.line, log=self.log)
        return rebuild, (self.message,)


class DeviceError(VkopsError, RuntimeError):
    """No usable Vulkan device, loader or driver, or the device cannot do what was asked."""


class OutOfDeviceMemoryError(DeviceError, MemoryError):
    """The request does not fit in the device's memory; nothing was allocated."""


class ModelError(VkopsError, ValueError):
    """A model file cannot be read, or what it describes cannot be run."""


# -- re-entry --------------------------------------------------------------------------------------


def is_held(lock: RLock) -> bool:
    """Whether this thread holds a lock."""
    held: bool = lock._is_owned()  # type: ignore[attr-defined]
    return held


def refuse_reentry(lock: RLock, what: str, *names: object) -> None:
    """Raise a DeviceError if this thread holds the lock that it is about to take.

    Signal handlers, finalizers, weak reference callbacks and progress callbacks can call vkops
    while the same thread is inside of vkops. Waiting there would never end, and going on would
    change the data that the outer call uses. ``what.format(*names)`` names the operation going on.
    """
    if is_held(lock):
        raise DeviceError(
            f"{what.format(*names)} by this thread: a signal handler, finalizer or callback that "
            "runs in the middle of an operation cannot start another one"
        )


def import_late(module: str) -> ModuleType:
    """Import a module at its first use.

    Raises:
        DeviceError: Python is exiting, and imports nothing more.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if sys.meta_path is None:
            raise DeviceError(
                f"{module} cannot be imported while Python exits: a finalizer can use only names "
                "that were used before"
            ) from error
        raise


class MissingPackageError(VkopsError, ImportError):
    """A Python package that is needed for this is not installed; the text says how to install it.

    Attributes:
        name: the package.
    """

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name


# -- texts ----------------------------------------------------------------------------------------

MAX_MESSAGE_CHARACTERS = 2000

_LINE_BREAK = re.compile(r"\s*[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]\s*")
_SHOWN_CHARACTERS = 60
_MAX_SUGGESTION_CHARACTERS = 60
_END_CHARACTERS = 500  # of a message that is cut: the reason and the rule are at its end


def printable(text: str) -> str:
    r"""Escape the characters that are not printable, such as control sequences of terminals.

    >>> printable("a\x1bb\n")
    'a\\x1bb\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    r"""Return a text as one line of bounded length: names from files can hold anything.

    Line breaks become spaces, other characters that cannot be printed are escaped, and the middle
    of a long text is left out.

    >>> one_line("node 'a\x1bb':\n  is missing")
    "node 'a\\x1bb': is missing"
    """
    text = _shortened(text)
    if text.isprintable():
        return text
    text = _LINE_BREAK.sub(" ", text)
    return _shortened(printable(text))


def _shortened(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    start = MAX_MESSAGE_CHARACTERS - _END_CHARACTERS - 1
    return f"{text[:start]}…{text[-_END_CHARACTERS:]}"


def show(value: object) -> str:
    """Return a value as error messages print it, shortened."""
    if isinstance(value, Enum):
        return str(value.name)
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # it holds an integer of more than some thousand digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def did_you_mean(name: object, known: Iterable[str], quote: Callable[[str], str] = show) -> str:
    """Ask for the known name that is nearest, upper and lower case being the same; "" for none.

    >>> did_you_mean("colour", ["Color", "size"])
    "; did you mean 'Color'?"
    """
    from difflib import get_close_matches  # only errors need it

    if not isinstance(name, str) or not 0 < len(name) <= _MAX_SUGGESTION_CHARACTERS:
        return ""
    names = {each.casefold(): each for each in sorted(known)}
    near = get_close_matches(name.casefold(), names, n=1)
    return f"; did you mean {quote(names[near[0]])}?" if near else ""
