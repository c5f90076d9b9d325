"""Check that split kernels compute the same, and that the rest can then be split by rows."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.rewrite.split_reductions import split_reductions
from passfit.kernels.rewrite.splittable import splits_of
from passfit.program.check import first_problem

from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_op, _nn = relax.op, relax.op.nn


def scaled(x, gate):
    """Build one TVM kernel of a gate computed from means, and the tensor it scales."""
    return _op.multiply(x, _op.sigmoid(_nn.conv2d(gate, weight(6, 4, 1, 1))))


def shifted(x, y):
    return _op.nn.relu(_op.add(_op.matmul(y, weight(5, 4)), x))


CASES = {"gate": ([(1, 6, 5, 3), (1, 4, 1, 1)], scaled), "one row for all": ([(7, 4), (1, 5)], shifted)}


@pytest.mark.parametrize("name", CASES)
def test_cut_kernels_compute_the_same_and_can_be_split(name):
    shapes, body = CASES[name]
    program = lowered(shapes, body)
    after = split_reductions(program)
    assert len(program.program.steps) == 1 and len(after.program.steps) == 2
    assert first_problem(after.program) is None and set(after.kernels) == {each.kernel for each in after.program.steps}
    inputs = random_inputs(program)
    for ours, reference in zip(run(after, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-5)
    (step,) = program.program.steps
    rest = splits_of(after)[after.program.steps[1].kernel]
    follows = {rows.axis for rows in rest.rows if rows.follows(0) is not None}
    before = {rows.axis for rows in splits_of(program)[step.kernel].rows if rows.follows(0) is not None}
    assert before < follows


def test_what_needs_no_sum_whole_is_left_as_it_is():
    for shapes, body in (
        ([(1, 4, 6, 6)], lambda x: _nn.relu(_nn.conv2d(x, weight(3, 4, 3, 3), padding=1))),
        ([(2, 6)], lambda x: _nn.relu(x)),
        ([(2, 6)], lambda x: _op.cumsum(x, 1)),
    ):
        program = lowered(shapes, body)
        after = split_reductions(program)
        assert after.program == program.program and after.kernels == program.kernels


def test_cutting_twice_is_cutting_once():
    once = split_reductions(lowered(*CASES["gate"]))
    twice = split_reductions(once)
    assert twice.program == once.program
