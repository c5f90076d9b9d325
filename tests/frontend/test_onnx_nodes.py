"""Import ONNX's operator tests: same results under ONNX Runtime, and a graph for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ..models import run, save
from .onnx_nodes import COMMON, NodeCase, cases_of

pytestmark = pytest.mark.tvm
#: cases of a dtype for which ONNX Runtime has no kernel
NOT_IN_ONNXRUNTIME = {"test_max_int16", "test_min_int16"}


def test_the_sample_is_broad() -> None:
    counts = {op: len(cases_of(op)) for op in COMMON}
    assert sum(counts.values()) >= 200
    assert sum(map(bool, counts.values())) >= 100


@pytest.mark.parametrize("op", COMMON)
def test_importing_keeps_results_and_gives_a_graph(op: str, tmp_path: Path) -> None:
    from passfit.frontend.relax.to_relax import to_relax

    refusals = []
    for case in cases_of(op):
        try:
            model = import_model(save(case.model, tmp_path))
            assert "main" in {each.name_hint for each in to_relax(model).get_global_vars()}
        except ModelError as refusal:
            refusals.append(f"{case}: {refusal}")
            continue
        _compare(case, model)
    assert len(refusals) < len(cases_of(op)), refusals


def _compare(case: NodeCase, model: onnx.ModelProto) -> None:
    if case.name in NOT_IN_ONNXRUNTIME:
        with pytest.raises(Exception, match="NOT_IMPLEMENTED"):  # onnxruntime's own classes are not public
            run(model, case.inputs)
        return
    results = run(model, case.inputs)
    for got, expected in zip(results, case.outputs):
        assert got.dtype == expected.dtype and got.shape == expected.shape, case
        np.testing.assert_allclose(got, expected, rtol=case.rtol, atol=max(case.atol, 1e-6), err_msg=case.name)
