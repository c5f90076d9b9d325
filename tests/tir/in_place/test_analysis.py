"""Check in-place operands and copies over kernels of all kinds of access."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("tvm")

from tvm import relax
from tvm.script import ir as I  # noqa: F401  (TVMScript wants its names)
from tvm.script import tirx as T

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.program import Overlay
from passfit.tir import index_grid as grid
from passfit.tir.in_place import analysis as access
from passfit.tir.in_place.analysis import analyse_sharing

from ...kernels.programs import lowered, weight

pytestmark = pytest.mark.tvm
_UNFUSED = ("legalize",)
_SHAPE = (1, 4, 3, 5)


def found(shapes, body, passes=TVM_DEFAULT):
    """Return in-place operands and copies of the last kernel of a small graph, as it is compiled."""
    program, _ = schedule_program(lowered(shapes, body, passes))
    step = program.program.steps[-1]
    return step.in_place, step.copies


def first(*numbers: int) -> tuple[Overlay, ...]:
    return tuple(Overlay(number, 0) for number in numbers)


@pytest.mark.parametrize(
    ("shapes", "body", "expected"),
    [
        ([_SHAPE], relax.op.exp, first(0)),
        ([_SHAPE, _SHAPE], relax.op.add, first(0, 1)),
        ([_SHAPE, (1, 4, 1, 1)], relax.op.add, first(0)),
        ([(5,), _SHAPE], relax.op.multiply, first(1)),
        ([(1, 1, 1, 1), (1, 1, 1, 1)], relax.op.add, first(0, 1)),
        ([_SHAPE, _SHAPE], lambda x, y: relax.op.nn.relu(relax.op.subtract(relax.op.exp(x), y)), first(0, 1)),
        ([_SHAPE, _SHAPE], lambda x, y: relax.op.where(relax.op.greater(x, y), x, y), first(0, 1)),
        ([_SHAPE], lambda x: relax.op.reshape(relax.op.permute_dims(x, [0, 2, 3, 1]), (15, 4)), ()),
        ([(4, 4)], lambda x: relax.op.add(x, relax.op.permute_dims(x)), ()),
        ([_SHAPE], lambda x: relax.op.flip(x, 3), ()),
        ([(6,)], lambda x: relax.op.cumsum(x, 0), ()),
        ([_SHAPE], lambda x: relax.op.nn.softmax(x), (Overlay(0, 0),)),
        ([_SHAPE], lambda x: relax.op.sum(x, axis=[3], keepdims=True), ()),
        ([(1, 4, 6, 6)], lambda x: relax.op.nn.max_pool2d(x, (3, 3), padding=1), ()),
        ([(1, 4, 8, 8)], lambda x: relax.op.nn.conv2d(x, weight(4, 4, 3, 3), padding=1), ()),
        ([(1, 4, 8, 8)], lambda x: relax.op.nn.conv2d(x, weight(4, 4, 1, 1)), ()),
        ([(4, 8)], lambda x: relax.op.take(x, relax.const([3, 0, 2, 2]), axis=0), ()),
        ([_SHAPE], lambda x: relax.op.nn.pad(x, (0, 0, 0, 0, 1, 1, 0, 0)), ()),
    ],
)  # fmt: skip
def test_what_may_lie_in_the_result(shapes, body, expected):
    assert found(shapes, body)[0] == expected


@settings(max_examples=6)
@given(
    st.integers(2, 9),
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_reflections_keep_their_operand_in_any_order(length, widths, rows, random):
    before, after = (min(width, length - 1) for width in widths)
    assume(before + after)
    in_place, _ = found([(rows, length)], lambda x: relax.op.nn.pad(x, (0, 0, before, after), pad_mode="reflect"))
    if rows > 1:  # each row moves by another distance
        assert in_place == ()
        return
    assert in_place == (Overlay(0, 0, 4 * before),)
    memory = np.zeros(before + length + after)
    memory[before : before + length] = values = np.arange(length)
    expected = np.pad(values, (before, after), mode="reflect")
    places = list(range(memory.size))
    random.shuffle(places)
    for place in places:
        source = np.pad(np.arange(length), (before, after), mode="reflect")[place]
        memory[place] = memory[before + source]
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize(
    ("shape", "body", "expected"),
    [
        ((3, 4), lambda x: relax.op.tile(x, (2, 1)), first(0)),
        ((1, 7), lambda x: relax.op.exp(relax.op.nn.pad(x, (0, 0, 2, 1), pad_mode="reflect")), ()),
        ((1, 7), lambda x: relax.op.astype(relax.op.nn.pad(x, (0, 0, 2, 1), pad_mode="reflect"), "int32"), ()),
    ],
)
def test_what_a_larger_result_keeps(shape, body, expected):
    assert found([shape], body)[0] == expected


@pytest.mark.parametrize("stride", [1, 2])
def test_the_other_operand_of_a_convolution_with_an_epilogue(stride):
    """Analyse a tiled kernel: tile loops split, reordered and unrolled, accumulators in registers."""
    size = 16 // stride

    def body(x, y):
        convolved = relax.op.nn.conv2d(x, weight(8, 4, 3, 3), padding=1, strides=stride)
        return relax.op.nn.relu(relax.op.add(convolved, y))

    assert found([(1, 4, 16, 16), (1, 8, size, size)], body)[0] == (Overlay(2, 0),)


def test_concatenation_along_the_outermost_dimension_copies_to_places():
    shapes = [(1, 2, 3, 5), (1, 4, 3, 5), (1, 1, 3, 5)]
    places = (Overlay(0, 0, 0), Overlay(1, 0, 120), Overlay(2, 0, 360))
    assert found(shapes, lambda *parts: relax.op.concat(parts, axis=1)) == (places, places)
    fused = found(shapes, lambda *parts: relax.op.exp(relax.op.concat(parts, axis=1)))
    assert fused == (places, ())


def test_concatenation_along_an_inner_dimension_interleaves():
    shapes = [(1, 2, 3), (1, 2, 4)]
    for passes in (TVM_DEFAULT, _UNFUSED):  # the first waits at the end of the result; the second would be too late
        assert found(shapes, lambda a, b: relax.op.concat((a, b), axis=2), passes) == ((Overlay(0, 0, 32),), ())


def test_an_operand_read_for_two_elements_has_its_place_at_the_second():
    def body(x, y):
        return relax.op.concat((relax.op.add(x, y), x), axis=1)

    assert found([(1, 2, 3), (1, 2, 3)], body) == ((Overlay(0, 0, 24), Overlay(1, 0)), ())


def test_a_slice_of_the_outermost_dimension_is_a_window():
    _, copies = found([(1, 6, 5)], lambda x: relax.op.strided_slice(x, [1], [2], [5]), _UNFUSED)
    assert copies == (Overlay(0, 0, -40),)
    assert found([(1, 6, 5)], lambda x: relax.op.strided_slice(x, [2], [0], [3]), _UNFUSED) == ((), ())
    assert found([(1, 6, 5)], lambda x: relax.op.strided_slice(x, [1], [0], [6], [2]), _UNFUSED) == ((), ())


def test_parts_of_a_split_are_windows():
    def body(x):
        parts = relax.op.split(x, [1, 3], axis=1)
        return relax.op.concat([parts[2], parts[0], parts[1]], axis=0)

    program, _ = schedule_program(lowered([(1, 6, 5)], lambda x: relax.op.split(x, 3, axis=1)[1], _UNFUSED))
    (split,) = program.program.steps
    assert split.copies == (Overlay(0, 0, 0), Overlay(0, 1, -40), Overlay(0, 2, -80))
    assert split.in_place == ()


def test_a_transpose_that_moves_nothing_is_a_view():
    program, _ = schedule_program(lowered([(1, 4, 1, 5)], lambda x: relax.op.permute_dims(x, [1, 2, 0, 3])))
    assert not program.program.steps
    assert found([(1, 4, 2, 5)], lambda x: relax.op.permute_dims(x, [0, 2, 1, 3]))[1] == ()


def test_a_cast_is_no_copy_and_needs_elements_of_one_size():
    assert found([(8,)], lambda x: relax.op.astype(x, "int32")) == (first(0), ())
    assert found([(8,)], lambda x: relax.op.astype(x, "float16")) == ((), ())
    assert found([(8,)], lambda x: relax.op.astype(x, "float64")) == ((), ())


def test_large_kernels_are_judged_in_parts(monkeypatch):
    monkeypatch.setattr(grid, "CHUNK", 4)
    places = (Overlay(0, 0, 0), Overlay(1, 0, 96))
    shapes = [(2, 3, 4), (1, 3, 4)]
    program, _ = schedule_program(lowered(shapes, lambda a, b: relax.op.concat((a, b), axis=0)))
    (kernel,) = program.kernels.values()
    assert analyse_sharing(kernel) == access.Sharing(1, places, places)


def test_an_element_written_twice_is_not_shared():
    @T.prim_func(s_tir=True)
    def twice(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for k, i in T.grid(2, 8):
            with T.sblock("y"):
                _vk, vi = T.axis.remap("SS", [k, i])
                y[vi] = x[vi] * 2.0

    assert analyse_sharing(twice) == access.Sharing(1)


def test_a_result_that_is_read_is_not_shared():
    @T.prim_func(s_tir=True)
    def scan(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = x[vi] + T.if_then_else(vi > 0, y[vi - 1], T.float32(0))

    assert analyse_sharing(scan).in_place == ()


def test_an_operand_that_two_results_need_lies_in_the_later_one_alone():
    @T.prim_func(s_tir=True)
    def both(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32"), z: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = x[vi] * 2.0
        for i in range(8):
            with T.sblock("z"):
                vi = T.axis.spatial(8, i)
                z[vi] = x[vi] * 3.0

    assert analyse_sharing(both) == access.Sharing(2, (access.Overlay(0, 1),))


def test_an_element_chosen_by_data_is_not_shared_but_the_choice_is():
    @T.prim_func(s_tir=True)
    def gather(x: T.Buffer((8,), "float32"), at: T.Buffer((8,), "int32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = x[at[vi]]

    assert analyse_sharing(gather) == access.Sharing(1, (Overlay(1, 0),))


def test_an_operand_that_decides_whether_something_is_written_is_not_shared():
    @T.prim_func(s_tir=True)
    def some(x: T.Buffer((8,), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                if x[vi] > T.float32(0):
                    y[vi] = z[vi]

    assert analyse_sharing(some) == access.Sharing(1)


def test_a_reduction_into_the_result_is_not_shared():
    @T.prim_func(s_tir=True)
    def total(x: T.Buffer((8, 4), "float32"), y: T.Buffer((8,), "float32"), z: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 4):
            with T.sblock("z"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    z[vi] = T.float32(0)
                z[vi] = z[vi] + x[vi, vk] * y[vi]

    assert analyse_sharing(total) == access.Sharing(1)


def test_what_goes_through_a_buffer_of_the_kernels_own_is_no_copy():
    @T.prim_func(s_tir=True)
    def through(x: T.Buffer((4,), "float32"), z: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        own = T.sblock_alloc_buffer((4,))
        for i in range(4):
            with T.sblock("own"):
                vi = T.axis.spatial(4, i)
                own[vi] = x[vi]
        for i in range(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.if_then_else(vi < 4, own[vi % 4], z[vi])

    assert analyse_sharing(through) == access.Sharing(1, (Overlay(1, 0),))


def test_parts_written_by_loops_of_their_own_are_judged_together():
    @T.prim_func(s_tir=True)
    def halves(x: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(4):
            with T.sblock("low"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi]
        for i in range(4):
            with T.sblock("high"):
                vi = T.axis.spatial(4, i)
                y[vi + 4] = z[vi]

    places = (Overlay(0, 0), Overlay(1, 0, 16))
    assert analyse_sharing(halves) == access.Sharing(1, places, places)
