"""Run LSTM, GRU and RNN as loops, scheduled for several machines, against ONNX Runtime's operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser

from ...models import run as run_onnx
from ...models import save
from ...profiles import examples

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered

pytestmark = pytest.mark.tvm

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPERANDS = ("x", "w", "r", "b", "lengths", "h0", "c0", "p")
ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "LeakyRelu", "Elu", "Softsign", "Softplus")


@st.composite
def layers(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one recurrent node, with its inputs; any operand and result may be missing."""
    op = draw(st.sampled_from(sorted(GATES)))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch = draw(st.integers(1, 8) | st.sampled_from([16, 40])), draw(st.integers(1, 5))
    inputs = draw(st.integers(1, 9) | st.sampled_from([96, 150]))
    hidden = draw(st.integers(1, 18) | st.sampled_from([32, 45, 70, 97, 300]))
    count, rows = 1 + (direction == "bidirectional"), GATES[op] * hidden
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = {
        "x": (steps, batch, inputs), "w": (count, rows, inputs), "r": (count, rows, hidden), "b": (count, 2 * rows),
        "h0": (count, batch, hidden), "c0": (count, batch, hidden), "p": (count, 3 * hidden),
    }  # fmt: skip
    values = {name: (random.standard_normal(shape) / 2).astype(np.float32) for name, shape in shapes.items()}
    values["w"] /= inputs**0.5
    values["r"] /= hidden**0.5  # else Relu makes states grow from step to step, and roundings with them
    values["lengths"] = random.integers(0, steps + 1, batch).astype(np.int32)
    optional = OPERANDS[3:] if op == "LSTM" else OPERANDS[3:6]
    names = ["x", "w", "r", *(name if draw(st.booleans()) else "" for name in optional)]
    results = ("y", "h", "c") if op == "LSTM" else ("y", "h")
    wanted = draw(st.sets(st.sampled_from(results), min_size=1))
    attributes: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if draw(st.booleans()):
        each = {"LSTM": 3, "GRU": 2, "RNN": 1}[op] * count
        attributes["activations"] = draw(st.lists(st.sampled_from(ACTIVATIONS), min_size=each, max_size=each))
    if op == "LSTM":
        attributes["input_forget"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        attributes["clip"] = 0.5
    if op == "GRU":
        attributes["linear_before_reset"] = draw(st.integers(0, 1))
    node = helper.make_node(op, names, [name if name in wanted else "" for name in results], **attributes)
    given_at_run_time = [name for name in ("x", "lengths", "h0", "c0") if name in names]
    if draw(st.booleans()):
        given_at_run_time += ["w", "r"]
    ports = [helper.make_tensor_value_info(each, _type(values[each]), values[each].shape) for each in given_at_run_time]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results if name in wanted]
    constants = [
        numpy_helper.from_array(values[name], name)
        for name in ("w", "r", "b", "p")
        if name in names and name not in given_at_run_time
    ]
    graph = helper.make_graph([node], "layer", ports, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model), {name: values[name] for name in given_at_run_time}


def _type(value: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(value.dtype)


@settings(max_examples=examples(50), deadline=None)
@given(layer=layers(), lanes=st.sampled_from([1, 4, 8]), trips=st.sampled_from([None, 0, 2, 10]))
def test_a_layer_computes_what_onnx_runtime_does(
    tmp_path_factory: pytest.TempPathFactory,
    layer: tuple[onnx.ModelProto, dict[str, np.ndarray]],
    lanes: int,
    trips: int | None,
) -> None:
    """Compare a layer whose loops are `distributed` over so many trips, or not."""
    from passfit.kernels.lower.loop_stages import is_loop

    from ...kernels.programs import run

    model, inputs = layer
    lowered = _lowered(model, tmp_path_factory.mktemp("layer"), lanes, _distributed(trips))
    assert not any(map(is_loop, lowered.kernels.values()))  # each was taken apart
    got = run(lowered, list(inputs.values()))
    for one, other in zip(got, run_onnx(model, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6)


def weights_of(op: str, hidden: int, inputs: int, directions: int) -> dict[str, np.ndarray]:
    random, rows = np.random.default_rng(7), GATES[op] * hidden
    shapes = {"w": (directions, rows, inputs), "r": (directions, rows, hidden), "b": (directions, 2 * rows)}
    return {name: (random.standard_normal(shape) / 16).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("op", "batch", "attributes"),
    [
        ("LSTM", 1, {}),
        ("LSTM", 2, {}),
        ("GRU", 1, {"linear_before_reset": 1}),
        ("GRU", 1, {}),
        ("RNN", 1, {"direction": "reverse"}),
    ],
)
@pytest.mark.parametrize("trips", [0, 10])
def test_the_input_of_several_steps_may_be_multiplied_at_once(
    tmp_path: Path, op: str, batch: int, attributes: dict, trips: int
) -> None:
    from ...kernels.programs import run
    from ...models import model_of

    steps, hidden, inputs, wanted = 30, 16, 24, {"direction": "bidirectional"} | attributes
    directions = 1 + (wanted["direction"] == "bidirectional")
    weights = weights_of(op, hidden, inputs, directions)
    layer = helper.make_node(op, ["x", *weights], ["y", "h"], hidden_size=hidden, **wanted)
    model = model_of([layer], {"x": [steps, batch, inputs]}, ["y", "h"], weights)
    x = np.random.default_rng(8).standard_normal((steps, batch, inputs)).astype(np.float32)
    lowered = _lowered(model, tmp_path, passes=_distributed(trips))
    runs = Counter(call.runs for call in lowered.program.calls() if "matmul" in call.step.kernel)
    assert runs[steps // (trips or steps)] == directions and runs[steps] >= directions
    for got, expected in zip(run(lowered, [x]), run_onnx(model, {"x": x}), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-6)


def test_a_scan_of_a_users_body_is_distributed(tmp_path: Path) -> None:
    """Both directions of a sequence, a product that needs a value of this trip first, and one that needs the state."""
    from ...kernels.programs import run

    random = np.random.default_rng(3)
    w, r = (random.standard_normal((6, 6)).astype(np.float32) / 4 for _ in range(2))
    body = parser.parse_graph(
        """body (float[6] h, float[6] x, float[6] z) => (float[6] after, float[6] y) {
            wide = Abs(x)  a = MatMul(wide, w)  b = MatMul(z, w)  c = MatMul(h, r)
            ab = Add(a, b)  sum = Add(ab, c)  after = Tanh(sum)  y = Identity(after)
        }"""
    )
    node = helper.make_node(
        "Scan", ["h", "x", "x"], ["last", "y"], body=body, num_scan_inputs=2, scan_input_directions=[0, 1]
    )
    ports = [helper.make_tensor_value_info(*each) for each in (("h", 1, [6]), ("x", 1, [8, 6]))]
    outputs = [helper.make_tensor_value_info(*each) for each in (("last", 1, [6]), ("y", 1, [8, 6]))]
    constants = [numpy_helper.from_array(each, name) for name, each in (("w", w), ("r", r))]
    graph = helper.make_graph([node], "scan", ports, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    values = {"h": random.standard_normal(6).astype(np.float32), "x": random.standard_normal((8, 6)).astype(np.float32)}
    for trips in (0, 4):
        lowered = _lowered(model, tmp_path, passes=_distributed(trips))
        assert any(call.runs < 8 and "matmul" in call.step.kernel for call in lowered.program.calls())
        for got, expected in zip(run(lowered, list(values.values())), run_onnx(model, values), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_layer_of_500_steps_takes_little_beside_its_input_and_its_result(tmp_path: Path, direction: str) -> None:
    from passfit.memory import plan_arena

    from ...models import model_of

    hidden, steps, directions = 16, 500, 1 + (direction == "bidirectional")
    layer = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=hidden, direction=direction)
    model = model_of([layer], {"x": [steps, 1, hidden]}, ["y"], weights_of("LSTM", hidden, hidden, directions))
    lowered = _lowered(model, tmp_path, passes=("legalize", "fold-constant", "fuse-operators", "share"))
    sequence, states, sums = 4 * steps * hidden, 2 * 64 * directions, 4 * hidden * 4
    # y of one direction lies over x; both, (steps, 2, 1, hidden), are written where they belong, without a copy
    assert plan_arena(lowered.program).arena <= sequence * (1 if directions == 1 else 3) + states + sums + 64


@pytest.mark.parametrize(
    "chosen", [{}, {"activations": ["Sigmoid", "Elu", "ThresholdedRelu"] * 2, "activation_alpha": [0.5, 0.1] * 2}]
)
def test_a_layer_in_float16_is_close_to_the_float_one(tmp_path: Path, chosen: dict) -> None:
    from ...kernels.programs import run
    from ...models import model_of

    weights = weights_of("LSTM", 12, 9, 2)
    layer = helper.make_node("LSTM", ["x", *weights], ["y"], hidden_size=12, direction="bidirectional", **chosen)
    x = np.random.default_rng(8).standard_normal((7, 2, 9)).astype(np.float32)
    half = {name: each.astype(np.float16) for name, each in weights.items()}
    model = model_of([layer], {"x": [7, 2, 9]}, ["y"], half, dtype=TensorProto.FLOAT16)
    (got,) = run(_lowered(model, tmp_path), [x.astype(np.float16)])
    (expected,) = run_onnx(model_of([layer], {"x": [7, 2, 9]}, ["y"], weights), {"x": x})
    np.testing.assert_allclose(got.astype(np.float32), expected, atol=4e-3)


def _distributed(trips: int | None) -> tuple[str, ...]:
    """Return the specs of TVM's default, behind loops distributed over so many trips."""
    from passfit.passes.sequence.sequence import TVM_DEFAULT

    return (*(() if trips is None else (f"distribute-loops{{trips={trips}}}",)), *TVM_DEFAULT)


def _lowered(model: onnx.ModelProto, folder: Path, lanes: int = 8, passes: Sequence[str] = ()) -> Lowered:
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence import sequence
    from passfit.passes.sequence.replay import replay
    from passfit.targets import Machine

    imported = import_model(save(model, folder))
    return replay(
        sequence.Sequence.parse(passes or sequence.TVM_DEFAULT),
        to_relax(imported),
        imported,
        "layer",
        Machine(lanes=lanes),
    )[0]
