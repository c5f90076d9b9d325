"""Sum float16 in float32: numbers beside ONNX Runtime's, whose sums are of float32."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

from onnx import TensorProto, helper
from tvm import relax

from passfit import api
from passfit.passes.graph.lowering.half_sums import sum_halves
from passfit.passes.sequence.sequence import Sequence
from passfit.targets import get_target

from ....kernels.programs import module_of
from ....models import model_of, save

pytestmark = pytest.mark.tvm

_HALF = TensorProto.FLOAT16
_FACTORS = [(3, 40), (40, 5)]


def test_a_library_of_float16_computes_what_onnx_runtime_does(tmp_path):
    """Each of these sums lost digits in float16: the comparison of `compile` refused the library."""
    weights = np.random.default_rng(0).standard_normal((32, 24, 3, 3)).astype("float16")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "s"], ["r"]),
        helper.make_node("MatMul", ["r", "t"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"], axis=-1),
        helper.make_node("GlobalAveragePool", ["c"], ["z"]),
    ]
    transposed = np.random.default_rng(1).standard_normal((169, 11)).astype("float16") / 40
    constants = {"w": weights / 8, "s": np.array([32, 169]), "t": transposed.astype("float16")}
    model = model_of(nodes, {"x": (1, 24, 13, 13)}, ["m", "y", "z"], constants, dtype=_HALF)
    passes = Sequence.parse(["legalize", "fuse-operators", "order", "share"])
    imported = api.load(save(model, tmp_path))
    report = api.compile_imported(imported, get_target("x86-64"), out=tmp_path / "out", sequence=passes)
    assert report.measured.ran


@pytest.mark.parametrize(
    "module",
    [
        module_of(_FACTORS, lambda x, w: relax.op.matmul(x, w)),
        module_of(_FACTORS, lambda x, w: relax.op.matmul(x, w, "float16"), "float16"),
        module_of([(3, 40)], lambda x: relax.op.add(x, x), "float16"),
    ],
    ids=["float32", "a named accumulator", "no sum"],
)
def test_other_graphs_stay_the_same_object(module):
    assert sum_halves(module) is module
