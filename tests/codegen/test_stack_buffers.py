"""Buffers as large as the registers of AVX-512 stay on the stack, where LLVM keeps them in registers."""

import pytest

pytest.importorskip("tvm")

from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.targets import get_target

pytestmark = pytest.mark.tvm


def sums(vectors):
    """Return a kernel that adds up so many vectors of 16 floats, in a buffer of its own."""
    given = te.placeholder((64, vectors, 16), "float32", "given")
    k = te.reduce_axis((0, 64), "k")
    total = te.compute((vectors, 16), lambda v, i: te.sum(given[k, v, i], k), "total")
    result = te.compute((vectors, 16), lambda v, i: total[v, i] + 1.0, "result")
    schedule = Schedule(IRModule({"main": te.create_prim_func([given, result])}))
    rows, lanes, term = schedule.get_loops("total")
    schedule.reorder(term, rows, lanes)
    schedule.unroll(rows)
    schedule.vectorize(lanes)
    schedule.decompose_reduction("total", term)
    return schedule.mod["main"]


@pytest.mark.parametrize(
    ("target", "vectors", "allocates"),
    [
        ("x86-64-v4", 24, False),
        ("x86-64-v4", 32, False),
        ("x86-64-v4", 40, True),
        ("x86-64", 24, True),
        ("x86-64", 12, False),
    ],
)
def test_the_registers_of_the_target_decide(target, vectors, allocates):
    code = build_module({"f": sums(vectors)}, get_target(target).llvm_config()).inspect_source("asm")
    assert ("AllocWorkspace" in code) == allocates
