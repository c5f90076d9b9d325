"""Express fused attention, in floats or on quantised inputs: Attention, QAttention, MultiHeadAttention.

    softmax(q · kᵀ · scale + mask) · v, for each head
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..canonical.node_builder import NodeBuilder
from .context import Rule, Surroundings, inputs_of

if TYPE_CHECKING:
    import onnx

_Attributes = dict[str, Any]
#: added to scores that a mask forbids
_FORBIDDEN = -10000.0


@dataclass(frozen=True)
class _Heads:
    """Queries, keys and values (batch, tokens, width), the width of a head of keys, and terms of the scores."""

    q: str
    k: str
    v: str
    width: int
    mask: str = ""
    bias: str = ""


def _attend(
    heads: _Heads, attributes: _Attributes, around: Surroundings, build: NodeBuilder, kind: np.dtype, result: str
) -> None:
    count = attributes["num_heads"]
    split = build.integers(0, 0, count, -1)
    q, k, v = (
        build.node("Transpose", build.node("Reshape", each, split), perm=order)
        for each, order in ((heads.q, [0, 2, 1, 3]), (heads.k, [0, 2, 3, 1]), (heads.v, [0, 2, 1, 3]))
    )
    scale = attributes.get("scale", 0.0) or 1 / math.sqrt(heads.width)
    scores = build.node("Mul", build.node("MatMul", q, k), build.constant(np.asarray(scale, kind)))
    if heads.bias:
        scores = build.node("Add", scores, heads.bias)
    forbidden = attributes.get("mask_filter_value", _FORBIDDEN)
    if heads.mask:
        scores = build.node("Add", scores, _masked(heads, k, forbidden, around, build, kind))
    if attributes.get("unidirectional", 0):
        each = build.node("Expand", build.constant(np.asarray(forbidden, kind)), build.node("Shape", scores))
        scores = build.node("Add", scores, build.node("Trilu", each, build.constant(np.asarray(1, np.int64)), upper=1))
    made = build.node("MatMul", build.node("Softmax", scores, axis=-1), v)
    joined = build.node("Transpose", made, perm=[0, 2, 1, 3])
    build.node("Reshape", joined, build.integers(0, 0, -1), result=result)


def _masked(heads: _Heads, k: str, forbidden: float, around: Surroundings, build: NodeBuilder, kind: np.dtype) -> str:
    """Build the addend of scores: by a length of each batch, a mask of its keys, or one of queries and keys."""
    from onnx import TensorProto, helper

    rank, kept = around.rank(heads.mask), heads.mask
    if rank == 1:
        zero, one = (build.constant(np.asarray(each, np.int64)) for each in (0, 1))
        keys = build.node("Squeeze", build.node("Gather", build.node("Shape", k), build.integers(3)), build.integers(0))
        ends = build.node("Unsqueeze", build.node("Cast", heads.mask, to=TensorProto.INT64), build.integers(1))
        kept = build.node("Less", build.node("Range", zero, keys, one), ends)
    axes = build.integers(1) if rank == 3 else build.integers(1, 2)
    number = build.node("Cast", build.node("Unsqueeze", kept, axes), to=helper.np_dtype_to_tensor_dtype(kind))
    left = build.node("Sub", build.constant(np.asarray(1, kind)), number)
    return build.node("Mul", left, build.constant(np.asarray(forbidden, kind)))


def _readable(mask: str, around: Surroundings, ranks: tuple[int, ...]) -> bool:
    """Tell whether a mask is absent or of a known form; ends of one dimension are those of each batch."""
    if not mask:
        return True
    rank = around.rank(mask)
    return rank in ranks and (rank != 1 or around.extent(mask, 0) in (None, 1))


def _projected(
    projection: str, widths: list[int], node: onnx.NodeProto, mask: str, bias: str, kind: np.dtype,
    attributes: _Attributes, around: Surroundings, build: NodeBuilder,
) -> None:  # fmt: skip
    q, k, v = build.many("Split", [projection, build.integers(*widths)], 3, axis=-1)
    heads = _Heads(q, k, v, widths[1] // attributes["num_heads"], mask, bias)
    _attend(heads, attributes, around, build, kind, node.output[0])


def _widths(weights: str, attributes: _Attributes, around: Surroundings) -> list[int]:
    """Return the widths of queries, keys and values, none if they are not known."""
    whole = around.extent(weights, 1)
    return list(attributes.get("qkv_hidden_sizes", [])) or ([whole // 3] * 3 if whole is not None else [])


def _plain(node: onnx.NodeProto, attributes: _Attributes) -> bool:
    """Tell whether one output is read, and no attribute asks for more than attention."""
    return len([name for name in node.output if name]) == 1 and not attributes.get("do_rotary")


def _attention(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> None:
    x, weights, bias, mask, past, scores, length = inputs_of(node, 7)
    widths = _widths(weights, attributes, around)
    if past or length or not widths or not _plain(node, attributes) or not _readable(mask, around, (1, 2, 3)):
        return
    value = build.node("MatMul", x, weights)
    if bias:
        value = build.node("Add", value, bias)
    _projected(value, widths, node, mask, scores, around.dtype(weights), attributes, around, build)


def _quantised(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build the projection on integers, as MatMulIntegerToFloat computes it."""
    from onnx import TensorProto

    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = inputs_of(node, 9)
    widths = _widths(weights, attributes, around)
    if past or not widths or not _plain(node, attributes) or not _readable(mask, around, (1, 2, 3)):
        return
    zeros = [x_zero, w_zero] if w_zero else [x_zero] if x_zero else []
    sums = build.node("Cast", build.node("MatMulInteger", x, weights, *zeros), to=TensorProto.FLOAT)
    value = build.node("Add", build.node("Mul", sums, build.node("Mul", x_scale, w_scale)), bias)
    _projected(value, widths, node, mask, "", np.dtype(np.float32), attributes, around, build)


def _multi_head(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build attention between given queries, keys and values of three dimensions, without a cache."""
    q, k, v, bias, mask, scores, *cached = inputs_of(node, 10)
    width, values = around.extent(q, 2), around.extent(v, 2) if v else None
    if any(cached) or not k or not v or around.rank(k) != 3 or width is None or values is None or not _plain(node, attributes):
        return
    if not _readable(mask, around, (1, 2, 3)):
        return
    if bias:
        parts = build.many("Split", [bias, build.integers(width, width, values)], 3, axis=0)
        q, k, v = (build.node("Add", each, part) for each, part in zip((q, k, v), parts, strict=True))
    heads = _Heads(q, k, v, width // attributes["num_heads"], mask, scores)
    _attend(heads, attributes, around, build, around.dtype(node.input[0]), node.output[0])


RULES: dict[str, Rule] = {"Attention": _attention, "MultiHeadAttention": _multi_head, "QAttention": _quantised}
