"""Interpret a Relax module on numpy arrays, operator by operator: no compiler between a rule and its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import GenericConst, IRModule
from tvm.tirx import IntImm

from passfit.passes.graph.rules.dataflow import operator_of

from .convolve import convolve_transposed, in_any_layout

Array = np.ndarray


def interpret(module: IRModule, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of `main` as arrays. Raises KeyError for an operator without an interpretation."""
    main = module["main"]
    known: dict[relax.Var, Any] = dict(zip(main.params, inputs, strict=True))

    def value(expr: relax.Expr) -> Any:
        if isinstance(expr, relax.Var):
            return known[expr]
        if isinstance(expr, GenericConst):
            return expr.value.numpy()
        if isinstance(expr, relax.Tuple):
            return tuple(map(value, expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return value(expr.tuple_value)[expr.index]
        if isinstance(expr, relax.ShapeExpr):
            return tuple(int(extent) for extent in expr.values)
        if isinstance(expr, relax.Call):
            with np.errstate(all="ignore"):
                result = _OPERATORS[operator_of(expr)](expr.attrs, *map(value, expr.args))
            return result if isinstance(expr.ty, relax.ShapeType) else _typed(result, expr.ty)
        return expr.value  # a number

    for block in main.body.blocks:
        for binding in block.bindings:
            known[binding.var] = value(binding.value)
    result = value(main.body.body)
    return list(result) if isinstance(result, tuple) else [result]


def _typed(result: Any, kind: relax.Type) -> Any:
    """Return the result in its dtype; its shape must be that of the type."""
    if isinstance(kind, relax.TupleType):
        return tuple(_typed(each, field) for each, field in zip(result, kind.fields, strict=True))
    array = np.asarray(result)
    assert array.shape == tuple(int(extent) for extent in kind.shape), (array.shape, kind)
    return array.astype(str(kind.dtype), copy=False)


def _ints(values: Any) -> tuple[int, ...] | None:
    if values is None:
        return None
    return tuple(map(int, values)) if hasattr(values, "__len__") else (int(values),)


def _split(attrs: Any, x: Array) -> Any:
    parts = attrs.indices_or_sections
    if isinstance(parts, IntImm | int):
        # one part is not a tuple in Relax
        return tuple(np.split(x, int(parts), int(attrs.axis))) if int(parts) > 1 else x
    return tuple(np.split(x, list(_ints(parts)), int(attrs.axis)))


def _strided_slice(attrs: Any, x: Array, axes: Any, begin: Any, end: Any, strides: Any = None) -> Array:
    index = [slice(None)] * x.ndim
    for number, axis in enumerate(axes):
        step = int(strides[number]) if strides else 1
        extent, last = x.shape[int(axis)], int(end[number])
        last = None if step < 0 and last < -extent else last
        index[int(axis)] = slice(int(begin[number]), last, step)
    return x[tuple(index)]


def _pad(attrs: Any, x: Array) -> Array:
    widths = _ints(attrs.pad_width)
    pairs = list(zip(widths[::2], widths[1::2]))
    if attrs.pad_mode == "constant":
        return np.pad(x, pairs, constant_values=attrs.pad_value)
    return np.pad(x, pairs, mode={"reflect": "reflect", "replicate": "edge"}[attrs.pad_mode])


def _windows(x: Array, window: Sequence[int], attrs: Any, fill: float) -> Array:
    """Return the windows over the last axes, as axes behind."""
    count = len(window)
    padding = _ints(attrs.padding)
    padding = padding * 2 if len(padding) == count else padding
    strides, dilation = _ints(attrs.strides), _ints(attrs.dilation)
    x = np.pad(x, [(0, 0)] * (x.ndim - count) + list(zip(padding[:count], padding[count:])), constant_values=fill)
    reach = [(extent - 1) * step + 1 for extent, step in zip(window, dilation)]
    views = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(x.ndim - count, x.ndim)))
    picked = (..., *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilation))
    return views[picked]


def _conv(attrs: Any, x: Array, weight: Array) -> Array:
    groups, spatial = int(attrs.groups), weight.ndim - 2
    results = []
    for part, taps in zip(np.split(x, groups, 1), np.split(weight, groups, 0)):
        views = _windows(part, taps.shape[2:], attrs, 0)
        axes = [1, *range(2 + spatial, 2 + 2 * spatial)]
        results.append(np.moveaxis(np.tensordot(views, taps, (axes, [1, *range(2, 2 + spatial)])), -1, 1))
    return np.concatenate(results, 1)


def _max_pool(attrs: Any, x: Array) -> Array:
    window = _ints(attrs.pool_size)
    return _windows(x, window, attrs, -np.inf).max(tuple(range(-len(window), 0)))


def _avg_pool(attrs: Any, x: Array) -> Array:
    window = _ints(attrs.pool_size)
    axes = tuple(range(-len(window), 0))
    total = _windows(x, window, attrs, 0).sum(axes)
    return total / (
        math.prod(window) if attrs.count_include_pad else _windows(np.ones_like(x), window, attrs, 0).sum(axes)
    )


def _batch_norm(attrs: Any, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
    axis = int(attrs.axis) % x.ndim
    shape = [-1 if each == axis else 1 for each in range(x.ndim)]
    g, b, m, v = (each.reshape(shape) for each in (gamma, beta, mean, variance))
    y = (x - m) / np.sqrt(v + attrs.epsilon)
    y = y * g if attrs.scale else y
    return (y + b if attrs.center else y), mean, variance


def _layer_norm(attrs: Any, x: Array, gamma: Array, beta: Array) -> Array:
    axes = tuple(axis % x.ndim for axis in _ints(attrs.axes))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + attrs.epsilon)
    return y * gamma + beta


def _softmax(attrs: Any, x: Array) -> Array:
    powers = np.exp(x - x.max(int(attrs.axis), keepdims=True))
    return powers / powers.sum(int(attrs.axis), keepdims=True)


def _take(attrs: Any, x: Array, index: Array) -> Array:
    return np.take(x, np.asarray(index), None if attrs.axis is None else int(attrs.axis))


def _unary(function: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda attrs, x: function(x)


def _binary(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda attrs, x, y: function(x, y)


def _reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda attrs, x: function(x, axis=_ints(attrs.axis), keepdims=bool(attrs.keepdims))


def _divided(x: Array, y: Array) -> Array:
    return x / y if x.dtype.kind == "f" else np.trunc(x / y)


_OPERATORS: dict[str, Callable[..., Any]] = {
    **{
        f"relax.{name}": _unary(getattr(np, name))
        for name in (
            "abs", "ceil", "cos", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round",
            "sign", "sin", "sqrt", "square", "tanh", "trunc",
        )
    },
    **{
        f"relax.{name}": _binary(getattr(np, name))
        for name in (
            "add", "equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor",
            "matmul", "maximum", "minimum", "multiply", "not_equal", "power", "subtract",
        )
    },
    **{f"relax.{name}": _reduction(getattr(np, name)) for name in ("max", "mean", "min", "prod", "sum")},
    "relax.divide": _binary(_divided),
    "relax.floor_divide": _binary(np.floor_divide),
    "relax.floor_mod": _binary(np.mod),
    "relax.erf": _unary(np.vectorize(math.erf, otypes="f")),
    "relax.rsqrt": _unary(lambda x: 1 / np.sqrt(x)),
    "relax.sigmoid": _unary(lambda x: 1 / (1 + np.exp(-x))),
    "relax.nn.relu": _unary(lambda x: np.maximum(x, 0)),
    "relax.nn.relu6": _unary(lambda x: np.clip(x, 0, 6)),
    "relax.nn.silu": _unary(lambda x: x / (1 + np.exp(-x))),
    "relax.nn.leakyrelu": lambda attrs, x: np.where(x > 0, x, x * attrs.alpha),
    "relax.nn.softmax": _softmax,
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.batch_norm": _batch_norm,
    "relax.nn.dropout": lambda attrs, x: (x, np.ones_like(x)),
    "relax.clip": lambda attrs, x, low, high: np.clip(x, low, high),
    "relax.astype": lambda attrs, x: x.astype(str(attrs.dtype)),
    "relax.where": lambda attrs, condition, x, y: np.where(condition, x, y),
    **{f"relax.nn.conv{rank}d": in_any_layout(_conv, "OI") for rank in (1, 2, 3)},
    **{f"relax.nn.conv{rank}d_transpose": in_any_layout(convolve_transposed, "IO") for rank in (1, 2, 3)},
    "relax.nn.max_pool1d": _max_pool,
    "relax.nn.max_pool2d": _max_pool,
    "relax.nn.avg_pool1d": _avg_pool,
    "relax.nn.avg_pool2d": _avg_pool,
    "relax.nn.pad": _pad,
    "relax.take": _take,
    "relax.shape_of": lambda attrs, x: x.shape,
    "relax.shape_to_tensor": lambda attrs, shape: np.array(shape, "int64"),
    "relax.reshape": lambda attrs, x, shape: x.reshape(shape),
    "relax.flatten": lambda attrs, x: x.reshape(-1),
    "relax.nn.batch_flatten": lambda attrs, x: x.reshape(len(x), -1),
    "relax.squeeze": lambda attrs, x: np.squeeze(x, _ints(attrs.axis)),
    "relax.expand_dims": lambda attrs, x: np.expand_dims(x, _ints(attrs.axis)),
    "relax.permute_dims": lambda attrs, x: np.transpose(x, _ints(attrs.axes)),
    "relax.broadcast_to": lambda attrs, x, shape: np.broadcast_to(x, shape),
    "relax.full": lambda attrs, shape, value: np.full(shape, value),
    "relax.zeros": lambda attrs, shape: np.zeros(shape),
    "relax.ones": lambda attrs, shape: np.ones(shape),
    "relax.concat": lambda attrs, parts: np.concatenate(parts, int(attrs.axis or 0)),
    "relax.stack": lambda attrs, parts: np.stack(parts, int(attrs.axis or 0)),
    "relax.split": _split,
    "relax.strided_slice": _strided_slice,
    "relax.tile": lambda attrs, x: np.tile(x, _ints(attrs.repeats)),
    "relax.repeat": lambda attrs, x: np.repeat(x, int(attrs.repeats), int(attrs.axis)),
    "relax.flip": lambda attrs, x: np.flip(x, int(attrs.axis)),
}  # fmt: skip


def inputs_of(module: IRModule, seed: int = 1) -> list[Array]:
    """Draw inputs of `main`: normal floats, small whole numbers, booleans."""
    generator = np.random.default_rng(seed)
    drawn = []
    for parameter in module["main"].params:
        shape, dtype = tuple(int(extent) for extent in parameter.ty.shape), str(parameter.ty.dtype)
        values = generator.standard_normal(shape) if "float" in dtype else generator.integers(-4, 5, shape)
        drawn.append((values > 0 if dtype == "bool" else values).astype(dtype))
    return drawn
