"""Records of imports are the same for the same values, however the api was given them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from passfit.frontend.source.import_options import ImportOptions
from passfit.frontend.source.model_record import model_record


def test_arrays_and_lists_of_the_same_values_have_one_record(tmp_path: Path):
    model = tmp_path / "m.onnx"
    model.write_bytes(b"model")
    arrays = model_record(
        model, "m.onnx", ImportOptions({"x": np.array([1, 3])}, {"n": np.int64(2), "axes": np.array([0, 1])})
    )
    assert arrays == model_record(model, "m.onnx", ImportOptions({"x": [1, 3]}, {"n": 2, "axes": [0, 1]}))
