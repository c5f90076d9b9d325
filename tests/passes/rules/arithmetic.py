"""Smallest graphs for the rules of arithmetic: changed, left alone, and the reason for each rule."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..graphs import Example

_op = relax.op
_ROW = ((2, 3),)


def _const(*values: float) -> relax.Expr:
    return relax.const(np.array(values, "float32"))


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
        "a transpose of axes of extent 1": Example(((1, 3, 1, 2),), lambda x: _op.exp(_op.permute_dims(x, (1, 0, 3, 2)))),
        "a transpose to itself": Example(((1, 3, 1, 2),), lambda x: _op.exp(_op.permute_dims(x, (2, 1, 0, 3)))),
        "dropout": Example(_ROW, lambda x: _op.exp(_op.nn.dropout(x)[0])),
        "a mean over one": Example(((2, 1, 3),), lambda x: _op.exp(_op.mean(x, [1]))),
        "a clip without bounds": Example(_ROW, lambda x: _op.exp(_op.clip(x, float("-inf"), float("inf")))),
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
}
REASONS: dict[str, str] = {
    "remove-identities": "rebench/05.onnx, rebench/17.onnx: casts to their own dtype, sums with zeros, transposes of axes of extent 1",
}
