"""For each pass, a graph close to the one it changes, on which it has nothing to do."""

from __future__ import annotations

from tvm import relax

from .graphs import Example, filled, recurrence

_op = relax.op

_CANONICAL = ("canonicalize-bindings",)
_KERNELS = ("legalize",)
_DOWN = ("legalize", "fold-constant", "fuse-operators")
_PLANE = ((1, 2, 4, 4),)
_ROW = ((2, 3),)
_TWO_ROWS = ((2, 3), (2, 3))


def _chain(x: relax.Expr) -> relax.Expr:
    """Two steps, since no kernel spans two products."""
    return _op.matmul(_op.matmul(x, filled(3, 3)), filled(3, 3))


def _pool(x: relax.Expr) -> relax.Expr:
    return _op.nn.max_pool2d(x, (2, 2), (1, 1))


#: of graphs and kernels: the pass returns a module of the same structure
TWINS = {
    # the product on the left is the cheap one already
    "adjust-matmul-order": Example(
        ((1, 8), (8, 8), (8, 8)), lambda a, b, c: _op.matmul(_op.matmul(a, b), c), _CANONICAL
    ),
    "canonicalize-bindings": Example(_ROW, lambda x: _op.nn.relu(x), _CANONICAL),
    "dead-code-elimination": Example(_ROW, lambda x: _op.exp(_op.abs(x))),
    "decompose-ops-for-inference": Example(_PLANE, lambda x: _op.nn.relu(_op.nn.conv2d(x, filled(2, 2, 1, 1)))),
    # a product in each step, but with weights of that step
    "distribute-loops": Example(((4, 2),), lambda x: recurrence(x, shared=False)),
    # the operators are the same, their operands are not
    "eliminate-common-subexpr": Example(_TWO_ROWS, lambda x, y: _op.add(_op.exp(x), _op.exp(y))),
    "fast-math": Example(_ROW, lambda x: _op.sqrt(_op.abs(x))),
    # no batch norm behind the convolution
    "fold-batchnorm-to-conv2d": Example(_PLANE, lambda x: _op.nn.relu(_op.nn.conv2d(x, filled(2, 2, 1, 1)))),
    # no kernel reads constants alone
    "fold-constant": Example(_ROW, lambda x: _op.matmul(x, filled(3, 4)), _KERNELS),
    # windows that overlap: fused, the maxima of the first would be found again
    "fuse-by-mapping": Example(_PLANE, lambda x: _pool(_pool(x)), _KERNELS),
    # no kernel spans two products
    "fuse-operators": Example(_ROW, _chain, _KERNELS),
    # the left operand is the transposed one
    "fuse-transpose-matmul": Example(((3, 2), (3, 4)), lambda x, w: _op.matmul(_op.permute_dims(x), w)),
    # no operator
    "legalize": Example(_ROW, lambda x: x),
    "remove-redundant-reshape": Example(_ROW, lambda x: _op.reshape(x, (3, 2))),
    "simplify": Example(_ROW, lambda x: _op.exp(_op.nn.relu(x))),
    # heads that are joined, but are not a product
    "split-heads": Example(
        ((1, 2, 3, 2),), lambda x: _op.matmul(_op.reshape(_op.permute_dims(x, (0, 2, 1, 3)), (1, 3, 4)), filled(4, 2))
    ),
    # nothing that would be faster in half precision
    "to-mixed-precision": Example(_ROW, lambda x: _op.nn.relu(x)),
}

#: of programs, by spec: the pass returns the same program with the same kernels
PROGRAM_TWINS = {
    # no sum
    "cut-sums": Example(_ROW, lambda x: _op.exp(x), _DOWN),
    # a chain has one order
    "order": Example(_ROW, _chain, _DOWN),
    # the one result may not take the memory of the input
    "share": Example(((2, 3), (3, 3)), lambda x, w: _op.matmul(x, w), _DOWN),
}

#: of steps given by number, by spec: a program they do not fit is refused, in words of which some are given here
REFUSED = {
    # no result has channels
    "layout{steps=0}": (Example(_ROW, _chain, _DOWN), "step 0 cannot lie with channels last"),
    # a step is not run again for itself
    "rematerialise{steps=1,before=1}": (Example(_ROW, _chain, _DOWN), "'rematerialise{steps=1,before=1}' does not fit"),
    # rows of products have no third axis
    "split-channels{steps=0-2}": (Example(_ROW, _chain, _DOWN), "'split-channels{steps=0-2}' does not fit"),
    "split-rows{steps=0-1}": (Example(_ROW, _chain, _DOWN), "'split-rows{steps=0-1}' does not fit"),
}
