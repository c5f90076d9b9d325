"""Compile a small network with outputs of several dtypes, and a recurrent one, for this machine and for boards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit import api
from passfit.targets import get_target

from ..models import model_of


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    """Return a function from a target and a model to the folder of its library with sources: by default x → softmax(x w), its
    maximum, and half of it; or `lstm`; or `waves`, which needs functions of floats."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"]),
        helper.make_node("ArgMax", ["a"], ["best"], axis=1, keepdims=0), helper.make_node("Cast", ["y"], ["half"], to=TensorProto.FLOAT16),
    ]  # fmt: skip
    weights = np.random.default_rng(0).normal(size=(16, 10)).astype(np.float32)
    folder = tmp_path_factory.mktemp("results")
    dtypes = {"best": TensorProto.INT64, "half": TensorProto.FLOAT16}
    onnx.save(
        model_of(nodes, {"x": (2, 16)}, {"y": (2, 10), "best": (2,), "half": (2, 10)}, {"w": weights}, dtypes=dtypes),
        folder / "small-net.onnx",
    )

    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)]
    draw = np.random.default_rng(1).normal
    recurrent = {"w": draw(size=(1, 16, 3)).astype(np.float32), "r": draw(size=(1, 16, 4)).astype(np.float32)}
    onnx.save(model_of(nodes, {"x": (5, 1, 3)}, {"y": (5, 1, 1, 4)}, recurrent), folder / "lstm.onnx")

    nodes = [
        helper.make_node("Sin", ["x"], ["a"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Log", ["b"], ["y"]),
    ]
    onnx.save(model_of(nodes, {"x": (4, 16)}, {"y": (4, 16)}), folder / "waves.onnx")

    def made(name: str, model: str = "small-net") -> Path:
        out = folder / model / name
        if not out.exists():
            search, verify = api.SearchSettings("tvm-default", workers=0), api.VerifySettings(source=True)
            api.compile_model(folder / f"{model}.onnx", get_target(name), out=out, search=search, verify=verify)
        return out

    return made
