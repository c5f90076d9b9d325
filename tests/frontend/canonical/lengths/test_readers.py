"""Check nodes that read a value of open length: each as ONNX Runtime computes it, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from passfit.errors import ModelError

from ....models import NodeBuilder
from .checking import check, imported

ROWS = 7
Build = Callable[[NodeBuilder, str], str]


def rows(b: NodeBuilder) -> str:
    """Return the rows of x [7, 4] whose first number is positive: as exporters write x[mask]."""
    first = b.node("Gather", "x", b.constant(np.array(0)), axis=1)
    places = b.node("NonZero", b.node("Greater", first, b.constant(np.float32(0))))
    return b.node("GatherND", "x", b.node("Transpose", places, perm=[1, 0]))


def size(b: NodeBuilder, value: str, axis: int = 0) -> str:
    return b.node("Gather", b.node("Shape", value), b.constant(np.array(axis)), axis=0)


def ints(b: NodeBuilder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def listed(b: NodeBuilder, *values: str | int) -> str:
    """Return a shape of sizes and numbers."""
    parts = [b.node("Unsqueeze", each, ints(b, 0)) if isinstance(each, str) else ints(b, each) for each in values]
    return b.node("Concat", *parts, axis=0)


def quantisation(b: NodeBuilder) -> tuple[str, str]:
    return b.constant(np.float32(0.05)), b.constant(np.int8(3))


def padded(b: NodeBuilder, v: str, total: int) -> str:
    """Return rows filled up to a number, as torch's pad is exported."""
    rest = b.node("Sub", b.constant(np.array(total)), size(b, v))
    return b.node("Pad", v, listed(b, 0, 0, rest, 0))


def first(b: NodeBuilder, v: str) -> str:
    return b.node("Slice", v, ints(b, 0), ints(b, 3), ints(b, 0))


def cut_by(b: NodeBuilder, v: str, offset: int, scale: int = 1) -> str:
    """Return the rows of others in front of an end that may count from the back."""
    scaled = b.node("Mul", size(b, v), b.constant(np.array(scale)))
    end = b.node("Add", scaled, b.constant(np.array(offset)))
    return b.node("Slice", b.weight(6, 2), ints(b, 0), listed(b, end), ints(b, 0))


def classes(b: NodeBuilder, v: str) -> str:
    """Return the second column, repeated along an axis, by sizes of the rows."""
    column = b.node("Gather", v, b.constant(np.array(1)), axis=1)
    flat = b.node("Reshape", column, listed(b, size(b, column), 1))
    return b.node("Expand", flat, listed(b, size(b, column), 3))


def selected(b: NodeBuilder, v: str) -> str:
    """Return the rows that NonMaxSuppression keeps among those of open length, at most three."""
    boxes = b.node("Unsqueeze", v, ints(b, 0))
    scores = b.node("Reshape", b.node("Gather", v, b.constant(np.array(2)), axis=1), ints(b, 1, 1, -1))
    kept = b.node("NonMaxSuppression", boxes, scores, ints(b, 100), b.constant(np.array([0.3], np.float32)))
    index = b.node("Squeeze", b.node("Gather", kept, ints(b, 2), axis=1), ints(b, 1))
    first = b.node("Slice", index, ints(b, 0), ints(b, 3), ints(b, 0))
    return b.node("Gather", v, first, axis=0)


def numbered(b: NodeBuilder, v: str, start: int = 0) -> str:
    """Return a number for each row, from `start` on."""
    return b.node(
        "Add",
        b.node("Range", b.constant(np.array(0)), size(b, v), b.constant(np.array(1))),
        b.constant(np.array(start)),
    )


def put_back(b: NodeBuilder, v: str) -> str:
    """Return zeros with some of the rows at their places, as torchvision merges the levels of a pyramid."""
    flags = b.node("Greater", b.node("Gather", v, b.constant(np.array(1)), axis=1), b.constant(np.float32(0)))
    places = b.node("Squeeze", b.node("NonZero", flags), ints(b, 0))
    some, zeros = b.node("Gather", v, places, axis=0), b.node("ConstantOfShape", listed(b, size(b, v), size(b, v, 1)))
    whole = b.node("Expand", b.node("Reshape", places, ints(b, -1, 1)), listed(b, size(b, some), size(b, some, 1)))
    return b.node("ScatterElements", zeros, whole, some, axis=0)


def written_among(b: NodeBuilder, v: str, axis: int, start: int = 0, rows: int = ROWS) -> str:
    """Return others in which the rows are written at places that are counted from `start`."""
    column = b.node("Reshape", numbered(b, v, start), ints(b, -1, 1))
    return b.node(
        "ScatterElements", b.weight(rows, 4), b.node("Expand", column, listed(b, size(b, v), 4)), v, axis=axis
    )


def numbers(b: NodeBuilder, v: str, column: int, below: int, least: int = 0) -> str:
    """Return a number for each row, at least `least`, and below another."""
    sizes = b.node(
        "Cast", b.node("Abs", b.node("Gather", v, b.constant(np.array(column)), axis=1)), to=TensorProto.INT64
    )
    return b.node("Add", b.node("Mod", sizes, b.constant(np.array(below - least))), b.constant(np.array(least)))


def table(b: NodeBuilder, *values: str) -> str:
    """Return columns side by side."""
    return b.node("Concat", *(b.node("Unsqueeze", each, ints(b, 1)) for each in values), axis=1)


def attention(b: NodeBuilder, v: str) -> str:
    """Return what a query takes of rows by their keys."""
    shares = b.node("Softmax", b.node("MatMul", b.weight(2, 4), b.node("Transpose", v)), axis=-1)
    return b.node("MatMul", shares, v)


def products_by_row(b: NodeBuilder, v: str) -> str:
    """Return the product of the two matrices of each row."""
    matrices = b.node("Reshape", v, ints(b, -1, 2, 2))
    return b.node("MatMul", matrices, b.node("Transpose", matrices, perm=[0, 2, 1]))


def messages(b: NodeBuilder, v: str, reduction: str = "add") -> str:
    """Return the nodes of a graph to which each row, an edge, adds its numbers; nodes may count from the end."""
    index = b.node("Unsqueeze", numbers(b, v, 1, 5, -5), ints(b, 1))
    return b.node("ScatterND", b.weight(5, 4), index, v, reduction=reduction)


def written(b: NodeBuilder, v: str) -> str:
    """Return rows with one element of each replaced."""
    index = b.node("Unsqueeze", numbers(b, v, 1, 4), ints(b, 1))
    return b.node(
        "ScatterElements", v, index, b.node("Slice", b.node("Exp", v), ints(b, 0), ints(b, 1), ints(b, 1)), axis=1
    )


def counted(b: NodeBuilder, v: str) -> str:
    """Return how many rows have each number."""
    index = numbers(b, v, 1, 5)
    ones = b.node("Expand", b.constant(np.float32(1)), b.node("Shape", index))
    return b.node("ScatterElements", b.constant(np.zeros(5, np.float32)), index, ones, axis=0, reduction="add")


def own_rows(b: NodeBuilder, v: str) -> str:
    """Return rows behind the first of which each is written by one of them, from the end on."""
    places = b.node("Sub", ints(b, -1), b.node("Range", b.constant(np.array(0)), size(b, v), b.constant(np.array(1))))
    return b.node("ScatterND", b.node("Neg", v), b.node("Unsqueeze", places, ints(b, 1)), v)


def assigned(b: NodeBuilder, counts: bool) -> str:
    """Return x with x[mask] = exp(x[mask]), as torch writes it: a mask of all elements, and as many values, one way or another."""
    mask = b.node("Greater", b.node("Gather", "x", b.constant(np.array(0)), axis=1), b.constant(np.float32(0)))
    values = b.node("Exp", b.node("GatherND", "x", b.node("Transpose", b.node("NonZero", mask), perm=[1, 0])))
    every = b.node("Expand", b.node("Unsqueeze", mask, ints(b, 1)), ints(b, ROWS, 4))
    places = b.node("Transpose", b.node("NonZero", every), perm=[1, 0])
    if counts:
        whole = b.node("Cast", b.node("Reshape", mask, ints(b, -1)), to=TensorProto.INT64)
        count = b.node("ReduceSum", whole, ints(b, 0), keepdims=1)
        values = b.node("Reshape", b.node("Expand", values, b.node("Concat", count, ints(b, 4), axis=0)), ints(b, -1))
    else:
        end = b.node("Unsqueeze", size(b, places), ints(b, 0))
        values = b.node("Slice", b.node("Reshape", values, ints(b, -1)), ints(b, 0), end, ints(b, 0))
    return b.node("ScatterND", "x", places, values)


WORKS: dict[str, Build] = {
    "elementwise": lambda b, v: b.node("Mul", b.node("Exp", v), b.weight(4)),
    "with itself": lambda b, v: b.node("Add", b.node("Relu", v), v),
    "of a condition": lambda b, v: b.node("Where", b.node("Greater", v, b.constant(np.float32(1))), v, b.weight(1, 4)),
    "transposed": lambda b, v: b.node("Transpose", v),
    "unsqueezed": lambda b, v: b.node("Unsqueeze", v, ints(b, 0, 2)),
    "squeezed": lambda b, v: b.node("Squeeze", b.node("Unsqueeze", v, ints(b, 0, 2)), ints(b, -2)),
    "a column": lambda b, v: b.node("Gather", v, b.constant(np.array(-1)), axis=1),
    "columns": lambda b, v: b.node("Slice", v, ints(b, 1), ints(b, 3), ints(b, 1)),
    "first rows": lambda b, v: b.node("Slice", v, ints(b, 0), ints(b, 3), ints(b, 0)),
    "without the first": lambda b, v: b.node("Slice", v, ints(b, 2), ints(b, 1 << 62), ints(b, 0)),
    "fewer of others": lambda b, v: cut_by(b, v, -3),
    "fewer of many others": lambda b, v: cut_by(b, v, -9),
    "fewer of twice as many": lambda b, v: cut_by(b, v, -5, 2),
    "some rows": lambda b, v: b.node("Slice", v, ints(b, 1), ints(b, 3), ints(b, 0)),
    "in another order": lambda b, v: b.node("Concat", b.node("Neg", v), v, axis=1),
    "behind others": lambda b, v: b.node("Concat", b.weight(2, 4), v, axis=0),
    "followed by others": lambda b, v: b.node("Concat", v, b.weight(2, 4), axis=0),
    "followed by itself": lambda b, v: b.node("Concat", v, b.node("Neg", v), v, axis=0),
    "between others, and fewer": lambda b, v: b.node("Relu", b.node("Concat", b.weight(2, 4), v, b.weight(1, 4), first(b, v), axis=0)),
    "summed up with others": lambda b, v: b.node("ReduceSum", b.node("Concat", v, b.weight(2, 4), axis=0), ints(b, 0)),
    "no more than there are": lambda b, v: b.node("Slice", v, ints(b, 0), listed(b, b.node("Min", size(b, v), b.constant(np.array(3)))), ints(b, 0)),
    "best of no more than there are": lambda b, v: b.node("TopK", v, listed(b, b.node("Min", size(b, v), b.constant(np.array(3)))), axis=0, results=2),
    "reshaped": lambda b, v: b.node("Reshape", v, ints(b, 1, -1, 2, 2)),
    "reshaped by its size": lambda b, v: b.node("Reshape", v, listed(b, size(b, v), 2, 2)),
    "flattened": lambda b, v: b.node("Reshape", v, ints(b, -1)),
    "flattened and back": lambda b, v: b.node("Reshape", b.node("Flatten", v, axis=0), ints(b, -1, 4)),
    "softmax": lambda b, v: b.node("Softmax", v, axis=-1),
    "best column": lambda b, v: b.node("ArgMax", v, axis=1, keepdims=0),
    "largest columns": lambda b, v: b.node("TopK", v, ints(b, 2), axis=1, results=2),
    "quantised": lambda b, v: b.node("DequantizeLinear", b.node("QuantizeLinear", v, *quantisation(b)), *quantisation(b)),
    "normalised": lambda b, v: b.node("LayerNormalization", v, b.weight(4), b.weight(4)),
    "summed up": lambda b, v: b.node("CumSum", v, b.constant(np.array(0))),
    "means": lambda b, v: b.node("ReduceMean", v, axes=[1]),
    "mean of rows": lambda b, v: b.node("ReduceMean", v, axes=[0]),
    "mean of all": lambda b, v: b.node("ReduceMean", v, keepdims=0),
    "pooled mean": lambda b, v: b.node("GlobalAveragePool", b.node("Unsqueeze", b.node("Transpose", v), ints(b, 0))),
    "pooled maximum": lambda b, v: b.node("GlobalMaxPool", b.node("Unsqueeze", b.node("Transpose", v), ints(b, 0))),
    "pooled, in open number": lambda b, v: b.node("GlobalAveragePool", b.node("Unsqueeze", v, ints(b, 1))),
    "product of rows": lambda b, v: b.node("ReduceProd", v, axes=[0]),
    "norm of rows": lambda b, v: b.node("ReduceL2", v, axes=[0]),
    "sum of sizes": lambda b, v: b.node("ReduceL1", v, axes=[0]),
    "logarithm of a sum": lambda b, v: b.node("ReduceLogSumExp", v, axes=[0]),
    "place of the largest": lambda b, v: b.node("ArgMax", v, axis=0),
    "place of the least": lambda b, v: b.node("ArgMin", v, axis=0, keepdims=0),
    "softmax of rows": lambda b, v: b.node("Softmax", v, axis=0),
    "attention": attention,
    "matrices": products_by_row,
    "messages": messages,
    "largest message": lambda b, v: messages(b, v, "max"),
    "written": written,
    "counted": counted,
    "written from the end": own_rows,
    "elements by row": lambda b, v: b.node("GatherElements", v, b.node("Unsqueeze", numbers(b, v, 1, 4), ints(b, 1)), axis=1),
    "elements of more rows": lambda b, v: b.node("GatherElements", b.weight(9, 4), b.node("Unsqueeze", numbers(b, v, 1, 4), ints(b, 1)), axis=1),
    "elements written in more rows": lambda b, v: b.node("ScatterElements", b.weight(9, 4), b.node("Unsqueeze", numbers(b, v, 1, 4), ints(b, 1)), b.node("Slice", v, ints(b, 0), ints(b, 1), ints(b, 1)), axis=1),
    "elements of a table": lambda b, v: b.node("GatherElements", b.weight(5), numbers(b, v, 1, 5), axis=0),
    "elements by two numbers": lambda b, v: b.node("GatherND", b.weight(5, 3, 2), table(b, numbers(b, v, 1, 5, -5), numbers(b, v, 2, 3))),
    "own elements": lambda b, v: b.node("GatherND", v, table(b, b.node("Sub", ints(b, -1), b.node("Range", b.constant(np.array(0)), size(b, v), b.constant(np.array(1)))), numbers(b, v, 2, 4))),
    "columns by number": lambda b, v: b.node("GatherND", b.node("Transpose", v), b.constant(np.array([[1], [-1]]))),
    "one of five": lambda b, v: b.node("OneHot", numbers(b, v, 1, 5), b.constant(np.array(5)), b.constant(np.array([0, 1], np.float32))),
    "one of five, in front": lambda b, v: b.node("OneHot", numbers(b, v, 1, 5), b.constant(np.array(5)), b.constant(np.array([0, 1], np.float32)), axis=0),
    "tiled": lambda b, v: b.node("Tile", v, ints(b, 1, 3)),
    "a tile for each": lambda b, v: b.node("Tile", b.weight(2, 3), listed(b, size(b, v), 1)),
    "more rows": lambda b, v: b.node("Pad", v, ints(b, 1, 0, 2, 0), b.constant(np.float32(2))),
    "more columns": lambda b, v: b.node("Pad", v, ints(b, 0, 1, 0, 2), mode="edge"),
    "sum": lambda b, v: b.node("ReduceSum", v, ints(b, 0)),
    "product": lambda b, v: b.node("MatMul", v, b.weight(4, 3)),
    "gemm": lambda b, v: b.node("Gemm", v, b.weight(4, 3), b.weight(3)),
    "shape": lambda b, v: b.node("Shape", v),
    "size": lambda b, v: b.node("Size", v),
    "share": lambda b, v: b.node("Div", b.node("Cast", size(b, v), to=TensorProto.FLOAT), b.constant(np.float32(7))),
    "filled up": lambda b, v: padded(b, v, 9),
    "cut and filled up": lambda b, v: padded(b, v, 4),
    "classes": classes,
    "zeros": lambda b, v: b.node("ConstantOfShape", listed(b, size(b, v), 2)),
    "count": lambda b, v: b.node("Range", b.constant(np.array(0)), size(b, v), b.constant(np.array(1))),
    "those of these": lambda b, v: b.node("GatherND", v, b.node("Transpose", b.node("NonZero", b.node("Greater", b.node("Gather", v, b.constant(np.array(1)), axis=1), b.constant(np.float32(0)))), perm=[1, 0])),
    "compressed": lambda b, v: b.node("Compress", v, b.node("Less", b.node("Gather", v, b.constant(np.array(1)), axis=1), b.constant(np.float32(0))), axis=0),
    "selected": selected,
    "negative indices": lambda b, v: b.node("Gather", v, b.node("Neg", b.node("Cast", b.node("Greater", b.node("Gather", v, b.constant(np.array(3)), axis=1), b.constant(np.float32(0))), to=TensorProto.INT64)), axis=0),
    "taken from a table": lambda b, v: b.node("Gather", b.weight(5, 2), b.node("Mod", b.node("Cast", b.node("Gather", b.node("Abs", v), b.constant(np.array(1)), axis=1), to=TensorProto.INT64), ints(b, 5)), axis=0),
    "put back": put_back,
    "assigned by a mask": lambda b, v: assigned(b, False),
    "assigned by a mask that is counted": lambda b, v: assigned(b, True),
    "written to others": lambda b, v: written_among(b, v, 0),
    "written to others from the end": lambda b, v: written_among(b, v, 0, -ROWS),
    "written to the rows": lambda b, v: b.node("ScatterND", v, b.node("Reshape", b.node("Sub", size(b, v), b.node("Add", numbered(b, v), b.constant(np.array(1)))), ints(b, -1, 1)), v),
    "written at places": lambda b, v: b.node("ScatterND", b.weight(9, 4), b.node("Reshape", numbered(b, v, -9), ints(b, -1, 1)), v, reduction="add"),
    "divided": lambda b, v: b.node("Div", ints(b, 60), b.node("Add", b.node("Cast", b.node("Gather", b.node("Abs", v), b.constant(np.array(1)), axis=1), to=TensorProto.INT64), ints(b, 1))),
}  # fmt: skip

#: those that ONNX Runtime refuses without a row
NEED_A_ROW = {"negative indices", "pooled mean", "pooled maximum", "place of the largest", "place of the least"}
#: those whose sums ONNX Runtime adds in an order that depends on the number of rows
ROUNDED = {"pooled mean", "logarithm of a sum", "softmax of rows", "attention"}


def model_of_reader(build: Build) -> onnx.ModelProto:
    b = NodeBuilder()
    value = build(b, rows(b))
    return b.model([ROWS, 4], value, dtypes={value: _element(b, value)})


def _element(b: NodeBuilder, value: str) -> int:
    model = onnx.shape_inference.infer_shapes(b.model([ROWS, 4], value, dtypes={value: TensorProto.UNDEFINED}))
    return model.graph.output[0].type.tensor_type.elem_type


def cases() -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(0)
    x = (random.standard_normal((ROWS, 4)) * 2).astype(np.float32)
    none, every = x.copy(), x.copy()
    none[:, 0], every[:, 0] = -1, 1
    return [{"x": each} for each in (x, -x, none, every)]


@pytest.mark.parametrize("name", WORKS)
def test_a_reader_gives_what_onnx_runtime_does(name: str) -> None:
    found = cases()
    if name in NEED_A_ROW:
        found = [each for each in found if (each["x"][:, 0] > 0).any()]
    check(model_of_reader(WORKS[name]), found, rtol=1e-5 if name in ROUNDED else 0.0)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_any_and_every_of_rows_within_the_length(op: str) -> None:
    b = NodeBuilder()
    value = b.node(op, b.node("Greater", rows(b), b.constant(np.float32(1))), ints(b, 0))
    check(
        b.model([ROWS, 4], value, dtypes={value: TensorProto.BOOL}, opset=20),
        [each for each in cases() if (each["x"][:, 0] > 0).any()],
    )


@pytest.mark.parametrize(("axis", "mode"), [(1, "edge"), (-2, "constant")])
def test_rows_are_padded_along_the_axes_given(axis: int, mode: str) -> None:
    b = NodeBuilder()
    value = b.node("Pad", rows(b), ints(b, 1, 2), "", ints(b, axis), mode=mode)
    check(b.model([ROWS, 4], value, opset=18), cases())


REFUSED: dict[str, tuple[Build, str]] = {
    "fixed rows": (lambda b, v: b.node("Add", v, b.weight(7, 4)), "does not have one axis of that length"),
    "two lengths": (lambda b, v: b.node("Add", v, b.node("Slice", v, ints(b, 0), ints(b, 3), ints(b, 0))), "lengths that differ"),
    "the last row": (lambda b, v: b.node("Gather", v, b.constant(np.array(-1)), axis=0), "it takes rows by their number"),
    "backwards": (lambda b, v: b.node("Slice", v, ints(b, -1), ints(b, -9), ints(b, 0), ints(b, -1)), "counts from the end"),
    "the last of the largest": (lambda b, v: b.node("ArgMax", v, axis=0, select_last_index=1), "may be behind the length"),
    "the logarithm of integers": (lambda b, v: b.node("ReduceLogSumExp", b.node("Cast", v, to=7), axes=[0]), "it subtracts integers"),
    "a single row": (lambda b, v: b.node("Squeeze", b.node("Unsqueeze", v, ints(b, 0))), "removes that of a single row"),
    "normalised by its length": (lambda b, v: b.node("LayerNormalization", v, b.weight(7, 4), axis=0), "along the axis of the length"),
    "summed up from the end": (lambda b, v: b.node("CumSum", v, b.constant(np.array(0)), reverse=1), "it adds from the end"),
    "two open axes": (lambda b, v: b.node("MatMul", v, b.node("Transpose", v)), "does not have one axis of that length"),
    "elements of fewer rows": (lambda b, v: b.node("GatherElements", b.weight(5, 4), b.node("Unsqueeze", numbers(b, v, 1, 4), ints(b, 1)), axis=1), "more indices than"),
    "elements written in fewer rows": (lambda b, v: b.node("ScatterElements", b.weight(5, 4), b.node("Unsqueeze", numbers(b, v, 1, 4), ints(b, 1)), b.node("Slice", v, ints(b, 0), ints(b, 1), ints(b, 1)), axis=1), "more indices than"),
    "twice": (lambda b, v: b.node("Tile", v, ints(b, 2, 1)), "it repeats rows behind their length"),
    "a mask of others": (lambda b, v: b.node("ScatterND", "x", b.node("Transpose", b.node("NonZero", b.node("Greater", "x", b.constant(np.float32(1)))), perm=[1, 0]), b.node("Reshape", v, ints(b, -1))), "not the same open length"),
    "a message each": (lambda b, v: b.node("ScatterND", v, b.constant(np.array([[1]])), b.weight(1, 4)), "not the same open length"),
    "split among rows": (lambda b, v: b.node("Reshape", b.node("Transpose", v), ints(b, -1)), "rows would not stay together"),
    "no rule": (lambda b, v: b.node("Einsum", v, equation="ij->i"), "no rule says how it works on a bound"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_reason(name: str) -> None:
    build, reason = REFUSED[name]
    with pytest.raises(ModelError, match=re.escape(reason)) as error:
        imported(model_of_reader(build))
    assert "whose length the data decide" in error.value.what and "--output" in error.value.hint
