"""TVM's own pipeline as the baseline: made of float16 too, and said to be missing where TVM fails."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.search.evaluate import tvm_default as room
from passfit.search.evaluate.tvm_default import tvm_default
from passfit.support.strictness import STRICT
from passfit.targets import get_target

from ...models import model_of

TARGET = get_target("x86-64")


def normalised(dtype: type) -> object:
    """Return a convolution, its normalisation, an activation of two readers and a padded depthwise convolution."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((4, 4, 1, 1)), "d": random.standard_normal((4, 1, 3, 3)),
        **{name: random.uniform(0.5, 1, 4) for name in ("scale", "bias", "mean", "variance")},
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["n"]),
        helper.make_node("Sigmoid", ["n"], ["s"]),
        helper.make_node("Mul", ["n", "s"], ["m"]),
        helper.make_node("Pad", ["m", "pads"], ["p"]),
        helper.make_node("Conv", ["p", "d"], ["y"], group=4),
    ]
    constants = {name: value.astype(dtype) for name, value in weights.items()} | {"pads": np.int64([0, 0, 1, 1] * 2)}
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    return canonicalize(model_of(nodes, {"x": (1, 4, 6, 6)}, ["y"], constants, dtype=kind))


def test_float16_takes_half_of_the_memory_of_float32() -> None:
    halves, floats = (
        tvm_default(to_relax(model), TARGET, *port_names(model)) for model in map(normalised, (np.float16, np.float32))
    )
    assert not halves.unavailable and halves.kernels == floats.kernels
    assert halves.sum * 2 == floats.sum and halves.ram < floats.ram


def test_a_baseline_that_fails_has_no_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT, raising=False)
    monkeypatch.setattr(room, "_account", lambda *_: 1 / 0)
    model = normalised(np.float32)
    found = tvm_default(to_relax(model), TARGET, *port_names(model))
    assert found.unavailable == "ZeroDivisionError: division by zero"
    assert (found.ram, found.flash, found.kernels, found.sum, found.compiled(7).flash) == (None,) * 5
