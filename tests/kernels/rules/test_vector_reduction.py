"""Compare reductions along memory with TVM's kernels: closer to the truth, in a few lanes of workspace."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.tirx import For

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.flatten_axes import flatten_axes
from passfit.kernels.rules.rule import Speed
from passfit.kernels.rules.vector_reduction import sums_of_one_tensor, vector_reduction, vector_sums
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import Machine
from passfit.tir.expressions import collect
from passfit.tir.workspace import workspace_bytes

from ...profiles import examples
from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm

_EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 15, 16, 17, 20, 23, 32, 37, 40])
_REDUCTIONS = {"mean": relax.op.mean, "sum": relax.op.sum, "max": relax.op.max, "min": relax.op.min}


@settings(max_examples=examples(25))
@given(
    st.tuples(_EXTENTS, _EXTENTS, _EXTENTS, _EXTENTS),
    st.sampled_from([[3], [2, 3], [1, 2, 3], [0, 1, 2, 3], [1, 3], [2], [0, 3]]),
    st.sampled_from(sorted(_REDUCTIONS)),
    st.booleans(),
)
def test_reductions_agree_with_tvms(shape, axes, name, keep):
    program = lowered([shape], lambda x: relax.op.sqrt(relax.op.abs(_REDUCTIONS[name](relax.op.abs(x), axes, keep))))
    scheduled, _ = schedule_program(program)
    inputs = random_inputs(program)
    for ours, theirs in zip(run(scheduled, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def _kernel(program):
    (kernel,) = program.kernels.values()
    return kernel


def test_the_mean_of_a_plane_is_closer_to_the_truth():
    program = lowered([(1, 8, 96, 96)], lambda x: relax.op.mean(x, [2, 3], True))
    ((name, kernel),) = program.kernels.items()
    in_lanes = replace(program, kernels={name: vector_reduction(kernel)})
    inputs = [np.abs(each) for each in random_inputs(program)]
    truth = inputs[0].astype(np.float64).mean(axis=(2, 3), keepdims=True)
    ours, theirs = (np.abs(run(each, inputs)[0] - truth).max() for each in (in_lanes, program))
    assert ours < theirs / 4


def test_the_workspace_is_the_lanes():
    kernel = vector_reduction(_kernel(lowered([(1, 8, 20, 48)], lambda x: relax.op.mean(x, [2, 3]))))
    assert workspace_bytes(kernel) <= 2 * 64


@pytest.mark.parametrize("name", ["max", "min", "sum"])
@pytest.mark.parametrize("shape", [(64, 384), (1, 6, 16), (48,)])
def test_a_reduction_of_all_elements_has_lanes(name, shape):
    program = lowered([shape], lambda x: _REDUCTIONS[name](x))
    ((number, kernel),) = program.kernels.items()
    found = vector_reduction(kernel)
    assert found is not None and "T.vectorized(" in found.script()
    inputs = random_inputs(program)
    np.testing.assert_allclose(
        run(replace(program, kernels={number: found}), inputs)[0], run(program, inputs)[0], rtol=1e-5, atol=1e-5
    )


def test_what_is_not_contiguous_or_has_no_lanes_is_left_to_other_rules():
    for shape, axes in (((4, 8, 16), [1]), ((4, 8, 15), [2]), ((4, 8, 1), [2])):
        assert vector_reduction(_kernel(lowered([shape], lambda x, axes=axes: relax.op.sum(x, axes)))) is None


def test_several_results_at_once_are_left_alone():
    assert vector_reduction(_kernel(lowered([(4, 32)], relax.op.argmax))) is None


@pytest.mark.parametrize("product", [True, False])
def test_only_products_have_faster_rules(product: bool):
    kernel = _kernel(lowered([(1, 32)], lambda x: relax.op.sum(x * weight(5, 32) if product else x * x, [1])))
    (found,) = vector_sums(kernel, frozenset(), Machine())
    assert found.speed is (Speed.LANES if product else Speed.FAST)
    assert len(list(sums_of_one_tensor(kernel, frozenset(), Machine()))) == (not product)


@pytest.mark.parametrize("reduce", [relax.op.mean, relax.op.max, relax.op.sum])
def test_rows_of_one_tensor_are_reduced_along_memory_not_side_by_side(reduce):
    kernel = _kernel(lowered([(1, 197, 192)], lambda x: reduce(x, [2])))
    first = next(schedules(kernel, frozenset(), Machine()).candidates())
    (own,) = sums_of_one_tensor(flatten_axes(kernel, frozenset()), frozenset(), Machine())
    assert first.speed is Speed.FAST and len(collect(first.kernel.body, For)) == len(collect(own.kernel.body, For))


def test_a_product_along_memory_has_its_lanes_innermost_whatever_the_order_of_the_axes():
    def body(x):
        return relax.op.nn.conv1d(x, weight(5, 1, 32), strides=16)

    program = lowered([(1, 1, 80)], body)
    in_lanes = replace(program, kernels={name: vector_reduction(each) for name, each in program.kernels.items()})
    inputs = random_inputs(program)
    np.testing.assert_allclose(run(in_lanes, inputs)[0], run(program, inputs)[0], rtol=1e-5, atol=1e-5)
    assert workspace_bytes(_kernel(in_lanes)) == 64


@pytest.mark.parametrize("shape", [(3, 16), (2, 3, 24), (1, 2, 5, 64), (7, 4)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "standard deviation"])
def test_kernels_of_several_reductions_keep_their_results_and_need_no_workspace(shape: tuple[int, ...], name: str):
    op, last = relax.op, shape[-1]
    bodies = {
        "softmax": lambda x: op.nn.softmax(x, -1),
        "log_softmax": lambda x: op.nn.log_softmax(x, -1),
        "layer_norm": lambda x: op.nn.layer_norm(x, weight(last), weight(last, seed=1), axes=[-1]),
        "standard deviation": lambda x: op.std(x, [-1]),
    }
    program = lowered([shape], bodies[name])
    ((kernel_name, kernel),) = program.kernels.items()
    made = vector_reduction(kernel)
    assert made is not None
    # the numbers of its rows stay in registers; a softmax keeps its exponentials in the result
    assert workspace_bytes(made) <= 6 * 64
    inputs = random_inputs(program)
    (expected,), (found,) = run(program, inputs), run(replace(program, kernels={kernel_name: made}), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extent", [2048, 2061, 1000])
@pytest.mark.parametrize("name", ["log_softmax", "mean", "max"])
def test_long_reductions_take_several_vectors_side_by_side(extent: int, name: str):
    op = relax.op
    bodies = {
        "log_softmax": lambda x: op.nn.log_softmax(x, -1),
        "mean": lambda x: op.mean(x, [-1]),
        "max": lambda x: op.max(x, [-1]),
    }
    program = lowered([(3, extent)], bodies[name])
    ((kernel_name, kernel),) = program.kernels.items()
    machine = Machine(lanes=16)
    made = next(each.kernel for each in vector_sums(kernel, frozenset(), machine))
    lanes = 64 if extent >= 2048 else 16
    assert lanes * 4 <= workspace_bytes(made) <= machine.register_bytes
    inputs = random_inputs(program)
    (expected,), (found,) = run(program, inputs), run(replace(program, kernels={kernel_name: made}), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_an_exponential_is_computed_once_in_the_result():
    import tvm_ffi
    from tvm.ir import Call

    program = lowered([(4, 64)], lambda x: relax.op.nn.softmax(x, -1))
    made = vector_reduction(_kernel(program))
    found: list[bool] = []
    tvm_ffi.structural_walk(made.body, [(Call, lambda call: found.append(getattr(call.op, "name", "") == "tirx.exp"))])
    assert sum(found) == 1
