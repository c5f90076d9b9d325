"""Smallest graphs for the rules of combined and divided operators: changed, left alone, and the reason for each rule."""

from __future__ import annotations

from tvm import relax

from ..graphs import Example, filled

_op = relax.op
_nn = relax.op.nn
_PLANE = ((1, 2, 4, 4),)
_ROW = ((2, 3),)


def _emit(expr: relax.Expr) -> relax.Var:
    return relax.BlockBuilder.current().emit(expr)


EXAMPLES: dict[str, dict[str, Example]] = {
    "combine-parallel-conv2d": {
        "three of different widths": Example(
            _PLANE,
            lambda x: _op.concat(
                [_nn.conv2d(x, filled(given, 2, 3, 3), padding=1, strides=2) for given in (1, 2, 3)], 1
            ),
        ),
        "with bias and activation": Example(
            _PLANE,
            lambda x: _op.maximum(
                _nn.relu(_op.add(_nn.conv2d(x, filled(2, 2, 1, 1)), filled(2, 1, 1))),
                _nn.relu(_op.add(_nn.conv2d(x, filled(2, 2, 1, 1)), relax.const(3.0))),
            ),
        ),
    },
    "combine-parallel-products": {
        "queries, keys and values": Example(
            ((1, 2, 3),),
            lambda x: _op.concat([_op.add(_op.matmul(x, filled(3, given)), filled(given)) for given in (2, 2, 4)], 2),
        ),
        "of one activation": Example(
            _ROW,
            lambda x: _op.add(
                _nn.relu(_op.matmul(x, filled(3, 2))), _nn.relu(_op.matmul(x, _op.permute_dims(filled(2, 3))))
            ),
        ),
    },
}
TWINS: dict[str, dict[str, Example]] = {
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
    "combine-parallel-products": {
        "a chain": Example(_ROW, lambda x: _op.matmul(_op.matmul(x, filled(3, 3)), filled(3, 3))),
        "computed matrices": Example(
            (*_ROW, (3, 2), (3, 2)), lambda x, v, w: _op.add(_op.matmul(x, v), _op.matmul(x, w))
        ),
    },
}
#: models are those of benchmarks/models.toml and benchmarks/zoo
REASONS: dict[str, str] = {
    "combine-parallel-conv2d": "heads of detectors (face-scrfd, mtcnn-pnet), the shortcut of resnet50, sine and cosine of wake-melspectrogram",
    "combine-parallel-products": "queries, keys and values, and gates of recurrent cells: seven models, such as mtcnn-onet and speech-aecmos-16k, where TVM's combine-parallel-matmul finds no constants",
}
