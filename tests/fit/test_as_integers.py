"""Test the estimate of int8: a quarter of what is float32, and no byte of anything else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from passfit.fit.as_integers import FloatShares, as_integers, float_shares
from passfit.fit.verdict import Sizes

from ..models import model_of

_share = st.floats(0, 1)


@given(st.builds(Sizes, *[st.integers(0, 1 << 20)] * 7), _share, _share)
def test_every_part_is_between_a_quarter_and_the_whole(sizes: Sizes, weights: float, activations: float):
    found = as_integers(sizes, FloatShares(weights, activations))
    for name in ("arena", "weights", "weights_in_ram"):
        assert getattr(sizes, name) / 4 <= getattr(found, name) <= getattr(sizes, name) + 1
    assert (found.code, found.stack, found.workspace, found.data) == (
        sizes.code,
        sizes.stack,
        sizes.workspace,
        sizes.data,
    )


@given(st.builds(Sizes, *[st.integers(0, 1 << 20)] * 7))
def test_without_floats_nothing_changes(sizes: Sizes):
    found = as_integers(sizes, FloatShares(0.0, 0.0))
    assert (found.ram, found.flash) == (sizes.ram, sizes.flash)


@pytest.mark.parametrize(("dtype", "weights"), [(np.float32, 1.0), (np.float16, 0.0)])
def test_shares_are_those_of_the_bytes(dtype: type, weights: float):
    nodes = [helper.make_node("Cast", ["w"], ["v"], to=1), helper.make_node("Add", ["x", "v"], ["y"])]
    model = model_of(nodes, {"x": (2, 3)}, {"y": (2, 3)}, {"w": np.ones((2, 3), dtype)})
    found = float_shares(model)
    assert (found.weights, found.activations, found.mostly) == (weights, 1.0, weights > 0.5)
