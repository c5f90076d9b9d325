"""Compare ArgMax and ArgMin with NumPy, scheduled and not, and split them by rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rewrite.splittable import splits_of

from ....kernels.programs import lowered, run
from ....profiles import examples

pytestmark = pytest.mark.tvm

_NUMPY = {relax.op.argmax: np.argmax, relax.op.argmin: np.argmin}
#: equal elements are common
_VALUES = np.array([-np.inf, -1.5, 0.0, 2.0, np.inf], "float32")


@settings(max_examples=examples(25))
@given(
    st.lists(st.sampled_from([1, 2, 5, 16, 33]), min_size=1, max_size=4),
    st.integers(-4, 3),
    st.booleans(),
    st.sampled_from(sorted(_NUMPY, key=str)),
    st.sampled_from(["values", "one value", "numbers"]),
)
def test_the_first_of_equals_is_taken(shape, axis, keepdims, operator, kind):
    axis = axis % len(shape)
    generator = np.random.default_rng(len(shape))
    data = {
        "values": generator.choice(_VALUES, shape),
        "one value": np.full(shape, -np.inf, "float32"),
        "numbers": generator.standard_normal(shape).astype("float32"),
    }[kind]
    program = lowered([tuple(shape)], lambda x: operator(x, axis, keepdims))
    scheduled, _ = schedule_program(program)
    expected = np.expand_dims(_NUMPY[operator](data, axis), axis) if keepdims else _NUMPY[operator](data, axis)
    for each in (program, scheduled):
        (found,) = run(each, [data])
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def test_the_classes_of_a_plane_are_found_row_by_row():
    program = lowered([(1, 21, 12, 8)], lambda x: relax.op.argmax(x, 1))
    (splits,) = splits_of(program).values()
    assert 1 in {rows.axis for rows in splits.rows}
