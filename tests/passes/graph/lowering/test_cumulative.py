"""Compare cumulative sums and products with numpy's, and see that they walk memory in order."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.tirx import For

from passfit.tir.loop_nests import statements

from ....kernels.programs import lowered, random_inputs, run
from ....profiles import examples

pytestmark = pytest.mark.tvm


@settings(max_examples=examples(25))
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans(), st.booleans(), st.data())
def test_an_element_joins_those_before_it(shape, exclusive, product, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    operator, join = (relax.op.cumprod, np.cumprod) if product else (relax.op.cumsum, np.cumsum)
    program = lowered([tuple(shape)], lambda x: operator(x, axis=axis, exclusive=exclusive))
    (x,) = random_inputs(program)
    expected = join(x, axis)
    if exclusive:
        first = np.full_like(np.take(x, [0], axis), float(product))
        expected = np.concatenate([first, np.take(expected, range(shape[axis] - 1), axis)], axis)
    np.testing.assert_allclose(run(program, [x])[0], expected, rtol=1e-5, atol=1e-6)


def test_the_axis_is_walked_outside_of_those_behind_it():
    (kernel,) = lowered([(3, 7, 50)], lambda x: relax.op.cumsum(x, axis=1)).kernels.values()
    loop, extents = statements(kernel.body.block.body)[-1], []
    while isinstance(loop, For):
        extents.append(int(loop.extent))
        loop = loop.body
    assert extents == [3, 6, 50]
