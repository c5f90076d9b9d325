"""Hold numbers per channel, and read calls that scale and shift by them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ..dataflow import Dataflow, dtype_of, operator_of, shape_of
from .constants import FLOATS, constant_of


@dataclass(frozen=True)
class Channels:
    """Numbers along one axis of a value, float64; `axis` is None for one number."""

    axis: int | None
    values: np.ndarray

    @classmethod
    def of(cls, constant: np.ndarray, rank: int) -> Channels | None:
        """Read a constant broadcast to a value of `rank`; None if it varies along several axes."""
        shape = (1,) * (rank - constant.ndim) + constant.shape
        axes = [axis for axis, extent in enumerate(shape) if extent > 1]
        if len(axes) > 1 or len(shape) > rank:
            return None
        return cls(axes[0] if axes else None, constant.reshape(-1).astype("float64"))

    def array(self, rank: int) -> np.ndarray:
        """Return the numbers in the shape that broadcasts along a value of `rank`."""
        return self.values.reshape(() if self.axis is None else (-1,) + (1,) * (rank - self.axis - 1))

    def with_values(self, values: np.ndarray) -> Channels:
        return Channels(self.axis, values)


@dataclass(frozen=True)
class Affine:
    """Scale, then shift, per channel; None for 1 and 0."""

    scale: Channels | None = None
    shift: Channels | None = None

    def reduced(self) -> Affine:
        """Return the same map without a scale of 1 or a shift of 0."""
        scale = None if self.scale is None or (self.scale.values == 1).all() else self.scale
        return Affine(scale, None if self.shift is None or (self.shift.values == 0).all() else self.shift)

    def after(self, first: Affine) -> Affine | None:
        """Return `self` of `first`; None if they have numbers along different axes."""
        parts = [each for each in (self.scale, self.shift, first.scale, first.shift) if each is not None]
        axes = {each.axis for each in parts} - {None}
        if len(axes) > 1:
            return None
        axis = axes.pop() if axes else None
        scale = [each.values for each in (self.scale, first.scale) if each is not None]
        moved = [] if first.shift is None else [first.shift.values * (self.scale.values if self.scale else 1.0)]
        shift = moved + ([] if self.shift is None else [self.shift.values])
        whole = Affine(_along(axis, math.prod(scale)) if scale else None, _along(axis, sum(shift)) if shift else None)
        return whole.reduced()

    def of(self, x: relax.Expr) -> relax.Expr | None:
        """Return the expression; None if a number is not finite in the dtype of `x`."""
        rank, dtype = len(shape_of(x) or ()), dtype_of(x)
        for operator, each in ((relax.op.multiply, self.scale), (relax.op.add, self.shift)):
            if each is not None:
                constant = constant_of(each.array(rank), dtype)
                if constant is None:
                    return None
                x = operator(x, constant)
        return x


def _along(axis: int | None, values: np.ndarray) -> Channels:
    return Channels(axis if len(values) > 1 else None, values)


#: operators that are an affine step where one operand is a constant
STEPS = ("relax.add", "relax.subtract", "relax.multiply", "relax.divide", "relax.negative")


def affine_step(call: relax.Call, graph: Dataflow) -> tuple[relax.Expr, Affine] | None:
    """Read a call of STEPS as an affine map of its operand; None unless its constant broadcasts to the operand."""
    name, shape = operator_of(call), shape_of(call)
    if name not in STEPS or shape is None or dtype_of(call) not in FLOATS:
        return None
    minus = Channels(None, np.array([-1.0]))
    if name == "relax.negative":
        return call.args[0], Affine(minus)
    for place in (1, 0):
        operand = call.args[1 - place]
        constant = graph.constant(call.args[place]) if shape_of(operand) == shape else None
        channels = None if constant is None else Channels.of(constant, len(shape))
        if channels is None or not np.isfinite(channels.values).all():
            continue
        if name == "relax.add":
            return operand, Affine(None, channels)
        if name == "relax.multiply":
            return operand, Affine(channels)
        if name == "relax.subtract":
            return operand, (Affine(None, channels.with_values(-channels.values)) if place else Affine(minus, channels))
        if place and (channels.values != 0).all():
            return operand, Affine(channels.with_values(1 / channels.values))
    return None
