"""TVM's own passes run on every graph: what they fail at is left as it is."""

from __future__ import annotations

import pytest
from tvm import relax

from passfit.passes.graph.stock import CombineParallelMatmul
from passfit.search.evaluate.state_key import state_key

from ..graphs import Example, filled

pytestmark = pytest.mark.tvm
_op = relax.op


@pytest.mark.parametrize("right", [0, 1])
def test_a_constant_left_operand_fails_no_search(right: int):
    """A filter's transition, multiplied by state and covariance; or one such product next to two that could be combined."""
    matrix = filled(3, 3)
    module = Example(
        ((3, 3), (3, 3), (3, 3)),
        lambda x, v, w: _op.add(_op.matmul(matrix, v), _op.add(_op.matmul((matrix, x)[right], w), _op.matmul(x, v))),
    ).module()
    assert state_key(CombineParallelMatmul().apply(module)) == state_key(module)
