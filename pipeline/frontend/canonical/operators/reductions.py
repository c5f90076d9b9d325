"""Rewrite reductions into forms TVM's importer reads rightly.

Its defects: an attribute `axes` of no axes is an assertion; `noop_with_empty_axes` drops what ONNX still computes of each
element; a mean or norm of integers is a float; sums of float16 lose digits; the logarithm of a sum of exponentials is NaN
over infinities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView

#: the first operator set whose reductions take axes as an input; ReduceSum does from 13 on
AXES_AS_INPUT = 18
_EXTREMES = ("ReduceMax", "ReduceMin")
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
)  # fmt: skip
#: reductions of integers by way of float64: roots, logarithms, and a mean, whose sum may exceed the integers
_BY_FLOATS = ("ReduceL2", "ReduceLogSum", "ReduceMean")


def reduce(node: NodeView, build: NodeBuilder) -> None:
    """Replace a reduction in a form that TVM misreads by sums, extremes and single elements."""
    op, x = node.op_type, node.input[0]
    shape, axes = node.shape(x), _axes(node)
    if shape is None or axes is None:
        return
    kept = bool(node.get("keepdims", 1))
    dtype = node.dtype(x)
    work = _work_dtype(op, dtype)
    given = bool(axes) and list(node.get("axes", axes)) != []
    known = op not in (*_EXTREMES, "ReduceLogSumExp") if work.kind == "f" else op in _EXTREMES
    known |= op in _EXTREMES and _lets_nan_pass(node)
    if given and known and work == dtype:
        return
    value = x if work == dtype else build.cast(x, work)
    if given and known:
        result = build.node(op, value, *node.input[1:], **node.attributes)
    else:
        result = _Reduction(build, node.graph.opset, shape, axes, kept, work).of(op, value)
    if work == dtype:
        build.node("Identity", result, result=node.result)
    else:
        build.cast(result, dtype, node.result)


def reduce_along(build: NodeBuilder, op: str, x: str, axes: list[int], opset: int, kept: bool = True) -> str:
    """Build a reduction along axes, which are an attribute in older operator sets."""
    if op == "ReduceSum" or opset >= AXES_AS_INPUT:
        return build.node(op, x, build.integers(*axes), keepdims=int(kept))
    return build.node(op, x, axes=axes, keepdims=int(kept))


def _lets_nan_pass(node: NodeView) -> bool:
    """Return whether a choice behind an extreme asks for NaN or infinity, as an earlier import wrote it."""
    makers = node.graph.producers

    def asks(name: str, operator: str) -> bool:
        """Return whether a condition is about the extreme itself, or about the first of its elements."""
        while name in makers and makers[name].op_type in (operator, "Squeeze", "Slice"):
            name = makers[name].input[0]
        return name == (node.result if operator == "IsInf" else node.input[0])

    choices = (each for each in makers.values() if each.op_type == "Where" and each.input[2] == node.result)
    return any(asks(each.input[0], operator) for each in choices for operator in ("IsInf", "IsNaN"))


def last_extreme(node: NodeView, build: NodeBuilder) -> None:
    """Replace an ArgMax or ArgMin of the last index by the largest index of an extreme; NaN as the first element is one.

    TVM reverses the row, and with it which element is the first.
    """
    x, shape = node.input[0], node.shape(0)
    if not node.get("select_last_index") or not shape:
        return
    axis, kind = int(node.get("axis", 0)) % len(shape), node.dtype(x)
    rows = _Reduction(build, node.graph.opset, shape, [axis], True, kind)
    hit = build.node("Equal", x, rows.of("ReduceMax" if node.op_type == "ArgMax" else "ReduceMin", x))
    places = np.arange(shape[axis], dtype=np.int32).reshape(-1, *[1] * (len(shape) - axis - 1))
    found = build.node("Where", hit, build.constant(places), build.number(0, np.int32))
    indices = _Reduction(build, node.graph.opset, shape, [axis], bool(node.get("keepdims", 1)), places.dtype)
    build.cast(indices.of("ReduceMax", found), np.int64, node.result)


def _axes(node: NodeView) -> list[int] | None:
    """Return the axes to reduce, counted from the front; None unless they are constant."""
    shape = node.shape(0)
    axes = node.get("axes")
    if len(node.input) > 1 and node.input[1]:
        constant = node.constant(1)
        if constant is None:
            return None
        axes = constant.reshape(-1).tolist()
    rank = len(shape or ())
    if not axes:
        return [] if node.get("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({int(axis) % rank for axis in axes}) if rank else []


def _work_dtype(op: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype to compute in; ONNX Runtime computes float16 in float32."""
    if dtype == np.dtype(bool):
        return np.dtype(np.int32)
    if dtype == np.float16 and op not in _EXTREMES:
        return np.dtype(np.float32)
    return np.dtype(np.float64) if dtype.kind != "f" and op in _BY_FLOATS else dtype


class _Reduction:
    """Reduction of values of one shape over the same axes; without axes it computes of each element alone."""

    def __init__(
        self, build: NodeBuilder, opset: int, shape: tuple[int, ...], axes: list[int], kept: bool, dtype: np.dtype
    ):
        self.build, self.opset, self.shape, self.axes, self.kept, self.dtype = build, opset, shape, axes, kept, dtype

    def of(self, op: str, x: str) -> str:
        """Build the reduction `op` of `x`; return its result."""
        node = self.build.node
        if op in _EXTREMES:
            return self._extreme(op, x) if self.dtype.kind == "f" and self.axes else self._reduce(op, x)
        if op == "ReduceL1":
            return self._reduce("ReduceSum", node("Abs", x))
        if op in ("ReduceL2", "ReduceSumSquare"):
            total = self._reduce("ReduceSum", node("Mul", x, x))
            return node("Sqrt", total) if op == "ReduceL2" else total
        if op == "ReduceLogSum":
            return node("Log", self._reduce("ReduceSum", x))
        return self._log_sum_exp(x) if op == "ReduceLogSumExp" else self._reduce(op, x)

    def _reduce(self, op: str, x: str, kept: bool | None = None) -> str:
        kept = self.kept if kept is None else kept
        return reduce_along(self.build, op, x, self.axes, self.opset, kept) if self.axes else x

    def _extreme(self, op: str, x: str) -> str:
        """Build an extreme that is NaN if the first element is, as in ONNX Runtime: others compare with it in vain."""
        build = self.build
        starts, ends = build.integers(*[0] * len(self.axes)), build.integers(*[1] * len(self.axes))
        first = build.node("Slice", x, starts, ends, build.integers(*self.axes))
        if not self.kept:
            first = build.node("Squeeze", first, build.integers(*self.axes))
        return build.node("Where", build.node("IsNaN", first), first, self._reduce(op, x))

    def _log_sum_exp(self, x: str) -> str:
        if not self.axes:
            return x
        build = self.build
        largest = self._reduce("ReduceMax", x, kept=True)
        if self.dtype.kind != "f":
            return self._log_sum_exp_of_integers(x, largest)
        zero = build.number(0, self.dtype)
        # inf - inf is NaN
        level = build.node("Where", build.node("IsInf", largest), zero, largest)
        total = build.node("Log", self._reduce("ReduceSum", build.node("Exp", build.node("Sub", x, level)), kept=True))
        result = build.node("Add", total, level)
        return result if self.kept else build.node("Squeeze", result, build.integers(*self.axes))

    def _log_sum_exp_of_integers(self, x: str, largest: str) -> str:
        """Build it as ONNX Runtime has it: each step is an integer."""
        total = self._reduce("ReduceSum", self._function("Exp", self.build.node("Sub", x, largest)), kept=True)
        result = self.build.node("Add", self._function("Log", total), largest)
        return result if self.kept else self.build.node("Squeeze", result, self.build.integers(*self.axes))

    def _function(self, op: str, x: str) -> str:
        value = self.build.node(op, self.build.cast(x, np.float64))
        return self.build.cast(value, self.dtype)
