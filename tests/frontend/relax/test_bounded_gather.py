"""Gathers of bounded indices are part of their readers; others are not, and count from the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.frontend.canonicalise import import_model

from ...models import model_of, run, save

TABLE = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
X = np.array([[-9, -2, 0, 6, 9, 3], [1, 5, -7, 7, 2, 8], [0, 0, 4, 4, -1, 6]], np.int32)


@pytest.mark.tvm
@pytest.mark.parametrize("operator", ["Gather", "GatherElements"])
@pytest.mark.parametrize(("low", "high", "kernels"), [(0, 6, 1), (2, 4, 1), (-7, 6, 3)])
def test_a_gather_of_clipped_indices_joins_its_neighbours(tmp_path: Path, operator, low, high, kernels) -> None:
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence

    from ...kernels.programs import run as run_kernels

    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["i"]),
        helper.make_node(operator, ["table", "i"], ["t"], axis=1),
        helper.make_node("Neg", ["t"], ["y"]),
    ]
    bounds = {"low": np.asarray(low, np.int32), "high": np.asarray(high, np.int32)}
    model = model_of(nodes, {"x": X.shape}, ["y"], {"table": TABLE, **bounds}, dtypes={"x": TensorProto.INT32})
    imported = import_model(save(model, tmp_path))
    lowered, _ = replay(Sequence.parse(TVM_DEFAULT), to_relax(imported), imported, "gathers")
    assert len(lowered.program.steps) == kernels
    np.testing.assert_array_equal(run_kernels(lowered, [X])[0], run(model, {"x": X})[0])
