"""Test NaN in extremes: it passes a bound, and is not an extreme of a row; infinity is."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te, tirx

from passfit.codegen.objects import build_module

from ..kernels.programs import HOST

pytestmark = pytest.mark.tvm

X = np.array([1, np.nan, -np.inf, np.inf, -0.5, np.nan, 3, -2, 0], "float32")


def _computed(kernel: tirx.PrimFunc, shape: tuple[int, ...]) -> np.ndarray:
    result = tvm.runtime.tensor(np.zeros(shape, "float32"))
    build_module({"f": kernel}, HOST)["f"](tvm.runtime.tensor(X), result)
    return result.numpy()


@pytest.mark.parametrize("number_first", [True, False])
@pytest.mark.parametrize("extreme", ["max", "min"])
def test_nan_passes_a_bound(extreme: str, number_first: bool) -> None:
    data, zero = te.placeholder(X.shape, "float32", "data"), tirx.const(0.0, "float32")
    function = getattr(tirx, extreme)
    bound = te.compute(X.shape, lambda i: function(zero, data[i]) if number_first else function(data[i], zero))
    expected = (np.maximum if extreme == "max" else np.minimum)(X, np.float32(0))
    np.testing.assert_array_equal(_computed(te.create_prim_func([data, bound]), X.shape), expected)


@pytest.mark.parametrize("extreme", ["max", "min"])
def test_nan_is_no_extreme_of_a_row(extreme: str) -> None:
    data, over = te.placeholder(X.shape, "float32", "data"), te.reduce_axis((0, len(X)), "k")
    row = te.compute((1,), lambda i: getattr(te, extreme)(data[over + i], over))
    expected = (np.nanmax if extreme == "max" else np.nanmin)(X)
    assert _computed(te.create_prim_func([data, row]), (1,)) == [expected]


@pytest.mark.parametrize("place", range(4))
def test_nan_is_no_extreme_of_an_unrolled_row(place: int) -> None:
    """Whatever the place of NaN: kernels unroll short rows, and splits unroll others than the whole does."""
    data = te.placeholder(X.shape, "float32", "data")
    numbers = [1 if each == place else index for each, index in enumerate((0, 6, 7, 8))]
    row = te.compute(
        (1,),
        lambda i: tirx.max(
            tirx.max(tirx.max(data[i + numbers[0]], data[i + numbers[1]]), data[i + numbers[2]]), data[i + numbers[3]]
        ),
    )
    assert _computed(te.create_prim_func([data, row]), (1,)) == [np.nanmax(X[numbers])]
