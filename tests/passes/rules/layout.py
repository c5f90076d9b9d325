"""Smallest graphs for the rules of data movement: changed, left alone, and the reason for each rule."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..graphs import Example, filled

_op = relax.op
_ROW = ((2, 3),)
_PLANES = ((1, 2, 3, 4),)
_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def _emit(expr: relax.Expr) -> relax.Var:
    """A binding of its own in the module being built."""
    return relax.BlockBuilder.current().emit(expr)


def _const(*values: float) -> relax.Expr:
    return relax.const(np.array(values, "float32"))


def _last(x: relax.Expr) -> relax.Expr:
    return _op.permute_dims(x, _TO_LAST)


def _first(x: relax.Expr) -> relax.Expr:
    return _op.permute_dims(x, _TO_FIRST)


def _branches(x: relax.Expr) -> relax.Expr:
    """Two ways with channels last, one of them through a concatenation, padding and a slice."""
    y = _emit(_op.nn.relu(_last(x)))
    z = _op.nn.pad(_op.concat([y, y], 3), (0, 0, 0, 0, 1, 0, 0, 0))
    z = _op.strided_slice(z, [2, 3], [1, 0], [5, 2])
    return _first(_op.add(_op.nn.softmax(z, 3), _op.multiply(y, _const(1, 2))))


def _norm(x: relax.Expr, extent: int) -> relax.Expr:
    return _op.nn.layer_norm(x, filled(extent), filled(extent), [-1])


EXAMPLES: dict[str, dict[str, Example]] = {
    "cancel-reshapes": {
        "reshape of a squeeze": Example(((2, 1, 3),), lambda x: _op.reshape(_op.squeeze(x, [1]), (3, 2))),
        "there and back": Example(_ROW, lambda x: _op.nn.relu(_op.reshape(_op.flatten(x), (2, 3)))),
        "around operators": Example(
            _ROW, lambda x: _op.reshape(_op.multiply(_op.nn.relu(_op.reshape(x, (3, 2))), relax.const(2.0)), (2, 3))
        ),
        "a constant along the last axis": Example(
            ((2, 3, 4),), lambda x: _op.reshape(_op.add(_op.reshape(x, (6, 4)), _const(1, 2, 3, 4)), (2, 3, 4))
        ),
    },
    "cancel-transposes": {
        "two, composed": Example(_PLANES, lambda x: _op.permute_dims(_last(x), (0, 2, 1, 3))),
        "around an operator": Example(_PLANES, lambda x: _first(_op.nn.relu(_last(x)))),
        "around branches": Example(_PLANES, _branches),
        "above a mean over the plane": Example(_PLANES, lambda x: _op.mean(_op.exp(_last(x)), [1, 2])),
        "one of two outputs": Example(
            _PLANES,
            lambda x: (lambda y: relax.Tuple([_first(_op.exp(y)), _op.exp(_first(y))]))(_emit(_op.abs(_last(x)))),
        ),
    },
    "push-slices-up": {
        "element-wise": Example(
            ((4, 3), (3,)), lambda x, y: _op.strided_slice(_op.nn.relu(_op.multiply(x, y)), [0], [1], [4], [2])
        ),
        "rows of a product": Example(
            ((4, 3),), lambda x: _op.strided_slice(_op.matmul(x, filled(3, 2)), [0], [0], [1])
        ),
        "columns of a product": Example(
            ((4, 3),), lambda x: _op.strided_slice(_op.matmul(x, filled(3, 2)), [1], [0], [1])
        ),
        "one position of a block": Example(
            ((1, 4, 2),),
            lambda x: _op.take(_op.add(x, _op.matmul(_norm(x, 2), filled(2, 2))), relax.const(0, "int64"), 1),
        ),
        "heads and scores": Example(
            ((4, 6), (6, 4)),
            lambda x, y: _op.strided_slice(
                _op.nn.softmax(
                    _op.matmul(_op.permute_dims(_op.reshape(x, (4, 2, 3)), (1, 0, 2)), _op.reshape(y, (2, 3, 4)))
                ),
                [1],
                [1],
                [2],
            ),
        ),
        "channels of a convolution": Example(
            _PLANES, lambda x: _op.strided_slice(_op.nn.conv2d(x, filled(4, 2, 1, 1)), [1], [1], [3])
        ),
        "channels and positions of a convolution": Example(
            _PLANES, lambda x: _op.strided_slice(_op.nn.conv2d(x, filled(4, 2, 1, 1)), [1, 2], [1, 0], [3, 1])
        ),
        "positions without a convolution's padding behind": Example(
            ((1, 2, 9),),
            lambda x: _op.strided_slice(_op.nn.conv1d(x, filled(4, 2, 3), padding=4, dilation=2), [2], [0], [9]),
        ),
        "windows of what is computed": Example(
            ((1, 2, 9, 7),),
            lambda x: _op.strided_slice(
                _op.nn.conv2d(_op.exp(x), filled(4, 1, 3, 2), padding=1, strides=2, groups=2),
                [2, 3],
                [1, 0],
                [4, 4],
                [2, 3],
            ),
        ),
        "a causal convolution and what is added to it": Example(
            ((1, 2, 16),),
            lambda x: (
                lambda y: _op.strided_slice(
                    _op.add(_op.nn.conv1d(y, filled(2, 2, 3), padding=(4, 0), dilation=2), y), [2], [15], [16]
                )
            )(_emit(_op.exp(x))),
        ),
        "parts that overlap": Example(
            ((9, 2),),
            lambda x: (
                lambda y: _op.multiply(
                    _op.strided_slice(y, [0], [1], [6], [2]), _op.take(y, relax.const(3, "int64"), 0)
                )
            )(_emit(_op.matmul(x, filled(2, 2)))),
        ),
        "a part of an input that is smaller than the rest of the result": Example(
            ((1, 2, 9),), lambda x: _op.strided_slice(_op.nn.conv1d(x, filled(8, 2, 3)), [2], [6], [7])
        ),
        "a convolution divided by its channels": Example(
            _PLANES,
            lambda x: (
                lambda y: _op.multiply(_op.strided_slice(y, [1], [0], [2]), _op.strided_slice(y, [1], [2], [4]))
            )(_emit(_op.nn.relu(_op.add(_op.nn.conv2d(x, filled(4, 2, 1, 1)), filled(4, 1, 1))))),
        ),
        "a slice of a slice": Example(
            ((9,),), lambda x: _op.strided_slice(_op.strided_slice(x, [0], [1], [9], [2]), [0], [1], [4], [2])
        ),
        "an item of a split, alone": Example(((4, 6),), lambda x: _op.exp(_emit(_op.split(x, 3, 1))[1])),
        "across a concatenation": Example(
            _ROW, lambda x: _op.strided_slice(_op.concat([x, _op.exp(x), _op.abs(x)], 1), [1], [1], [5])
        ),
        "through a reshape that joins axes": Example(
            ((2, 3, 4),), lambda x: _op.strided_slice(_op.reshape(_op.exp(x), (6, 4)), [0], [3], [6])
        ),
        "every second row through a reshape": Example(
            ((1, 4, 3),), lambda x: _op.strided_slice(_op.reshape(_op.exp(x), (4, 3)), [0], [0], [4], [2])
        ),
        "of one position": Example(
            ((2, 4),), lambda x: _op.strided_slice(_op.take(_op.exp(x), relax.const(1, "int64"), 0), [0], [1], [3])
        ),
    },
    "share-constants": {
        "one value, many times": Example(_ROW, lambda x: _op.multiply(x, relax.const(np.full((2, 3), 2, "float32")))),
        "one row, many times": Example(
            _ROW, lambda x: _op.add(x, relax.const(np.array([[1, 2, 3], [1, 2, 3]], "float32")))
        ),
        "equal weights": Example(_ROW, lambda x: _op.matmul(_op.nn.relu(_op.matmul(x, filled(3, 3))), filled(3, 3))),
    },
}
TWINS: dict[str, dict[str, Example]] = {
    "cancel-reshapes": {
        "one way": Example(_ROW, lambda x: _op.exp(_op.reshape(x, (3, 2)))),
        "around a matrix product": Example(
            ((2, 3, 4),), lambda x: _op.reshape(_op.matmul(_op.reshape(x, (6, 4)), filled(4, 4)), (2, 3, 4))
        ),
        "a constant along an axis that it divides": Example(
            ((2, 6),), lambda x: _op.reshape(_op.add(_op.reshape(x, (4, 3)), _const(1, 2, 3)), (2, 6))
        ),
    },
    "cancel-transposes": {
        "one way": Example(_PLANES, lambda x: _op.exp(_last(x))),
        "around a sum along the last axis": Example(_PLANES, lambda x: _first(_op.cumsum(_last(x), 3))),
        "an operand that is not transposed": Example(
            ((1, 2, 3, 4), (1, 3, 4, 2)), lambda x, y: _first(_op.add(_last(x), y))
        ),
    },
    "push-slices-up": {
        "a value read by another": Example(
            ((4, 3),), lambda x: (lambda y: _op.multiply(y, _op.strided_slice(y, [0], [0], [1])))(_emit(_op.exp(x)))
        ),
        "along the axis of a softmax": Example(
            ((4, 3),), lambda x: _op.strided_slice(_op.nn.softmax(x, 1), [1], [0], [1])
        ),
        "all of it, in two slices": Example(
            ((4, 3),),
            lambda x: (
                lambda y: _op.subtract(_op.strided_slice(y, [0], [0], [2]), _op.strided_slice(y, [0], [2], [4]))
            )(_emit(_op.exp(x))),
        ),
        "a convolution in channels that overlap": Example(
            _PLANES,
            lambda x: (
                lambda y: _op.multiply(_op.strided_slice(y, [1], [0], [3]), _op.strided_slice(y, [1], [1], [4]))
            )(_emit(_op.nn.conv2d(x, filled(4, 2, 1, 1)))),
        ),
        "columns of a weight that is read whole": Example(
            ((4, 3),),
            lambda x: (
                lambda w: _op.add(_op.strided_slice(_op.matmul(x, w), [1], [0], [1]), _op.matmul(_op.exp(x), w))
            )(filled(3, 3)),
        ),
        "an input": Example(((4, 3),), lambda x: _op.strided_slice(x, [0], [0], [1])),
        "a convolution's plane": Example(
            _PLANES, lambda x: _op.strided_slice(_op.nn.conv2d(x, filled(2, 2, 1, 1)), [2], [1], [3])
        ),
        "two parts far from each other": Example(
            ((9, 2),),
            lambda x: (
                lambda y: _op.concat(
                    [_op.exp(_op.strided_slice(y, [0], [0], [6])), _op.strided_slice(y, [0], [3], [9])], 0
                )
            )(_emit(_op.matmul(x, filled(2, 2)))),
        ),
    },
    "share-constants": {
        "weights that differ": Example(_ROW, lambda x: _op.matmul(_op.matmul(x, filled(3, 4)), filled(4, 3))),
        "a constant that gives the shape": Example(
            ((1, 3),), lambda x: _op.add(x, relax.const(np.array([[1, 2, 3], [1, 2, 3]], "float32")))
        ),
        "zeros of two signs": Example(_ROW, lambda x: _op.divide(x, _const(0.0, -0.0, 0.0))),
    },
}
REASONS: dict[str, str] = {
    "cancel-reshapes": "rebench/01.onnx, rebench/07.onnx: reshapes, squeezes and expand_dims in a row",
    "cancel-transposes": "rebench/03.onnx, rebench/09.onnx: transposes around element-wise operators, as converters leave them",
    "push-slices-up": "speech-plcmos, vad-16k-sequence; classifiers read the first position alone; causal convolutions cut padding off",
    "share-constants": "rebench/05.onnx, rebench/25.onnx: constants of one value for every element, equal weights",
}
