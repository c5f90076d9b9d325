"""Compare canonical LSTM, GRU and RNN with the nodes as given, by ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of, run, save

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 4, 2, 3, 5


def recurrent(op: str, direction: str, start: bool, steps: int = STEPS, **attributes: object):
    rng = np.random.default_rng(0)
    count, rows = 2 if direction == "bidirectional" else 1, GATES[op] * HIDDEN
    constants = {
        "w": rng.standard_normal((count, rows, INPUTS)).astype(np.float32),
        "r": rng.standard_normal((count, rows, HIDDEN)).astype(np.float32),
        "b": rng.standard_normal((count, 2 * rows)).astype(np.float32),
    }
    inputs = {"x": [steps, BATCH, INPUTS]}
    states = ["h0", "c0"] if op == "LSTM" else ["h0"]
    if start:
        inputs |= {state: [count, BATCH, HIDDEN] for state in states}
    outputs = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    names = ["x", "w", "r", "b", *(["", *states] if start else [])]
    node = helper.make_node(op, names, outputs, hidden_size=HIDDEN, direction=direction, **attributes)
    model = model_of([node], inputs, outputs, constants)
    return model, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("steps", [1, STEPS])
def test_the_canonical_form_changes_no_result(tmp_path: Path, op: str, direction: str, start: bool, steps: int) -> None:
    model, inputs = recurrent(op, direction, start, steps)
    imported = import_model(save(model, tmp_path))
    assert not any(node.op_type in GATES for node in imported.graph.node)
    assert sum(node.op_type == "Scan" for node in imported.graph.node) == (steps > 1)
    for got, expected in zip(run(imported, inputs), run(model, inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_gru_may_reset_after_the_product(tmp_path: Path) -> None:
    model, inputs = recurrent("GRU", "forward", True, 1, linear_before_reset=1)
    imported = import_model(save(model, tmp_path))
    for got, expected in zip(run(imported, inputs), run(model, inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_results_that_nothing_reads_are_no_results(tmp_path: Path) -> None:
    model, _ = recurrent("LSTM", "forward", False)
    del model.graph.output[0]
    (node,) = [node for node in import_model(save(model, tmp_path)).graph.node if node.op_type == "Scan"]
    assert len(node.output) == len(node.input) - 1  # states alone


#: activations with all their numbers, in any case, and forms of one step
FORMS = {
    "coupled": ("LSTM", {"input_forget": 1}),
    "affine": ("LSTM", {"activations": ["HardSigmoid", "Affine", "ScaledTanh"], "activation_alpha": [0.3, 0.4, 0.6], "activation_beta": [0.1, 0.2, 0.9]}),
    "defaults": ("LSTM", {"activations": ["HardSigmoid", "LeakyRelu", "Softsign"]}),
    "any case": ("LSTM", {"activations": ["SIGMOID", "tanh", "softplus"]}),
    "elu": ("GRU", {"activations": ["Sigmoid", "Elu"], "activation_alpha": [0.4]}),
    "thresholded": ("GRU", {"activations": ["Sigmoid", "ThresholdedRelu"], "activation_alpha": [0.4]}),
    "leaky": ("RNN", {"activations": ["LeakyRelu"], "activation_alpha": [0.3]}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steps", [1, STEPS])
def test_activations_of_onnx_are_those_of_onnx_runtime(tmp_path: Path, form: str, steps: int) -> None:
    op, attributes = FORMS[form]
    model, inputs = recurrent(op, "forward", True, steps, **attributes)
    imported = import_model(save(model, tmp_path))
    for got, expected in zip(run(imported, inputs), run(model, inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_each_direction_keeps_its_own_numbers_where_both_are_read_at_the_last_step(tmp_path: Path) -> None:
    activations = {
        "activations": ["LeakyRelu", "HardSigmoid"],
        "activation_alpha": [0.3, 0.4],
        "activation_beta": [0.1],
    }
    model, inputs = recurrent("RNN", "bidirectional", False, **activations)
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(STEPS - 1), "last"))
    model.graph.node.append(helper.make_node("Gather", ["y", "last"], ["z"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    imported = import_model(save(model, tmp_path))
    assert sum(node.op_type == "Scan" for node in imported.graph.node) == 1
    np.testing.assert_allclose(run(imported, inputs)[0], run(model, inputs)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "attributes", "said"),
    [
        ("RNN", {"activations": ["Erf"]}, "activation Erf is not known"),
        ("RNN", {"activations": ["Affine"]}, "'activation_alpha' has no number for Affine"),
    ],
)
def test_forms_not_covered_are_refused(tmp_path: Path, op: str, attributes: dict, said: str) -> None:
    model, _ = recurrent(op, "forward", False, **attributes)
    with pytest.raises(ModelError, match=said):
        import_model(save(model, tmp_path))
