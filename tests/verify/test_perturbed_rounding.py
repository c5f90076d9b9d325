"""Where floats are rounded to integers, a library may be as far off as noise in the last places makes ONNX Runtime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from benchmarks.zoo.quantised import dynamically_quantised
from benchmarks.zoo.transformer import encoder
from passfit.errors import NumericError
from passfit.frontend.canonicalise import import_model
from passfit.verify.cases import add_plain_sums, choose_cases
from passfit.verify.compare import compare
from passfit.verify.integers.given_outputs import unit_of
from passfit.verify.integers.perturbed_rounding import add_noise, perturbed_outputs
from passfit.verify.reference import Reference

from ..models import model_of, save

NAME = "last_hidden_state"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return import_model(save(dynamically_quantised(encoder(1, 32, 64, 2, 50)), tmp_path_factory.mktemp("encoder")))


def test_noise_moves_few_numbers_by_a_step_and_the_same_ones_each_time(model):
    (case,) = choose_cases(model, 0, 1, 1e-4)
    one, other = (perturbed_outputs(model, [case.inputs], [case.expected])[0][NAME] for _ in range(2))
    assert np.array_equal(one, other)
    apart = np.abs(one - case.expected[NAME])
    assert 0 < apart.max() < 0.1 and np.sqrt((apart**2).mean()) < 0.02


def test_a_second_look_admits_another_rounding_and_no_wrong_layer(model):
    (case,) = choose_cases(model, 0, 1, 1e-4)
    (looked,) = add_plain_sums(model, [case])
    for seed in (100, 101, 102):  # other draws than the witnesses'
        compare([Reference(add_noise(model, seed))(case.inputs)], [looked], 1e-4)
    wrong = case.expected[NAME] * np.float32(1.25)
    with pytest.raises(NumericError):
        compare([{NAME: wrong}], [looked], 1e-4)
    # a scale that is wrong throughout a layer
    other = type(model)()
    other.CopyFrom(model)
    scale = next(each for each in other.graph.initializer if each.name.endswith("_scale"))
    scale.CopyFrom(
        type(scale)(name=scale.name, data_type=1, dims=scale.dims, float_data=np.float32([1.5]) * _value(scale))
    )
    with pytest.raises(NumericError):
        compare([Reference(other)(case.inputs)], [looked], 1e-4)


def _value(tensor):
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor).ravel()


def test_integers_may_be_as_far_apart_as_the_noise_makes_them(model):
    (case,) = choose_cases(model, 0, 1, 1e-4)
    numbers = {"y": np.zeros((2, 3), np.int8)}
    typed = replace(case, expected=numbers, optimized=numbers, units=1)
    with pytest.raises(NumericError):
        compare([{"y": numbers["y"] + np.int8(2)}], [typed], 1e-4)
    compare([{"y": numbers["y"] + np.int8(2)}], [replace(typed, units=2)], 1e-4)


def test_numbers_rounded_from_halves_may_be_a_unit_apart_too(tmp_path):
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["f"]), helper.make_node("QuantizeLinear", ["f", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]  # fmt: skip
    weights = {"s": np.float16(1 / 64), "z": np.uint8(0)}
    halves = model_of(nodes, {"x": [999]}, {"y": [999]}, weights, dtype=TensorProto.FLOAT16, opset=19)
    halves.ir_version = 9
    model = import_model(save(halves, tmp_path))
    x = {"x": np.linspace(-4, 4, 999).astype(np.float16)}
    expected = Reference(model)(x)
    (moved,) = perturbed_outputs(model, [x], [expected])
    unit = unit_of(model, "y", np.dtype(np.float16))
    assert unit == 1 / 64
    assert set(np.rint(np.abs(moved["y"].astype(np.float64) - expected["y"]) / unit)) == {0, 1}
