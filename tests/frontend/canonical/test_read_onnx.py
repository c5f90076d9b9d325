"""Test the operator set of a model: as ONNX Runtime reads it, however it is declared."""

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper, save

from passfit.frontend.canonical.read_onnx import NEWEST, operator_set
from passfit.frontend.canonicalise import import_model

from ...models import model_of

#: set 11 reads Softmax along all axes from the first one on, set 17 along one
SETS = [
    [("", 11)],
    [("ai.onnx", 11)],
    [("", 11), ("ai.onnx", 17)],
    [("ai.onnx", 17), ("", 11)],
    [("", 17), ("", 11)],
    [("", 11), ("mine", 20)],
    [("mine", 11)],
]


@pytest.mark.parametrize("sets", SETS, ids=str)
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_models_are_read_in_the_operator_set_of_onnx_runtime(tmp_path, sets, domain):
    model = model_of([helper.make_node("Softmax", ["x"], ["y"], domain=domain)], {"x": [2, 3, 4]}, {"y": [2, 3, 4]})
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*each) for each in sets)
    save(model, tmp_path / "m.onnx")
    canonical = import_model(tmp_path / "m.onnx")
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    given, own = (ort.InferenceSession(each.SerializeToString()).run(None, {"x": x})[0] for each in (model, canonical))
    assert np.allclose(given, own)


def test_a_set_that_is_not_declared_is_the_newest_unless_the_caller_knows_better():
    imports = [helper.make_opsetid("mine", 3)]
    assert operator_set(imports) == NEWEST
    assert operator_set(imports, undeclared=0) == 0
