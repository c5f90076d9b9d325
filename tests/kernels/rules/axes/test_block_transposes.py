"""Compare transposes walked in blocks with numpy; check which are."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.axes.block_transposes import block_transposes
from passfit.kernels.rules.flatten_axes import flatten_axes
from passfit.targets import Machine
from passfit.tir.in_place.analysis import analyse_sharing

from ....profiles import examples
from ...programs import lowered, random_inputs, run

pytestmark = pytest.mark.tvm


def _program(shape, order):
    return lowered([shape], lambda x: relax.op.exp(relax.op.permute_dims(x, list(order))))


@pytest.mark.parametrize(
    ("shape", "order"),
    [((256, 512), (1, 0)), ((1, 144, 16, 64), (0, 2, 3, 1)), ((3, 40, 1024), (0, 2, 1)), ((32, 3, 1024), (2, 1, 0)), ((200, 8, 4, 32), (3, 1, 2, 0))],
)  # fmt: skip
def test_blocks_hold_the_same_elements(shape, order):
    program = _program(shape, order)
    (kernel,) = program.kernels.values()
    blocks = block_transposes(flatten_axes(kernel), Machine())
    assert blocks is not None and '"local"' not in str(blocks)  # TVM would take it from a workspace that is not planned
    scheduled, _ = schedule_program(program)
    inputs = random_inputs(program)
    for each in (program, scheduled):
        np.testing.assert_allclose(run(each, inputs)[0], np.exp(inputs[0].transpose(order)), rtol=1e-5)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from([(), (1,), (3,)]), st.integers(1, 40), st.sampled_from([1, 2, 6]), st.integers(1, 40), st.permutations(range(3)),
    st.sampled_from(["alone", "added", "itself", "integers"]),
)  # fmt: skip
def test_blocks_turned_in_registers_hold_the_same_elements(outer, lines, depth, columns, order, other):
    """Hold for any shape; operands share as much memory as before."""
    shape = (*outer, lines, depth, columns)
    axes = [*range(len(outer)), *(len(outer) + axis for axis in order)]
    moved = tuple(shape[axis] for axis in axes)

    def body(x, *more):
        turned = relax.op.permute_dims(x, axes)
        if other == "itself" and moved == shape:
            return relax.op.add(turned, x)
        turned = relax.op.astype(turned, "int32") if other == "integers" else turned
        return relax.op.add(turned, more[0]) if more else turned

    program = lowered([shape, *([moved] if other == "added" else [])], body)
    scheduled, workspace = schedule_program(program)
    inputs = random_inputs(program)
    for ours, wanted in zip(run(scheduled, inputs), run(program, inputs), strict=True):
        np.testing.assert_array_equal(ours, wanted)
    assert workspace == 0
    for kernel in program.kernels.values():
        made = block_transposes(flatten_axes(kernel), Machine())
        assert made is None or analyse_sharing(made) == analyse_sharing(flatten_axes(kernel))


@pytest.mark.parametrize(("lanes", "side"), [(16, 8), (8, 8), (4, 4), (1, 4)])
@pytest.mark.parametrize("shape", [(64, 56), (512, 509), (197, 64)])
def test_vectors_are_turned_in_registers(shape, lanes, side):
    (kernel,) = lowered([shape], lambda x: relax.op.permute_dims(x, [1, 0])).kernels.values()
    made = block_transposes(flatten_axes(kernel), Machine(lanes=lanes))
    assert made is not None and made.script().count(f"T.vectorized(T.int64({side}))") == 2


@pytest.mark.parametrize(("shape", "order"), [((4, 64, 3, 32), (0, 2, 1, 3)), ((512, 3), (1, 0)), ((61, 59), (1, 0))])
def test_short_prime_and_contiguous_ones_stay(shape, order):
    (kernel,) = _program(shape, order).kernels.values()
    assert block_transposes(flatten_axes(kernel), Machine()) is None


@pytest.mark.parametrize("shapes", [[(512, 512), ()], [(), ()]])
def test_a_scalar_has_no_line(shapes):
    program = lowered(shapes, relax.op.add)
    (kernel,) = program.kernels.values()
    assert block_transposes(flatten_axes(kernel), Machine()) is None
    inputs = random_inputs(program)
    np.testing.assert_allclose(run(schedule_program(program)[0], inputs)[0], inputs[0] + inputs[1], rtol=1e-5)
