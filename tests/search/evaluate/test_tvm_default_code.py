"""Code size of tvm-default."""

import pytest
from onnx import helper

from passfit.frontend.relax.to_relax import to_relax
from passfit.search.evaluate import tvm_default_code as baseline_code
from passfit.search.evaluate.tvm_default_code import default_code, default_code_task
from passfit.support.background import background
from passfit.support.result_store import ResultStore
from passfit.targets import get_target

from ...models import model_of

pytestmark = pytest.mark.tvm
PORTS = ["x"], ["y"]


@pytest.fixture(scope="module")
def graph():
    return to_relax(model_of([helper.make_node("Softmax", ["x"], ["y"])], {"x": [4, 8]}, {"y": [4, 8]}))


@pytest.mark.parametrize("name", ["x86-64", "rpi4", "beaglebone"])
def test_the_code_aside_is_that_of_the_same_kernels(graph, name):
    with background(default_code_task(graph, get_target(name), *PORTS)) as results:
        found = results.of(0)
    assert found == default_code(graph, get_target(name), *PORTS) > 0


def test_code_is_built_once_for_each_processor_and_set_of_kernels(graph, monkeypatch, tmp_path):
    store, built = ResultStore(tmp_path / "store.jsonl"), []
    build = baseline_code.build_module
    monkeypatch.setattr(baseline_code, "shared_store", lambda: store)
    monkeypatch.setattr(baseline_code, "build_module", lambda *asked: built.append(asked) or build(*asked))
    longer = to_relax(model_of([helper.make_node("Softmax", ["x"], ["y"])], {"x": [4, 9]}, {"y": [4, 9]}))
    asked = [(each, name) for each in (graph, longer) for name in ("x86-64", "rpi4")]
    found = [default_code(each, get_target(name), *PORTS) for each, name in asked]
    store = ResultStore(tmp_path / "store.jsonl")
    assert [default_code(each, get_target(name), *PORTS) for each, name in asked] == found
    assert len(built) == len(asked)
