"""Sessions with the arguments and attributes of ONNX Runtime."""

import re

import numpy as np
import onnx
import pytest
from adapters import memory_used
from arrays import small_memory
from fuzz import hostile
from onnx import numpy_helper
from onnx_models import CONCAT, TWO, node_model
from refusals import fault

import vkops
from vkops.errors import DeviceError, InvalidDescTypeError, ModelError
from vkops.gpu.adapters import adapter
from vkops.onnx import Model, NodeArg, Session, SessionOptions, get_available_providers, providers

VULKAN, CPU = "VulkanExecutionProvider", "CPUExecutionProvider"

MODEL = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
parts (float[N, 4] x, string[?] words, int64 scalar, float16[3, M] half)
    => (float[N, 2] a, float[N, 2] b, string[?] c, int64 d, float16[3, M] e) {
  a, b = Split <axis = 1, num_outputs = 2> (x)
  c = Identity (words)
  d = Identity (scalar)
  e = Identity (half)
}""")
# The text format has none of these.
MODEL.graph.initializer.append(onnx.numpy_helper.from_array(np.float16([[1], [2], [3]]), "half"))
MODEL.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
MODEL.graph.input.append(onnx.helper.make_tensor_value_info("any", onnx.TensorProto.BOOL, None))
MODEL.graph.node.append(onnx.helper.make_node("Identity", ["any"], ["f"]))
MODEL.graph.output.append(onnx.helper.make_tensor_value_info("f", onnx.TensorProto.BOOL, None))

MODEL.producer_name, MODEL.domain, MODEL.doc_string = "tests", "org.example", "A model."
MODEL.graph.doc_string, MODEL.model_version = "A graph.", 3
onnx.helper.set_model_props(MODEL, {"stride": "32"})

SEQUENCES = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
ends (seq(float[N]) s, optional(int8[2]) o) => (seq(float[N]) y) { y = Identity (s) }""")

INPUTS = [
    ("x", ["N", 4], "tensor(float)"), ("words", [None], "tensor(string)"),
    ("scalar", [], "tensor(int64)"), ("any", [], "tensor(bool)"),
]  # fmt: skip
OUTPUTS = [
    ("a", ["N", 2], "tensor(float)"), ("b", ["N", 2], "tensor(float)"),
    ("c", [None], "tensor(string)"), ("d", [], "tensor(int64)"), ("e", [3, "M"], "tensor(float16)"),
    ("f", [], "tensor(bool)"),
]  # fmt: skip
ENDS = [
    ("s", [], "seq(tensor(float))"), ("o", [2], "optional(tensor(int8))"),
    ("y", [], "seq(tensor(float))"),
]  # fmt: skip
METADATA = {
    "producer_name": "tests",
    "graph_name": "parts",
    "domain": "org.example",
    "description": "A model.",
    "graph_description": "A graph.",
    "version": 3,
    "custom_metadata_map": {"stride": "32"},
}
"""What ONNX Runtime 1.32 says of the inputs and outputs of the models."""

FEED = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "words": np.array(["a", "b"], object),
    "scalar": np.array(7),
    "any": np.array([True, False]),
}


def described(entries):
    return [(entry.name, entry.shape, entry.type) for entry in entries]


def describe(session):
    """What ONNX Runtime's users ask a session."""
    return (
        described(session.get_inputs()),
        described(session.get_outputs()),
        [entry.name for entry in session.get_overridable_initializers()],
        {name: getattr(session.get_modelmeta(), name) for name in METADATA},
        [np.asarray(result).tolist() for result in session.run(None, FEED)],
        [np.asarray(result).tolist() for result in session.run(["d", "a"], FEED)],
        [np.asarray(result).tolist() for result in session.run([], FEED)],
    )


def expected():
    x = FEED["x"]
    outputs = [x[:, :2].tolist(), x[:, 2:].tolist(), ["a", "b"], 7, [[1], [2], [3]], [True, False]]
    return INPUTS, OUTPUTS, ["half"], METADATA, outputs, [7, outputs[0]], outputs


def test_attributes_are_those_of_onnx_runtime(device):
    assert describe(Session(MODEL, device)) == expected()
    session = Session(SEQUENCES, device)
    assert described([*session.get_inputs(), *session.get_outputs()]) == ENDS
    assert session.get_modelmeta().version == 2**63 - 1
    assert str(Session(MODEL, device).get_inputs()[0]) == (
        "NodeArg(name='x', type='tensor(float)', shape=['N', 4])"
    )


def test_onnx_runtime_says_the_same():
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    session = onnxruntime.InferenceSession(MODEL.SerializeToString(), options, providers=[CPU])
    assert describe(session) == expected()
    proto = SEQUENCES.SerializeToString()
    session_of_sequences = onnxruntime.InferenceSession(proto, providers=[CPU])
    both = [*session_of_sequences.get_inputs(), *session_of_sequences.get_outputs()]
    assert described(both) == ENDS
    assert session_of_sequences.get_modelmeta().version == 2**63 - 1
    ours = SessionOptions()
    for name in SessionOptions.__dataclass_fields__:
        if not name.startswith("_") and getattr(ours, name) is not None:
            assert getattr(ours, name) == getattr(options, name), name
    names = {name for name in dir(ours) if not name.startswith("_")} - {"check", "resize"}
    assert names <= set(dir(options))
    assert str(session.get_inputs()[0]) == str(NodeArg("x", "tensor(float)", ["N", 4]))


# -- options ---------------------------------------------------------------------------------------


def options_with(by_name=(), by_denotation=()):
    options = SessionOptions()
    for name, value in by_name:
        options.add_free_dimension_override_by_name(name, value)
    for denotation, value in by_denotation:
        options.add_free_dimension_override_by_denotation(denotation, value)
    return options


@pytest.mark.parametrize(
    ("options", "x", "a", "e"),
    [
        (options_with(), ["N", 4], ["N", 2], [3, "M"]),
        (options_with([("N", 3), ("unknown", 9)]), [3, 4], [3, 2], [3, "M"]),
        (options_with([("N", 3), ("M", np.int64(1))]), [3, 4], [3, 2], [3, 1]),
        (options_with((), [("DATA_BATCH", 3)]), [3, 4], ["N", 2], [3, "M"]),
        (options_with([("N", 3)], [("DATA_BATCH", 5)]), [3, 4], [3, 2], [3, "M"]),
    ],
)
def test_free_dimensions_get_the_given_sizes(device, options, x, a, e):
    model = Model(MODEL)
    session = Session(model, device, sess_options=options)
    shapes = {entry.name: entry.shape for entry in (*session.get_inputs(), *session.get_outputs())}
    assert (shapes["x"], shapes["a"], shapes["e"]) == (x, a, e)
    assert session.get_session_options() is options
    assert session.run(["a"], FEED)[0].shape == (3, 2)
    other = {**FEED, "x": np.zeros((2, 4), np.float32)}
    if x[0] == 3:
        with pytest.raises(ModelError, match=r"input 'x': got shape \(2, 4\), must be \(3, 4\)"):
            session.run(None, other)
    else:
        assert session.run(["a"], other)[0].shape == (2, 2)
    assert model.inputs[0].shape == ("N", 4)  # other sessions may have other sizes


def test_faults_that_depend_on_sizes_are_found_when_these_are_given(device):
    text = """<ir_version: 9, opset_import: ["" : 18]>
    both (float[N, 2] x, float[3, 2] y) => (float[N, 4] z) { z = Concat <axis = 1> (x, y) }"""
    model = Model(onnx.parser.parse_model(text))
    Session(model, device, sess_options=options_with([("N", 3)]))
    Session(model, device)
    with pytest.raises(ModelError, match="Concat"):
        Session(model, device, sess_options=options_with([("N", 4)]))


def test_options_without_an_effect_may_have_any_value(device):
    options = SessionOptions(intra_op_num_threads=1)
    options.graph_optimization_level = "ORT_ENABLE_ALL"
    options.inter_op_num_threads = 4
    options.log_severity_level = 3
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    assert options.get_session_config_entry("session.set_denormal_as_zero") == "1"
    assert describe(Session(MODEL, device, sess_options=options)) == expected()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda o: o.add_free_dimension_override_by_name("N", -1), "value"),
        (lambda o: o.add_free_dimension_override_by_name("N", True), "value"),
        (lambda o: o.add_free_dimension_override_by_name("N", 1.5), "value"),
        (lambda o: o.add_free_dimension_override_by_name(1, 1), "name"),
        (lambda o: o.add_free_dimension_override_by_denotation(None, 1), "denotation"),
        (lambda o: o.add_session_config_entry("key", 1), "value"),
        (lambda o: o.get_session_config_entry("key"), "key"),
    ],
)
def test_values_of_options_that_are_refused(call, named, message):
    message(fault(lambda: call(SessionOptions()), ModelError), f"{named}: ")


def test_misspelt_options_are_refused():
    with pytest.raises(AttributeError):
        SessionOptions().intra_op_threads = 4


# -- providers -------------------------------------------------------------------------------------


def test_providers(device, monkeypatch):
    index = str(device.info.index)
    session = Session(MODEL, device)
    assert session.get_providers() == [VULKAN]
    assert session.get_provider_options() == {VULKAN: {"device_id": index}}
    assert get_available_providers()[0] == VULKAN
    for arguments in (
        {"providers": [VULKAN], "provider_options": [{"device_id": int(index)}]},
        {"providers": [(VULKAN, {"device_id": index})]},
        {"providers": ((VULKAN, {"device_id": index}), "UnknownExecutionProvider")},
    ):
        session = Session(MODEL, **arguments)
        assert session.get_providers() == [VULKAN]
        assert session.get_provider_options() == {VULKAN: {"device_id": index}}
        assert describe(session) == expected()
    best = adapter.select(None).index
    for arguments in (
        {},
        {"providers": [VULKAN]},
        {"providers": [VULKAN], "provider_options": [{}]},
    ):
        assert Session(MODEL, **arguments).device.info.index == best


def test_inputs_of_foreign_byte_order(device):
    session = Session(MODEL, device=device)
    x = np.arange(24, dtype=">f4").reshape(3, 8)
    for value in (x[:, :4], device.tensor(x)[:, :4], device.tensor(x)[::-1, ::2]):
        output = session.run(None, {**FEED, "x": value})[1]
        assert output.dtype == np.float32
        assert np.array_equal(output.numpy(), np.asarray(value)[:, 2:])


def test_the_provider_for_the_cpu():
    on_cpu = [info for info in vkops.devices() if info.type == "CPU"]
    assert (CPU in get_available_providers()) is bool(on_cpu)
    for info in on_cpu[:1]:
        session = Session(MODEL, providers=[CPU])
        assert session.get_providers() == [CPU]
        assert session.device.info.type == "CPU"
        options = {"device_id": info.index}
        assert Session(MODEL, providers=[(CPU, options)]).device.info.index == info.index


def test_providers_that_are_not_available_make_a_warning(device):
    index = device.info.index
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not available; avail") as made:
        session = Session(
            MODEL,
            providers=["CUDAExecutionProvider", VULKAN],
            provider_options=[{"device_id": 3, "arena": 1}, {"device_id": index}],
        )
    assert made[0].filename == __file__
    assert session.get_providers() == [VULKAN]


@pytest.mark.filterwarnings("ignore:the provider .* is not available:UserWarning")
def test_without_an_available_provider_there_is_no_session(monkeypatch):
    listed = ", ".join(get_available_providers())
    names = ["CUDAExecutionProvider", "DmlExecutionProvider"]
    message = f"providers: none of those given is available; available: {listed}"
    assert fault(lambda: Session(MODEL, providers=names), DeviceError) == message
    monkeypatch.setattr(providers, "devices", list)
    assert get_available_providers() == []
    with pytest.raises(DeviceError, match="available: none"):
        Session(MODEL, providers=[CPU])


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"providers": VULKAN}, ModelError, "providers"),
        ({"providers": []}, ModelError, "providers"),
        ({"providers": [3]}, ModelError, "providers[0]"),
        ({"providers": [(VULKAN, 3)]}, ModelError, "providers[0]"),
        ({"providers": [(VULKAN,)]}, ModelError, "providers[0]"),
        ({"providers": [VULKAN], "provider_options": [{}, {}]}, ModelError, "provider_options"),
        ({"providers": [VULKAN], "provider_options": {}}, ModelError, "provider_options"),
        ({"providers": [(VULKAN, {})], "provider_options": [{}]}, ModelError, "providers"),
        ({"provider_options": [{}]}, ModelError, "providers"),
        ({"providers": [(VULKAN, {"device": 0})]}, ModelError, "providers[0]"),
        ({"providers": [(VULKAN, {"device_id": 99})]}, DeviceError, "providers[0]"),
        ({"providers": [(VULKAN, {"device_id": True})]}, DeviceError, "providers[0]"),
        ({"providers": [(VULKAN, {"device_id": None})]}, DeviceError, "providers[0]"),
        ({"providers": [VULKAN], "device": 0}, ModelError, "providers"),
        ({"device": SessionOptions()}, ModelError, "device"),
        ({"device": [VULKAN]}, InvalidDescTypeError, "device"),
        ({"sess_options": {}}, ModelError, "sess_options"),
        ({"sess_options": SessionOptions(enable_profiling=True)}, ModelError, "enable_profiling"),
        ({"sess_options": SessionOptions(optimized_model_filepath="x.onnx")}, ModelError,
         "optimized_model_filepath"),
    ],
)  # fmt: skip
def test_arguments_of_sessions_that_are_refused(arguments, error, named, message):
    """Before the model is read: it is not one."""
    text = fault(lambda: Session("no_such_file.onnx", **arguments), error)
    message(re.sub(r" has \d+ \(.*", " has {adapters}", text), f"{named}: ")


@pytest.mark.filterwarnings("ignore:the provider .* is not available:UserWarning")
@pytest.mark.parametrize("make", hostile.SINGLE, ids=range(len(hostile.SINGLE)))
def test_arguments_of_any_kind_are_refused(make):
    none_allowed = make() is None
    for arguments in (
        {"providers": make()},
        {"providers": [make()]},
        {"providers": [(VULKAN, make())]},
        {"providers": [(VULKAN, {"device_id": make()})]},
        {"providers": [(VULKAN, {make().__class__: 1})]},
        {"providers": [VULKAN], "provider_options": make()},
        {"providers": [VULKAN], "provider_options": [make()]},
        {"sess_options": make()},
    ):
        if not (none_allowed and None in arguments.values()):
            with pytest.raises(vkops.VkopsError):
                Session("no_such_file.onnx", **arguments)


# -- indices ---------------------------------------------------------------------------------------

X = np.arange(12, dtype=np.float32).reshape(3, 4)
OUT_OF_RANGE = [  # inputs, one of which has the indices; the error; the result of a tensor
    ("Gather", [X, np.int64(7)], {}, "indices: got 7, must be -3 to 2 for axis 0", X[2]),
    ("GatherND", [X, np.int64([[0], [-5], [9]])], {"batch_dims": 1},
     "indices[1, 0]: got -5, must be -4 to 3 for axis 1", X[[0, 1, 2], [0, 0, 3]]),
    ("ScatterND", [X, np.int64([[0], [-4]]), -X[:2]], {},
     "indices[1, 0]: got -4, must be -3 to 2 for axis 0", X * [[-1], [1], [1]]),
    ("TensorScatter", [X, -X[:, :2], np.int64([0, 3, -1])], {"axis": 1, "opset": 24},
     "write_indices[1]: got 3, must be 0 to 2 for axis 1", X * [[-1, -1, 1, 1], [1] * 4, [1] * 4]),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "attributes", "text", "expected"), OUT_OF_RANGE)
def test_indices_out_of_range(device, monkeypatch, operator, inputs, attributes, text, expected):
    """In an array and in a constant they are refused; in a tensor they are clamped or skipped."""
    proto, values = node_model(operator, *inputs, **attributes)
    name = next(name for name, value in values.items() if value.dtype.kind == "i")
    session = Session(proto, device)
    (made,) = session.run({**values, name: device.tensor(values[name])})
    np.testing.assert_array_equal(made.numpy(), expected)
    monkeypatch.setattr(device.vulkan, "start", lambda *_: pytest.fail("something was run"))
    refused = fault(lambda: session.run(values), ModelError)
    version = onnx.defs.get_schema(operator, proto.opset_import[0].version, "").since_version
    assert refused == f"node 0, which makes 'o0' ({operator}-{version}): {text}"
    proto.graph.initializer.append(numpy_helper.from_array(values[name], name))
    del values[name]
    assert fault(lambda: Session(proto, device).run(values), ModelError) == refused


@pytest.mark.parametrize(
    ("indices", "is_checked"),
    [
        ("i = Identity (given)", True),
        ("i = Reshape <allowzero = 0> (given, shape)", True),
        ("i = Transpose (given)", False),
    ],
)
def test_indices_are_checked_where_the_model_only_passes_them_on(device, indices, is_checked):
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
    chosen (float[N] x, int64[2, 2] given) => (float[2, 2] y) <int64[2] shape = {{2, 2}}> {{
      {indices}
      y = Gather (x, i)
    }}""")
    values = {"x": np.arange(3, dtype=np.float32), "given": np.int64([[0, 1], [2, 3]])}
    if is_checked:
        with pytest.raises(
            ModelError, match=r"indices\[1, 1\]: got 3, must be -3 to 2 for axis 0$"
        ):
            Session(model, device).run(values)
    else:
        assert Session(model, device).run(values)[0].numpy().tolist() == [[0, 2], [1, 2]]


def test_indices_in_a_sequence_are_checked(device):
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
    chosen (float[N] x, seq(int64[M]) s) => (float[M] y) <int64 second = {1}> {
      i = SequenceAt (s, second)
      y = Gather (x, i)
    }""")
    session, x = Session(model, device), np.arange(3, dtype=np.float32)
    (made,) = session.run({"x": x, "s": [np.int64([9]), np.int64([2, 0])]})
    assert made.numpy().tolist() == [2, 0]
    with pytest.raises(ModelError, match=r"indices\[0\]: got 9, must be -3 to 2 for axis 0$"):
        session.run({"x": x, "s": [np.int64([2, 0]), np.int64([9])]})


# -- graphs and their tensors -----------------------------------------------------------------------


def opened(text, device):
    return Session(onnx.parser.parse_model(text), device)


def test_a_graph_is_one_submission_without_intermediate_memory(device):
    text = """<ir_version: 8, opset_import: ["" : 18]>
    chain (float[64, 64] x) => (float[64, 64] y) {
      a, b = Split <axis = 0, num_outputs = 2> (x)
      c = Transpose (a)
      d = Transpose (b)
      e = Concat <axis = 1> (d, c)
      f = Transpose (e)
      y = Identity (f)
    }"""
    session = opened(text, device)
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    feed = {"x": device.tensor(x)}
    (plan,) = session.specialize(feed).plans
    assert [len(output.regions) for output in plan.outputs] == [2]
    before = memory_used(device)
    (y,) = session.run(feed)
    assert memory_used(device) - before <= y.nbytes + 256
    np.testing.assert_array_equal(y.numpy(), np.concatenate([x[32:], x[:32]]))


def test_specialisations_are_kept_and_bounded(device):
    session = opened(CONCAT, device)
    for rows in range(1, 101):
        x = np.ones((rows, 2), np.float32)
        (y,) = session.run({"x0": x, "x1": x})
        assert y.shape == (2 * rows, 2)
    once = session.specialize({"x0": x, "x1": x})
    assert session.specialize({"x0": x, "x1": x}) is once
    assert len(session._specializations) == 64


def test_constants_are_on_the_device_once(device):
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[N] x) => (float[M] y) { y = Concat <axis = 0> (x, weights) }"""
    proto = onnx.parser.parse_model(text)
    weights = np.arange(1 << 18, dtype=np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    session = Session(Model(proto), device)
    before = memory_used(device)
    for n in range(1, 20):
        (y,) = session.run({"x": np.zeros(n, np.float32)})
        np.testing.assert_array_equal(y.numpy()[n:], weights)
        del y
    assert memory_used(device) - before < 2 * weights.nbytes
    del session, proto
    assert memory_used(device) == before


PASSED_ON = """<ir_version: 8, opset_import: ["" : 18]>
g (float[4] x) => (float[4] y, float[4] c, float[4] t, float[4] u) <float[4] w = {1, 2, 3, 4},
    int64[1] s = {-1}, int64[1] e = {-9999}, int64[1] a = {0}> {
  y = Identity (x)
  c = Identity (w)
  t = Slice (x, s, e, a, s)
  u = Identity (t)
}"""


def test_outputs_do_not_share_memory(device):
    session = opened(PASSED_ON, device)
    x = device.tensor(np.float32([5, 6, 7, 8]))
    results = session.run({"x": x})
    for result in results:
        result[...] = 0
    assert x.numpy().tolist() == [5, 6, 7, 8]
    again = [result.numpy().tolist() for result in session.run({"x": x})]
    assert again == [[5, 6, 7, 8], [1, 2, 3, 4], [8, 7, 6, 5], [8, 7, 6, 5]]


def test_targets_that_are_inputs_or_each_other(device):
    session = opened(PASSED_ON, device)
    x = device.tensor(np.float32([5, 6, 7, 8]))
    results = session.run({"x": x}, targets={2: x})
    assert results[2] is x
    assert [r.numpy().tolist() for r in results[2:]] == [[8, 7, 6, 5]] * 2
    assert results[0].numpy().tolist() == [5, 6, 7, 8]
    one, two = device.tensor(np.float32([1, 2, 3, 4])), device.tensor(np.zeros(4, np.float32))
    session.run({"x": one}, targets={2: one, 0: two})
    assert [t.numpy().tolist() for t in (one, two)] == [[4, 3, 2, 1], [1, 2, 3, 4]]
    target = device.tensor(np.zeros(4, np.float32))
    y, _, t, u = session.run({"x": np.float32([1, 2, 3, 4])}, targets={3: target})
    assert [r.numpy().tolist() for r in (y, t, u)] == [[1, 2, 3, 4], [4, 3, 2, 1], [4, 3, 2, 1]]
    assert t.buffer is not u.buffer


def test_targets_that_are_views(device):
    """Results are written to the tensors that targets are views of, an input's included."""
    session = opened(PASSED_ON, device)
    x = device.tensor(np.float32([5, 6, 7, 8]))
    base = device.tensor(np.zeros((4, 3), np.float32))
    session.run({"x": x[::-1]}, targets={0: base[:, 1], 2: x[:]})
    assert base.numpy()[:, 1].tolist() == [8, 7, 6, 5]
    assert x.numpy().tolist() == [5, 6, 7, 8]
    assert not base.numpy()[:, [0, 2]].any()


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({4: np.zeros(4, "f4")}, "targets: got output 4, must be 0 to 3"),
        ({0: np.zeros(3, "f4")}, "targets[0]: is float32 (3,), must be float32 (4,)"),
        ({0: np.zeros(4, "i4")}, "targets[0]: is int32 (4,), must be float32 (4,)"),
        ({0: None}, "targets[0]: got None, must be a vkops.Tensor by the index of an output"),
        ([], "targets: got [], must be a dict of tensors by index"),
    ],
)
def test_targets_that_do_not_fit(device, targets, message):
    if isinstance(targets, dict):
        targets = {n: x if x is None else device.tensor(x) for n, x in targets.items()}
    session, feed = opened(PASSED_ON, device), {"x": np.zeros(4, np.float32)}
    assert fault(lambda: session.run(feed, targets=targets), ModelError) == message


def test_targets_of_empty_outputs(device):
    target = device.tensor(np.zeros((0, 2), np.float32))
    empty = np.zeros((0, 2), np.float32)
    (y,) = opened(CONCAT, device).run({"x0": empty, "x1": empty}, targets={0: target})
    assert y is target


def test_tensors_between_stages_are_freed_when_nothing_reads_them_any_more(adapter, monkeypatch):
    """64 tensors of 256 KiB, each made of the one before by itself, on a device of 2 MiB."""
    for name in ("MAX_STEPS", "STEPS_PER_REGION"):  # no tensor is composed
        monkeypatch.setattr(f"vkops.plan.graph.{name}", 0)
    monkeypatch.setattr("vkops.gpu.memory.pools.FIRST_NBYTES", 1 << 18)
    nodes = "".join(
        f"a{i}, b{i} = Split <axis = 0, num_outputs = 2> (x{i})\n"
        f"x{i + 1} = Concat <axis = 0> (b{i}, a{i})\n"
        for i in range(64)
    )
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    turns (float[65536] x0) => (float[65536] x64, float[65536] x1) {{ {nodes} }}"""
    x = np.arange(65536, dtype=np.float32)
    with vkops.Device(adapter.index) as device:
        memory = small_memory(device)
        memory.available = lambda: (2 << 20) - memory.reserved
        session = opened(text, device)
        assert len(session.specialize({"x0": x}).plans) > 64
        last, first = session.run({"x0": x})
        assert (last.numpy() == x).all()
        assert (first.numpy() == np.roll(x, 32768)).all()


def test_sessions_take_the_calling_convention_of_onnx_runtime(device, tmp_path):
    onnx.save(onnx.parser.parse_model(TWO), tmp_path / "two.onnx")
    session = Session(tmp_path / "two.onnx", device)
    feed, everything = {"x": np.float32([1, 2, 3])}, [[1, 2], [3]]
    for arguments, named, expected in (
        *(((*names, feed), {}, everything) for names in ((), (None,), ([],), (["a", "b"],))),
        ((None, feed, None), {}, everything),
        ((), {"output_names": ["b"], "input_feed": feed}, [[3]]),
        ((("b", "a"), feed), {}, [[3], [1, 2]]),
    ):
        results = session.run(*arguments, **named)
        assert [result.numpy().tolist() for result in results] == expected
    assert Session(onnx.parser.parse_model(TWO)).device is Session(tmp_path / "two.onnx").device


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "input_feed: got None, must be a dict of arrays by input name"),
        (([1, 2],), "input_feed: got [1, 2], must be a dict of arrays by input name"),
        ((None, [1, 2]), "input_feed: got [1, 2], must be a dict of arrays by input name"),
        (("a", {"x": [1]}), "output_names: got 'a', must be a list of names, or None"),
        ((["a", "c"], {"x": [1]}), "output_names[1]: got 'c', the model has 'a', 'b'"),
        (([None], {"x": [1]}), "output_names[0]: got None, the model has 'a', 'b'"),
        (({"x": [1]}, 3), "progress: got 3, must be a function or None"),
        ((None, {"x": None}), "input 'x': got None, must be a tensor"),
        ((None, {1: [1]}), "input 1: the model has no such input; it has 'x'"),
    ],
)
def test_wrong_arguments_of_run_are_refused(device, arguments, message):
    assert fault(lambda: opened(TWO, device).run(*arguments), ModelError) == message


def test_a_device_by_name_and_inputs_of_the_wrong_kind(device):
    assert opened(TWO, device.name).device.info == device.info
    text = "inputs: got None, must be a dict of arrays by input name"
    assert fault(lambda: opened(TWO, device).specialize(None), ModelError) == text
