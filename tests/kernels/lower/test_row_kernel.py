"""Bytes that lie in a slot or in a ring are chosen once for a store; other choices stay where they are."""

import pytest

pytest.importorskip("tvm")

from tvm import tirx
from tvm.ir import Var
from tvm.tirx import BufferLoad, BufferStore, IfThenElse, Select

from passfit.kernels.lower.row_kernel import choose_once
from passfit.tir.loop_nests import buffer_of, int64

pytestmark = pytest.mark.tvm


def pair(dtype: str, condition):
    """Store the sum of two neighbours, each of a slot or a ring."""
    slot, ring, lines = (buffer_of(name, [16], dtype) for name in ("slot", "ring", "lines"))
    chosen = (Select(condition, BufferLoad(slot, [int64(n)]), BufferLoad(ring, [int64(n)])) for n in range(2))
    return BufferStore(lines, tirx.Add(*chosen), [int64(0)])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_the_choice_is_made_before_both_bytes_are_read(dtype):
    condition = Var("row", "int64") >= 1
    store = choose_once(pair(dtype, condition), [condition])
    assert isinstance(store, IfThenElse)
    for branch, source in ((store.then_case, "slot"), (store.else_case, "ring")):
        assert [each.source.name for each in (branch.value.a, branch.value.b)] == [source, source]


def test_floats_and_choices_of_the_model_stay():
    condition, own = Var("row", "int64") >= 1, Var("x", "int64") >= 1
    for store, known in ((pair("float32", condition), [condition]), (pair("int8", own), [condition])):
        assert choose_once(store, known).same_as(store)
