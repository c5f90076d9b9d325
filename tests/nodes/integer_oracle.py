"""Compute quantised models exactly, node by node, in NumPy: what a library has to return on every machine.

ONNX Runtime is not a reference for u8 × s8 on x86 without VNNI: its kernels saturate. It computes the float nodes here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..models import model_of, run

Array = np.ndarray


def evaluate(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of a model in its order."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | dict(inputs)
    for node in model.graph.node:
        given = [values[name] if name else None for name in node.input]
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        exact = EXACT.get(node.op_type)
        results = (
            exact(*given, **attributes) if exact else _by_onnx_runtime(node, values, model.opset_import[0].version)
        )
        values |= dict(zip(node.output, results if isinstance(results, (list, tuple)) else [results]))
    return [values[output.name] for output in model.graph.output]


def qlinear_conv(x, xs, xz, w, ws, wz, ys, yz, bias=None, **attributes: Any) -> Array:
    shape = (-1, *[1] * (x.ndim - 2))
    total = conv_integer(x, w, xz, wz, **attributes)
    total = total if bias is None else total + bias.reshape(shape)
    return requantised(total, xs.reshape(-1)[0] * np.atleast_1d(ws).reshape(shape) / ys.reshape(-1)[0], yz)


def qlinear_matmul(a, a_scale, az, b, bs, bz, ys, yz) -> Array:
    total = matmul_integer(a, b, az, bz)
    return requantised(total, (a_scale if b.ndim == 1 else _by_row(a_scale)) * bs / ys, yz)


def conv_integer(
    x, w, xz=None, wz=None, *,
    strides=None, dilations=None, pads=None, group=1, auto_pad=b"NOTSET", kernel_shape=None,
) -> Array:  # fmt: skip
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    taps, pads = w.shape[2:], pads or [0] * (2 * rank)
    if auto_pad in (b"SAME_UPPER", b"SAME_LOWER"):
        missing = [
            max(0, (-(-n // s) - 1) * s + (t - 1) * d + 1 - n)
            for n, s, d, t in zip(x.shape[2:], strides, dilations, taps)
        ]
        less, more = [m // 2 for m in missing], [m - m // 2 for m in missing]
        pads = less + more if auto_pad == b"SAME_UPPER" else more + less
    wide = x.astype(np.int64) - (0 if xz is None else xz.reshape(-1)[0].astype(np.int64))
    wide = np.pad(wide, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    weights = w.astype(np.int64) - (
        0 if wz is None else np.atleast_1d(wz).astype(np.int64).reshape(-1, *[1] * (rank + 1))
    )
    sizes = [(n - (t - 1) * d - 1) // s + 1 for n, s, d, t in zip(wide.shape[2:], strides, dilations, taps)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
    for part, each in zip(np.split(wide, group, 1), np.split(np.arange(w.shape[0]), group)):
        for tap in itertools.product(*map(range, taps)):
            window = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, sizes, strides)
            )
            result[:, each] += np.einsum(
                "nc...,fc->nf...", part[(slice(None), slice(None), *window)], weights[(each, slice(None), *tap)]
            )
    return result.astype(np.int32)


def matmul_integer(a, b, az=None, bz=None) -> Array:
    one = a.astype(np.int64) - (0 if az is None else _by_row(az).astype(np.int64))
    other = b.astype(np.int64) - (0 if bz is None else bz.astype(np.int64))
    return np.asarray((one @ other).astype(np.int32))


def requantised(total: Array, multiplier: Array, zero: Array) -> Array:
    assert multiplier.dtype == np.float32
    info, shift = np.iinfo(zero.dtype), int(zero.reshape(-1)[0])
    value = np.clip(total.astype(np.float32) * multiplier, np.float32(info.min - shift), np.float32(info.max - shift))
    return (np.rint(value).astype(np.int32) + shift).astype(zero.dtype)


def quantize(x, scale, zero=None, *, axis=1) -> Array:
    zero = np.uint8(0) if zero is None else zero
    info = np.iinfo(zero.dtype)
    value = np.rint(x / _along(scale, x, axis)) + _along(zero, x, axis).astype(np.float32)
    return np.clip(value, info.min, info.max).astype(zero.dtype)


def dequantize(x, scale, zero=None, *, axis=1) -> Array:
    shift = 0 if zero is None else _along(zero, x, axis).astype(np.int32)
    return (x.astype(np.int32) - shift).astype(np.float32) * _along(scale, x, axis)


def dynamic_quantize(x) -> tuple[Array, Array, Array]:
    least, most = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale = np.asarray((most - least) / np.float32(255), np.float32)
    zero = np.asarray(np.rint(np.clip(np.float32(0) - least / scale, 0, 255)), np.uint8)
    return quantize(x, scale, zero), scale, zero


def _by_row(value: Array) -> Array:
    return value[:, None] if value.ndim == 1 and value.size > 1 else value


def _along(value: Array, x: Array, axis: int) -> Array:
    value = np.asarray(value)
    return (
        value.reshape([-1 if n == axis % x.ndim else 1 for n in range(x.ndim)]) if value.size > 1 else value.reshape(())
    )


def _by_onnx_runtime(node: onnx.NodeProto, values: Mapping[str, Array], opset: int) -> list[Array]:
    """Compute a float node, or one that moves data: its results are of the dtype of its first operand, but for a cast."""
    given = {name: values[name] for name in node.input if name}
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    kinds |= dict.fromkeys(
        node.output, next((each.i for each in node.attribute if each.name == "to"), kinds[node.input[0]])
    )
    shapes = {name: value.shape for name, value in given.items()}
    return run(model_of([node], shapes, list(node.output), opset=opset, dtypes=kinds), given)


EXACT: dict[str, Callable[..., Any]] = {
    "ConvInteger": conv_integer, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer, "QLinearConv": qlinear_conv, "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
}  # fmt: skip
