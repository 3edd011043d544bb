"""What DirectML and vkops say of the same descriptors, and make of the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import operator_cases
import operator_table

import vkops
from directml import dll
from directml.dll import DONE, NONE, Answer, Case, Slot
from directml.faults import least, random_raw, right, tensors, with_tensor
from directml.packing import Raw, RawTensor
from vkops import dml
from vkops.errors import InvalidDescError

POISON = 0xA5


@dataclass(frozen=True)
class Outcome:
    """One comparison.

    Attributes:
        operator: the operator, or GRAPH.
        same: whether DirectML and vkops agree.
        text: what differs, and the descriptor.
        raw: the descriptor; None for a graph.
        error: why vkops refuses it; None if it does not.
        inputs: the bytes of the inputs, if it was executed.
        outputs: the bytes that DirectML and vkops made of each output, if it was executed.
        level: the feature level.
    """

    operator: str
    same: bool
    text: str
    raw: Raw | None = None
    error: InvalidDescError | None = None
    inputs: Sequence[bytes] = ()
    outputs: Sequence[tuple[bytes, bytes]] = ()
    level: str = dll.NEWEST


# -- descriptors -----------------------------------------------------------------------------------


def constraints(count: int, seed: int) -> Iterator[Outcome]:
    """The broken descriptors of the operator table, and random ones with and without faults."""
    raws = broken()
    for name in operator_table.OPERATORS:
        random = Random(f"constraints {seed} {name}")
        raws += [raw for _, raw in (random_raw(random, name, k % 3) for k in range(count))]
    return _judged(raws, dll.NEWEST, "constraints")


def broken() -> list[Raw]:
    """The broken descriptors of the operator table that vkops's classes can hold."""
    raws = []
    for name, entry in operator_table.OPERATORS.items():
        kind = operator_table.kinds(name)[0]
        desc = entry.make(Random(0), kind, (2, 3, 4), 1).desc
        for _, _, fields in entry.broken:
            try:
                raws.append(Raw.of(replace(desc, **{**entry.valid, **fields})))
            except InvalidDescError:
                continue
    return raws


def levels(level: str) -> Iterator[Outcome]:
    """Every operator with every data type, also of indices, and every rank."""
    raws = []
    for name in operator_table.OPERATORS:
        of_indices = (False, True) if name in operator_table.indexed_operators() else (False,)
        for rank in range(1, 10):
            random = Random(f"levels {name} {rank}")
            for data_type in range(14):
                for indices in of_indices:
                    raws.append(_of_type(_of_rank(random, name, rank), data_type, indices))
    return _judged(raws, level, f"levels{level}")


def _of_rank(random: Random, name: str, rank: int) -> Raw:
    """A descriptor whose tensors have a rank, also if the operator has none of this rank."""
    raw = right(random, name, operator_table.kinds(name)[0], min(rank, 8))
    for field, place, tensor in tensors(raw):
        if (name, field) != ("UNFOLD", "output_tensor"):
            sizes = (1,) * (rank - len(tensor.sizes)) + tensor.sizes
            sizes = sizes[len(sizes) - rank :]
            raw = with_tensor(raw, field, place, _sized(replace(tensor, sizes=sizes, strides=None)))
    return raw


def _of_type(raw: Raw, data_type: int, indices: bool) -> Raw:
    """The descriptor with another data type of its data, or of its indices."""
    fields = {field.name: field for field in dml.OPERATORS[raw.operator].FIELDS}
    for name, place, tensor in tensors(raw):
        if fields[name].holds_indices == indices:
            raw = with_tensor(raw, name, place, _sized(replace(tensor, data_type=data_type)))
    if not indices:
        types = {name: data_type for name, field in fields.items() if name.endswith("data_type")}
        values = {name: 1 for name, field in fields.items() if field.data_type}
        raw = raw.with_fields(**types, **values)
    return raw


def _sized(tensor: RawTensor) -> RawTensor:
    return replace(tensor, total=least(tensor))


def _judged(raws: Sequence[Raw], level: str, name: str) -> Iterator[Outcome]:
    """Ask both about descriptors."""
    asked, cases = expressible(raws)
    for raw, answer in zip(asked, dll.ask(cases, name, level), strict=True):
        yield judged(raw, verdict(raw, level), answer, level)


def expressible(raws: Sequence[Raw]) -> tuple[list[Raw], list[bytes]]:
    """The descriptors that both vkops and DirectML can be asked about, and the cases of these."""
    asked, cases = [], []
    for raw in raws:
        try:
            verdict(raw)
            cases.append(Case([raw]).bytes())
            asked.append(raw)
        except NotImplementedError:
            continue
    return asked, cases


def judged(raw: Raw, error: InvalidDescError | None, answer: Answer, level: str = "") -> Outcome:
    """Compare an answer of DirectML with what vkops says."""
    accepted = answer.stage != dll.BEGUN and answer.hresult == 0
    words = "DirectML accepts it" if accepted else f"DirectML: {answer.hresult:08x}"
    text = f"{words}; vkops: {error or 'accepts it'}; {raw.fields}"
    return Outcome(raw.operator, accepted == (error is None), text, raw, error, level=level)


def verdict(raw: Raw, level: str = dll.NEWEST) -> InvalidDescError | None:
    """Why vkops refuses a descriptor.

    Raises:
        NotImplementedError: vkops cannot say it.
    """
    try:
        raw.desc().validate(level)
    except InvalidDescError as error:
        return error
    return None


# -- bytes -----------------------------------------------------------------------------------------


def execution(count: int, seed: int) -> Iterator[Outcome]:
    """Random cases of each operator."""
    made = []
    for name in operator_table.OPERATORS:
        random = Random(f"execution {seed} {name}")
        made += [random_case(random, name) for _ in range(count)]
    answers = dll.ask([case_of(*each).bytes() for each in made], "execution")
    for (desc, inputs), answer in zip(made, answers, strict=True):
        yield executed(desc, inputs, answer)


def random_case(
    random: Random, name: str, most: int = 1 << 20
) -> tuple[dml.OperatorDesc, list[bytes]]:
    """A case of an operator whose tensors have so many bytes at most, and its inputs."""
    while True:
        rank = random.randint(1, 8)
        sizes = tuple(random.randint(1, {1: 40, 2: 12, 3: 7}.get(rank, 4)) for _ in range(rank))
        kind = random.choice(operator_table.kinds(name))
        case = operator_table.OPERATORS[name].make(random, kind, sizes, random.randrange(rank))
        tensors_of = (*case.desc.inputs, *case.desc.outputs)
        if sum(tensor.total_tensor_size_in_bytes for _, tensor in tensors_of) <= most:
            return case.desc, inputs_of(random, case)


def inputs_of(random: Random, case: operator_cases.Case) -> list[bytes]:
    """Random bytes for the inputs of a case, and its indices."""
    return [array.tobytes() for array in case.inputs(random)]


def case_of(desc: dml.OperatorDesc, inputs: Sequence[bytes]) -> Case:
    """What DirectML is asked to execute; its outputs are poisoned before."""
    given, slots = iter(inputs), []
    for field in desc.FIELDS:
        value = getattr(desc, field.name)
        if field.role == "input":
            several = value if isinstance(value, tuple) else [value]
            slots += [Slot(bound=NONE) if each is None else Slot(next(given)) for each in several]
    return Case([Raw.of(desc)], slots, poisoned(desc))


def poisoned(desc: Any) -> list[Slot]:
    sizes = [tensor.total_tensor_size_in_bytes for _, tensor in desc.outputs]
    return [Slot(bytes([POISON]) * size) for size in sizes]


@cache
def _device() -> vkops.Device:
    return vkops.Device(indices="directml")


def run(desc: Any, inputs: Sequence[bytes]) -> list[bytes]:
    """The bytes that vkops makes of an operator or graph."""
    device = _device()
    create = device.compile_graph if isinstance(desc, dml.GraphDesc) else device.create_operator
    made = create(desc)
    compiled = made if isinstance(desc, dml.GraphDesc) else device.compile_operator(made)
    buffers = []
    for data in (*inputs, *(slot.data for slot in poisoned(desc))):
        buffers.append(device.buffer(len(data)))
        buffers[-1].write(data)
    compiled.dispatch(buffers[: len(inputs)], buffers[len(inputs) :])
    return [buffer.read() for buffer in buffers[len(inputs) :]]


def executed(desc: Any, inputs: Sequence[bytes], answer: Answer) -> Outcome:
    """Compare an answer of DirectML with what vkops makes of the same bytes."""
    graph = isinstance(desc, dml.GraphDesc)
    name, raw = ("GRAPH", None) if graph else (desc.operator, Raw.of(desc))
    texts, outputs = [], []
    if answer.stage != DONE:
        texts.append(f"DirectML ends at stage {answer.stage} with {answer.hresult:08x}")
    elif answer.changed:
        texts.append("DirectML changes bytes outside of its outputs")
    else:
        outputs = list(zip(answer.outputs, run(desc, inputs), strict=True))
    for number, (theirs, ours) in enumerate(outputs):
        at = np.flatnonzero(np.frombuffer(theirs, "u1") != np.frombuffer(ours, "u1"))
        if at.size:
            first = int(at[0])
            values = f"{theirs[first : first + 8].hex()}, vkops {ours[first : first + 8].hex()}"
            texts.append(f"output {number}, {at.size} bytes, from byte {first} on: {values}")
    text = f"{'; '.join(texts)}; {desc}"
    return Outcome(name, not texts, text, raw, None, inputs, outputs)
