"""One reader of loop nests: the axes of a block are its loops, in order unless the caller takes any."""

import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm.script import tirx as T
from tvm.tirx import BufferLoad, BufferStore, const

from passfit.tir.expressions import loads
from passfit.tir.index_grid import NoMatch
from passfit.tir.loop_nests import (
    all_of,
    block_of,
    blocks_of,
    buffer_of,
    int64,
    move_accesses,
    nest_of,
    nests_in,
    spatial_axes,
    with_fields,
)

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
        with pytest.raises(NoMatch):
            blocks_of(kernel)


@pytest.mark.parametrize("kernel", [_part_of_an_axis, _offset, _repeated])
@pytest.mark.parametrize("in_order", [True, False])
def test_axes_that_are_not_whole_loops_are_refused(kernel, in_order):
    (nest,) = nests_in(kernel)
    with pytest.raises(NoMatch):
        block_of(nest, in_order=in_order)


def test_moved_accesses_go_to_another_buffer_and_all_else_stays():
    (old, other, result), axes = (
        (buffer_of(name, [4], "float32") for name in ("old", "other", "result")),
        spatial_axes([4]),
    )
    index = axes[0].var
    nest = nest_of(axes, "sum", BufferStore(result, BufferLoad(old, [index]) + BufferLoad(other, [index]), [index]))
    new = buffer_of("new", [2, 4], "float32")
    moved = move_accesses(
        nest, {old: new, other: other}, lambda buffer, at: [int64(0), *at] if buffer.same_as(old) else at
    )
    block = block_of(moved)
    assert [load.source for load in loads(block.body)] == [new, other] and len(loads(block.body)[0].indices) == 2
    assert [region.source for region in block.reads] == [new, other]
    assert tvm_ffi.structural_equal(block.reads[0], all_of(new)) and not tvm_ffi.structural_equal(
        block.reads[1], all_of(other)
    )
    assert block.body.buffer.same_as(result)


def test_a_copied_loop_keeps_the_fields_that_are_not_changed():
    axes = spatial_axes([4])
    result = buffer_of("result", [4], "float32")
    loop = nest_of(axes, "fill", BufferStore(result, const(1.0, "float32"), [axes[0].var]))
    unrolled = with_fields(loop, kind=3, annotations={"rolled": 1})
    assert int(unrolled.kind) == 3 and list(unrolled.annotations) == ["rolled"] and unrolled.body.same_as(loop.body)
    assert tvm_ffi.structural_equal(with_fields(unrolled, kind=0, annotations={}), loop)
