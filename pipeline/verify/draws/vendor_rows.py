"""Say which values ONNX Runtime's own operators allow for their operands."""

from __future__ import annotations

from collections.abc import Mapping

from ...frontend.canonical.graph_context import NodeView
from .constraint import Constraint, Form, Strength, count, domain, index
from .operand_rows import LEAST, OPERANDS, Row, coordinates

_DOMAIN = "com.microsoft"
_POSITIVE = domain(LEAST)


def _mask(node: NodeView, number: int, length: int | None) -> dict[int, Constraint]:
    """Constrain the mask of keys: lengths by batch, lengths with offsets, or 0 and 1 by position."""
    if node.rank(number) == 1:
        batch, entries = node.extent(0, 0), node.extent(number, 0)
        if entries is None or entries == batch:
            return {number: count(length or 1, 1)}
        return {number: _offsets(entries, batch or 1, length or 1)}
    return {number: Constraint(0, 1, form=Form("mask"))}


def _offsets(entries: int, batch: int, length: int) -> Constraint:
    """Constrain ends and starts (2 · batch), or lengths and running sums (3 · batch + 2), to whole sequences."""
    if entries == 2 * batch:
        values = [length] * batch + [0] * batch
    else:
        values = [length] * batch + 2 * [length * number for number in range(batch + 1)]
    return Constraint(0, max(values), Strength.FAILS, form=Form("exact", tuple(map(float, values))))


def _attention(mask: int) -> Row:
    """Return the row of an Attention with its mask at a place; the sequence is the second axis."""
    return lambda node: _mask(node, mask, node.extent(0, 1))


def _multi_head(node: NodeView) -> Mapping[int, Constraint]:
    keys = node.extent(1, 2 if node.rank(1) == 4 else 1)
    return _mask(node, 4, keys if keys is not None else node.extent(0, 1))


def _grouped(node: NodeView) -> Mapping[int, Constraint]:
    """Take sequences as full: one length is given twice. A cache has the room of its input where no constant says more."""
    known = node.constant(6)
    total = float(known.item() if known is not None else node.extent(3, 2) or node.extent(0, 1) or 1)
    exact = {5: total - 1, 6: total}
    return {at: Constraint(value, value, Strength.FAILS, form=Form("exact", (value,))) for at, value in exact.items()}


def _embedding(node: NodeView) -> Mapping[int, Constraint]:
    tables = {0: 2, 1: 4, 8: 3}
    rows = {at: index(node.extent(table, 0), negative=False) for at, table in tables.items()}
    return rows | {7: Constraint(0, 1, form=Form("mask"))}


def _quantised_embedding(node: NodeView) -> Mapping[int, Constraint]:
    return {number: row for number, row in _embedding(node).items() if number < 8}


def _rotary(node: NodeView) -> Mapping[int, Constraint]:
    """Let positions of the first token leave room for the others."""
    rows = node.extent(2, 0)
    if rows is not None and node.rank(1) == 1:
        rows -= (node.extent(0, 2 if node.rank(0) == 4 else 1) or rows) - 1
    return {1: index(rows, negative=False)}


def _blocks(node: NodeView) -> Mapping[int, Constraint]:
    return {1: index(node.extent(0, node.get("gather_axis", 0)), negative=False)}


def _lengths(node: NodeView) -> Mapping[int, Constraint]:
    return {4: count(node.extent(0, 0) or 1)}


def _scales(*numbers: int) -> Row:
    """Return the row of an operator with scales at these places."""
    return lambda node: dict.fromkeys(numbers, _POSITIVE)


_VENDOR: dict[str, Row] = {
    "Attention": _attention(3), "QAttention": _attention(5), "MultiHeadAttention": _multi_head,
    "DecoderMaskedMultiHeadAttention": _multi_head, "GroupQueryAttention": _grouped,
    "EmbedLayerNormalization": _embedding, "RotaryEmbedding": _rotary,
    "GatherBlockQuantized": _blocks, "DynamicQuantizeLSTM": _lengths,
    "GatherND": lambda node: {1: coordinates(node)}, "Rsqrt": _scales(0),
    "QuantizeLinear": _scales(1), "DequantizeLinear": _scales(1), "QLinearAdd": _scales(1, 4, 6), "QLinearMul": _scales(1, 4, 6),
    "QLinearSigmoid": _scales(1, 3), "QLinearLeakyRelu": _scales(1, 3), "QLinearSoftmax": _scales(1, 3),
    "QLinearAveragePool": _scales(1, 3), "QLinearGlobalAveragePool": _scales(1, 3), "QLinearReduceMean": _scales(1, 3),
    "QGemm": _scales(1, 4, 7), "QLinearWhere": _scales(2, 5, 7), "MatMulIntegerToFloat": _scales(2, 3),
    "MatMulNBits": _scales(2), "QEmbedLayerNormalization": _quantised_embedding,
}  # fmt: skip

#: ONNX's operators, and those of ONNX Runtime by domain and name
ALL_OPERANDS: dict[str, Row] = OPERANDS | {f"{_DOMAIN}:{name}": row for name, row in _VENDOR.items()}
