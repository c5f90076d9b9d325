"""Test the bound on the sum of all tensors: no program found goes below, however much is removed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("tvm")

from hypothesis import HealthCheck, assume, given, settings

from passfit.bench.sum_bound import least_sum
from passfit.errors import ModelError
from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.search.search import search
from passfit.search.strategies.trace import Limits
from passfit.targets import get_target

from ..models import model_of
from ..profiles import examples
from ..search.mixed_models import mixed_models

pytestmark = pytest.mark.tvm


def model(*nodes: tuple, outputs: tuple[str, ...], dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """A model of two inputs `x` and `z` of 8 values each; nodes are an operator, its inputs, and its result."""
    made = [helper.make_node(op, list(reads), [result]) for op, reads, result in nodes]
    constants = {"zeros": np.zeros(8, np.float32), "pair": np.array([2, 4])}
    return canonicalize(
        model_of(made, {"x": [8], "z": [8]}, outputs, constants, opset=18, dtypes={"x": dtype, "z": dtype})
    )


@pytest.mark.parametrize(
    ("nodes", "outputs", "expected"),
    [
        ([("Relu", "x", "y")], ["y"], 32 + 32),
        ([("Relu", "x", "y"), ("Max", ("x", "zeros"), "same")], ["y", "same"], 32 + 32),
        ([("Mul", ("x", "zeros"), "nothing"), ("Relu", "z", "y"), ("Add", ("y", "nothing"), "sum")], ["sum"], 32 + 32),
        ([("Sub", ("x", "x"), "nothing"), ("Relu", "z", "y"), ("Add", ("y", "nothing"), "sum")], ["sum"], 32 + 32),
        ([("Reshape", ("x", "pair"), "view"), ("Relu", "z", "y")], ["view", "y"], 32 + 32),
    ],
    ids=["plain", "equal outputs", "times zero", "minus itself", "view of an input"],
)
def test_what_need_not_be_there_counts_for_nothing(nodes, outputs, expected):
    assert least_sum(model(*nodes, outputs=tuple(outputs))) == expected


@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
@given(mixed_models())
def test_no_program_is_below_the_bound(model):
    try:
        canonical = canonicalize(model)
        module = to_relax(canonical)
    except ModelError:
        assume(False)
    limits = Limits(evaluations=12)
    found = search(module, "m", get_target("x86-64"), *port_names(canonical), objective="sum", limits=limits)
    assert 0 < least_sum(canonical) <= found.best.sum
