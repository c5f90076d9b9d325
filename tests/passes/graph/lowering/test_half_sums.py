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

from ....models import model_of, save

pytestmark = pytest.mark.tvm

_HALF = TensorProto.FLOAT16


def graph(body, *shapes, dtype="float16"):
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{number}", relax.TensorType(shape, dtype)) for number, shape in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(body(*params)))
        builder.emit_func_output(result)
    return builder.get()


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
        graph(lambda x, w: relax.op.matmul(x, w), (3, 40), (40, 5), dtype="float32"),
        graph(lambda x, w: relax.op.matmul(x, w, "float16"), (3, 40), (40, 5)),
        graph(lambda x: relax.op.add(x, x), (3, 40)),
    ],
    ids=["float32", "a named accumulator", "no sum"],
)
def test_other_graphs_stay_the_same_object(module):
    assert sum_halves(module) is module
