"""The object model: creation, compilation, initialisation, and every binding rule."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from compiled_operators import compiled
from refusals import fault

import vkops
from vkops import dml
from vkops.dml import BufferTensorDesc, ExecutionFlags, TensorDataType, TensorFlags
from vkops.errors import BindingError

pytestmark = pytest.mark.memory

F32 = TensorDataType.FLOAT32
OWNED = TensorFlags.OWNED_BY_DML


def split(device, **options):
    """8 floats into 4 and 4."""
    half = BufferTensorDesc(F32, (4,), **options)
    return compiled(device, dml.SplitOperatorDesc(BufferTensorDesc(F32, (8,)), (half, half), 0))


def identity(device, **options):
    whole = BufferTensorDesc(F32, (8,))
    desc = dml.ElementWiseIdentityOperatorDesc(BufferTensorDesc(F32, (8,), **options), whole)
    return compiled(device, desc)


@pytest.fixture
def x(device):
    return device.tensor(np.arange(8, dtype=np.float32))


@pytest.fixture
def outputs(device):
    return [device.buffer(16), device.buffer(16)]


def floats(buffer):
    return np.frombuffer(buffer.read(), np.float32).tolist()


def test_dispatch(device, x, outputs):
    operator = split(device)
    operator.dispatch([x], outputs)
    assert [floats(b) for b in outputs] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    operator.dispatch([x.buffer], outputs[::-1])
    assert [floats(b) for b in outputs] == [[4, 5, 6, 7], [0, 1, 2, 3]]


def test_one_buffer_for_all_outputs(device, x):
    whole = device.buffer(48)
    whole.write(np.full(12, -1, np.float32))
    split(device).dispatch([x], [(whole, 32, 16), (whole, 0, 16)])
    assert floats(whole) == [4, 5, 6, 7, -1, -1, -1, -1, 0, 1, 2, 3]


def test_an_input_bound_twice(device, x):
    four, eight = BufferTensorDesc(F32, (4,)), BufferTensorDesc(F32, (8,))
    join = compiled(device, dml.JoinOperatorDesc((four, four), eight, 0))
    result = device.buffer(32)
    join.dispatch([(x, 16, 16), (x, 0, 16)], [result])
    assert floats(result) == [4, 5, 6, 7, 0, 1, 2, 3]
    join.dispatch([x, x], [result])  # overlapping inputs are fine (B-08)
    assert floats(result) == [0, 1, 2, 3, 0, 1, 2, 3]


def test_the_plan_is_the_operators(device):
    assert split(device).plan.inputs == (32,)
    assert [o.nbytes for o in split(device).plan.outputs] == [16, 16]


REFUSED = [
    (lambda x, big, outputs: ([], outputs), "inputs [B-01]"),
    (lambda x, big, outputs: ([None, None], outputs), "inputs [B-01]"),
    (lambda x, big, outputs: (3, outputs), "inputs [B-01]"),
    (lambda x, big, outputs: ([x], outputs[:1]), "outputs [B-01]"),
    *[
        (lambda x, big, outputs, given=given: ([given], outputs), "input_tensor [B-02]")
        for given in (None, 3, "x", b"xx", (1, 2), (None, 0, 16), [1])
    ],
    *[
        (lambda x, big, outputs, part=part: ([(x, *part)], outputs), "input_tensor [B-04]")
        for part in ((16, 32), (-16, 32), (0, -1), (0.0, 32), (0, "32"), (True, 32), ("x", None), (None, None))
    ],
    (lambda x, big, outputs: ([(big, 24, 32)], outputs), "input_tensor [B-05]"),
    (lambda x, big, outputs: ([outputs[0]], outputs), "input_tensor [B-06]"),
    (lambda x, big, outputs: ([x], [outputs[0], (outputs[1], 0, 12)]), "output_tensors[1] [B-06]"),
    (lambda x, big, outputs: ([x], [(big, 0, 16), (big, 0, 64)]), "output_tensors[1] [B-07]"),
    (lambda x, big, outputs: ([(big, 0, 32)], [(big, 48, 16), (big, 16, 16)]), "output_tensors[1] [B-09]"),
]  # fmt: skip


@pytest.mark.parametrize(("bindings", "named"), REFUSED)
def test_bindings_that_are_refused(device, x, outputs, bindings, named, message):
    """Nothing is written."""
    buffers = [device.buffer(64), *outputs]
    for buffer in buffers:
        buffer.write(bytes([7]) * buffer.nbytes)
    given = bindings(x, buffers[0], outputs)
    message(fault(lambda: split(device).dispatch(*given), BindingError), "SPLIT", *named.split())
    assert [buffer.read() for buffer in buffers] == [bytes([7]) * n for n in (64, 16, 16)]


def test_bindings_that_are_accepted(device, x, outputs):
    operator, big = split(device), device.buffer(64)
    operator.dispatch([(x, np.int64(0), np.uint32(32))], outputs)
    operator.dispatch([device.buffer(4096)], outputs)
    operator.dispatch([x], [(big, 16, 48), (big, 0, 64)])  # sizes beyond the tensor are free


def test_b09_in_place_identity(device, x):
    identity(device).dispatch([x], [x])
    assert x.numpy().tolist() == list(range(8))


def test_b09_in_place_needs_equal_strides(device, x):
    desc = dml.ElementWiseIdentityOperatorDesc(
        BufferTensorDesc(F32, (2, 4), (1, 2)), BufferTensorDesc(F32, (2, 4))
    )
    with pytest.raises(vkops.BindingError, match="B-09"):
        compiled(device, desc).dispatch([x], [x])


# -- inputs that DirectML owns ---------------------------------------------------------------------


def initialized(device, x):
    operator = identity(device, flags=OWNED)
    operator.initialize([x])
    return operator


def test_owned_input_is_copied_at_initialisation(device, x):
    operator, result = initialized(device, x), device.buffer(32)
    x.buffer.write(np.zeros(8, np.float32))
    operator.dispatch([None], [result])
    assert floats(result) == list(range(8))
    assert operator.binding_properties.persistent_resource_size == 32


def test_b18_initialisation_by_many_threads(device, x):
    """One of them does it."""
    operator = identity(device, flags=OWNED)

    def initialize(_):
        try:
            operator.initialize([x])
        except vkops.BindingError as error:
            return error.rule
        return "done"

    with ThreadPoolExecutor(8) as pool:
        results = sorted(pool.map(initialize, range(8)))
    assert results == ["B-18"] * 7 + ["done"]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda d, x, y: identity(d, flags=OWNED).dispatch([None], [y]), "IDENTITY input_tensor [B-18]"),
        (lambda d, x, y: initialized(d, x).initialize([x]), "IDENTITY [B-18]"),
        (lambda d, x, y: initialized(d, x).dispatch([x], [y]), "IDENTITY input_tensor [T-17]"),
        (lambda d, x, y: split(d).initialize([x]), "SPLIT input_tensor [B-03]"),
    ],
)  # fmt: skip
def test_ownership_that_is_refused(device, x, call, named, message):
    message(fault(lambda: call(device, x, device.buffer(32)), BindingError), *named.split())


def test_no_owned_input_is_initialised(device):
    split(device).initialize([None])


# -- device ----------------------------------------------------------------------------------------


def test_device_caps_the_feature_level(adapter):
    """DEV-03: a minimum in DirectML, a cap here."""
    desc = dml.SplitOperatorDesc(BufferTensorDesc(F32, (8,)), [BufferTensorDesc(F32, (4,))] * 2, 0)
    with vkops.Device(adapter.index, feature_level="2_1") as old:
        with pytest.raises(vkops.FeatureLevelError, match=r"at feature level 2_1.*\[DEV-13\]"):
            old.create_operator(desc)
        query = dml.FeatureQueryTensorDataTypeSupport(TensorDataType.INT64)
        assert not old.check_feature_support(query).is_supported


def test_alternative_levels(adapter):
    one = BufferTensorDesc(F32, (4,))
    desc = dml.JoinOperatorDesc((one, one), BufferTensorDesc(F32, (8,)), 0)
    with (
        vkops.Device(adapter.index, feature_level="3_1") as seed,
        pytest.raises(vkops.FeatureLevelError),
    ):
        seed.create_operator(desc)
    with vkops.Device(adapter.index, "3_1", alternative_levels=("JOIN",)) as other:
        other.create_operator(desc)


@pytest.mark.parametrize("value", [5, "JOIN", ["SPLIT"], [None]])
def test_alternative_levels_that_do_not_exist(adapter, value):
    with pytest.raises(vkops.InvalidDescTypeError, match=r"^alternative_levels.*\[JOIN-09\]$"):
        vkops.Device(adapter.index, alternative_levels=value)


def test_unknown_feature_level():
    with pytest.raises(vkops.InvalidDescError, match=r"9_9.*\[DEV-04\]"):
        vkops.Device(feature_level="9_9")


def test_arguments_of_the_wrong_kind(device):
    operator = device.create_operator(
        dml.ElementWiseIdentityOperatorDesc(*[BufferTensorDesc(F32, (1,))] * 2)
    )
    with pytest.raises(vkops.InvalidDescError, match=r"flags: got 8, must be .*\[DEV-10\]"):
        device.compile_operator(operator, 8)
    device.compile_operator(operator, ExecutionFlags.DESCRIPTORS_VOLATILE)
    with pytest.raises(vkops.InvalidDescTypeError, match="must be an operator descriptor"):
        device.create_operator("SPLIT")
    with pytest.raises(vkops.InvalidDescTypeError, match="must be an operator of"):
        device.compile_operator("SPLIT")


@pytest.mark.parametrize("kind", ["direct", "staged", "host"])
def test_fill_stays_within_its_buffer(device, staged_device, kind, message):
    """What does not fit, or is no array of plain elements, is refused and changes nothing."""
    home = staged_device if kind == "staged" else device
    make = home.host_buffer if kind == "host" else home.buffer
    buffers = [make(48) for _ in range(3)]
    for buffer in buffers:
        buffer.fill(np.arange(48, dtype=np.uint8))
    for wrong in (np.ones(100), np.broadcast_to(np.uint8(1), (7, 7)), np.array([None]), [1, 2], 3):
        message(fault(lambda w=wrong: buffers[1].fill(w), BindingError), "[B-04]")
    for nothing in (np.ones(0), np.empty((3, 0), "S0"), np.empty(4, "V0")):
        buffers[1].fill(nothing)
    for buffer in buffers:
        assert buffer.read() == bytes(range(48))
    buffers[1].fill(np.arange(12, dtype=">i4")[::-2])
    assert buffers[1].read(0, 24) == np.arange(12, dtype=">i4")[::-2].tobytes()
    assert [buffers[0].read(), buffers[2].read()] == [bytes(range(48))] * 2


def test_what_shares_no_memory_because_it_is_no_device(device):
    text = fault(lambda: device.shares_memory_with(3), vkops.InvalidDescTypeError)
    assert text == "other: got 3, must be a Device [B-02]"
