"""Check that partial sums accumulate to the whole sum."""

import pytest

pytest.importorskip("tvm")

from hypothesis import Phase, given, settings
from tvm import relax
from tvm.script import tirx as script

from passfit.kernels.rewrite.partial_sum import partial_sum, sums_over
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import Machine
from passfit.tir.index_grid import NoMatch

from ...profiles import examples
from ..programs import weight
from ..windows import check_sums
from .test_row_window import convolutions, single

pytestmark = pytest.mark.tvm
_op = relax.op


@settings(max_examples=examples(4), phases=[Phase.generate])
@given(convolutions())
def test_convolutions_take_channels(case):
    shape, filters, options = case
    bias = weight(1, filters[0], 1, 1, seed=2)
    kernel = single([shape], lambda x: _op.nn.relu(_op.add(_op.nn.conv2d(x, weight(*filters), **options), bias)))
    check_sums(kernel)
    assert ((0, 1) in kernel.sums()) == (options["groups"] == 1 and shape[1] > 1)


BODIES = {
    "matmul": ([(3, 4), (4, 5)], _op.matmul, [(0, 1), (1, 0)]),
    "dense": ([(1, 6)], lambda x: _op.nn.relu(_op.add(_op.matmul(x, weight(6, 4)), weight(4))), [(0, 1)]),
    "sum": ([(2, 4, 3)], lambda x: _op.sum(x, [1]), [(0, 1)]),
    "mean": ([(1, 3, 4, 5)], lambda x: _op.mean(x, [2, 3], keepdims=True), [(0, 2), (0, 3)]),
    "max": ([(2, 4, 3)], lambda x: _op.max(x, [1, 2]), [(0, 1), (0, 2)]),
    "min": ([(2, 4, 3)], lambda x: _op.min(x, [2]), [(0, 2)]),
    "gate": ([(1, 3, 4, 4)], lambda x: _op.sigmoid(_op.mean(x, [2, 3], keepdims=True)), [(0, 2), (0, 3)]),
    "conv1d": ([(1, 4, 9)], lambda x: _op.nn.conv1d(x, weight(3, 4, 3), padding=1), [(0, 1)]),
    "residual": ([(1, 4, 5, 5), (1, 3, 5, 5)], lambda x, y: _op.add(_op.nn.conv2d(x, weight(3, 4, 1, 1)), y), [(0, 1)]),
}


@pytest.mark.parametrize("name", BODIES)
def test_other_sums(name):
    shapes, body, sums = BODIES[name]
    kernel = single(shapes, body, ("legalize", "fold-constant", "fuse-operators{over=reduction}"))
    check_sums(kernel)
    assert set(sums) <= set(kernel.sums())


@pytest.mark.parametrize(
    "name, shapes, body, operand, axis",
    [
        ("the product", [(2, 4, 3)], lambda x: _op.prod(x, [1]), 0, 1),
        ("two sums", [(2, 4)], lambda x: _op.variance(x, [1]), 0, 1),
        ("no sum", [(2, 4)], lambda x: _op.nn.relu(x), 0, 1),
        ("an axis of the result", [(2, 4)], lambda x: _op.sum(x, [1]), 0, 0),
        ("some of the rows", [(2, 8)], lambda x: _op.sum(_op.strided_slice(x, [1], [0], [4]), [1]), 0, 1),
        ("later rows", [(2, 8)], lambda x: _op.sum(_op.strided_slice(x, [1], [2], [8]), [1]), 0, 1),
        ("rows several times", [(1, 2, 8)], lambda x: _op.nn.conv1d(x, weight(2, 2, 3)), 0, 2),
    ],
)
def test_other_kernels_are_refused(name, shapes, body, operand, axis):
    kernel = single(shapes, body, ("legalize", "fold-constant", "fuse-operators{over=reduction}")).kernel
    assert not sums_over(kernel, operand, axis)
    with pytest.raises(NoMatch):
        partial_sum(kernel, operand, axis, 1)


@script.prim_func(private=True, s_tir=True)
def _sum_of_slices(x: script.Buffer((2, 1, 8), "float32"), total: script.Buffer((1,), "float32")):
    copy = script.sblock_alloc_buffer((1, 16))
    for i, j in script.grid(1, 16):
        with script.sblock("concat"):
            v_i, v_j = script.axis.remap("SS", [i, j])
            copy[v_i, v_j] = script.if_then_else(v_j >= 8, x[1, v_i, v_j - 8], x[0, v_i, v_j])
    for i, j in script.grid(1, 16):
        with script.sblock("sum"):
            v_i, v_j = script.axis.remap("SR", [i, j])
            with script.init():
                total[v_i] = script.float32(0)
            total[v_i] = total[v_i] + copy[v_i, v_j]


@pytest.mark.parametrize("axis", range(3))
def test_a_copy_of_lower_rank_has_no_such_axis(axis):
    assert not sums_over(_sum_of_slices, 0, axis)


@pytest.mark.parametrize("name", ["max", "min", "sum"])
def test_parts_of_a_single_value_use_vectors(name):
    """Plain loops waited for each comparison: half the time of attention that is quantised as it runs."""
    kernel = single(
        [(1, 48, 64)], lambda x: getattr(_op, name)(x), ("legalize", "fold-constant", "fuse-operators{over=reduction}")
    )
    part = partial_sum(kernel.kernel, 0, 1, 12).part
    assert next(iter(schedules(part, frozenset(), Machine(), True).candidates())).speed is Speed.FAST
    check_sums(kernel)
