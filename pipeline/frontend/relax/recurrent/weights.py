"""Bring the weights and biases of a recurrent node into the order in which its kernel reads them."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from .arrays import Cell


def packed(builder: relax.BlockBuilder, weights: relax.Expr, cell: Cell) -> relax.Expr:
    """Order weights (directions, gates × hidden, inputs) for `cell`.

    Constants become (directions, all): tiles of units, in each (inputs, gates, units). Others become (directions,
    inputs, gates × hidden).
    """
    if not isinstance(weights, GenericConst):
        return builder.emit(relax.op.permute_dims(weights, [0, 2, 1]))
    array = weights.value.numpy()
    return relax.const(np.stack([_packed(each, cell) for each in array]))


def _packed(array: np.ndarray, cell: Cell) -> np.ndarray:
    gates = array.reshape(cell.gates, -1, array.shape[1])
    starts = range(0, gates.shape[1], cell.tile)
    return np.concatenate([gates[:, start : start + cell.tile].transpose(2, 0, 1).ravel() for start in starts])


def summed(builder: relax.BlockBuilder, bias: relax.Expr, cell: Cell) -> relax.Expr:
    """Add the biases of W and R, (directions, 2 × gates × hidden) together; return (directions, sums × hidden).

    They stay apart for the last gate if R's is reset first: then they are the last two.
    """
    size = int(bias.ty.shape[1]) // (2 * cell.gates)
    apart = size if cell.linear_before_reset else 0
    if isinstance(bias, GenericConst):
        array = bias.value.numpy()
        w, r = np.split(array, 2, axis=1)
        both = w.shape[1] - apart
        return relax.const(np.concatenate([w[:, :both] + r[:, :both], w[:, both:], r[:, both:]], axis=1))

    def part(start: int, end: int) -> relax.Expr:
        return relax.op.strided_slice(bias, [1], [start * size], [end * size], assume_inbound=True)

    gates, both = cell.gates, cell.gates - bool(apart)
    parts = [relax.op.add(part(0, both), part(gates, gates + both))]
    if apart:
        parts += [part(both, gates), part(gates + both, 2 * gates)]
    return builder.emit(relax.op.concat(parts, 1)) if apart else builder.emit(parts[0])
