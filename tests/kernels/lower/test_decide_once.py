"""Test once a call which operand its rows come from; leave padding to each element."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi

pytest.importorskip("tvm")

from tvm import relax, tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferLoad, BufferStore, For, IfThenElse, PrimFunc

from passfit.kernels.lower.decide_once import decide_once
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tir.loop_nests import buffer_of, int64, kernel_of

from ..programs import lowered, random_inputs, run

pytestmark = pytest.mark.tvm
NUMBER, X, Z, RESULT = Var("number", "int32"), *(buffer_of(name, [8], "float32") for name in ("x", "z", "result"))


def _chosen(condition: Expr, other: Expr | None, at: Var) -> PrimFunc:
    """Build a kernel that copies `x`, or something else where a condition does not hold."""
    value = tirx.if_then_else(condition, BufferLoad(X, [at]), BufferLoad(Z, [at]) if other is None else other)
    return kernel_of(
        [NUMBER, X, Z, RESULT], [For(at, int64(0), int64(8), 0, BufferStore(RESULT, value, [at]))], [], None
    )


def test_what_the_number_decides_is_tested_once() -> None:
    at = Var("at", "int64")
    (test,) = _found(decide_once(_chosen(NUMBER < 3, None, at)))
    assert isinstance(test.then_case, For) and isinstance(test.else_case, For)


def test_padding_and_places_are_tested_for_each_element() -> None:
    at = Var("at", "int64")
    for kernel in (
        _chosen(NUMBER < 3, tirx.const(0, "float32"), at),
        _chosen(at < 3, None, at),
        _chosen(at < NUMBER.astype("int64"), None, at),
    ):
        assert decide_once(kernel).same_as(kernel)


def _found(kernel: PrimFunc) -> list[IfThenElse]:
    found: list[IfThenElse] = []
    tvm_ffi.structural_walk(kernel.body, (IfThenElse, found.append))
    return found


@pytest.mark.parametrize("spec", ["split-channels{steps=0-0}", "split-rows{steps=0-0}"])
def test_rows_of_a_concatenation_are_those_of_its_operands(spec: str) -> None:
    joined = lowered(
        [(1, 3, 8, 9), (1, 2, 8, 9), (1, 4, 8, 9)], lambda *parts: relax.op.nn.relu(relax.op.concat(parts, axis=1))
    )
    split, _ = schedule_program(parse_spec(spec).apply(joined))
    inputs = random_inputs(joined)
    for got, wanted in zip(run(split, inputs), [np.maximum(np.concatenate(inputs, axis=1), 0)], strict=True):
        np.testing.assert_array_equal(got, wanted)
