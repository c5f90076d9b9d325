"""Compare the import of a model with the model, both run by ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ...models import run, save


def same(model: onnx.ModelProto, folder: Path, rows: np.ndarray, name: str = "X") -> None:
    """Compare the import of a model with the model: dtypes, shapes, integers exactly."""
    imported = import_model(save(model, folder), ImportOptions({name: rows.shape}))
    assert {each.domain for each in imported.graph.node} == {""}
    for found, expected in zip(run(imported, {name: rows}), run(model, {name: rows}), strict=True):
        if isinstance(expected, list):  # of maps, from class to probability
            expected = np.asarray([list(each.values()) for each in expected], np.float32)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        exact, largest = expected.dtype.kind == "i", np.abs(expected).max(initial=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0 if exact else 1e-6 + 2e-6 * largest)
