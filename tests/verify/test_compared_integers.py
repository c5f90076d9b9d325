"""Test the range of integers that are compared: lengths and positions."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.verify.draws.input_constraints import input_constraints
from passfit.verify.inputs import make_input

from ..models import model_of

node = helper.make_node


def _masked(*before):
    """Mask 8 positions by a length after the nodes `before`, from `length` to `n`."""
    nodes = [
        *before, node("Less", ["positions", "n"], ["mask"]), node("Where", ["mask", "x", "zero"], ["y"]),
    ]  # fmt: skip
    constants = {
        "positions": np.arange(8), "zero": np.float32(0), "two": np.asarray(2), "ten": np.asarray(10),
    }  # fmt: skip
    return model_of(nodes, {"x": [1, 8], "length": [1]}, ["y"], constants, dtypes={"length": TensorProto.INT64})


@pytest.mark.parametrize(
    "op, constant, most",
    [("Div", "ten", 80), ("Mul", "two", 4), ("Add", "two", 6), ("Sub", "two", 10), ("Identity", "", 8)],
)
def test_a_length_reaches_all_positions(op, constant, most):
    model = _masked(node(op, ["length", *([constant] if constant else [])], ["n"]))
    assert input_constraints(model)["length"].high == most


def test_lengths_drawn_mask_a_part():
    model = _masked(node("Div", ["length", "ten"], ["n"]))
    drawn = {int(make_input(model, 0, case)["length"][0]) for case in range(12)}
    assert max(drawn) > 20 and all(0 <= each <= 80 for each in drawn)


def test_lengths_are_not_bounded_by_the_arithmetic_of_other_readers():
    model = _masked(node("Div", ["length", "ten"], ["n"]), node("Mul", ["length", "length"], ["square"]))
    assert make_input(model, 0, 0)["length"].max() <= 80


def test_compared_bytes_take_their_whole_range():
    nodes = [node("Less", ["x", "five"], ["mask"]), node("Cast", ["mask"], ["y"], to=TensorProto.FLOAT)]
    model = model_of(nodes, {"x": [1, 64]}, ["y"], {"five": np.uint8(5)}, dtypes={"x": TensorProto.UINT8})
    assert make_input(model, 0, 0)["x"].max() > 128
