"""Kernels that compute one operation for each element of arrays of any layout."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from vkops.arguments.values import ArgumentName, boolean, refuse
from vkops.elementwise.arguments import choose_dtypes, number_of, operands_of, shape_of
from vkops.elementwise.formats import FORMATS, words_are_read
from vkops.elementwise.indexing import Indexing, broadcast, indexing
from vkops.elementwise.parameters import (
    Operand,
    Parameter,
    Symbol,
    check_texts,
    parse,
    with_options,
)
from vkops.elementwise.source import BATCH, MAINS, MAX_PUSH_BYTES, generate, scalars_of
from vkops.errors import VkopsError
from vkops.extent import slice_extents
from vkops.gpu.kernels.layout import group_counts
from vkops.gpu.memory.pools import ALIGNMENT
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import PreparedCall
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.runtime.bindings import Elements, are_integers, elements
from vkops.runtime.compiled_shader import MAX_CALLS, PACKING_ERRORS
from vkops.runtime.shader_checks import make_pipeline
from vkops.shaders import Shader, compiler, load
from vkops.shaders.features import exact_floats, with_modes
from vkops.shaders.slot import Slot
from vkops.tensors.device_array import check_device
from vkops.tensors.operations import chosen_device
from vkops.tensors.tensor import Device, DeviceLike, Tensor, default_device

_MAX_SHADERS = 512
"""The number of shaders of kernels that are cached."""

_FLOAT_BITS = {"float16_t": 16, "double": 64}
"""The numbers of bits of GLSL's floating-point types other than float."""

_INDEX = re.compile(r"\bi\b")


class _KeptCall(NamedTuple):
    """A prepared call: the GLSL, and the shape and dtype of each output to create.

    ``run`` takes the device, the buffers of tensors in the order of parameters, and the scalars. It
    returns False, and runs nothing, if these do not fit the call.
    """

    source: str
    outputs: Sequence[tuple[Ints, Any]]
    run: Callable[[Device, Sequence[Any], Sequence[Any]], bool]


class ElementwiseKernel:
    """A kernel that computes an operation for each element of arrays, as that of CuPy does.

    Its arguments are tensors, NumPy arrays, which are sent to the device, and numbers. They are
    broadcast together. Tensors can be views of any layout: their elements are read and written
    where they are, with one dispatch.

    Args:
        in_params: the inputs, such as ``"float32 a, T x, raw T table"``. A type is the name of a
            NumPy data type, or a type variable, which arguments decide. The operation indexes
            ``raw`` arrays itself, in C order.
        out_params: the outputs, declared in the same way. The operation reads and writes ``raw``
            outputs, which must be given, as it likes, also with atomic functions.
        operation: GLSL statements that assign to the outputs. ``i`` is the index of the element in
            C order, ``n`` is the number of elements, and type variables are types. The last
            semicolon can be left out. It can call functions of the documentation's page on
            arithmetic, such as vk_exp(x), which have the same bits on every device.
        name: the name of the kernel in errors.
        preamble: GLSL declarations, such as functions that the operation calls.
        no_return: return None, not the outputs.
        return_tuple: return a tuple even of one output.
        loop_prep: statements before the operation, whose variables it sees.
        after_loop: statements after it.
        options: macros for all texts, such as ``"-DSIZE=4"``.

    Attributes:
        in_params: the inputs as parameters with a type and a name.
        out_params: the outputs.
        operation: the operation, with the statements before and after it.
        name: the name.
        preamble: the preamble, with the macros of ``options``.

    Raises:
        InvalidDescError: a declaration is wrong (EW-01).

    >>> import numpy as np, vkops
    >>> axpy = vkops.ElementwiseKernel("float32 a, T x, T y", "T z", "z = a * x + y", "axpy")
    >>> x = vkops.arange(6, dtype="float32").reshape(2, 3)
    >>> axpy(10, x, x[:1, ::-1]).numpy()
    array([[ 2., 11., 20.],
           [32., 41., 50.]], dtype=float32)
    >>> _ = axpy(1, x, np.ones(3, np.float32), out=x[::-1])
    >>> x.numpy()
    array([[4., 5., 6.],
           [1., 2., 3.]], dtype=float32)
    """

    _max_local_size = 256
    """The maximum number of invocations of a workgroup, if the device allows as many."""
    _invocations: Callable[[Ints, Mapping[str, Ints]], int] | None = None
    """A function of the shape of the elements and all arrays' shapes: the number of invocations."""
    _main: Mapping[str, Any] = {}
    """Further arguments of ``generate``."""
    _is_builtin = False
    """Whether the kernel is a part of vkops; see ``Shader``."""
    _reads_again = False
    """Whether it reads elements after it has written others: then no output may be an input."""
    _no_return = _return_tuple = False

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        preamble: str = "",
        *,
        no_return: bool = False,
        return_tuple: bool = False,
        loop_prep: str = "",
        after_loop: str = "",
        options: Sequence[str] = (),
    ) -> None:
        texts = {"in_params": in_params, "out_params": out_params, "operation": operation}
        around = {"loop_prep": loop_prep, "after_loop": after_loop}
        check_texts(name=name, **texts, preamble=preamble, **around)
        params = parse(name, in_params, out_params, raw_outputs=True)
        if loop_prep or after_loop:
            lines = [f'#line 1 "{name}{part}"\n{text}\n;' for part, text in (
                (" loop_prep", loop_prep), ("", operation), (" after_loop", after_loop),
            )]  # fmt: skip
            operation = "\n".join(lines)
        self._set(params, operation, name, with_options(name, preamble, options))
        self._no_return, self._return_tuple = (
            boolean(flag, ArgumentName(name, field, "EW-01"))
            for field, flag in (("no_return", no_return), ("return_tuple", return_tuple))
        )

    def _set(self, params: tuple[Parameter, ...], operation: str, name: str, preamble: str) -> None:
        self._params = params
        self.name: str = name
        self.in_params: tuple[Parameter, ...] = tuple(p for p in self._params if not p.is_output)
        self.out_params: tuple[Parameter, ...] = self._params[len(self.in_params) :]
        self.operation: str = operation
        self.preamble: str = preamble
        is_numbered = _INDEX.search(f"{operation} {preamble}") is not None
        self._in_order = is_numbered or any(parameter.raw for parameter in self._params)
        self._calls: dict[Any, _KeptCall] = {}
        self._source = ""

    @property
    def source(self) -> str:
        """The GLSL of the last call that ran; empty before the first one."""
        return self._source

    def __repr__(self) -> str:
        return f"<vkops.ElementwiseKernel {self.name!r}>"

    def __call__(
        self, *args: Any, out: Any = None, size: Any = None, device: DeviceLike = None
    ) -> Any:
        """Compute the operation, without waiting for it.

        Args:
            args: an argument for each input, and for each output a tensor to write to, or none.
            out: the outputs, if they are not in ``args``: a tensor, or a tuple of several. An input
                that shares elements with an output, and not in the same order, is copied first.
            size: a shape, if all arrays are raw.
            device: where it runs; by default the device of the first tensor.

        Returns:
            The output, or a tuple of several; an output that was not given is a new tensor.

        Raises:
            InvalidDescError: arguments of the wrong number (EW-02), kind (EW-03), data type
                (EW-04), value (EW-05) or shape (EW-06), too many elements (EW-07), or outputs that
                share elements (EW-08).
            ShaderCompileError: the operation is wrong.
            OutOfDeviceMemoryError: arrays or outputs do not fit on the device.
        """
        targets = [] if out is None else out if isinstance(out, (tuple, list)) else [out]
        values = [*args, *targets]
        signature = self._signature(values, len(args), size, device)
        if signature is not None and (call := self._calls.get(signature[0])) is not None:
            _, home, memory, scalars = signature
            results = values[len(self.in_params) :]
            for shape, dtype in call.outputs:
                results.append(Tensor(home, shape, dtype))
                memory.append(results[-1].buffer)
            if call.run(home, memory, scalars):
                self._source = call.source
                return self._returned(results)
            del memory[len(memory) - len(call.outputs) :]
        for each in values:
            if isinstance(each, Symbol):
                return each.trace.call(self, args, out=out, size=size)
        operands = operands_of(self.name, self._params, values, len(args))
        choose_dtypes(self.name, operands)
        shape = self._shape(operands, size)
        chosen = chosen_device(self.name, device)
        for each in operands:
            if isinstance(each.value, Tensor):
                chosen = chosen or each.value.device
                check_device(self.name, each.parameter.name, each.value, chosen)
        home = chosen or default_device()
        for each in operands:
            if each.value is None:
                each.value = Tensor(home, shape, each.dtype)
            elif not each.is_array:
                each.value = number_of(self.name, each)
            elif isinstance(each.value, np.ndarray) and 0 not in shape:
                each.value = Tensor.from_array(home, each.value)
        if 0 not in shape:
            self._run(home, shape, operands, operands[len(values) :], signature)
        return self._returned([each.value for each in operands if each.parameter.is_output])

    def _returned(self, results: Sequence[Any]) -> Any:
        if self._no_return:
            return None
        return results[0] if len(results) == 1 and not self._return_tuple else tuple(results)

    def _signature(
        self, values: Sequence[Any], positional: int, size: Any, device: DeviceLike
    ) -> tuple[Any, Device, list[Any], list[Any]] | None:
        """Return the key of a prepared call, and the call's device, buffers and scalars.

        Return None if the call cannot be prepared.
        """
        if not (size is None or are_integers(size)) or not isinstance(device, (Device, type(None))):
            return None
        kinds: list[Any] = [positional, size]
        memory: list[Any] = []
        scalars: list[Any] = []
        try:
            for value in values:
                if isinstance(value, Tensor):
                    device = device or value.device
                    argument = elements(device, self.name, "", value, written=False)
                    kinds += argument[1:], argument[0].layout, value.is_read_only
                    memory.append(argument.buffer)
                else:
                    kinds.append(type(value))
                    scalars.append(value)
        except VkopsError:  # the general path raises it again, with the parameter's name
            return None
        if device is None:
            return None
        kinds += map(memory.index, memory)  # equal numbers for arguments that have the same memory
        return (ref(device.vulkan), *kinds), device, memory, scalars

    def _run(
        self,
        home: Device,
        shape: Ints,
        operands: Sequence[Operand],
        added: Sequence[Operand],
        signature: Any,
    ) -> None:
        """Run the kernel for operands with tensors and scalars; there must be elements.

        The prepared call is cached by ``signature`` if all memory is used in place.
        """
        tensors = [each for each in operands if isinstance(each.value, Tensor)]
        scalars = [each for each in operands if not isinstance(each.value, Tensor)]
        arrays = sorted(tensors, key=lambda each: each.parameter.raw)
        for number, each in enumerate(arrays):
            each.array = number
            each.elements = self._elements(each.parameter, each.value, shape)
            if each.code and not each.parameter.raw:
                each.in_words = words_are_read(each.dtype, home.features)
        self._separate(arrays, shape)
        copies = self._packed(arrays, shape)
        plain = [each.elements for each in arrays if not each.parameter.raw]
        access = Indexing(1, (), (prod(shape),), ())
        if plain:
            views, itemsizes = zip(*[(part.view, part.itemsize) for part in plain], strict=True)
            access = indexing(shape, views, itemsizes, ALIGNMENT, in_order=self._in_order)
        passed = scalars_of(operands)
        formats = "".join([FORMATS[each.passed_dtype.name] for each in passed])
        packer = struct.Struct(f"<{formats}{len(access.words)}I")
        source, shader = self._compiled(home, operands, access, packer.size <= MAX_PUSH_BYTES)
        pipeline = make_pipeline(home, shader)
        raw = [each.elements for each in arrays[len(plain) :]]
        spans = [*access.spans, *[(part.view.offset * part.itemsize, part.nbytes) for part in raw]]
        places = [*map(tensors.index, arrays), len(tensors)]
        slots: list[Slot] = []
        order: list[int] = []
        for slot in shader.slots(tuple(block.point for block in shader.blocks)):
            number = slot.block.binding
            order.append(places[number])
            if number < len(spans):  # otherwise it is the block of the numbers
                slot = self._bound(slot, arrays[number], spans[number], home)
            slots.append(slot)
        call, words = PreparedCall(home, shader, pipeline, slots), access.words
        numbers = [scalars.index(each) for each in passed]
        converter = struct.Struct("<" + "".join([FORMATS[each.dtype.name] for each in passed]))
        invocations = ceil_div(prod(shape), _batch(home))
        if self._invocations is not None:
            shapes = {each.parameter.name: each.value.shape for each in tensors}
            invocations = self._invocations(shape, shapes)
        groups = group_counts(ceil_div(invocations, shader.local_size[0]))

        def run(home: Device, memory: Sequence[Any], values: Sequence[Any]) -> bool:
            try:
                narrow = converter.unpack(converter.pack(*map(values.__getitem__, numbers)))
                packed = packer.pack(*narrow, *words)
            except PACKING_ERRORS:
                return False
            bound = [*map([*memory, packed].__getitem__, order)]
            call.run(home, bound, groups, packed if packer.size <= MAX_PUSH_BYTES else b"")
            return True

        memory = [each.elements.buffer for each in tensors]
        run(home, memory, [each.value for each in scalars])
        self._source = source
        for tensor, copy in copies:
            tensor[...] = copy
        if signature and [*map(id, signature[2])] == [*map(id, memory[: len(memory) - len(added)])]:
            if len(self._calls) >= MAX_CALLS:
                self._calls.clear()
            self._calls[signature[0]] = _KeptCall(
                source, [(shape, each.dtype) for each in added], run
            )

    def _shape(self, operands: Sequence[Operand], size: Any) -> Ints:
        """Return the shape of the outputs."""
        return shape_of(self.name, operands, size)

    def _generated(self, operands: Sequence[Operand], *details: Any, **options: Any) -> str:
        """Return the GLSL; ``details`` and ``options`` are the last arguments of ``generate``."""
        texts = self.name, self.operation, self.preamble
        return generate(*texts, operands, *details, **{**options, **self._main})

    # -- memory -----------------------------------------------------------------------------------

    def _separate(self, arrays: Sequence[Operand], shape: Ints) -> None:
        """Raise an error if outputs share elements (EW-08); copy inputs that they overwrite.

        Inputs are also copied if outputs in the same memory are parts of words, whose other parts
        other invocations change.
        """
        written = [each for each in arrays if each.parameter.is_output]
        for one, other in combinations(written, 2):
            if one.elements.overlaps(other.elements):
                message = f"shares elements with {one.parameter.name}, must not"
                refuse(self.name, other.parameter.name, message, "EW-08")

        def is_overwritten(each: Operand, out: Operand) -> bool:
            if out.in_words:
                return each.elements.buffer is out.elements.buffer
            is_read_once = not (self._reads_again or each.parameter.raw or out.parameter.raw)
            if is_read_once and out.elements.view == each.elements.view:
                return False
            return each.elements.overlaps(out.elements)

        for each in arrays:
            if not each.parameter.is_output and any(is_overwritten(each, out) for out in written):
                each.elements = self._elements(each.parameter, each.value.copy(), shape)

    def _packed(self, arrays: Sequence[Operand], shape: Ints) -> Sequence[tuple[Tensor, Tensor]]:
        """Copy ``raw`` arrays that cannot be bound in place; return outputs and their copies.

        To be bound, they must be contiguous and aligned.
        """
        copies = []
        for each in arrays:
            part = each.elements
            aligned = part.view.is_contiguous and part.view.offset * part.itemsize % ALIGNMENT == 0
            if each.parameter.raw and not aligned:
                copy = each.value.copy()
                each.elements = self._elements(each.parameter, copy, shape)
                if each.parameter.is_output:
                    copies.append((each.value, copy))
        return copies

    def _elements(self, parameter: Parameter, tensor: Tensor, shape: Ints) -> Elements:
        """Return the elements of a tensor, broadcast to a shape unless the parameter is raw."""
        base, view = tensor.placed()
        buffer, itemsize = base.buffer, tensor.itemsize
        if buffer is None:
            refuse(self.name, parameter.name, "has no elements, must have some", "EW-06")
        if not parameter.raw:
            view = broadcast(view, shape)
        return Elements(buffer, view, itemsize, tensor.dtype)

    def _bound(
        self, slot: Slot, operand: Operand, span: tuple[int, int], device: OpenDevice
    ) -> Slot:
        """Return the slot of a span of a buffer (EW-07)."""
        buffer = operand.elements.buffer
        parts = slice_extents(getattr(buffer, "extents", ()), *span)  # none on the host
        most = device.pool.max_range
        if len(parts) != 1 or span[1] > most:
            message = f"covers {span[1]} bytes, must be at most {most} in one piece on the device"
            refuse(self.name, operand.parameter.name, message, "EW-07")
        return slot._replace(start=span[0], nbytes=span[1])

    # -- compilation ------------------------------------------------------------------------------

    def _compiled(
        self, home: Device, operands: Sequence[Operand], access: Indexing, pushed: bool
    ) -> tuple[str, Shader]:
        """Return the GLSL and the shader for data types and forms."""
        local_size = min(self._max_local_size, home.tuning.invocations)
        rank = access.rank if "strided" in access.forms else 0
        widths = {32, *[_FLOAT_BITS[each.type] for each in operands if each.type in _FLOAT_BITS]}
        modes = exact_floats(home.features, sorted(widths))[0]
        options: dict[str, Any] = {
            "local_size": local_size, "main": MAINS[_batch(home)], "pushed": pushed,
        }  # fmt: skip
        source = self._generated(operands, rank, access.forms, **options)
        variant = self.name, tuple(modes), self._is_builtin, bool(compiler.line_users)
        return source, _loaded(source, *variant)


@lru_cache(_MAX_SHADERS)
def _loaded(
    source: str, name: str, modes: tuple[tuple[str, int], ...], is_builtin: bool, has_lines: bool
) -> Shader:
    """Return the shader of a source, with floating-point modes."""
    spirv = with_modes(load(source, name=name, debug=has_lines).spirv, modes)
    return replace(load(spirv, name=name), is_builtin=is_builtin)


def _batch(home: Device) -> int:
    """Return the number of elements that each invocation computes."""
    return 1 if home.tuning.is_cpu else BATCH
