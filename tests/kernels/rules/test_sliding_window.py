"""Compare sliding windows over line buffers with TVM's kernels, in every shape, stride, padding and dilation."""

import re

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.rules.sliding_window import sliding_windows
from passfit.kernels.schedule.candidates import RULE_WORKSPACE
from passfit.targets import Machine, get_target
from passfit.tir.index_grid import chunks
from passfit.tir.row_window import row_window
from passfit.tir.stores import stores
from passfit.tir.workspace import held_bytes, workspace_bytes

from ...profiles import examples
from ..programs import HOST, lowered, random_inputs, run, weight
from ..windows import Single

pytestmark = pytest.mark.tvm


def scheduled(kernel, machine=Machine()):
    """Return the only schedule of a kernel; None if the rule leaves it to others."""
    return next((each.kernel for each in sliding_windows(kernel, frozenset(), machine)), None)


_FEW = settings(max_examples=examples(16))
_SIDES = st.sampled_from([1, 2, 5, 7, 8, 9, 13, 14, 16, 23, 31])


def agrees(program, machine=Machine()):
    """Check that every kernel of `program` slides, and that the results stay the same."""
    slid = {name: scheduled(kernel, machine) for name, kernel in program.kernels.items()}
    assert None not in slid.values()
    assert all(held_bytes(kernel) == workspace_bytes(kernel) <= RULE_WORKSPACE for kernel in slid.values())
    inputs = random_inputs(program)
    after = type(program)(program.program, slid, program.weights)
    for ours, reference in zip(run(after, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-5)


@st.composite
def _windows(draw, most=5):
    size = (draw(st.integers(1, most)), draw(st.integers(2, most)))
    dilation = draw(st.sampled_from([1, 1, 2]))
    padding = [min(draw(st.integers(0, 2)), size[n % 2] - 1) for n in range(4)]
    sides = [
        max(draw(_SIDES), dilation * (extent - 1) + 1 - before - after)
        for extent, before, after in zip(size, padding[:2], padding[2:])
    ]
    strides = draw(st.sampled_from([(1, 1), (2, 2), (1, 2), (3, 3)]))
    return sides, size, {"strides": strides, "padding": padding, "dilation": dilation}


@pytest.mark.parametrize("length, taps, stride", [(20, 3, 1), (100, 31, 1), (50, 5, 2)])
def test_lines_with_weights_of_their_own(length, taps, stride):
    def body(x):
        return relax.op.nn.conv1d(x, weight(5, 1, taps), strides=stride, padding=taps // 2, groups=5)

    agrees(lowered([(2, 5, length)], body))


@_FEW
@given(_windows(), st.integers(2, 5), st.sampled_from(["none", "swish", "residual"]))
def test_depthwise_convolutions(case, channels, epilogue):
    sides, size, options = case

    def body(x):
        result = relax.op.nn.conv2d(x, weight(channels, 1, *size), groups=channels, **options)
        if epilogue == "swish":
            result = relax.op.add(result, weight(1, channels, 1, 1, seed=2))
            return relax.op.multiply(result, relax.op.sigmoid(result))
        return relax.op.add(result, relax.op.nn.relu(result)) if epilogue == "residual" else result

    agrees(lowered([(1, channels, *sides)], body, ("legalize", "fold-constant", "fuse-operators")))


def test_a_function_behind_the_sums_is_a_loop():
    def body(x):
        result = relax.op.nn.conv2d(x, weight(4, 1, 5, 5), groups=4, padding=2)
        return relax.op.multiply(result, relax.op.sigmoid(result))

    program = lowered([(1, 4, 14, 14)], body, ("legalize", "fold-constant", "fuse-operators"))
    agrees(program)
    (kernel,) = program.kernels.values()
    text = build_module({"f": scheduled(kernel)}, get_target("x86-64").llvm_config()).inspect_source("asm")
    assert len(re.findall(r"vdivps", text)) <= 2  # one for a band of four rows, one for the last two; unrolled, 12


@_FEW
@given(_windows(4), st.sampled_from(["max", "avg", "avg of what is there"]), st.booleans())
def test_poolings(case, kind, ceil_mode):
    sides, size, options = case

    def body(x):
        if kind == "max":
            return relax.op.nn.max_pool2d(x, size, ceil_mode=ceil_mode, **options)
        count = kind == "avg"
        return relax.op.nn.avg_pool2d(x, size, ceil_mode=ceil_mode, count_include_pad=count, **options)

    agrees(lowered([(1, 3, *sides)], body, ("legalize", "fold-constant", "fuse-operators")))


@pytest.mark.parametrize("size", [(9, 9), (13, 13), (70, 1), (3, 31)])
@pytest.mark.parametrize("kind", ["max", "depthwise"])
def test_rows_of_a_large_window_are_a_loop(size, kind):
    padding = [extent // 2 for extent in size]

    def body(x):
        if kind == "max":
            return relax.op.nn.relu(relax.op.nn.max_pool2d(x, size, padding=padding))
        return relax.op.nn.conv2d(x, weight(2, 1, *size), groups=2, padding=padding)

    agrees(lowered([(1, 2, 20, 8)], body, ("legalize", "fold-constant", "fuse-operators")))


def test_an_operand_that_goes_along_with_the_result_is_read_only_where_the_result_is():
    def body(x, y):
        return relax.op.add(relax.op.nn.conv2d(x, weight(2, 1, 3, 3), padding=1, groups=2), y)

    agrees(lowered([(1, 2, 5, 7), (1, 2, 5, 7)], body, ("legalize", "fold-constant", "fuse-operators")))


@pytest.mark.parametrize("machine", [Machine(4, 16), Machine(1, 20), Machine(32, 8, lmul=4), Machine(compact=True)])
@pytest.mark.parametrize("side", [5, 16])
def test_vectors_may_be_shorter_and_fewer(side, machine):
    def body(x):
        return relax.op.nn.relu(relax.op.nn.conv2d(x, weight(3, 1, 3, 3), padding=1, groups=3))

    program = lowered([(1, 3, side, side)], body, ("legalize", "fold-constant", "fuse-operators"))
    agrees(program, machine)


@pytest.mark.parametrize(("width", "lanes"), [(1, 4), (2, 4), (4, 4), (5, 8), (7, 8), (9, 16), (14, 16)])
def test_vectors_are_no_longer_than_a_row_needs(width, lanes):
    """Keep to vectors of four at least."""
    program = lowered([(1, 3, 6, width)], lambda x: relax.op.nn.conv2d(x, weight(3, 1, 3, 3), padding=1, groups=3))
    agrees(program, Machine(lanes=16))
    (kernel,) = program.kernels.values()
    assert f"vectorized(T.int64({lanes}))" in scheduled(kernel, Machine(lanes=16)).script()


@pytest.mark.parametrize("width", [64, 65, 71, 100, 111, 150])
def test_nothing_is_written_past_the_end_of_the_result(width):
    program = lowered([(1, 2, 9, width)], lambda x: relax.op.nn.max_pool2d(x, (3, 3), (1, 1), (1, 1)))
    ((name, kernel),) = program.kernels.items()
    (reference,) = run(program, inputs := random_inputs(program))
    library = build_module({name: scheduled(kernel)}, HOST)
    block = np.full(reference.size + 64, 7, np.float32)
    first = -block.ctypes.data % 64 // 4
    result = block[first : first + reference.size].reshape(reference.shape)
    library[name](*(tvm_ffi.from_dlpack(each, require_alignment=0) for each in (inputs[0], result)))
    np.testing.assert_array_equal(result, reference)
    assert (block[first + reference.size :] == 7).all()


@pytest.mark.parametrize("side", [7, 16])
def test_what_is_made_of_a_window_may_be_of_another_dtype(side):
    def body(x):
        pooled = relax.op.nn.max_pool2d(x, (2, 2))
        return relax.op.astype(relax.op.greater(pooled, relax.const(0.5)), "int8")

    agrees(lowered([(1, 2, side, side)], body, ("legalize", "fold-constant", "fuse-operators{over=pooling}")))


@pytest.mark.parametrize("machine", [Machine(), Machine(4, 16), Machine(32, 8, lmul=4)])
@pytest.mark.parametrize("width", [34, 67, 75, 100, 150])
def test_rows_of_several_groups_of_vectors_end_where_the_plane_does(width, machine):
    """Count the stores of each element: once, and none past the end of a row, in another row or tensor."""

    def body(x):
        return relax.op.nn.relu(relax.op.nn.conv2d(x, weight(3, 1, 3, 3), padding=1, groups=3))

    program = lowered([(1, 3, 9, width)], body, ("legalize", "fold-constant", "fuse-operators"))
    agrees(program, machine)
    (kernel,) = program.kernels.values()
    slid = scheduled(kernel, machine)
    result = slid.params[-1]
    stored = np.zeros([int(extent) for extent in result.ty.shape], int)
    for store in stores(slid.body):
        if store.buffer.same_as(result):
            for grid in chunks(store.loops, store.bindings):
                at = np.broadcast_arrays(*map(grid.evaluate, store.indices), np.zeros(grid.shape, int))[:-1]
                np.add.at(stored, tuple(at), 1)  # an index past the end is an error
    assert (stored == 1).all()


@pytest.mark.parametrize(
    "body",
    [
        lambda x: relax.op.nn.conv2d(x, weight(4, 4, 3, 3)),
        lambda x: relax.op.nn.conv2d(x, weight(4, 1, 1, 1), groups=4),
        lambda x: relax.op.mean(x, [2, 3]),
        lambda x: relax.op.nn.relu(x),
    ],
    ids=["sums over channels", "no window", "the whole plane", "nothing is summed"],
)
def test_what_is_no_window_over_a_plane_is_left_to_others(body):
    program = lowered([(1, 4, 9, 9)], body, ("legalize", "fold-constant", "fuse-operators"))
    assert [scheduled(kernel) for kernel in program.kernels.values()] == [None] * len(program.kernels)


@settings(max_examples=examples(6))
@given(_windows(), st.sampled_from([1, 2]), st.booleans(), st.sampled_from([8, 16]))
def test_windows_of_streaming_regions_take_no_workspace_but_registers(case, axis, depthwise, lanes):
    sides, size, options = case

    def body(x):
        if depthwise:
            return relax.op.nn.conv2d(x, weight(3, 1, *size), groups=3, **options)
        return relax.op.nn.max_pool2d(x, size, **options)

    single, machine = Single(lowered([(1, 3, *sides)], body)), Machine(lanes=lanes)
    window = row_window(single.kernel, axis, 1)
    slid = scheduled(window, machine)
    if slid is None:
        return
    if any(options["padding"]):
        assert held_bytes(slid) <= machine.register_bytes
    built = build_module({"f": slid}, HOST)
    for row in {0, single.shape[axis] - 1}:
        ours = single.run(built["f"], single.operands, (axis, 1), row)
        np.testing.assert_allclose(ours, single.result.take([row], axis), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [5, 9, 22, 31, 56, 112])
def test_a_padded_window_of_one_channel_slides_where_registers_hold_it(width):
    (kernel,) = lowered(
        [(1, 28, 22, width)], lambda x: relax.op.nn.max_pool2d(x, (3, 3), (2, 2), (0, 0, 1, 1))
    ).kernels.values()
    for machine in (Machine(), Machine(lanes=16)):
        slid = scheduled(row_window(kernel, 1, 1), machine)
        assert (slid is None) == (width > 56 or (width > 31 and machine.lanes == 8))
        assert slid is None or held_bytes(slid) <= machine.register_bytes
