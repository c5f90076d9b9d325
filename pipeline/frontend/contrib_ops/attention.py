"""Express fused attention, in floats or on quantised inputs: Attention, QAttention, MultiHeadAttention.

softmax(q · kᵀ · scale + mask) · v, for each head
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm

#: added to scores that a mask forbids
_FORBIDDEN = -10000.0


@dataclass(frozen=True)
class _Heads:
    """Hold queries, keys and values (batch, tokens, width), the head width, the batch, and terms of the scores."""

    q: str
    k: str
    v: str
    width: int
    batch: int | None
    mask: str = ""
    bias: str = ""


def _attend(heads: _Heads, node: NodeView, kind: np.dtype, build: NodeBuilder) -> None:
    count = node.attributes["num_heads"]
    split = build.integers(0, 0, count, -1)
    q, k, v = (
        build.node("Transpose", build.node("Reshape", each, split), perm=order)
        for each, order in ((heads.q, [0, 2, 1, 3]), (heads.k, [0, 2, 3, 1]), (heads.v, [0, 2, 1, 3]))
    )
    scale = node.get("scale", 0.0) or 1 / math.sqrt(heads.width)
    scores = build.node("Mul", build.node("MatMul", q, k), build.number(scale, kind))
    if heads.bias:
        scores = build.node("Add", scores, heads.bias)
    if heads.mask:
        kept = _kept(heads, k, node, build)
        if kept is None:
            raise UnsupportedForm("the shape of its mask is not a known one")
        if kept:
            zero, forbidden = (build.number(each, kind) for each in (0, node.get("mask_filter_value", _FORBIDDEN)))
            scores = build.node("Add", scores, build.node("Where", kept, zero, forbidden))
    if node.get("unidirectional", 0):
        lowest = build.number(np.finfo(kind).min, kind)
        scores = build.node("Where", _future(q, k, build), lowest, scores)
    made = build.node("MatMul", build.node("Softmax", scores, axis=-1), v)
    joined = build.node("Transpose", made, perm=[0, 2, 1, 3])
    build.node("Reshape", joined, build.integers(0, 0, -1), result=node.result)


def _size(value: str, axis: int, build: NodeBuilder) -> str:
    """Build the size of a dimension, a scalar."""
    size = build.node("Gather", build.node("Shape", value), build.integers(axis))
    return build.node("Squeeze", size, build.integers(0))


def count_to(count: str, build: NodeBuilder) -> str:
    """Build the numbers from 0 to before a count."""
    zero, one = (build.number(each, np.int64) for each in (0, 1))
    return build.node("Range", zero, count, one)


def _future(q: str, k: str, build: NodeBuilder) -> str:
    """Build the pairs of query and key that come in the wrong order; ONNX Runtime lets the last query read all keys."""
    queries = _size(q, 2, build)
    rows = build.node("Unsqueeze", count_to(queries, build), build.integers(1))
    last = build.node("Sub", queries, build.number(1, np.int64))
    later = build.node("Greater", count_to(_size(k, 3, build), build), rows)
    return build.node("And", later, build.node("Less", rows, last))


def _kept(heads: _Heads, k: str, node: NodeView, build: NodeBuilder) -> str | None:
    """Build the keys that may be read, to be broadcast over the scores; "" for all, None for an unknown form.

    A mask holds ends (batch), ends and starts (2 batch), positive numbers for keys (batch, keys) or for queries and keys
    (batch, queries, keys). One number for all keys forbids none.
    """
    mask, rank = heads.mask, node.rank(heads.mask)
    if rank == 1:
        size, batch = node.extent(mask, 0), heads.batch
        if size is None or batch is None:
            return None
        ends = build.node("Unsqueeze", build.cast(mask, np.int64), build.integers(1))
        keys = count_to(_size(k, 3, build), build)
        if size == batch:
            kept = build.node("Less", keys, ends)
        else:  # of 3 batch + 2 numbers, too, the first are ends; the others are for packed tokens
            first, second = (
                build.node("Slice", ends, *(build.integers(each) for each in (start * batch, (start + 1) * batch, 0)))
                for start in (0, 1)
            )
            kept = build.node("Less", keys, first)
            if size == 2 * batch:
                kept = build.node("And", kept, build.node("GreaterOrEqual", keys, second))
        return build.node("Unsqueeze", kept, build.integers(1, 2))
    if rank == 2:
        wide = node.extent(mask, 1)
        if wide in (None, 1):
            return None if wide is None else ""
    elif rank != 3:
        return None
    positive = build.node("Greater", mask, build.number(0, node.dtype(mask)))
    return build.node("Unsqueeze", positive, build.integers(1) if rank == 3 else build.integers(1, 2))


def _attend_projected(
    value: str, weights: str, kind: np.dtype, node: NodeView, build: NodeBuilder, mask: str, bias: str = ""
) -> None:
    """Build attention between the parts of a projection by `weights`. Raises UnsupportedForm if their widths are not known."""
    whole = node.extent(weights, 1)
    widths = list(node.get("qkv_hidden_sizes", [])) or [(whole or 0) // 3] * 3
    if not any(widths):
        raise UnsupportedForm("the shape of its weights is not known")
    q, k, v = build.many("Split", [value, build.integers(*widths)], 3, axis=-1)
    heads = _Heads(q, k, v, widths[1] // node.attributes["num_heads"], node.extent(0, 0), mask, bias)
    _attend(heads, node, kind, build)


def _refuse_more(node: NodeView, unread: dict[str, str]) -> None:
    """Refuse features of a node beyond attention without a cache; `unread` are inputs by their names."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.get(name):
            raise UnsupportedForm(f"its attribute '{name}' is not supported")
    for name, given in unread.items():
        if given:
            raise UnsupportedForm(f"its input '{name}' is not supported")
    if any(node.output[1:]):
        raise UnsupportedForm("only its first output is supported")


def _attention(node: NodeView, build: NodeBuilder) -> None:
    x, weights, bias, mask, past, scores, length = node.inputs(7)
    _refuse_more(node, {"past": past, "past_sequence_length": length})
    value = build.node("MatMul", x, weights)
    if bias:
        value = build.node("Add", value, bias)
    _attend_projected(value, weights, node.dtype(weights), node, build, mask, scores)


def _quantised(node: NodeView, build: NodeBuilder) -> None:
    """Build the projection on integers, as MatMulIntegerToFloat computes it."""
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = node.inputs(9)
    _refuse_more(node, {"past": past})
    sums = build.cast(build.node("MatMulInteger", x, weights, x_zero, w_zero), np.float32)
    value = build.node("Add", build.node("Mul", sums, build.node("Mul", x_scale, w_scale)), bias)
    _attend_projected(value, weights, np.dtype(np.float32), node, build, mask)


def _multi_head(node: NodeView, build: NodeBuilder) -> None:
    """Build attention between given queries, keys and values of three dimensions, without a cache."""
    q, k, v, bias, mask, scores, *cached = node.inputs(10)
    names = ("past_key", "past_value", "past_sequence_length", "cache_indirection")
    _refuse_more(node, dict(zip(names, cached)))
    if not k or not v:
        raise UnsupportedForm("its keys and values are packed into one input")
    if node.rank(k) == 4 and node.rank(v) == 4:
        if bias:
            raise UnsupportedForm("it takes keys of four dimensions beside its input 'bias'")
        k, v = (
            build.node("Reshape", build.node("Transpose", each, perm=[0, 2, 1, 3]), build.integers(0, 0, -1))
            for each in (k, v)
        )
        values = (node.extent(2, 1) or 0) * (node.extent(2, 3) or 0) or None
    else:
        values = node.extent(v, 2)
    width = node.extent(q, 2)
    if width is None or values is None:
        raise UnsupportedForm("the shapes of its queries and values are not known")
    if bias:
        parts = build.many("Split", [bias, build.integers(width, width, values)], 3, axis=0)
        q, k, v = (build.node("Add", each, part) for each, part in zip((q, k, v), parts, strict=True))
    heads = _Heads(q, k, v, width // node.attributes["num_heads"], node.extent(0, 0), mask, scores)
    _attend(heads, node, node.dtype(0), build)


RULES: dict[str, Rule] = {"Attention": _attention, "MultiHeadAttention": _multi_head, "QAttention": _quantised}
