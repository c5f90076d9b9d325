"""Quantise layers: every kind of network, one set of ranges for all choices of float layers, and the same bytes again."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from passfit.errors import ConfigError, ModelError
from passfit.quantise.prepare import prepare
from passfit.quantise.quantiser import METHODS, Quantiser

from ..models import model_of, run
from .networks import KINDS, convolutional, drawn, recurrent


def quantiser_of(model: onnx.ModelProto, method: str = "minmax") -> Quantiser:
    return Quantiser(prepare(model), drawn(model).values, method)


def float_weights(model: onnx.ModelProto, name: str) -> bool:
    """Return whether the weights of a layer are floats, rather than dequantised integers."""
    (node,) = (each for each in model.graph.node if each.name == name)
    return node.input[1] in {each.name for each in model.graph.initializer if each.data_type == each.FLOAT}


@pytest.mark.parametrize("kind", KINDS)
def test_networks_of_every_kind_stay_near_their_float_form(kind: str):
    model = KINDS[kind]()
    quantised = quantiser_of(model).quantise()
    onnx.checker.check_model(quantised)
    assert any(each.data_type == each.INT8 for each in quantised.graph.initializer)
    assert {node.domain for node in quantised.graph.node} <= {""}
    for sample in drawn(model, 4, seed=0).values:
        for exact, found in zip(run(model, sample), run(quantised, sample), strict=True):
            assert abs(found - exact).max() < 0.15 * (exact.max() - exact.min())


def test_batch_normalisation_becomes_part_of_its_layer():
    kinds = [node.op_type for node in prepare(convolutional()).graph.node]
    assert "BatchNormalization" not in kinds and kinds.count("Conv") == 3


def test_a_layer_left_in_float_is_float_in_the_file_and_no_other_is():
    quantiser = quantiser_of(convolutional())
    layers = [node.name for node in quantiser.model.graph.node if node.op_type in ("Conv", "Gemm")]
    for left in layers:
        model = quantiser.quantise([left])
        assert [name for name in layers if float_weights(model, name)] == [left]


def test_operators_that_the_quantiser_does_not_take_stay():
    model = quantiser_of(recurrent()).quantise()
    (node,) = (each for each in model.graph.node if each.op_type == "LSTM")
    assert float_weights(model, node.name)


def test_what_masks_by_infinity_stays_float_and_the_rest_does_not():
    node = onnx.helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["scores"], "first"),
        node("Where", ["seen", "scores", "never"], ["masked"], "mask"),
        node("Softmax", ["masked"], ["weights"], "softmax", axis=1),
        node("MatMul", ["weights", "w"], ["y"], "last"),
    ]
    seen = np.tri(4, dtype=bool)
    model = model_of(
        nodes,
        {"x": [4, 4]},
        ["y"],
        {"w": np.eye(4, dtype=np.float32) + 0.5, "seen": seen, "never": np.float32(-np.inf)},
    )
    quantised = quantiser_of(model).quantise()
    assert not float_weights(quantised, "first") and not float_weights(quantised, "last")
    for sample in drawn(model, 4, seed=0).values:
        for exact, found in zip(run(model, sample), run(quantised, sample), strict=True):
            assert abs(found - exact).max() < 0.05 * (exact.max() - exact.min())


@pytest.mark.parametrize("method", METHODS)
def test_the_same_samples_give_the_same_bytes(method: str):
    one, other = (quantiser_of(convolutional(), method).quantise().SerializeToString(deterministic=True) for _ in "ab")
    assert one == other


def test_an_unknown_method_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="minmax"):
        Quantiser(convolutional(), [], "minmx")


def test_samples_that_do_not_run_are_an_error_with_a_next_step():
    samples = [{"other": drawn(convolutional(), 1).values[0]["x"]}]
    with pytest.raises(ModelError, match="--form int8-weights"):
        Quantiser(prepare(convolutional()), samples).quantise()
