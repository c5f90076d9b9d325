"""Bytes that lie in a slot or in a ring are chosen once for a store; rows of a concatenation come from its operands."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax, tirx
from tvm.ir import Var
from tvm.tirx import BufferLoad, BufferStore, IfThenElse, Select

from passfit.kernels.lower.row_kernel import choose_once
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tir.loop_nests import buffer_of, int64

from ..programs import lowered, random_inputs, run

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


@pytest.mark.parametrize("spec", ["split-channels{steps=0-0}", "split-rows{steps=0-0}"])
def test_rows_of_a_concatenation_are_those_of_its_operands(spec: str) -> None:
    joined = lowered(
        [(1, 3, 8, 9), (1, 2, 8, 9), (1, 4, 8, 9)], lambda *parts: relax.op.nn.relu(relax.op.concat(parts, axis=1))
    )
    split, _ = schedule_program(parse_spec(spec).apply(joined))
    inputs = random_inputs(joined)
    for got, wanted in zip(run(split, inputs), [np.maximum(np.concatenate(inputs, axis=1), 0)], strict=True):
        np.testing.assert_array_equal(got, wanted)
