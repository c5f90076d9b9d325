"""Check lengths that are numbers which the data compute, up to a bound that is given for the number."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from passfit.errors import ModelError

from ....models import NodeBuilder
from .checking import check, imported

Build = Callable[[NodeBuilder, str], str]
#: the largest number of the cases, and a bound above it
MOST, BOUND = 6, 9


def ints(b: NodeBuilder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def counted(b: NodeBuilder, number: str) -> str:
    """Return 0, 1, … up to a number, as a column of floats, beside a vector."""
    scalar = b.node("Squeeze", number, ints(b, 0))
    line = b.node("Range", b.constant(np.array(0)), scalar, b.constant(np.array(1)))
    return b.node("Mul", b.node("Reshape", b.node("Cast", line, to=TensorProto.FLOAT), ints(b, -1, 1)), b.weight(1, 3))


def filled(b: NodeBuilder, number: str) -> str:
    return b.node("Add", b.node("ConstantOfShape", b.node("Concat", number, ints(b, 2), axis=0)), b.weight(1, 2))


def spread(b: NodeBuilder, number: str) -> str:
    """Return a vector in twice as many rows."""
    twice = b.node("Mul", number, ints(b, 2))
    return b.node("Relu", b.node("Expand", b.weight(1, 3), b.node("Concat", twice, ints(b, 3), axis=0)))


def cut(b: NodeBuilder, number: str, offset: int = 0) -> str:
    end = b.node("Add", number, ints(b, offset)) if offset else number
    return b.node("Neg", b.node("Slice", b.weight(BOUND, 2), ints(b, 0), end, ints(b, 0)))


def cut_from_the_end(b: NodeBuilder, number: str) -> str:
    return cut(b, b.node("Sub", number, ints(b, MOST + 1)))


def counted_on(b: NodeBuilder, number: str) -> str:
    return counted(b, b.node("Add", number, ints(b, 2)))


def expanded(b: NodeBuilder, number: str) -> str:
    """Return rows by a shape that may hold -1, as torch.expand is exported."""
    sizes = b.node("Concat", number, ints(b, -1), axis=0)
    ones = b.node("ConstantOfShape", b.node("Shape", sizes), value=onnx.helper.make_tensor("v", 7, [1], [1]))
    kept = b.node("Equal", sizes, b.node("Mul", ones, ints(b, -1)))
    return b.node("Relu", b.node("Expand", b.weight(1, 3), b.node("Where", kept, ones, sizes)))


def repeated(b: NodeBuilder, number: str) -> str:
    """Return rows that stand as often as numbers say, as torch.repeat_interleave is exported."""
    lengths = b.node("Concat", number, ints(b, 2, 0, 1), axis=0)
    ends = b.node("CumSum", lengths, b.constant(np.array(0)))
    total = b.node("Gather", ends, b.constant(np.array(-1)), axis=0)
    line = b.node("Range", b.constant(np.array(0)), total, b.constant(np.array(1)))
    passed = b.node("GreaterOrEqual", line, b.node("Unsqueeze", ends, ints(b, 1)))
    row = b.node("ReduceSum", b.node("Cast", passed, to=TensorProto.INT64), ints(b, 0), keepdims=0)
    return b.node("MatMul", b.node("Gather", b.weight(4, 3), row, axis=0), b.weight(3, 2))


def model(build: Build) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return a model whose length is the sum of x, and cases."""
    b = NodeBuilder()
    number = b.node("ReduceSum", b.node("Cast", "x", to=TensorProto.INT64), keepdims=0)
    result = build(b, b.node("Unsqueeze", number, ints(b, 0)))
    return b.model([3], result), np.float32([[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, MOST - 3]])


@pytest.mark.parametrize(
    "build", [counted, counted_on, filled, spread, cut, partial(cut, offset=-2), cut_from_the_end, repeated, expanded]
)
def test_a_number_with_a_bound_is_a_length(build: Build) -> None:
    """The bound is asked for by the name of the number; with it the model is that of the file."""
    given, cases = model(build)
    with pytest.raises(ModelError) as refused:
        imported(given)
    (name,) = re.findall(r"--bound (\S+)=N", str(refused.value))
    check(given, ({"x": x} for x in cases), rtol=1e-6, bounds={name: BOUND})


@pytest.mark.parametrize("build", [counted, spread, repeated])
def test_rows_behind_the_bound_are_dropped(build: Build) -> None:
    given, cases = model(build)
    with pytest.raises(ModelError) as refused:
        imported(given)
    (name,) = re.findall(r"--bound (\S+)=N", str(refused.value))
    check(given, ({"x": x} for x in cases), rtol=1e-6, bounds={name: 2})


@pytest.mark.parametrize(
    "build", [counted, counted_on, cut, partial(cut, offset=-2), partial(cut, offset=2), cut_from_the_end]
)
def test_a_number_below_0_is_that_of_onnx(build: Build) -> None:
    given, cases = model(build)
    with pytest.raises(ModelError) as refused:
        imported(given)
    (name,) = re.findall(r"--bound (\S+)=N", str(refused.value))
    below = [np.float32([0, number, 0]) for number in (-1, -2, -4, -BOUND - 3)]
    check(given, ({"x": x} for x in (*below, *cases)), rtol=1e-6, bounds={name: BOUND})


def two(b: NodeBuilder, number: str) -> str:
    """Return two counts, one after the other."""
    other = b.node("ReduceMax", b.node("Cast", "x", to=TensorProto.INT64), keepdims=0)
    return b.node("Concat", counted(b, number), counted(b, b.node("Unsqueeze", other, ints(b, 0))), axis=0)


def test_each_of_two_numbers_is_asked_for() -> None:
    given, cases = model(two)
    bounds: dict[str, int] = {}
    for _ in range(2):
        with pytest.raises(ModelError) as refused:
            imported(given, bounds=bounds)
        bounds |= dict.fromkeys(re.findall(r"--bound (\S+)=N", str(refused.value)), BOUND)
    assert len(bounds) == 2
    check(given, ({"x": x} for x in cases), rtol=1e-6, bounds=bounds)


@pytest.mark.parametrize("bound", [1 << 25, 1 << 63, 10**30])
def test_a_bound_of_no_use_is_refused(bound: int) -> None:
    given, _ = model(counted)
    with pytest.raises(ModelError, match="is the most"):
        imported(
            given, bounds={next(node.output[0] for node in given.graph.node if node.op_type == "ReduceSum"): bound}
        )


def test_a_bound_of_many_numbers_is_refused() -> None:
    given, _ = model(counted)
    with pytest.raises(ModelError, match="The data decide no length"):
        imported(given, bounds={next(node.output[0] for node in given.graph.node if node.op_type == "Mul"): 3})
