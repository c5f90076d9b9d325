"""Normalisations in forms that TVM cannot take become means; ONNX Runtime runs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save

RNG = np.random.default_rng(4)
LAYER, RMS, VARIANCE = "LayerNormalization", "RMSNormalization", "MeanVarianceNormalization"
#: operator, shape of x, shapes of scale and bias, attributes, operator set, number of results
FORMS = {
    "scale of one number": (LAYER, (2, 3, 8), [(1,), (8,)], {}, 17, 1),
    "scale and bias by row": (LAYER, (2, 3, 8), [(3, 1), (8,)], {"axis": 1}, 17, 1),
    "over all dimensions": (LAYER, (2, 3, 8), [(2, 3, 8), (2, 3, 8)], {"axis": 0}, 18, 1),
    "with its mean": (LAYER, (2, 3, 8), [(8,)], {"epsilon": 0.1}, 17, 3),
    "with its mean, scale by row": (LAYER, (2, 3, 8), [(3, 1)], {"axis": -2}, 21, 3),
    "of an old set": (LAYER, (2, 3, 8), [(8,), (8,)], {}, 13, 3),
    "rms, scale of one number": (RMS, (3, 8), [(1,)], {}, 23, 1),
    "rms over all dimensions": (RMS, (3, 8), [(3, 8)], {"axis": 0}, 23, 1),
    "mean and variance by default": (VARIANCE, (2, 3, 4, 5), [], {}, 13, 1),
    "mean and variance of two": (VARIANCE, (2, 3, 4), [], {"axes": [0]}, 9, 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("form", FORMS)
def test_a_normalisation_computes_what_onnx_runtime_does(tmp_path: Path, form: str, dtype: type) -> None:
    op, shape, operands, attributes, opset, results = FORMS[form]
    if op == VARIANCE and dtype is np.float16:
        return  # ONNX Runtime has none
    constants = {f"w{number}": RNG.standard_normal(each).astype(dtype) for number, each in enumerate(operands)}
    names = ["y", "mean", "inverse"][:results]
    node = helper.make_node(op, ["x", *constants], names, **attributes)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of([node], {"x": shape}, names, constants, opset=opset, dtypes={"x": kind, "y": kind})
    x = {"x": (RNG.standard_normal(shape) * 3 + 1).astype(dtype)}
    imported = import_model(save(model, tmp_path))
    tolerance = 2e-5 if dtype is np.float32 else 5e-3
    if form == "mean and variance of two":
        tolerance = 1e-3  # ONNX Runtime subtracts squares
    for found, expected in zip(run(imported, x), run(model, x), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
