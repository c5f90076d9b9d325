"""Scale and shift convolutions and products with a constant weight, by way of the weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import relax

from ..dataflow import Dataflow, dtype_of, operator_of, shape_of, static_shape
from .channels import Channels
from .constants import constant_of, is_constant
from .geometry import Geometry

#: factors of a float16 weight at most, or one over it: more would lose its small elements
_HALF_RANGE = 64.0


@dataclass(frozen=True)
class Linear:
    """Describe a call that is linear in its data: one operand, the other a constant weight.

    `taken` and `given` are the channel axes of data and result; `inner` and `outer` those of the weight, which are split
    into groups: a convolution holds the channels of one group along `inner`, a transposed one along `outer`.
    """

    call: relax.Call
    data: relax.Expr
    weight: relax.Expr
    weight_last: bool
    geometry: Geometry | None
    taken: int
    given: int
    inner: int
    outer: int

    @classmethod
    def of(cls, call: relax.Call, graph: Dataflow) -> Linear | None:
        """Read a call; None if no operand is a constant weight of a float dtype."""
        geometry = Geometry.of(call)
        if geometry is not None:
            if not is_constant(call.args[1], graph):
                return None
            axis, kernel = geometry.channel_axis, geometry.kernel_layout
            return cls(
                call, call.args[0], call.args[1], True, geometry, axis, axis, kernel.index("I"), kernel.index("O")
            )
        if operator_of(call) != "relax.matmul" or len({dtype_of(each) for each in (call, *call.args)}) != 1:
            return None
        for place in (1, 0):
            data, weight = call.args[1 - place], call.args[place]
            rank, own, result = (len(shape_of(each) or ()) for each in (data, weight, call))
            if min(rank, own, result) < 2 or not is_constant(weight, graph):
                continue
            if place == 1:
                return cls(call, data, weight, True, None, rank - 1, result - 1, own - 2, own - 1)
            return cls(call, data, weight, False, None, rank - 2, result - 2, own - 1, own - 2)
        return None

    def scaled(self, scale: Channels, graph: Dataflow, *, backward: bool) -> relax.Call | None:
        """Return the call with a weight scaled per channel of its result, if `backward`, or of its data.

        The factor is rounded once to the weight's dtype and so is the product: an error of one unit in the last place.
        None if the channels are others, or the scaled weight is not finite.
        """
        if scale.axis not in (None, self.given if backward else self.taken):
            return None
        dtype = dtype_of(self.weight)
        sizes = np.abs(scale.values[scale.values != 0])
        if dtype == "float16" and sizes.size and max(sizes.max(), 1 / sizes.min()) > _HALF_RANGE:
            return None
        weight = graph.constant(self.weight)
        if weight is None:
            return None
        factor = scale.values.reshape(()) if scale.axis is None else self._factor(scale.values, weight.ndim, backward)
        with np.errstate(over="ignore"):
            new = constant_of(weight * factor.astype(dtype), dtype)
        return None if new is None else self.with_weight(new)

    def _factor(self, values: np.ndarray, rank: int, backward: bool) -> np.ndarray:
        """Return numbers per channel in a shape that broadcasts along the weight."""
        axis, other = (self.outer, self.inner) if backward else (self.inner, self.outer)
        groups = self.geometry.groups if self.geometry is not None else 1
        shape = [1] * rank
        if self.geometry is None or groups == 1 or backward != self.geometry.transposed:
            shape[axis] = -1
            return values.reshape(shape)
        # the axis holds the channels of one group; the other axis tells the group
        whole = static_shape(self.weight)[other]
        matrix = np.repeat(values.reshape(groups, -1), whole // groups, axis=0)
        shape[axis], shape[other] = matrix.shape[1], whole
        return (matrix if other < axis else matrix.T).reshape(shape)

    def with_weight(self, weight: relax.Expr) -> relax.Call:
        """Return the call with another weight."""
        if self.geometry is not None:
            return self.geometry.call(self.data, weight)
        operands = (self.data, weight) if self.weight_last else (weight, self.data)
        return relax.op.matmul(*operands)

    def shifted(self, shift: Channels, graph: Dataflow) -> np.ndarray | None:
        """Return the result for data that is `shift` everywhere, to broadcast along the result.

        None where it differs from place to place: next to padding, in transposed convolutions, in stacks of products.
        """
        if shift.axis not in (None, self.taken):
            return None
        weight = graph.constant(self.weight)
        if weight is None or (self.geometry is None and weight.ndim != 2):
            return None
        if self.geometry is not None and (self.geometry.transposed or not self.geometry.unpadded()):
            return None
        places = tuple(axis for axis in range(weight.ndim) if axis not in (self.inner, self.outer))
        sums = weight.sum(axis=places, dtype="float64") if places else weight
        sums = sums if self.outer < self.inner else sums.T  # [outer, channels of a group]
        groups = self.geometry.groups if self.geometry is not None else 1
        per_group = np.broadcast_to(shift.values, (sums.shape[1] * groups,)).reshape(groups, -1)
        values = np.einsum("goi,gi->go", sums.reshape(groups, -1, sums.shape[1]), per_group, dtype="float64").reshape(
            -1
        )
        return Channels(self.given, values).array(len(static_shape(self.call)))
