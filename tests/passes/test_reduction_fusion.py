"""Compare fusion into poolings and reductions with the unfused kernels, over many shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .. import strategies  # noqa: F401  (the settings of hypothesis)
from ..profiles import examples

pytestmark = pytest.mark.tvm
extents = st.sampled_from([1, 2, 3, 5, 7, 8, 13])


@st.composite
def networks(draw: st.DrawFn) -> tuple[tuple[int, ...], Callable]:
    """A shape, and a body: a producer, something element-wise, a reduction, something element-wise."""
    from tvm import relax

    from ..kernels.programs import weight

    op = relax.op
    channels, height, width = draw(extents), draw(extents), draw(extents)
    given_channels, kernel = draw(extents), draw(st.sampled_from([1, 3]))
    window = (draw(st.integers(1, min(3, height))), draw(st.integers(1, min(3, width))))
    stride = draw(st.sampled_from([window, (1, 1), (2, 2), (3, 3)]))
    axes = draw(st.sampled_from([[1], [2], [3], [2, 3], [1, 2, 3]]))
    keepdims = draw(st.booleans())
    produce = draw(st.sampled_from(["conv", "matmul", "exp"]))
    reduce = draw(st.sampled_from(["max_pool", "avg_pool", "mean", "sum", "max", "softmax", "global"]))
    around = draw(st.sampled_from(["relu", "add", "none"]))

    def element_wise(x: relax.Expr) -> relax.Expr:
        return {"relu": op.nn.relu, "add": lambda y: op.add(y, relax.const(0.5, "float32")), "none": lambda y: y}[
            around
        ](x)

    def body(x: relax.Expr) -> relax.Expr:
        pad = kernel // 2
        y = {
            "conv": lambda: op.nn.conv2d(x, weight(given_channels, channels, kernel, kernel), padding=pad),
            "matmul": lambda: op.matmul(x, weight(width, width)),
            "exp": lambda: op.exp(x),
        }[produce]()
        y = element_wise(y)
        y = {
            "max_pool": lambda: op.nn.max_pool2d(y, window, stride),
            "avg_pool": lambda: op.nn.avg_pool2d(y, window, stride),
            "mean": lambda: op.mean(y, axes, keepdims),
            "sum": lambda: op.sum(y, axes, keepdims),
            "max": lambda: op.max(y, axes, keepdims),
            "softmax": lambda: op.nn.softmax(y, axes[0]),
            "global": lambda: op.nn.adaptive_avg_pool2d(y, (1, 1)),
        }[reduce]()
        return element_wise(y)

    return (draw(st.sampled_from([1, 2])), channels, height, width), body


@pytest.mark.parametrize("over", ["element-wise", "pooling", "reduction"])
@settings(max_examples=examples(12))
@given(network=networks())
def test_fusing_changes_no_result(over: str, network: tuple[tuple[int, ...], Callable]):
    from passfit.kernels.lower.schedule_program import schedule_program

    from ..kernels.programs import lowered, random_inputs, run

    shape, body = network
    apart = lowered([shape], body, ("legalize",))
    inputs = random_inputs(apart)
    (expected,) = run(apart, inputs)
    together, _ = schedule_program(lowered([shape], body, ("legalize", f"fuse-operators{{over={over}}}")))
    (found,) = run(together, inputs)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(expected).max())))
