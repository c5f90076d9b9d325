"""Smallest graph changed by each pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tvm import relax, te
from tvm.ir import IRModule
from tvm.te import Tensor

from passfit.frontend.relax.loop_kernel import LoopKernel, Place
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tir.loop_nests import int64

from ..kernels.programs import module_of

_op = relax.op


@dataclass(frozen=True)
class Example:
    """A graph, as input shapes and a body, and the passes that come before the one in question."""

    shapes: tuple[tuple[int, ...], ...]
    body: Callable[..., relax.Expr]
    before: tuple[str, ...] = ()

    def module(self) -> IRModule:
        return module_of(self.shapes, self.body)


def applied(example: Example) -> IRModule:
    """Return the module of `example` behind the passes that come before the one in question."""
    module = example.module()
    for each in example.before:
        module = parse_spec(each).apply(module)
    return module


def filled(*shape: int) -> relax.Expr:
    """A weight of small whole numbers, which add up exactly."""
    return relax.const((np.arange(np.prod(shape)) % 5 - 2).reshape(shape).astype("float32"))


def _emit(expr: relax.Expr) -> relax.Var:
    """A binding of its own in the module being built."""
    return relax.BlockBuilder.current().emit(expr)


def _conv_and(last: Callable[[relax.Expr], relax.Expr]) -> Callable[[relax.Expr], relax.Expr]:
    return lambda x: last(_op.nn.relu(_op.nn.conv2d(x, filled(2, 1, 1, 1))))


def _batch_norm(x: relax.Expr) -> relax.Expr:
    numbers = (relax.const(np.array(values, "float32")) for values in ([1, 2], [0, 1], [3, 4], [1, 1]))
    return _op.nn.batch_norm(_op.nn.conv2d(x, filled(2, 1, 1, 1)), *numbers, axis=1)[0]


def _pool(x: relax.Expr) -> relax.Expr:
    return _op.nn.max_pool2d(x, (2, 2), (2, 2))


def _softmax(x: relax.Expr) -> relax.Expr:
    """Built of its parts, two of which reduce."""
    found = _op.exp(_op.subtract(x, _op.max(x, [1], True)))
    return _op.divide(found, _op.sum(found, [1], True))


def _folded(x: relax.Expr) -> relax.Expr:
    """Reads a constant transposed, which stays its size, and one broadcast, which grows."""
    grown = _op.broadcast_to(relax.const(np.array([[1], [2]], "float32")), (2, 4))
    return _op.add(_op.matmul(x, _op.permute_dims(filled(4, 3))), grown)


_KERNELS = ("legalize",)
_PLANE = ((1, 1, 4, 4),)
_ROW = ((2, 3),)


def _attention(x: relax.Var) -> relax.Expr:
    """Build two heads of attention over three tokens, and their projection."""

    def heads(*order: int) -> relax.Expr:
        by_head = _emit(_op.reshape(_emit(_op.matmul(x, filled(4, 4))), (1, 3, 2, 2)))
        return _emit(_op.permute_dims(by_head, order))

    scores = _emit(_op.nn.softmax(_emit(_op.matmul(heads(0, 2, 1, 3), heads(0, 2, 3, 1)))))
    means = _emit(_op.permute_dims(_emit(_op.matmul(scores, heads(0, 2, 1, 3))), (0, 2, 1, 3)))
    return _op.matmul(_emit(_op.reshape(means, (1, 3, 4))), filled(4, 2))


def recurrence(x: relax.Var, shared: bool = True) -> relax.Expr:
    """Build h' = x[t] · W + h over four steps; without `shared` weights, W is the slice of a step too."""
    loop = LoopKernel(4)
    sequence, weights, start = (
        loop.param(*each, "float32") for each in (("x", (4, 2)), ("w", (4, 2, 3)), ("h0", (3,)))
    )
    state = loop.param("h", (3,), "float32")
    loop.copy(start, state, first=True)
    product, total = loop.buffer("product", (3,), "float32"), loop.buffer("total", (3,), "float32")
    here = loop.sliced(weights, False) if not shared else Place(weights.buffer, (int64(0),))
    loop.stage("product", te.create_prim_func(_vector_product()), [loop.sliced(sequence, False), here, product])
    loop.stage("add", te.create_prim_func(_vector_sum()), [product, state, total])
    loop.copy(total, state)
    callee = relax.BlockBuilder.current().add_func(loop.made(), "loop")
    return relax.call_tir(callee, (x, filled(4, 2, 3), filled(3)), relax.TensorType((3,), "float32"))


def _vector_product() -> list[Tensor]:
    x, w, k = te.placeholder((2,), name="x"), te.placeholder((2, 3), name="w"), te.reduce_axis((0, 2), "k")
    return [x, w, te.compute((3,), lambda i: te.sum(x[k] * w[k, i], k), name="product")]


def _vector_sum() -> list[Tensor]:
    one, other = te.placeholder((3,), name="one"), te.placeholder((3,), name="other")
    return [one, other, te.compute((3,), lambda i: one[i] + other[i], name="sum")]


EXAMPLES = {
    "adjust-matmul-order": Example(((8, 2), (2, 8), (8, 1)), lambda a, b, c: _op.matmul(_op.matmul(a, b), c)),
    "canonicalize-bindings": Example(_ROW, lambda x: _op.nn.relu(relax.Tuple([x, x])[1])),
    "dead-code-elimination": Example(_ROW, lambda x: (_emit(_op.abs(x)), _op.exp(x))[1]),
    "decompose-ops-for-inference": Example(_PLANE, _batch_norm),
    "distribute-loops": Example(((4, 2),), recurrence),
    "distribute-loops{trips=2}": Example(((4, 2),), recurrence),
    "eliminate-common-subexpr": Example(_ROW, lambda x: _op.add(_op.exp(x), _op.exp(x))),
    "fast-math": Example(_ROW, lambda x: _op.exp(_op.tanh(x))),
    "fold-batchnorm-to-conv2d": Example(_PLANE, _batch_norm),
    "fold-constant": Example(_ROW, _folded, _KERNELS),
    "fold-constant{grow=0}": Example(_ROW, _folded, _KERNELS),
    "fuse-by-mapping": Example(_PLANE, _conv_and(_pool), _KERNELS),
    "fuse-by-mapping{objective=latency}": Example(_ROW, _softmax, _KERNELS),
    "fuse-operators": Example(_PLANE, _conv_and(_pool), _KERNELS),
    "fuse-operators{over=pooling}": Example(_PLANE, _conv_and(_pool), _KERNELS),
    "fuse-operators{over=reduction}": Example(_PLANE, _conv_and(lambda x: _op.mean(x, [2, 3])), _KERNELS),
    "fuse-operators{keep=1}": Example(_ROW, lambda x: _op.tanh(_op.exp(_op.abs(_op.negative(x)))), _KERNELS),
    "fuse-operators{depth=2}": Example(_ROW, lambda x: _op.exp(_op.abs(_op.negative(x))), _KERNELS),
    "fuse-transpose-matmul": Example(((2, 3), (4, 3)), lambda x, w: _op.matmul(x, _op.permute_dims(w))),
    "legalize": Example(_ROW, lambda x: _op.nn.relu(_op.cumsum(x, 1))),
    "remove-redundant-reshape": Example(_ROW, lambda x: _op.reshape(_op.reshape(x, (6,)), (3, 2))),
    "simplify": Example(_ROW, lambda x: _op.nn.relu(_op.multiply(_op.add(x, relax.const(0.0)), relax.const(1.0)))),
    "split-heads": Example(((1, 3, 4),), _attention),
    "to-mixed-precision": Example(((2, 3), (3, 2)), lambda x, w: _op.nn.relu(_op.matmul(x, w))),
    "to-mixed-precision{sum=float16}": Example(((2, 3), (3, 2)), lambda x, w: _op.nn.relu(_op.matmul(x, w))),
}
