"""Gathers are lowered as TVM lowers them, without its warnings, wherever it legalizes."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import IRModule

from passfit.frontend.relax.loop_body import lower_body
from passfit.frontend.relax.operators import bounded_gather
from passfit.passes.graph.legalize import Legalize
from passfit.search.evaluate.tvm_default import lowered_default

pytestmark = pytest.mark.tvm


def gather(shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> IRModule:
    builder = relax.BlockBuilder()
    data, at = (
        relax.Var("data", relax.TensorType(shape, "float32")),
        relax.Var("at", relax.TensorType(indices, "int64")),
    )
    with builder.function("main", [data, at]):
        with builder.dataflow():
            found = builder.emit_output(relax.op.take(data, at, axis=axis, mode="fast"))
        builder.emit_func_output(found)
    return builder.get()


def folded() -> IRModule:
    """Return a Gather of constants, which folding of constants computes."""
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            found = builder.emit_output(relax.op.take(relax.const([1.0, 2.0]), relax.const([1, 0], "int64"), axis=0))
        builder.emit_func_output(found)
    return builder.get()


@pytest.mark.parametrize(
    ("shape", "indices", "axis"), [((5, 7, 3), (2, 4), 1), ((5, 7), (), 0), ((5, 7), (3,), -1), ((9,), (2, 2), 0)]
)
def test_the_kernel_is_tvms_own(shape, indices, axis):
    module = gather(shape, indices, axis)
    theirs = relax.transform.LegalizeOps({"relax.take": bounded_gather._LEGALIZE})(module)
    assert tvm_ffi.structural_equal(relax.transform.LegalizeOps()(module), theirs)


def test_nothing_is_printed_however_a_gather_is_lowered(capfd):
    # shapes of their own, since rules are memoised
    lowered_default(gather((11, 3), (5,), 0), ("data", "at"), ("y",))
    lower_body(gather((11, 4), (5,), 0))
    Legalize().apply(gather((11, 5), (5,), 0))
    with tvm.target.Target("llvm"):
        relax.transform.FoldConstant()(folded())
    assert "".join(capfd.readouterr()) == ""
