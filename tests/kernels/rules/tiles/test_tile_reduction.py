"""Compare tiled kernels with TVM's kernels, in every shape, within a small workspace."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.llvm_pipelines import RAW
from passfit.codegen.objects import build_module
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.forms.narrow_sums import narrow_sums
from passfit.kernels.rules.tiles.tile_reduction import tile_reduction
from passfit.kernels.schedule.candidates import RULE_WORKSPACE
from passfit.program.check import first_problem
from passfit.program.workspaces import largest_workspace
from passfit.targets import get_target
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from ...programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(12))


def _agrees(program) -> None:
    scheduled, _ = schedule_program(program)
    inputs = random_inputs(program)
    for ours, reference in zip(run(scheduled, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-4, atol=1e-4 * max(1e-3, float(np.abs(reference).max())))
    assert largest_workspace(scheduled.program) <= RULE_WORKSPACE
    assert first_problem(scheduled.program) is None
    assert scheduled.program.weight_bytes == program.program.weight_bytes


def _tiled(program) -> list[bool]:
    return [tile_reduction(kernel, frozenset({1})) is not None for kernel in program.kernels.values()]


_CHANNELS = st.sampled_from([1, 3, 4, 5, 8, 12, 13, 16, 24, 40])
_SIDES = st.sampled_from([1, 2, 3, 5, 7, 8, 11, 12, 16, 21])


@st.composite
def _convolutions(draw):
    groups = draw(st.sampled_from([1, 1, 1, 2, 4]))
    kernel = (draw(st.sampled_from([1, 2, 3, 5])), draw(st.sampled_from([1, 3])))
    dilation = draw(st.sampled_from([1, 1, 2]))
    padding = [draw(st.integers(0, 2)) for _ in range(4)]
    sides = [
        max(draw(_SIDES), dilation * (size - 1) + 1 - before - after)
        for size, before, after in zip(kernel, padding[:2], padding[2:])
    ]
    channels, filters = draw(_CHANNELS) * groups, draw(_CHANNELS) * groups
    return (
        (draw(st.sampled_from([1, 1, 2])), channels, *sides),
        (filters, channels // groups, *kernel),
        {"strides": draw(st.sampled_from([1, 1, 2])), "padding": padding, "dilation": dilation, "groups": groups},
    )


@_FEW
@given(_convolutions(), st.sampled_from(["none", "bias-relu", "residual", "transpose", "pool"]))
def test_convolutions(case, epilogue):
    shape, filters, options = case

    def body(x):
        result = relax.op.nn.conv2d(x, weight(*filters), **options)
        if epilogue == "bias-relu":
            return relax.op.nn.relu(relax.op.add(result, weight(1, filters[0], 1, 1, seed=2)))
        if epilogue == "residual":
            return relax.op.sigmoid(relax.op.multiply(result, weight(filters[0], 1, 1, seed=3)))
        if epilogue == "transpose":
            return relax.op.permute_dims(relax.op.nn.relu(result), [0, 2, 3, 1])
        if epilogue == "pool":
            return relax.op.nn.max_pool2d(relax.op.nn.relu(result), (2, 2), (2, 2), (0, 0), ceil_mode=True)
        return result

    passes = ("legalize", "fold-constant", "fuse-operators{over=pooling}")
    _agrees(lowered([shape], body, passes))


@_FEW
@given(
    st.sampled_from([(1,), (7,), (12,), (2, 5), (2, 1, 6)]),
    st.sampled_from([1, 3, 16, 33]),
    st.sampled_from([1, 4, 10, 17, 24, 64, 96]),
)
def test_matmuls_with_weights(rows, depth, width):
    _agrees(
        lowered(
            [(*rows, depth)],
            lambda x: relax.op.nn.relu(relax.op.add(relax.op.matmul(x, weight(depth, width)), weight(width))),
        )
    )


@_FEW
@given(
    st.sampled_from([1, 2, 3]), st.sampled_from([1, 5, 8]), st.sampled_from([1, 3, 16]), st.sampled_from([4, 15, 24])
)
def test_matmuls_of_activations(batch, rows, depth, width):
    shapes = [(batch, rows, depth), (batch, depth, width)]
    _agrees(lowered(shapes, lambda a, b: relax.op.matmul(a, b)))
    transposed = [(batch, rows, depth), (batch, width, depth)]
    _agrees(lowered(transposed, lambda a, b: relax.op.matmul(a, relax.op.permute_dims(b, [0, 2, 1]))))


@_FEW
@given(
    st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 3, 8, 10]), _SIDES, _SIDES),
    st.sampled_from(["mean", "max", "rows", "layer-norm", "softmax", "max-pool", "average-pool"]),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 1]),
)
def test_reductions_and_pooling(shape, kind, stride, pad):
    shape = (*shape[:2], max(shape[2], 2), max(shape[3], 2))

    def body(x):
        if kind == "mean":
            return relax.op.nn.relu(relax.op.mean(x, [2, 3], keepdims=True))
        if kind == "max":
            return relax.op.max(x, [1])
        if kind == "rows":
            return relax.op.sum(relax.op.multiply(x, x), [-1])
        if kind == "layer-norm":
            return relax.op.nn.layer_norm(x, weight(shape[3]), weight(shape[3], seed=1), [-1])
        if kind == "softmax":
            return relax.op.nn.softmax(x, axis=-1)
        pool = relax.op.nn.max_pool2d if kind == "max-pool" else relax.op.nn.avg_pool2d
        return pool(x, (2, 2), (stride, stride), (pad, pad))

    _agrees(lowered([shape], body))


@_FEW
@given(_SIDES, st.sampled_from([5, 33]), st.sampled_from([3, 16, 49]), st.booleans())
def test_sums_of_products_in_which_no_axis_moves_one_factor_alone(rows, depth, width, square):
    """Norms across memory, and the dot products of two pictures."""
    shapes = [(rows, depth, width)] * (1 if square else 2)
    program = lowered(
        shapes,
        lambda x, *other: relax.op.sum(relax.op.multiply(x, *(other or [x])), axis=1),
        ("legalize", "fuse-operators"),
    )
    if width % 8 == 0:
        assert _tiled(program) == [True]
    _agrees(program)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("filters", [6, 16])
def test_transposed_convolutions(stride, filters):
    _agrees(
        lowered(
            [(1, 5, 7, 6)],
            lambda x: relax.op.nn.conv2d_transpose(x, weight(5, filters, 3, 3), strides=stride, padding=1),
        )
    )


def test_a_squeeze_and_excite_scale_is_computed_once():
    """Compute the gate once per channel, though every pixel uses it."""

    def body(x, gate):
        scale = relax.op.sigmoid(relax.op.nn.conv2d(gate, weight(16, 8, 1, 1)))
        return relax.op.multiply(x, scale)

    program = lowered([(1, 16, 6, 6), (1, 8, 1, 1)], body)
    _agrees(program)
    (kernel,) = [kernel for kernel in program.kernels.values() if "conv2d" in kernel.script()]
    lines = tile_reduction(kernel, frozenset({1, 2})).kernel.script().splitlines()
    before = lines[: next(number for number, line in enumerate(lines) if "conv2d_nchw_update" in line)]
    assert not any("T.int64(6)" in line for line in before if line.lstrip().startswith("for "))


def test_a_long_window_with_padding_is_copied_step_by_step():
    """Copy the window of a tile step by step: at once, it would exceed a rule's workspace."""
    program = lowered([(1, 2, 2000)], lambda x: relax.op.nn.conv1d(x, weight(1, 2, 1201), padding=600))
    (kernel,) = program.kernels.values()
    assert workspace_bytes(tile_reduction(kernel, frozenset({1})).kernel) > RULE_WORKSPACE
    assert workspace_bytes(tile_reduction(kernel, frozenset({1}), copy_late=True).kernel) < 1024
    _agrees(program)


def test_a_convolution_in_its_loops():
    def body(x):
        return relax.op.nn.relu(relax.op.nn.conv2d(x, weight(16, 4, 3, 3), padding=1))

    program = lowered([(1, 4, 6, 6)], body)
    (name,) = program.kernels
    tiled = tile_reduction(program.kernels[name], frozenset({1}))
    assert tiled is not None and len(tiled.repacks) == 1
    script = tiled.kernel.script()
    assert "T.vectorized(T.int64(8))" in script and "T.unroll" in script
    assert "pad_temp" not in script
    order = [script.index(word) for word in ("] = T.float32(0.0)", "] * param_0[", "compute_intermediate[")]
    assert order == sorted(order)


def test_accumulators_of_a_pooled_convolution_stay_in_registers():
    """Store nothing after a multiply-add: LLVM kept accumulators on the stack where a loop over windows read them."""

    def body(x):
        convolved = relax.op.nn.conv2d(x, weight(64, 32, 3, 3), padding=1)
        return relax.op.nn.max_pool2d(relax.op.nn.silu(convolved), (2, 2), (2, 2))

    program = lowered([(1, 32, 20, 40)], body, ("legalize", "fold-constant", "fuse-operators{over=pooling}"))
    _agrees(program)
    scheduled, _ = schedule_program(program)
    assembly = build_module(scheduled.kernels, get_target("x86-64-v4").llvm_config(), RAW).inspect_source("asm")
    after = [second for first, second in pairwise(assembly.splitlines()) if "vfmadd231ps" in first]
    assert after
    assert not [line for line in after if "vmov" in line and line.endswith("(%rsp)")]


def test_what_does_not_match_is_left_alone():
    assert _tiled(lowered([(2, 30)], lambda x: relax.op.nn.softmax(x))) == [False]
    assert _tiled(lowered([(2, 30)], lambda x: relax.op.nn.relu(x))) == [False]
    assert _tiled(lowered([(2, 30)], relax.op.argmax)) == [False]


def test_a_weight_two_kernels_read_keeps_its_layout():
    shared = weight(8, 8, 3, 3)

    def body(x):
        first = relax.op.nn.relu(relax.op.nn.conv2d(x, shared, padding=1))
        return relax.op.nn.conv2d(first, shared, padding=1, strides=2)

    program = lowered([(1, 8, 6, 6)], body)
    assert len(program.weights) == 1 and len(program.kernels) == 2
    _agrees(program)
    scheduled, _ = schedule_program(program)
    assert scheduled.weights[0].shape == (8, 8, 3, 3)


def test_two_runs_give_the_same_kernels():
    def scripts():
        program = lowered([(1, 4, 6, 6)], lambda x: relax.op.nn.conv2d(x, weight(16, 4, 3, 3), padding=1))
        return [tile_reduction(kernel, frozenset({1})).kernel.script() for kernel in program.kernels.values()]

    assert scripts() == scripts()


@pytest.mark.parametrize("begin, repacked", [(0, True), (32, True), (64, True), (16, False), (40, False)])
def test_a_weight_of_which_a_part_is_read_is_repacked_by_blocks_of_it(begin, repacked):
    """A part that begins within a block would read two of them for each vector."""

    def body(x):
        convolved = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(96, 8, 3, 3), padding=1))
        return relax.op.strided_slice(convolved, axes=[1], begin=[begin], end=[begin + 32], strides=[1])

    program = lowered([(1, 8, 7, 11)], body, ("legalize", "fold-constant", "fuse-by-mapping"))
    (kernel,) = program.kernels.values()
    tiled = tile_reduction(narrow_sums(kernel), frozenset({1}))
    assert tiled is not None and len(tiled.repacks) == repacked
    _agrees(program)


@pytest.mark.parametrize("columns, repacked", [(32, False), (64, True), (400, True)])
def test_weights_whose_lines_are_apart_are_repacked(columns, repacked):
    program = lowered([(4, 96)], lambda x: relax.op.matmul(x, weight(96, columns)))
    (kernel,) = program.kernels.values()
    tiled = tile_reduction(kernel, frozenset({1}))
    assert tiled is not None and [each.dimension for each in tiled.repacks] == [1] * repacked
    _agrees(program)


@pytest.mark.parametrize(
    "shape, size, strides",
    [((1, 9, 1, 24), 3, 1), ((1, 12, 11, 16), 3, 2), ((1, 7, 7, 40), 5, 1), ((1, 5, 6, 20), 3, 1)],
)
def test_channels_that_lie_last_are_vectors_of_both_factors(shape, size, strides):
    channels = shape[-1]

    def body(x):
        options = {
            "padding": size // 2,
            "strides": strides,
            "groups": channels,
            "data_layout": "NHWC",
            "kernel_layout": "HWOI",
        }
        return relax.op.nn.relu(relax.op.nn.conv2d(x, weight(size, size, channels, 1), **options))

    program = lowered([shape], body)
    (kernel,) = program.kernels.values()
    assert tile_reduction(kernel, frozenset({1})).lanes == (8 if channels % 8 == 0 else 4)
    _agrees(program)
