"""Check that poolings accumulate to the same, each tap from its own rows alone."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.rewrite.window_taps import tap_window, taps_along
from passfit.tir.index_grid import NoMatch

from ...profiles import examples
from ..programs import HOST, lowered, weight
from ..windows import Single

pytestmark = pytest.mark.tvm
_op = relax.op


PASSES = ("legalize", "fold-constant", "fuse-operators{over=pooling}")


def single(shape, body) -> Single:
    return Single(lowered([shape], body, PASSES))


@st.composite
def poolings(draw):
    size = (draw(st.integers(2, 4)), draw(st.integers(1, 3)))
    dilation = draw(st.sampled_from([1, 1, 2]))
    padding = [draw(st.integers(0, each // 2)) for each in (*size, *size)]
    sides = [dilation * (each - 1) + 1 + draw(st.integers(least, 9)) for each, least in zip(size, (8, 0))]
    options = {"strides": (draw(st.integers(1, 4)), draw(st.integers(1, 2))), "padding": padding, "dilation": dilation}
    convolved = draw(st.booleans())
    if convolved:  # windows that overlap are not fused behind a convolution
        options |= {"strides": size, "dilation": 1}
    return (1, 2, *sides), size, options, convolved


@settings(max_examples=examples(5), phases=[Phase.generate])
@given(poolings())
def test_taps_of_poolings_accumulate_to_the_whole(case):
    shape, size, options, convolved = case

    def body(x):
        x = _op.nn.relu(_op.nn.conv2d(x, weight(3, 2, 3, 3), padding=1)) if convolved else x
        return _op.nn.max_pool2d(x, size, **options)

    program = lowered([shape], body, PASSES)
    assume(len(program.program.steps) == 1)  # a convolution and a padded window that no rule takes are two kernels
    kernel = Single(program)
    (rows,) = (each for each in kernel.rows() if each.axis == 2)
    taps = taps_along(kernel.kernel, rows)
    assert len(taps) == size[0]
    follows = rows.follows(0)
    assert (taps[0].low, taps[-1].high) == (follows.low, follows.high)
    library = build_module({f"f{n}": tap_window(kernel.kernel, 2, n) for n in range(len(taps))}, HOST)
    before = np.full(kernel.shape, np.nan, kernel.dtype)
    for number, tap in enumerate(taps):
        after = before.copy()
        for row in range(rows.extent):
            operands = [each.copy() for each in kernel.operands]
            for other in set(range(shape[2])) - set(range(tap.low[row], tap.high[row])):
                operands[0][:, :, other] = np.nan
            made = kernel.run(library[f"f{number}"], [*operands, *([before] if number else [])], (2, 1), row)
            after[:, :, row : row + 1] = made
        before = after
    np.testing.assert_allclose(before, kernel.result, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "body", "axis"),
    [
        ("a convolution, whose weights are of one row each", lambda x: _op.nn.conv2d(x, weight(2, 2, 3, 3)), 2),
        ("one channel's own weights", lambda x: _op.nn.conv2d(x, weight(2, 1, 3, 3), groups=2), 2),
        ("a mean, divided at the end", lambda x: _op.nn.avg_pool2d(x, (3, 3)), 2),
        ("an axis the window has not", lambda x: _op.nn.max_pool2d(x, (3, 3)), 1),
        ("a window of one row", lambda x: _op.nn.max_pool2d(x, (1, 3)), 2),
        ("a window of the whole plane's height", lambda x: _op.nn.max_pool2d(x, (10, 3), padding=(5, 1)), 2),
        ("no window", _op.exp, 2),
    ],
)
def test_other_kernels_have_no_taps(name, body, axis):
    kernel = single((1, 2, 12, 8), body)
    (rows,) = (each for each in kernel.rows() if each.axis == axis)
    assert taps_along(kernel.kernel, rows) == ()
    with pytest.raises(NoMatch):
        tap_window(kernel.kernel, axis, 1)
