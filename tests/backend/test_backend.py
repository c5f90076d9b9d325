"""The backend as onnx's own runner sees it: results, refusals, open shapes, and a process that dies."""

from __future__ import annotations

import os
import signal
import unittest
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import helper

import passfit.backend as backend
from passfit.backend.worker import Worker, shared_worker
from passfit.errors import ModelError
from passfit.targets.native import native_target

from ..models import model_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine"),
]

#: tests of onnx's runner: a name of each kind
SAMPLE = r"^test_(softmax_axis_1|add|reshape_reordered_all_dims|Conv1d_dilated|operator_conv|conv_with_strides_padding|gather_0|sin)_cpu$"


@pytest.fixture(scope="module", autouse=True)
def _end_of_worker() -> Iterator[None]:
    yield
    shared_worker().end()


def _run(module: object) -> unittest.TestResult:
    suite, result = onnx.backend.test.BackendTest(module, __name__).include(SAMPLE).test_suite, unittest.TestResult()
    for case in suite:
        case.run(result)
    return result


def test_the_runner_of_onnx_takes_the_module_as_it_is() -> None:
    result = _run(backend)
    assert result.failures == [] and result.errors == []
    assert result.testsRun - len(result.skipped) >= 6


def test_the_runner_sees_a_wrong_result() -> None:
    class Wrong(backend.Backend):
        @classmethod
        def prepare(cls, *arguments: object, **options: object) -> backend.PreparedModel:
            prepared = super().prepare(*arguments, **options)
            run = prepared.run
            prepared.run = lambda inputs: tuple(each + 1 for each in run(inputs))
            return prepared

    assert len(_run(Wrong).failures) >= 6


def test_open_shapes_are_those_of_the_values() -> None:
    prepared = backend.prepare(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, ["y"]))
    for rows in (2, 5):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) - 4
        (y,) = prepared.run([x])
        np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_an_operator_runs_alone_in_the_set_asked_for() -> None:
    x = np.asarray([[1, 2], [3, 4]], np.float32)
    (old,) = backend.run_node(helper.make_node("Softmax", ["x"], ["y"], axis=0), [x], opset_version=11)
    np.testing.assert_allclose(old.sum(), 1, rtol=1e-6)  # flattened from the axis on, before set 13
    (new,) = backend.run_node(helper.make_node("Softmax", ["x"], ["y"], axis=0), [x], opset_version=13)
    np.testing.assert_allclose(new.sum(0), [1, 1], rtol=1e-6)


def test_what_import_refuses_is_refused_by_name() -> None:
    model = model_of([helper.make_node("Bernoulli", ["x"], ["y"])], {"x": [4]}, ["y"])
    foreign = model_of([helper.make_node("Mystery", ["x"], ["y"], domain="far")], {"x": [4]}, {"y": [4]}, domain="far")
    assert not backend.is_compatible(model) and not backend.is_compatible(foreign)
    with pytest.raises(backend.Unsupported, match="far|Mystery") as raised:
        backend.run_model(foreign, [np.zeros(4, np.float32)])
    assert isinstance(raised.value, ModelError) and isinstance(raised.value, unittest.SkipTest)
    assert not backend.supports_device("CUDA")


def _die(_folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.fault("the worker of the backend", "it dies", "that request is an error; the next one has a new worker")
def test_a_process_that_dies_ends_one_request_only() -> None:
    worker = Worker()
    try:
        with pytest.raises(backend.BackendCrash, match="SIGSEGV"):
            worker.ask(_die)
        assert worker.ask(os.path.basename) == "files"
    finally:
        worker.end()


def test_inputs_that_had_to_be_frozen_are_named() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [3]}, ["y"])
    prepared = backend.prepare(model)
    prepared.run([np.ones(3, np.float32)])
    assert (prepared.inputs, prepared.frozen) == (("x",), ())
    told = model_of(
        [helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": [4], "s": [2]}, {"y": [2, 2]}, dtypes={"s": 7}
    )
    prepared = backend.prepare(told)
    prepared.run([np.ones(4, np.float32), np.asarray([2, 2])])
    assert prepared.frozen == ("s",)


def test_numbers_of_few_bits_come_and_go_in_their_dtype() -> None:
    narrow = onnx.TensorProto.BFLOAT16
    model = model_of([helper.make_node("Add", ["x", "x"], ["y"])], {"x": [3]}, {"y": [3]}, dtype=narrow, opset=22)
    x = np.asarray([1.5, -2, 0.1], ml_dtypes.bfloat16)
    (y,) = backend.run_model(model, [x])
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), (x + x).astype(np.float32))
