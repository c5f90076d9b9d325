"""Compare reductions across memory, by vectors of columns, with TVM's kernels."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.rules.axes.vector_columns import vector_columns
from passfit.kernels.rules.flatten_axes import flatten_axes
from passfit.targets import Machine, get_target
from passfit.tir.in_place.analysis import analyse_sharing
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from ...programs import lowered, random_inputs, run

pytestmark = pytest.mark.tvm
_MACHINES = st.sampled_from(
    [Machine(), *(get_target(name).machine for name in ("x86-64-v4", "rpi4", "bpi-f3", "visionfive2"))]
)
_BODIES = {
    "softmax": lambda x: relax.op.nn.softmax(x, axis=1),
    "log": lambda x: relax.op.nn.log_softmax(x, axis=1),
    "centred": lambda x: relax.op.subtract(x, relax.op.mean(x, [1], keepdims=True)),
    "scaled": lambda x: relax.op.divide(x, relax.op.sqrt(relax.op.sum(relax.op.multiply(x, x), [1], keepdims=True))),
    "outermost": lambda x: relax.op.subtract(x, relax.op.max(x, [0], keepdims=True)),
}


def _made(program, machine):
    return {
        name: next((each.kernel for each in vector_columns(kernel, frozenset(), machine)), None)
        for name, kernel in program.kernels.items()
    }


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from([(), (1,), (3,)]), st.sampled_from([1, 2, 5, 21]), st.sampled_from([(4,), (7,), (13,), (16,), (33,), (4, 6), (5, 5)]),
    st.sampled_from(sorted(_BODIES)), _MACHINES,
)  # fmt: skip
def test_columns_in_vectors(outer, depth, plane, body, machine):
    program = lowered([(*(outer or (1,)), depth, *plane)], _BODIES[body], ("legalize", "fuse-operators"))
    made = _made(program, machine)
    inputs = random_inputs(program)
    expected = run(program, inputs)
    vectors = replace(program, kernels={name: made[name] or each for name, each in program.kernels.items()})
    for found, wanted in zip(run(vectors, inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    for name, each in made.items():
        assert each is None or workspace_bytes(each) <= max(4 * 64, machine.register_bytes)
        if each is not None:
            found, before = analyse_sharing(each), analyse_sharing(program.kernels[name])
            assert (found.results, found.copies) == (before.results, before.copies) and {*before.in_place} <= {
                *found.in_place
            }


@pytest.mark.parametrize("side", [8, 65])
def test_a_softmax_over_channels_is_vectors(side):
    program = lowered([(1, 21, side, side)], _BODIES["softmax"])
    flat = {name: flatten_axes(kernel) for name, kernel in program.kernels.items()}
    (made,) = _made(replace(program, kernels=flat), Machine()).values()
    assert made is not None and made.script().count("T.vectorized(T.int64(8))") >= 5


@pytest.mark.parametrize("machine", [Machine(lanes=1), get_target("visionfive2").machine])
def test_single_lanes_stay(machine):
    program = lowered([(1, 21, 8, 8)], _BODIES["softmax"])
    assert list(_made(program, machine).values()) == [None]


def test_sums_along_memory_stay():
    program = lowered([(21, 64)], _BODIES["softmax"])
    assert list(_made(program, Machine()).values()) == [None]
