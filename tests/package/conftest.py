"""Compile a small network with outputs of several dtypes, for this machine and for a board."""

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
    """Return a function from a target to the folder of its library: x → softmax(x w), its maximum, and half of it."""
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

    def made(name: str) -> Path:
        out = folder / name
        if not out.exists():
            search = api.SearchSettings("tvm-default", workers=0)
            api.compile_model(folder / "small-net.onnx", get_target(name), out=out, search=search)
        return out

    return made
