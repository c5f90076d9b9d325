"""One reader of loop nests: the axes of a block are its loops, in order unless the caller takes any."""

import pytest

pytest.importorskip("tvm")

from tvm.script import tirx as T

from passfit.tir.index_grid import Unknown
from passfit.tir.loop_nests import block_of, blocks_of, nests_in

pytestmark = pytest.mark.tvm


@T.prim_func(s_tir=True)
def _ordered(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
    for i, j in T.grid(2, 3):
        with T.sblock("b"):
            x, y = T.axis.remap("SS", [i, j])
            b[x, y] = a[x, y]


@T.prim_func(s_tir=True)
def _exchanged(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
    for j, i in T.grid(3, 2):
        with T.sblock("b"):
            x, y = T.axis.remap("SS", [i, j])
            b[x, y] = a[x, y]


@T.prim_func(s_tir=True)
def _without_a_unit_loop(a: T.Buffer((1, 3), "float32"), b: T.Buffer((1, 3), "float32")):
    for j in range(3):
        with T.sblock("b"):
            x = T.axis.spatial(1, 0)
            y = T.axis.spatial(3, j)
            b[x, y] = a[x, y]


@T.prim_func(s_tir=True)
def _part_of_an_axis(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
    for i, j in T.grid(2, 2):
        with T.sblock("b"):
            x = T.axis.spatial(2, i)
            y = T.axis.spatial(3, j)
            b[x, y] = a[x, y]


@T.prim_func(s_tir=True)
def _offset(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
    for i, j in T.grid(2, 3):
        with T.sblock("b"):
            x = T.axis.spatial(2, i)
            y = T.axis.spatial(3, 2 - j)
            b[x, y] = a[x, y]


@T.prim_func(s_tir=True)
def _repeated(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
    for i, j, _k in T.grid(2, 3, 4):
        with T.sblock("b"):
            x, y = T.axis.remap("SS", [i, j])
            b[x, y] = a[x, y]


@pytest.mark.parametrize("kernel", [_ordered, _exchanged, _without_a_unit_loop])
def test_loops_are_taken_in_any_order_if_asked(kernel):
    (nest,) = nests_in(kernel)
    assert len(block_of(nest, in_order=False).iter_vars) == 2
    if kernel is _ordered:
        assert blocks_of(kernel)[0].same_as(block_of(nest, in_order=False))
    else:
        with pytest.raises(Unknown):
            blocks_of(kernel)


@pytest.mark.parametrize("kernel", [_part_of_an_axis, _offset, _repeated])
@pytest.mark.parametrize("in_order", [True, False])
def test_axes_that_are_not_whole_loops_are_refused(kernel, in_order):
    (nest,) = nests_in(kernel)
    with pytest.raises(Unknown):
        block_of(nest, in_order=in_order)
