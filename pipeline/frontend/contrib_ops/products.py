"""Express quantised matrix products: QGemm, DynamicQuantizeMatMul, MatMulIntegerToFloat, MatMulNBits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm


def _gemm(node: NodeView, build: NodeBuilder) -> None:
    """Build Gemm between dequantised operands; C is int32, in multiples of alpha · A's scale · B's scale."""
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = node.inputs(9)
    trans_a, trans_b = node.get("transA", 0), node.get("transB", 0)
    alpha = node.get("alpha", 1.0)
    by_channel = bool(node.rank(b_scale)) and node.extent(b_scale, 0) != 1
    channels: dict[str, Any] = {"axis": 0 if trans_b else 1} if by_channel else {}
    operands = [
        build.node("DequantizeLinear", a, a_scale, a_zero),
        build.node("DequantizeLinear", b, b_scale, b_zero, **channels),
    ]
    if c:
        operands.append(_addend(c, (a_scale, b_scale), alpha, node, build))
    options = {"alpha": alpha, "transA": trans_a, "transB": trans_b}
    if not y_scale:
        build.node("Gemm", *operands, result=node.result, **options)
        return
    build.node("QuantizeLinear", build.node("Gemm", *operands, **options), y_scale, y_zero, result=node.result)


def _addend(c: str, scales: tuple[str, str], alpha: float, node: NodeView, build: NodeBuilder) -> str:
    """Build C in floats: as a bias of one number, or one a channel, is dequantised, so that the layer stays integer."""
    known = [node.constant(name) for name in scales]
    if known[0] is not None and known[1] is not None:
        step = np.asarray(np.float32(alpha) * known[0].reshape(()) * known[1], np.float32)
        if step.size == 1:
            return build.node("DequantizeLinear", c, build.constant(step.reshape(())), "")
        if node.rank(c) == 1 and node.extent(c, 0) == step.size:
            return build.node("DequantizeLinear", c, build.constant(step), "", axis=0)
    product = build.node("Mul", build.node("Mul", *scales), build.number(alpha, np.float32))
    return build.node("Mul", build.cast(c, np.float32), product)


def _scaled(build: NodeBuilder, sums: str, scales: tuple[str, str], bias: str, result: str) -> None:
    """Build float(sums) · (scale · scale) + bias."""
    number = build.cast(sums, np.float32)
    step = build.node("Mul", *scales)
    value = build.node("Mul", number, step, result="" if bias else result)
    if bias:
        build.node("Add", value, bias, result=result)


def _dynamic(node: NodeView, build: NodeBuilder) -> None:
    a, b, b_scale, b_zero, bias = node.inputs(5)
    numbers, a_scale, a_zero = build.many("DynamicQuantizeLinear", [a], 3)
    sums = build.node("MatMulInteger", numbers, b, a_zero, b_zero)
    _scaled(build, sums, (a_scale, b_scale), bias, node.result)


def _to_float(node: NodeView, build: NodeBuilder) -> None:
    a, b, a_scale, b_scale, a_zero, b_zero, bias = node.inputs(7)
    _scaled(build, build.node("MatMulInteger", a, b, a_zero, b_zero), (a_scale, b_scale), bias, node.result)


def _few_bits(node: NodeView, build: NodeBuilder) -> None:
    """Build a MatMul with weights dequantised by blocks along the sums.

    The weights come as channels × blocks × bytes, the lowest bits first; here they are length × channels of uint4 or
    uint8, so that no transposition stands between weights and product.
    """
    a, packed_name, scale_name, zero_name, order, bias = node.inputs(6)
    packed, scale = node.constant(packed_name), node.constant(scale_name)
    length, channels, bits, block = (int(node.get(key, 4)) for key in ("K", "N", "bits", "block_size"))
    zeros = node.constant(zero_name) if zero_name else None
    if packed is None or scale is None or (zero_name and zeros is None):
        raise UnsupportedForm("its weights, scales or zero points are not constant")
    if order or bits not in (4, 8):
        raise UnsupportedForm(
            "its input 'g_idx' is not supported" if order else f"its attribute 'bits' is {bits}, not 4 or 8"
        )
    if node.get("weight_prepacked"):
        raise UnsupportedForm("its attribute 'weight_prepacked' is not 0")
    if zeros is not None and zeros.dtype != np.uint8:
        raise UnsupportedForm(f"its zero points are {zeros.dtype}, not packed bytes")
    blocks = -(-length // block)
    weights = _unpacked(packed.reshape(channels, -1), bits)[:, :length]
    numbers = np.full((channels, blocks), 1 << (bits - 1), np.uint8)
    if zeros is not None:
        numbers = _unpacked(zeros.reshape(channels, -1), bits)[:, :blocks]
    tensors = [_constant(build, np.ascontiguousarray(each.T), bits) for each in (weights, numbers)]
    steps = build.constant(np.ascontiguousarray(scale.reshape(channels, blocks).T.astype(np.float32)))
    value = build.node("DequantizeLinear", tensors[0], steps, tensors[1], axis=0, block_size=block)
    half = node.dtype(a) == np.float16  # summed in float32, as in ONNX Runtime
    operands = [build.cast(each, np.float32) if each and half else each for each in (a, bias)]
    product = build.node("MatMul", operands[0], value, result="" if bias or half else node.result)
    if bias:
        product = build.node("Add", product, operands[1], result="" if half else node.result)
    if half:
        build.cast(product, np.float16, node.result)


def _unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of each row of bytes, the lowest bits first."""
    if bits == 8:
        return rows
    return np.stack([rows & 15, rows >> 4], axis=-1).reshape(len(rows), -1)


def _constant(build: NodeBuilder, numbers: np.ndarray, bits: int) -> str:
    import ml_dtypes

    return build.constant(numbers.astype(ml_dtypes.uint4) if bits == 4 else numbers)


RULES: dict[str, Rule] = {
    "DynamicQuantizeMatMul": _dynamic,
    "MatMulIntegerToFloat": _to_float,
    "MatMulNBits": _few_bits,
    "QGemm": _gemm,
}
