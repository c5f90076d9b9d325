"""Leave layers in float: the loss holds on the samples it was measured on, with the fewest that are tried."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.quantise.judge import AGREEMENT, ERROR, Judge
from passfit.quantise.mixed import _fewest, leave_in_float
from passfit.quantise.prepare import prepare
from passfit.quantise.quantiser import Quantiser
from passfit.support.progress import silent

from ..models import NodeBuilder
from .networks import convolutional, drawn


def spread():
    """Return a network whose first layer has a channel a thousand times as large as the others: int8 rounds these away."""
    b = NodeBuilder()
    scales = b.constant(np.array([1000, 1, 1, 1], np.float32).reshape(1, 4, 1, 1))
    shrunk = b.constant(np.array([0.001, 1, 1, 1], np.float32).reshape(1, 4, 1, 1))
    wide = b.node("Mul", b.node("Conv", "x", b.weight(4, 2, 3, 3)), scales)
    pooled = b.node("GlobalAveragePool", b.node("Relu", b.node("Mul", wide, shrunk)))
    return b.model([1, 2, 8, 8], b.node("Gemm", b.node("Flatten", pooled), b.weight(4, 6)))


@given(st.integers(1, 60), st.integers(0, 70))
def test_the_fewest_are_found_where_more_never_lose_more(most: int, needed: int):
    assert _fewest(lambda number: number >= needed, most) == max(1, min(needed, most))


@pytest.mark.parametrize("most", [0.5, 0.05, 0.02])
def test_the_loss_holds_on_the_samples_and_layers_in_float_are_those_of_the_largest_error(most: float):
    model = _two_outputs(spread())
    samples = drawn(model, 12)
    judge = Judge(model, samples)
    assert judge.name == ERROR
    curve = leave_in_float(Quantiser(prepare(model), samples.values), judge, most, silent)
    assert judge.loss(judge.value(curve.taken.model)) == curve.taken.loss <= most
    errors = [each.error for each in curve.sensitivities]
    assert errors == sorted(errors, reverse=True)
    left = [name for each in curve.sensitivities for name in each.layers][: len(curve.taken.floats)]
    assert list(curve.taken.floats) == left


def test_scores_without_labels_are_judged_by_their_decisions():
    model = spread()
    judge = Judge(model, drawn(model, 12))
    assert (judge.name, judge.reference, judge.loss(0.75)) == (AGREEMENT, 1.0, 0.25)


def _two_outputs(model):
    """Return the model with a second output: no decision."""
    model.graph.output.append(helper.make_tensor_value_info(model.graph.node[0].output[0], TensorProto.FLOAT, None))
    return model


def test_nothing_is_left_in_float_where_all_layers_are_good_enough():
    model = convolutional()
    samples = drawn(model)
    curve = leave_in_float(Quantiser(prepare(model), samples.values), Judge(model, samples), 1.0, silent)
    assert curve.taken.floats == () and curve.points == (curve.taken,) and not curve.sensitivities


def test_a_model_without_layers_of_integers_is_refused():
    b = NodeBuilder()
    model = b.model([1, 4], b.node("Sin", "x"))
    samples = drawn(model)
    with pytest.raises(ModelError, match="no layer that becomes int8"):
        leave_in_float(Quantiser(prepare(model), samples.values), Judge(model, samples), 0.1, silent)


def test_a_loss_that_no_layer_keeps_is_refused_with_the_least():
    model = _two_outputs(convolutional())
    samples = drawn(model, 6)
    with pytest.raises(ModelError, match=r"the least is 0\.\d+\. Allow more by --max-accuracy-loss"):
        leave_in_float(Quantiser(prepare(model), samples.values), Judge(model, samples), 0.0, silent)
