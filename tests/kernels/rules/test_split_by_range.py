"""Check splitting by range: the same elements, without position selects."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.rules.split_by_range import split_by_range
from passfit.tir.expressions import has_condition
from passfit.tir.loop_nests import blocks_of

from ...profiles import examples
from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(20))
_PASSES = ("legalize", "fold-constant", "fuse-operators")


def in_ranges(program):
    kernels = {name: split_by_range(kernel) for name, kernel in program.kernels.items()}
    assert None not in kernels.values()
    return type(program)(program.program, kernels, program.weights)


def agree(program):
    after, inputs = in_ranges(program), random_inputs(program)
    for kernel in after.kernels.values():
        assert not any(has_condition(block.body.value) for block in blocks_of(kernel))
    for ours, reference in zip(run(after, inputs), run(program, inputs), strict=True):
        np.testing.assert_array_equal(ours, reference)


@_FEW
@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(0, 2), st.booleans())
def test_concatenations(extents, axis, worked_on):
    shapes = [tuple(extent if place == axis else 3 for place in range(3)) for extent in extents]

    def body(*operands):
        result = relax.op.concat(operands, axis=axis)
        if worked_on:
            along = [sum(extents) if place == axis else 1 for place in range(3)]
            result = relax.op.nn.relu(relax.op.multiply(result, weight(*along)))
        return result

    agree(lowered(shapes, body, _PASSES))


@_FEW
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any))
def test_padding(width):
    agree(lowered([(4, 5)], lambda x: relax.op.nn.pad(x, [width[0], width[1], width[2], width[3]]), _PASSES))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: relax.op.nn.relu(x),
        lambda x: relax.op.nn.max_pool2d(x, (3, 3), padding=1),
        lambda x: relax.op.where(relax.op.greater(x, relax.const(0.0)), x, relax.const(1.0)),
    ],
    ids=["no choice", "a reduction", "a choice by value"],
)
def test_other_kernels_stay(body):
    program = lowered([(1, 2, 6, 6)], body, _PASSES)
    assert [split_by_range(kernel) for kernel in program.kernels.values()] == [None] * len(program.kernels)
