"""Smallest graphs for the rules of convolutions and dense layers: changed, left alone, and the reason for each rule."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..graphs import Example, filled

_op = relax.op
_nn = relax.op.nn
_PLANE = ((1, 2, 4, 4),)
_POINT = ((1, 2, 1, 1),)
_ROW = ((2, 3),)


def _const(*values: float, shape: tuple[int, ...] = (-1,), dtype: str = "float32") -> relax.Expr:
    return relax.const(np.array(values, dtype).reshape(shape), dtype)


def _channels(*values: float) -> relax.Expr:
    return _const(*values, shape=(-1, 1, 1))


def _emit(expr: relax.Expr) -> relax.Var:
    return relax.BlockBuilder.current().emit(expr)


def _norm(x: relax.Expr, **options: object) -> relax.Expr:
    numbers = (_const(*values) for values in ([1, 2], [0, 1], [3, 4], [1, 4]))
    return _nn.batch_norm(x, *numbers, axis=1, training=False, **options)[0]


def _written_out(x: relax.Expr) -> relax.Expr:
    """A batch norm as exporters decompose it: parameters with axes added, ε added to the variance before."""
    gamma, beta, mean, spread = (
        _op.expand_dims(_const(*values), [0, 2, 3]) for values in ([1, 2], [0, 1], [3, 4], [1.5, 2.5])
    )
    return _op.add(_op.multiply(_op.divide(_op.subtract(x, mean), spread), gamma), beta)


def _zeros(*shape: int) -> relax.Expr:
    return relax.const(np.zeros(shape, "float32"))


_LOWEST = float("-inf")

EXAMPLES: dict[str, dict[str, Example]] = {
    "fold-explicit-padding": {
        "zeros around a plane": Example(
            _PLANE,
            lambda x: _nn.conv2d(_nn.pad(x, (0, 0, 0, 0, 1, 0, 2, 1)), filled(3, 2, 3, 3), (2, 1), (0, 1), (1, 2)),
        ),
        "before a depthwise convolution of three dimensions": Example(
            ((1, 2, 3, 2, 3),),
            lambda x: _nn.conv3d(_nn.pad(x, (0, 0, 0, 0, 1, 0, 0, 2, 1, 1)), filled(2, 1, 2, 2, 2), groups=2),
        ),
        "for two readers": Example(
            ((1, 2, 5),),
            lambda x: _op.add(
                _nn.conv1d(p := _emit(_nn.pad(x, (0, 0, 0, 0, 1, 1))), filled(1, 2, 3)),
                _nn.conv1d(p, filled(1, 2, 3), padding=(2, 0), dilation=2),
            ),
        ),
        "a concatenation with zeros": Example(
            _PLANE, lambda x: _nn.conv2d(_op.concat([x, _zeros(1, 2, 4, 1)], 3), filled(1, 2, 2, 2))
        ),
        "cropped by a transposed convolution": Example(
            _PLANE, lambda x: _nn.conv2d_transpose(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), filled(2, 1, 5, 5), 2, 3)
        ),
        "a mean that counts zeros": Example(
            _PLANE, lambda x: _nn.avg_pool2d(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3), (2, 2))
        ),
        "a maximum and -inf": Example(
            _PLANE, lambda x: _nn.max_pool2d(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1), "constant", _LOWEST), (3, 3), (2, 2))
        ),
        "a maximum of a clip": Example(
            _PLANE,
            lambda x: _nn.max_pool2d(
                _nn.pad(_op.minimum(_op.maximum(x, relax.const(0.0)), relax.const(6.0)), (0, 0, 0, 0, 1, 1, 1, 1)),
                (3, 3),
            ),
        ),
        "a maximum of what is not negative": Example(
            _PLANE, lambda x: _nn.max_pool2d(_nn.pad(_nn.relu(x), (0, 0, 0, 0, 0, 1, 0, 1)), (3, 3), (2, 2))
        ),
    },
    "fold-batch-norm": {
        "the operator": Example(_PLANE, _norm),
        "without scale and shift": Example(_PLANE, lambda x: _norm(x, scale=False, center=False)),
        "written out": Example(_PLANE, _written_out),
        "two sums, one of them for all channels": Example(
            _PLANE, lambda x: _op.add(relax.const(2.0), _op.add(x, _channels(1, 2)))
        ),
        "3 - x, negated": Example(_ROW, lambda x: _op.negative(_op.subtract(relax.const(3.0), x))),
    },
    "fold-scale-axis": {
        "backward through a bias": Example(
            _PLANE,
            lambda x: _op.multiply(_op.add(_nn.conv2d(x, filled(2, 2, 3, 3)), _channels(1, -1)), _channels(2, -3)),
        ),
        "backward, two groups, a quotient": Example(
            _PLANE,
            lambda x: _op.divide(_nn.conv2d(x, filled(4, 1, 2, 2), groups=2, padding=1), _channels(2, 4, -1, 8)),
        ),
        "backward to a transposed convolution of two groups": Example(
            _PLANE,
            lambda x: _op.multiply(_nn.conv2d_transpose(x, filled(2, 2, 2, 2), 2, groups=2), _channels(2, 4, -1, 8)),
        ),
        "backward to both terms": Example(
            _PLANE,
            lambda x: _op.multiply(
                _op.add(_nn.conv2d(x, filled(2, 2, 1, 1)), _nn.conv2d(_nn.relu(x), filled(2, 2, 1, 1))),
                _channels(2, 3),
            ),
        ),
        "forward through padding, into two readers": Example(
            _PLANE,
            lambda x: _op.add(
                _nn.conv2d(p := _emit(_op.multiply(x, _channels(2, 3))), filled(1, 2, 3, 3), padding=1),
                _nn.conv2d(p, filled(1, 2, 1, 1)),
            ),
        ),
        "forward into two groups": Example(
            _PLANE, lambda x: _nn.conv2d(_op.multiply(x, _channels(2, 3)), filled(2, 1, 2, 2), groups=2)
        ),
        "forward past a shift": Example(
            _PLANE,
            lambda x: _nn.conv2d(
                _op.add(_op.multiply(x, _channels(2, 4)), _channels(1, -1)), filled(1, 2, 3, 3), padding=1
            ),
        ),
        "forward into a dense layer": Example(
            _ROW, lambda x: _op.matmul(_op.multiply(x, _const(1, 2, 3)), filled(3, 2))
        ),
        "a shift into the bias": Example(
            _PLANE,
            lambda x: _op.add(
                _nn.conv2d(_op.add(x, _channels(1, 2)), filled(4, 1, 3, 3), groups=2), _channels(1, 2, 3, 4)
            ),
        ),
        "a shift before a dense layer": Example(
            _ROW, lambda x: _op.matmul(_op.subtract(x, _const(1, 2, 3)), filled(3, 2))
        ),
    },
    "drop-padding-taps": {
        "one pixel": Example(_POINT, lambda x: _nn.conv2d(x, filled(3, 2, 3, 3), padding=1)),
        "wide dilation, depthwise": Example(
            _PLANE, lambda x: _nn.conv2d(x, filled(2, 1, 3, 3), padding=6, dilation=6, groups=2)
        ),
        "one side of a row": Example(((1, 2, 3),), lambda x: _nn.conv1d(x, filled(1, 2, 5), padding=(4, 0))),
        "a gap that becomes dilation": Example(((1, 2, 1),), lambda x: _nn.conv1d(x, filled(1, 2, 5), 2, padding=4)),
        "cropped results of a transposed convolution": Example(
            _POINT, lambda x: _nn.conv2d_transpose(x, filled(2, 1, 5, 5), 2, (1, 2, 2, 1))
        ),
    },
    "partial-convolutions": {
        "a sum of two": Example(
            (*_PLANE, *_PLANE), lambda x, y: _nn.conv2d(_op.concat([x, _nn.relu(y)], 1), filled(2, 4, 3, 3), padding=1)
        ),
        "past a bias, an activation and a pooling": Example(
            (*_PLANE, *_PLANE),
            lambda x, y: _nn.conv2d(
                _nn.max_pool2d(_nn.relu(_op.add(_op.concat([x, y], 1), _channels(1, 2, 3, 4))), (2, 2)),
                filled(1, 4, 1, 1),
            ),
        ),
    },
    "combine-parallel-conv2d": {
        "three of different widths": Example(
            _PLANE,
            lambda x: _op.concat(
                [_nn.conv2d(x, filled(given, 2, 3, 3), padding=1, strides=2) for given in (1, 2, 3)], 1
            ),
        ),
    },
}
TWINS: dict[str, dict[str, Example]] = {
    "fold-explicit-padding": {
        "of channels": Example(_PLANE, lambda x: _nn.conv2d(_nn.pad(x, (0, 0, 0, 1, 1, 1, 1, 1)), filled(1, 3, 3, 3))),
        "by reflection": Example(
            _PLANE, lambda x: _nn.conv2d(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1), "reflect"), filled(1, 2, 3, 3))
        ),
        "with ones": Example(
            _PLANE, lambda x: _nn.conv2d(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1), "constant", 1.0), filled(1, 2, 3, 3))
        ),
        "a maximum of zeros and what may be negative": Example(
            _PLANE, lambda x: _nn.max_pool2d(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3))
        ),
        "a window of padding alone": Example(
            _PLANE, lambda x: _nn.max_pool2d(_nn.pad(_nn.relu(x), (0, 0, 0, 0, 2, 2, 0, 0)), (2, 2))
        ),
        "another reader": Example(
            _PLANE,
            lambda x: _op.add(
                _nn.conv2d(p := _emit(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1))), filled(2, 2, 3, 3), padding=1), _nn.relu(p)
            ),
        ),
        "a mean that counts no zeros": Example(
            _PLANE, lambda x: _nn.avg_pool2d(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3), (2, 2), (1, 1))
        ),
        "more than a transposed convolution crops": Example(
            _PLANE, lambda x: _nn.conv2d_transpose(_nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), filled(2, 1, 5, 5), 2, 1)
        ),
    },
    "fold-batch-norm": {
        "computed parameters": Example(
            (*_PLANE, (2,)),
            lambda x, gamma: _nn.batch_norm(x, gamma, *(_const(1, 2) for _ in range(3)), axis=1, training=False)[0],
        ),
        "one scale and one shift": Example(
            _PLANE, lambda x: _op.add(_op.multiply(x, _channels(1, 2)), _channels(3, 4))
        ),
        "along two axes": Example(_PLANE, lambda x: _op.multiply(_op.multiply(x, _channels(1, 2)), _const(1, 2, 3, 4))),
        "another reader": Example(
            _PLANE, lambda x: _op.maximum(y := _emit(_op.add(x, relax.const(1.0))), _op.add(y, _channels(1, 2)))
        ),
    },
    "fold-scale-axis": {
        "a negative scale behind relu": Example(
            _PLANE, lambda x: _op.multiply(_nn.relu(_nn.conv2d(x, filled(2, 2, 3, 3))), _channels(2, -3))
        ),
        "a scale behind a reshape, whose channels are others": Example(
            ((2, 6),), lambda x: _op.multiply(_op.reshape(_op.matmul(x, filled(6, 4)), (4, 2)), _const(2, 3))
        ),
        "a scale of rows": Example(
            _PLANE, lambda x: _op.multiply(_nn.conv2d(x, filled(2, 2, 1, 1)), _const(1, 2, 3, 4, shape=(4, 1)))
        ),
        "another reader": Example(
            _PLANE,
            lambda x: _op.add(c := _emit(_nn.conv2d(x, filled(2, 2, 1, 1))), _op.multiply(c, _channels(2, 3))),
        ),
        "a weight that two read": Example(
            ((3, 3),), lambda x: _op.matmul(_op.multiply(_op.matmul(x, w := filled(3, 3)), _const(1, 2, 3)), w)
        ),
        "a computed weight": Example(((2, 3), (3, 3)), lambda x, w: _op.multiply(_op.matmul(x, w), _const(1, 2, 3))),
        "a shift beside padding": Example(
            _PLANE, lambda x: _nn.conv2d(_op.add(x, _channels(1, 2)), filled(2, 2, 3, 3), padding=1)
        ),
        "a shift that would meet more elements": Example(
            _ROW, lambda x: _op.matmul(_op.add(x, _const(1, 2, 3)), filled(3, 9))
        ),
    },
    "drop-padding-taps": {
        "every tap meets data": Example(((1, 2, 2, 2),), lambda x: _nn.conv2d(x, filled(3, 2, 3, 3), padding=1)),
        "a computed weight": Example((*_POINT, (1, 2, 3, 3)), lambda x, w: _nn.conv2d(x, w, padding=1)),
        "a weight that two read": Example(
            (*_POINT, *_PLANE),
            lambda x, y: _op.add(_nn.conv2d(x, w := filled(1, 2, 3, 3), padding=1), _nn.conv2d(y, w, padding=1)),
        ),
        "nothing but padding": Example(
            ((1, 2, 1),), lambda x: _nn.conv1d(x, filled(1, 2, 3), 5, padding=1, dilation=2)
        ),
    },
    "partial-convolutions": {
        "rows": Example((*_PLANE, *_PLANE), lambda x, y: _nn.conv2d(_op.concat([x, y], 2), filled(2, 2, 3, 3))),
        "groups": Example(
            ((1, 2, 5), (1, 1, 5)),
            lambda x, y: _nn.conv1d(_op.concat([x, y], 1), filled(6, 1, 3), 2, padding=(1, 0), groups=3),
        ),
        "another reader": Example(
            (*_PLANE, *_PLANE),
            lambda x, y: _op.add(c := _emit(_op.concat([x, y], 1)), _nn.conv2d(c, filled(4, 4, 1, 1))),
        ),
    },
    "combine-parallel-conv2d": {
        "other strides": Example(
            _PLANE,
            lambda x: _op.add(_nn.conv2d(x, filled(2, 2, 1, 1), 2), _nn.conv2d(x, filled(2, 2, 3, 3), 2, padding=1)),
        ),
        "other inputs": Example(
            (*_PLANE, *_PLANE),
            lambda x, y: _op.add(_nn.conv2d(x, filled(2, 2, 1, 1)), _nn.conv2d(y, filled(2, 2, 1, 1))),
        ),
        "depthwise": Example(
            _PLANE,
            lambda x: _op.add(_nn.conv2d(x, filled(2, 1, 1, 1), groups=2), _nn.conv2d(x, filled(2, 1, 1, 1), groups=2)),
        ),
    },
}
#: models are those of benchmarks/models.toml and benchmarks/zoo
REASONS: dict[str, str] = {
    "fold-explicit-padding": "tinyocr-det pads before pooling; exports of TensorFlow and ONNX's `auto_pad` pad everywhere",
    "fold-batch-norm": "rebench/09.onnx, rebench/35.onnx: sums with constants; 53 batch norms in resnet50, 193 in nasnet",
    "fold-scale-axis": "behind fold-batch-norm: 53 products in resnet50, 64 in ocr-det-320",
    "drop-padding-taps": "recurrent nets over frames of one step and classifiers of small planes: seven models, vad and ocr-cls among them",
    "partial-convolutions": "concatenations before convolutions: squeezenet1.1, unet, nasnet, yolov4-tiny and four detectors and readers of text",
    "combine-parallel-conv2d": "heads of detectors (face-scrfd, mtcnn-pnet), the shortcut of resnet50, sine and cosine of wake-melspectrogram",
}
