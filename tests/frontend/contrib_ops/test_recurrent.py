"""DynamicQuantizeLSTM becomes products of integers, with the results of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions
from passfit.verify.equal_signs import equalise_signs

from ...models import model_of, run, save

STEPS, INPUTS, HIDDEN = 5, 7, 6


def lstm(
    direction: str = "forward",
    dtype: str = "int8",
    columns: bool = False,
    batch: int = 1,
    states: bool = False,
    peepholes: bool = False,
    bias: bool = True,
    open_shape: bool = False,
    steps: int = STEPS,
    **attributes: object,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    random = np.random.default_rng(3)
    count = 2 if direction == "bidirectional" else 1
    # small sums: ONNX Runtime's kernels for unsigned × signed saturate on some machines
    low, high = (-40, 41) if dtype == "int8" else (90, 170)

    def weights(rows: int) -> list[np.ndarray]:
        shape = (count, 4 * HIDDEN) if columns else (count,)
        zero = np.full(shape, 0 if dtype == "int8" else 128, dtype)
        return [
            random.integers(low, high, (count, rows, 4 * HIDDEN)).astype(dtype),
            random.uniform(0.01, 0.02, shape).astype(np.float32),
            zero,
        ]

    (w, w_scale, w_zero), (r, r_scale, r_zero) = weights(INPUTS), weights(HIDDEN)
    constants = {"w": w, "r": r, "ws": w_scale, "wz": w_zero, "rs": r_scale, "rz": r_zero}
    if bias:
        constants["b"] = random.standard_normal((count, 8 * HIDDEN)).astype(np.float32) / 2
    if peepholes:
        constants["p"] = random.standard_normal((count, 3 * HIDDEN)).astype(np.float32) / 2
    x = {"x": random.standard_normal((steps, batch, INPUTS)).astype(np.float32)}
    if states:
        x |= {name: random.standard_normal((count, batch, HIDDEN)).astype(np.float32) for name in "hc"}
    names = ["x", "w", "r", "b" * bias, "", "h" * states, "c" * states, "p" * peepholes, "ws", "wz", "rs", "rz"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y", "yh", "yc"], name="lstm", domain="com.microsoft", hidden_size=HIDDEN,
        direction=direction, **attributes,
    )  # fmt: skip
    shapes = {name: ["steps", "batch", INPUTS] if open_shape else value.shape for name, value in x.items()}
    return model_of([node], shapes, ["y", "yh", "yc"], constants, domain="com.microsoft"), x


CASES = {
    "forward": {}, "reverse": {"direction": "reverse"}, "both": {"direction": "bidirectional", "batch": 3},
    "unsigned": {"dtype": "uint8"}, "columns": {"columns": True, "direction": "bidirectional"}, "states": {"states": True, "batch": 2},
    "peepholes": {"peepholes": True}, "no bias": {"bias": False}, "one step": {"steps": 1, "states": True},
    "activations": {"activations": ["Sigmoid", "Relu", "Tanh"]},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    model, inputs = lstm(**CASES[name])
    imported = import_model(save(model, tmp_path))
    kinds = {node.op_type for node in imported.graph.node}
    assert "MatMulInteger" in kinds and not kinds & {"LSTM", "MatMul", "Scan"}
    for found, expected in zip(run(equalise_signs(imported), inputs), run(model, inputs), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_weights_are_kept_once_for_all_steps(tmp_path: Path) -> None:
    model, _ = lstm()
    imported = import_model(save(model, tmp_path))
    narrow = [numpy_helper.to_array(each) for each in imported.graph.initializer if each.data_type == TensorProto.INT8]
    assert sorted(each.nbytes for each in narrow if each.size > 1) == [HIDDEN * 4 * HIDDEN, INPUTS * 4 * HIDDEN]


def test_open_shapes_are_bound_first(tmp_path: Path) -> None:
    model, inputs = lstm(open_shape=True)
    imported = import_model(save(model, tmp_path), ImportOptions({"x": [STEPS, 1, INPUTS]}))
    np.testing.assert_allclose(run(equalise_signs(imported), inputs)[0], run(model, inputs)[0], atol=2e-6)


@pytest.mark.parametrize(
    "attributes", [{"clip": 1.0}, {"activations": ["HardSigmoid", "Tanh", "Tanh"]}, {"input_forget": 1}]
)
def test_other_forms_are_refused_by_their_attribute(attributes: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(
        ModelError,
        match=f"DynamicQuantizeLSTM node 'lstm' cannot be compiled: its (attribute )?'?{next(iter(attributes))}",
    ):
        import_model(save(lstm(**attributes)[0], tmp_path))
