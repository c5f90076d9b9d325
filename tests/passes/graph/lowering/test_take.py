"""Gathers are lowered as TVM lowers them, without its warnings."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm import relax

from passfit.passes.graph.lowering.take import legalize_take

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize(
    ("shape", "indices", "axis"), [((5, 7, 3), (2, 4), 1), ((5, 7), (), 0), ((5, 7), (3,), -1), ((9,), (2, 2), 0)]
)
def test_the_kernel_is_tvms_own_and_nothing_is_printed(shape, indices, axis, capfd):
    builder = relax.BlockBuilder()
    data, at = (
        relax.Var("data", relax.TensorType(shape, "float32")),
        relax.Var("at", relax.TensorType(indices, "int64")),
    )
    with builder.function("main", [data, at]):
        builder.emit_func_output(builder.emit(relax.op.take(data, at, axis=axis, mode="fast")))
    module = builder.get()
    ours = relax.transform.LegalizeOps({"relax.take": legalize_take})(module)
    assert not "".join(capfd.readouterr())
    assert tvm_ffi.structural_equal(ours, relax.transform.LegalizeOps()(module))
