"""Code size of tvm-default, computed in a process aside."""

import os
import signal
import time

import pytest
from onnx import helper

from passfit.frontend.relax.to_relax import to_relax
from passfit.search.evaluate import tvm_default_code as baseline_code
from passfit.search.evaluate.tvm_default_code import default_code, default_code_aside
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
    with default_code_aside(graph, get_target(name), *PORTS) as code:
        found = code()
    assert found == code() == default_code(graph, get_target(name), *PORTS) > 0


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


@pytest.mark.parametrize("end", [lambda *_: 1 / 0, lambda *_: os.kill(os.getpid(), signal.SIGKILL), lambda *_: time.sleep(60)])
def test_what_cannot_be_built_is_not_known(graph, monkeypatch, end):
    monkeypatch.setattr(baseline_code, "default_code", end)
    with default_code_aside(graph, get_target("x86-64"), *PORTS, seconds=5) as code:
        assert code() is None


def test_a_process_that_is_not_waited_for_ends_with_the_context(graph, monkeypatch):
    monkeypatch.setattr(baseline_code, "default_code", lambda *_: time.sleep(60))
    started = time.monotonic()
    with pytest.raises(KeyError), default_code_aside(graph, get_target("x86-64"), *PORTS):
        raise KeyError
    assert time.monotonic() - started < 30
