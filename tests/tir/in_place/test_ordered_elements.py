"""Check operands at the end of results against memory that is overwritten in the order of the loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tvm")

from tvm.script import ir as I  # noqa: F401  (TVMScript wants its names)
from tvm.script import tirx as T

from passfit.program import Overlay
from passfit.tir.in_place.analysis import Sharing, analyse_sharing, is_kept

pytestmark = pytest.mark.tvm


def rows(count, slope, step, first, backwards=False):
    """Build y[slope · h + i] = x[step · h + i], `count` rows of two elements; x and y have no other elements."""
    held, whole = step * (count - 1) + 2, slope * (count - 1) + 2 + first
    last = count - 1 if backwards else 0
    sign = -1 if backwards else 1

    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((held,), "float32"), y: T.Buffer((whole,), "float32")):
        for h, i in T.grid(count, 2):
            with T.sblock("y"):
                vh, vi = T.axis.remap("SS", [h, i])
                y[first + slope * (last + sign * vh) + vi] = x[step * (last + sign * vh) + vi]

    order = [(last + sign * h, i) for h in range(count) for i in range(2)]
    return kernel, held, whole, [(first + slope * h + i, step * h + i) for h, i in order]


def survives(moves, held, whole, shift, copied=True):
    """Tell whether every move finds its element; results equal the elements `copied`, or nothing."""
    memory = np.full(whole, -1)
    memory[shift : shift + held] = np.arange(held)
    right = True
    for place, source in moves:
        right &= memory[shift + source] == source
        memory[place] = source if copied else -1
    return right


@settings(max_examples=25)
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_rows_have_a_place_if_none_is_overwritten_early(count, slope, step, first, backwards):
    kernel, held, whole, moves = rows(count, slope, step, first, backwards)
    shifts = [each.shift // 4 for each in analyse_sharing(kernel).in_place]
    assert all(survives(moves, held, whole, shift) for shift in shifts)
    if held < whole <= 8 * held and survives(moves, held, whole, whole - held, copied=False):
        assert shifts


def test_elements_written_twice_are_read_from_the_end():
    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((4,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(4):
            with T.sblock("zero"):
                vi = T.axis.spatial(4, i)
                y[vi] = T.float32(0)
        for i in range(4):
            with T.sblock("y"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi]

    assert analyse_sharing(kernel) == Sharing(1, (Overlay(0, 0, 16),))
    assert is_kept(kernel, 0, kernel.params[1], 16) and not is_kept(kernel, 0, kernel.params[1], 0)


@pytest.mark.parametrize(("kind", "expected"), [("serial", 12), ("unroll", 12), ("vectorized", 12), ("parallel", None)])
def test_only_loops_with_an_order_count(kind, expected):
    loop = getattr(T, kind)

    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((3,), "float32"), y: T.Buffer((6,), "float32")):
        for i in loop(6):
            with T.sblock("y"):
                vi = T.axis.spatial(6, i)
                y[vi] = x[vi // 2]

    assert analyse_sharing(kernel).in_place == (() if expected is None else (Overlay(0, 0, expected),))


def centred(order, kind="serial"):
    """Build y = x minus its sums of "rows" or of "columns"; x has four rows of six."""
    loop = getattr(T, kind)

    @T.prim_func(s_tir=True)
    def rows(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 6), "float32")):
        total = T.sblock_alloc_buffer((4,))
        for i in loop(4):
            for j in range(6):
                with T.sblock("sum"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        total[vi] = T.float32(0)
                    total[vi] = total[vi] + x[vi, vj]
            for j in range(6):
                with T.sblock("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] - total[vi]

    @T.prim_func(s_tir=True)
    def columns(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 6), "float32")):
        total = T.sblock_alloc_buffer((6,))
        for i in range(4):
            for j, k in T.grid(6, 4):
                with T.sblock("sum"):
                    vj, vk = T.axis.remap("SR", [j, k])
                    with T.init():
                        total[vj] = T.float32(0)
                    total[vj] = total[vj] + x[vk, vj]
            for j in range(6):
                with T.sblock("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] - total[vj]

    return {"rows": rows, "columns": columns}[order]


@pytest.mark.parametrize(
    ("order", "kind", "shared"),
    [("rows", "serial", True), ("rows", "parallel", False), ("columns", "serial", False)],
)
def test_an_operand_as_large_lies_in_the_result_if_sums_read_it_in_time(order, kind, shared):
    assert analyse_sharing(centred(order, kind)) == Sharing(1, (Overlay(0, 0),) * shared)
