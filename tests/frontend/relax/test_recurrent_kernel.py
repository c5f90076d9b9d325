"""Run the kernels of LSTM, GRU and RNN, vectorised for several machines, against ONNX Runtime's operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from ...models import run as run_onnx
from ...models import save

pytestmark = pytest.mark.tvm

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPERANDS = ("x", "w", "r", "b", "lengths", "h0", "c0", "p")
ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "LeakyRelu", "Elu", "Softsign", "Softplus")


@st.composite
def layers(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one recurrent node, with its inputs; any operand and result may be missing."""
    op = draw(st.sampled_from(sorted(GATES)))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch, inputs = (draw(st.integers(*limits)) for limits in ((2, 6), (1, 4), (1, 9)))
    hidden = draw(st.integers(1, 18) | st.sampled_from([32, 45, 70]))
    count, rows = 1 + (direction == "bidirectional"), GATES[op] * hidden
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = {
        "x": (steps, batch, inputs), "w": (count, rows, inputs), "r": (count, rows, hidden), "b": (count, 2 * rows),
        "h0": (count, batch, hidden), "c0": (count, batch, hidden), "p": (count, 3 * hidden),
    }  # fmt: skip
    values = {name: (random.standard_normal(shape) / 2).astype(np.float32) for name, shape in shapes.items()}
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
    ports = [helper.make_tensor_value_info(each, _type(values[each]), values[each].shape) for each in given_at_run_time]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results if name in wanted]
    constants = [numpy_helper.from_array(values[name], name) for name in ("w", "r", "b", "p") if name in names]
    graph = helper.make_graph([node], "layer", ports, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model), {name: values[name] for name in given_at_run_time}


def _type(value: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(value.dtype)


@settings(max_examples=25, deadline=None)
@given(layer=layers(), lanes=st.sampled_from([1, 4, 8]))
def test_a_layer_computes_what_onnx_runtime_does(
    tmp_path_factory: pytest.TempPathFactory, layer: tuple[onnx.ModelProto, dict[str, np.ndarray]], lanes: int
) -> None:
    from passfit.kernels.lower.loop_stages import is_loop

    from ...kernels.programs import run

    model, inputs = layer
    lowered = _lowered(model, tmp_path_factory.mktemp("layer"), lanes)
    assert not any(map(is_loop, lowered.kernels.values()))  # each was taken apart
    got = run(lowered, list(inputs.values()))
    for one, other in zip(got, run_onnx(model, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(("op", "attributes"), [("LSTM", {}), ("GRU", {"linear_before_reset": 1}), ("GRU", {})])
def test_the_input_of_several_steps_may_be_multiplied_at_once(tmp_path: Path, op: str, attributes: dict) -> None:
    from passfit.tir.workspace import held_bytes

    from ...kernels.programs import run
    from ...models import model_of

    steps, hidden, inputs, rows = 96, 64, 384, GATES[op] * 64
    random = np.random.default_rng(7)
    weights = {"w": (2, rows, inputs), "r": (2, rows, hidden), "b": (2, 2 * rows)}
    layer = helper.make_node(
        op, ["x", *weights], ["y"], hidden_size=hidden, direction="bidirectional", **attributes
    )  # fmt: skip
    values = {name: (random.standard_normal(shape) / 16).astype(np.float32) for name, shape in weights.items()}
    model = model_of([layer], {"x": [steps, 1, inputs]}, ["y"], values)
    x = random.standard_normal((steps, 1, inputs)).astype(np.float32)
    lowered = _lowered(model, tmp_path)
    assert max(map(held_bytes, lowered.kernels.values())) > 2 * rows * 4  # sums of two steps at least
    (got,), (expected,) = run(lowered, [x]), run_onnx(model, {"x": x})
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-6)


def test_a_layer_of_500_steps_is_one_kernel_without_a_copy_of_its_input(tmp_path: Path) -> None:
    from passfit.tir.workspace import held_bytes

    from ...models import model_of

    hidden, steps = 16, 500
    weights = {"w": np.ones((2, 4 * hidden, 8), np.float32), "r": np.ones((2, 4 * hidden, hidden), np.float32)}
    layer = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden, direction="bidirectional")
    lowered = _lowered(model_of([layer], {"x": [steps, 1, 8]}, ["y"], weights), tmp_path)
    (kernel,) = [each for name, each in lowered.kernels.items() if "lstm" in name]
    assert held_bytes(kernel) == 2 * 4 * hidden * 4  # the sums of a tile, and the same in registers


def _lowered(model: onnx.ModelProto, folder: Path, lanes: int = 8):
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
    from passfit.targets import Machine

    imported = import_model(save(model, folder))
    return replay(Sequence.parse(TVM_DEFAULT), to_relax(imported), imported, "layer", Machine(lanes=lanes))[0]
