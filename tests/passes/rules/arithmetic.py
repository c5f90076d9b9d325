"""Smallest graphs for the rules of arithmetic: changed, left alone, and the reason for each rule."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.tirx import FloatImm

from ..graphs import Example, filled

_op = relax.op
_ROW = ((2, 3),)
_TWO = ((2, 3), (2, 3))


def _const(*values: float) -> relax.Expr:
    return relax.const(np.array(values, "float32"))


def _where(condition: relax.Expr, x: relax.Expr, y: relax.Expr | None = None) -> relax.Expr:
    return _op.where(condition, x, relax.const(0.0) if y is None else y)


def _float(x: relax.Expr) -> relax.Expr:
    return _op.astype(x, "float32")


def _int(x: relax.Expr) -> relax.Expr:
    return _op.astype(x, "int32")


def _emit(expr: relax.Expr) -> relax.Var:
    """A binding of its own in the module being built."""
    return relax.BlockBuilder.current().emit(expr)


EXAMPLES: dict[str, dict[str, Example]] = {
    "remove-identities": {
        "x + 0": Example(_ROW, lambda x: _op.nn.relu(_op.add(x, relax.const(0.0)))),
        "1 · x - 0": Example(_ROW, lambda x: _op.exp(_op.subtract(_op.multiply(relax.const(1.0), x), _const(0, 0, 0)))),
        "x / 1 to the power of 1, the output": Example(
            _ROW, lambda x: _op.power(_op.divide(x, relax.const(1.0)), relax.const(1.0))
        ),
        "true and (x > 0)": Example(
            _ROW, lambda x: _op.astype(_op.logical_and(relax.const(True), _op.greater(x, relax.const(0.0))), "float32")
        ),
        "a cast to its own dtype": Example(_ROW, lambda x: _op.exp(_op.astype(x, "float32"))),
        "a slice of the whole": Example(_ROW, lambda x: _op.exp(_op.strided_slice(x, [0, 1], [0, 0], [2, 9]))),
        "no padding": Example(_ROW, lambda x: _op.exp(_op.nn.pad(x, (0, 0, 0, 0)))),
        "a concatenation of one": Example(_ROW, lambda x: _op.exp(_op.concat([x], 1))),
        "a split into one": Example(_ROW, lambda x: _op.exp(_op.split(x, 1, 1))),
        "repeated once": Example(_ROW, lambda x: _op.exp(_op.repeat(_op.tile(x, (1, 1)), 1, 0))),
        "broadcast to its own shape": Example(_ROW, lambda x: _op.exp(_op.broadcast_to(x, (2, 3)))),
        "a transpose of axes of extent 1": Example(
            ((1, 3, 1, 2),), lambda x: _op.exp(_op.permute_dims(x, (1, 0, 3, 2)))
        ),
        "a transpose to itself": Example(((1, 3, 1, 2),), lambda x: _op.exp(_op.permute_dims(x, (2, 1, 0, 3)))),
        "dropout": Example(_ROW, lambda x: _op.exp(_op.nn.dropout(x)[0])),
        "a mean over one": Example(((2, 1, 3),), lambda x: _op.exp(_op.mean(x, [1]))),
        "a clip without bounds": Example(_ROW, lambda x: _op.exp(_op.clip(x, float("-inf"), float("inf")))),
    },
    "simplify-expressions": {
        "−(−x)": Example(_ROW, lambda x: _op.exp(_op.negative(_op.negative(x)))),
        "relu of an exponential": Example(_ROW, lambda x: _op.nn.relu(_op.exp(x))),
        "|−x|": Example(_ROW, lambda x: _op.abs(_op.negative(x))),
        "floor of a ceiling": Example(_ROW, lambda x: _op.floor(_op.ceil(x))),
        "not equal": Example(_ROW, lambda x: _where(_op.logical_not(_op.equal(x, _op.floor(x))), x)),
        "not less, of whole numbers": Example(
            _ROW, lambda x: _float(_op.logical_not(_op.less(_int(x), _int(_op.exp(x)))))
        ),
        "a choice of the same": Example(
            _ROW, lambda x: (lambda y: _where(_op.greater(x, relax.const(0.0)), y, y))(_emit(_op.exp(x)))
        ),
        "a choice that is made": Example(_ROW, lambda x: _where(relax.const(True), _op.exp(x), x)),
        "x − (−y)": Example(_TWO, lambda x, y: _op.subtract(x, _op.negative(y))),
        "−x · −y": Example(_TWO, lambda x, y: _op.multiply(_op.negative(x), _op.negative(y))),
        "max(x, x)": Example(_ROW, lambda x: _op.exp(_op.maximum(x, x))),
        "x / 4": Example(_ROW, lambda x: _op.divide(x, relax.const(4.0))),
        "x ** 2": Example(_ROW, lambda x: _op.power(x, relax.const(2.0))),
        "0 − x, and x · −1": Example(
            _ROW, lambda x: _op.exp(_op.multiply(_op.subtract(relax.const(0.0), _op.exp(x)), relax.const(-1.0)))
        ),
        "relu and a clip": Example(_ROW, lambda x: _op.clip(_op.nn.relu(x), -1, 6)),
        "a clip and a wider one": Example(_ROW, lambda x: _op.clip(_op.clip(x, -1, 1), -2, 2)),
        "max, then relu": Example(_ROW, lambda x: _op.nn.relu(_op.maximum(x, relax.const(0.5)))),
        "min, then min": Example(_ROW, lambda x: _op.minimum(_op.minimum(x, relax.const(0.5)), relax.const(0.25))),
    },
    "minimise-broadcasts": {
        "(M + s) + (N + t)": Example(
            ((4, 4), (4,), (4, 4), (4,)), lambda m, s, n, t: _op.add(_op.add(m, s), _op.add(n, t))
        ),
        "a broadcast operand": Example(
            _TWO, lambda x, y: _op.multiply(x, _op.broadcast_to(_op.max(y, 1, True), (2, 3)))
        ),
        "M + M · s": Example(((2, 3), (2, 1)), lambda x, y: _op.add(x, _op.multiply(y, x))),
        "an operator on what is broadcast": Example(((1, 3),), lambda x: _op.exp(_op.broadcast_to(_op.abs(x), (2, 3)))),
    },
}
TWINS: dict[str, dict[str, Example]] = {
    "remove-identities": {
        "a slice backwards": Example(_ROW, lambda x: _op.strided_slice(x, [1], [-1], [-9], [-1])),
        "a cast": Example(_ROW, lambda x: _op.astype(x, "float16")),
        "a mean over two": Example(((2, 2, 3),), lambda x: _op.mean(x, [1])),
        "0 - x": Example(_ROW, lambda x: _op.subtract(relax.const(0.0), x)),
        "a sum that broadcasts": Example(((1, 3),), lambda x: _op.add(x, relax.const(np.zeros((2, 3), "float32")))),
    },
    "simplify-expressions": {
        # false for NaN, as x < y is
        "not less, of floats": Example(_TWO, lambda x, y: _float(_op.logical_not(_op.less(x, y)))),
        "x − x, NaN for ∞": Example(_ROW, lambda x: _op.subtract(x, x)),
        "x · 0, NaN for ∞": Example(_ROW, lambda x: _op.multiply(x, relax.const(0.0))),
        "x / 3": Example(_ROW, lambda x: _op.divide(x, relax.const(3.0))),
        "exp(log x), NaN below 0": Example(_ROW, lambda x: _op.exp(_op.log(x))),
        "a choice of the same that broadcasts": Example(
            ((1, 3), (2, 1)), lambda x, c: _op.where(_op.greater(c, relax.const(0.0)), x, x)
        ),
        "a clip of a relu that is read twice": Example(
            _ROW, lambda x: (lambda y: _op.add(y, _op.clip(y, -1, 6)))(_emit(_op.nn.relu(x)))
        ),
    },
    "minimise-broadcasts": {
        "a number, which is not a tensor": Example(
            ((4, 1), (1, 4)), lambda x, y: _op.multiply(_op.multiply(x, y), relax.prim_value(FloatImm("float32", 2.0)))
        ),
        "operands of one shape": Example(_TWO, lambda x, y: _op.add(_op.add(x, y), _op.add(x, x))),
        "the small ones first": Example(((4, 4), (4,), (4,)), lambda m, s, t: _op.add(m, _op.add(s, t))),
        "an inner sum that is read twice": Example(
            ((4, 4), (4,), (4,)),
            lambda m, s, t: (lambda inner: _op.multiply(inner, _op.add(inner, t)))(_emit(_op.add(m, s))),
        ),
        "a gate as large as what it gates": Example(_TWO, lambda x, y: _op.add(x, _op.multiply(y, x))),
        "a broadcast that a product reads": Example(
            ((1, 3),), lambda x: _op.matmul(_op.broadcast_to(x, (2, 3)), filled(3, 2))
        ),
    },
}
REASONS: dict[str, str] = {
    "remove-identities": "rebench/05.onnx, rebench/17.onnx: casts to their own dtype, sums with zeros, transposes of axes of extent 1",
    "simplify-expressions": "rebench/29.onnx: relus of relus",
    "minimise-broadcasts": "rebench/09.onnx, rebench/19.onnx: sums with broadcast operands, sums of planes and rows",
}
