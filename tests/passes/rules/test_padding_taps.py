"""Taps that meet data give the whole convolution, for random extents, strides, dilations and paddings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.passes.graph.rules.convolution.drop_padding_taps import Taps, taps, transposed_taps

from ... import strategies  # noqa: F401  (the settings of hypothesis)
from ...profiles import examples

few = st.integers(1, 3)
axes = st.tuples(st.sampled_from([1, 2, 3, 7]), st.integers(1, 6), few, few, st.integers(0, 9), st.integers(0, 9))


def results_of(axis: tuple[int, ...], transposed: bool) -> int:
    extent, size, stride, dilation, before, after = axis
    reach = (size - 1) * dilation + 1
    if transposed:
        return (extent - 1) * stride + reach - before - after
    return (extent + before + after - reach) // stride + 1 if extent + before + after >= reach else 0


def _convolved(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, before: int, after: int) -> np.ndarray:
    padded = np.pad(x, (before, after))
    reach = (len(w) - 1) * dilation + 1
    return np.array([padded[i : i + reach : dilation] @ w for i in range(0, len(padded) - reach + 1, stride)])


def _spread(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, before: int, after: int) -> np.ndarray:
    whole = np.zeros((len(x) - 1) * stride + (len(w) - 1) * dilation + 1)
    for number, each in enumerate(x):
        whole[number * stride : number * stride + (len(w) - 1) * dilation + 1 : dilation] += each * w
    return whole[before : len(whole) - after]


def _kept(w: np.ndarray, kept: Taps) -> np.ndarray:
    return w[kept.first : kept.first + kept.step * kept.count : kept.step]


@settings(max_examples=examples(400))
@given(axis=axes, transposed=st.booleans())
def test_taps_that_meet_data_are_enough(axis: tuple[int, ...], transposed: bool):
    extent, size, stride, dilation, before, after = axis
    results = results_of(axis, transposed)
    if results < 1:
        return
    random = np.random.default_rng(0)
    x, w = random.standard_normal(extent), random.standard_normal(size)
    kept = (transposed_taps if transposed else taps)(extent, size, results, stride, dilation, before, after)
    compute = _spread if transposed else _convolved
    expected = compute(x, w, stride, dilation, before, after)
    if kept is None:
        assert not expected.any()
        return
    assert kept.count <= size and kept.before >= 0 and kept.after >= 0
    found = compute(x, _kept(w, kept), stride, dilation * kept.step, kept.before, kept.after)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("size", [3, 5, 7])
def test_a_kernel_over_one_pixel_keeps_one_tap(size: int):
    assert taps(1, size, 1, 1, 1, size // 2, size // 2) == Taps(size // 2, 1, 1, 0, 0)
