"""Express fused attention, in floats or on quantised inputs: Attention, QAttention, MultiHeadAttention.

softmax(q · kᵀ · scale + mask) · v, for each head
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .context import Attributes, Rule, Surroundings, inputs_of

if TYPE_CHECKING:
    import onnx

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


def _attend(
    heads: _Heads, attributes: Attributes, around: Surroundings, build: NodeBuilder, kind: np.dtype, result: str
) -> None:
    count = attributes["num_heads"]
    split = build.integers(0, 0, count, -1)
    q, k, v = (
        build.node("Transpose", build.node("Reshape", each, split), perm=order)
        for each, order in ((heads.q, [0, 2, 1, 3]), (heads.k, [0, 2, 3, 1]), (heads.v, [0, 2, 1, 3]))
    )
    scale = attributes.get("scale", 0.0) or 1 / math.sqrt(heads.width)
    scores = build.node("Mul", build.node("MatMul", q, k), build.number(scale, kind))
    if heads.bias:
        scores = build.node("Add", scores, heads.bias)
    if heads.mask:
        kept = _kept(heads, k, around, build)
        if kept is None:
            raise UnsupportedForm("the shape of its mask is not a known one")
        if kept:
            zero, forbidden = (
                build.number(each, kind) for each in (0, attributes.get("mask_filter_value", _FORBIDDEN))
            )
            scores = build.node("Add", scores, build.node("Where", kept, zero, forbidden))
    if attributes.get("unidirectional", 0):
        lowest = build.number(np.finfo(kind).min, kind)
        scores = build.node("Where", _future(q, k, build), lowest, scores)
    made = build.node("MatMul", build.node("Softmax", scores, axis=-1), v)
    joined = build.node("Transpose", made, perm=[0, 2, 1, 3])
    build.node("Reshape", joined, build.integers(0, 0, -1), result=result)


def _count(value: str, axis: int, build: NodeBuilder) -> str:
    """Build the size of a dimension, a scalar."""
    return build.node(
        "Squeeze", build.node("Gather", build.node("Shape", value), build.integers(axis)), build.integers(0)
    )


def _numbers(count: str, build: NodeBuilder) -> str:
    zero, one = (build.number(each, np.int64) for each in (0, 1))
    return build.node("Range", zero, count, one)


def _future(q: str, k: str, build: NodeBuilder) -> str:
    """Build the pairs of query and key that come in the wrong order; ONNX Runtime lets the last query read all keys."""
    queries = _count(q, 2, build)
    rows = build.node("Unsqueeze", _numbers(queries, build), build.integers(1))
    last = build.node("Sub", queries, build.number(1, np.int64))
    later = build.node("Greater", _numbers(_count(k, 3, build), build), rows)
    return build.node("And", later, build.node("Less", rows, last))


def _kept(heads: _Heads, k: str, around: Surroundings, build: NodeBuilder) -> str | None:
    """Build the keys that may be read, to be broadcast over the scores; "" for all, None for an unknown form.

    A mask holds ends (batch), ends and starts (2 batch), positive numbers for keys (batch, keys) or for queries and keys
    (batch, queries, keys). One number for all keys forbids none.
    """
    mask, rank = heads.mask, around.rank(heads.mask)
    if rank == 1:
        size, batch = around.extent(mask, 0), heads.batch
        if size is None or batch is None:
            return None
        ends = build.node("Unsqueeze", build.cast(mask, np.int64), build.integers(1))
        keys = _numbers(_count(k, 3, build), build)
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
        wide = around.extent(mask, 1)
        if wide in (None, 1):
            return None if wide is None else ""
    elif rank != 3:
        return None
    positive = build.node("Greater", mask, build.number(0, around.dtype(mask)))
    return build.node("Unsqueeze", positive, build.integers(1) if rank == 3 else build.integers(1, 2))


def _projected(
    projection: str, widths: list[int], node: onnx.NodeProto, mask: str, bias: str, kind: np.dtype,
    attributes: Attributes, around: Surroundings, build: NodeBuilder,
) -> None:  # fmt: skip
    q, k, v = build.many("Split", [projection, build.integers(*widths)], 3, axis=-1)
    heads = _Heads(q, k, v, widths[1] // attributes["num_heads"], around.extent(node.input[0], 0), mask, bias)
    _attend(heads, attributes, around, build, kind, node.output[0])


def _widths(weights: str, attributes: Attributes, around: Surroundings) -> list[int]:
    """Return the widths of queries, keys and values. Raises UnsupportedForm if they are not known."""
    whole = around.extent(weights, 1)
    widths = list(attributes.get("qkv_hidden_sizes", [])) or [(whole or 0) // 3] * 3
    if not any(widths):
        raise UnsupportedForm("the shape of its weights is not known")
    return widths


def _refuse_more(node: onnx.NodeProto, attributes: Attributes, unread: dict[str, str]) -> None:
    """Refuse features of a node beyond attention without a cache; `unread` are inputs by their names."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if attributes.get(name):
            raise UnsupportedForm(f"its attribute '{name}' is not supported")
    for name, given in unread.items():
        if given:
            raise UnsupportedForm(f"its input '{name}' is not supported")
    if any(node.output[1:]):
        raise UnsupportedForm("only its first output is supported")


def _attention(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    x, weights, bias, mask, past, scores, length = inputs_of(node, 7)
    _refuse_more(node, attributes, {"past": past, "past_sequence_length": length})
    widths = _widths(weights, attributes, around)
    value = build.node("MatMul", x, weights)
    if bias:
        value = build.node("Add", value, bias)
    _projected(value, widths, node, mask, scores, around.dtype(weights), attributes, around, build)


def _quantised(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build the projection on integers, as MatMulIntegerToFloat computes it."""
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = inputs_of(node, 9)
    _refuse_more(node, attributes, {"past": past})
    widths = _widths(weights, attributes, around)
    sums = build.cast(build.node("MatMulInteger", x, weights, x_zero, w_zero), np.float32)
    value = build.node("Add", build.node("Mul", sums, build.node("Mul", x_scale, w_scale)), bias)
    _projected(value, widths, node, mask, "", np.dtype(np.float32), attributes, around, build)


def _multi_head(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build attention between given queries, keys and values of three dimensions, without a cache."""
    q, k, v, bias, mask, scores, *cached = inputs_of(node, 10)
    names = ("past_key", "past_value", "past_sequence_length", "cache_indirection")
    _refuse_more(node, attributes, dict(zip(names, cached)))
    if not k or not v:
        raise UnsupportedForm("its keys and values are packed into one input")
    if around.rank(k) == 4 and around.rank(v) == 4:
        if bias:
            raise UnsupportedForm("it takes keys of four dimensions beside its input 'bias'")
        k, v = (
            build.node("Reshape", build.node("Transpose", each, perm=[0, 2, 1, 3]), build.integers(0, 0, -1))
            for each in (k, v)
        )
        values = (around.extent(node.input[2], 1) or 0) * (around.extent(node.input[2], 3) or 0) or None
    else:
        values = around.extent(v, 2)
    width = around.extent(q, 2)
    if width is None or values is None:
        raise UnsupportedForm("the shapes of its queries and values are not known")
    if bias:
        parts = build.many("Split", [bias, build.integers(width, width, values)], 3, axis=0)
        q, k, v = (build.node("Add", each, part) for each, part in zip((q, k, v), parts, strict=True))
    heads = _Heads(q, k, v, width // attributes["num_heads"], around.extent(node.input[0], 0), mask, scores)
    _attend(heads, attributes, around, build, around.dtype(node.input[0]), node.output[0])


RULES: dict[str, Rule] = {"Attention": _attention, "MultiHeadAttention": _multi_head, "QAttention": _quantised}
