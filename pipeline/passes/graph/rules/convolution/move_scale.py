"""Move a scale per channel along the graph to the constants that take it."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..dataflow import Dataflow, dtype_of, operator_of, shape_of, static_shape
from .channels import Channels, is_homogeneous, through
from .constants import constant_of, constant_value
from .linear import Linear

#: new values of variables: together they move a scale
Edits = dict[relax.Var, relax.Expr]
_SUMS, _BOUNDS = ("relax.add", "relax.subtract"), ("relax.maximum", "relax.minimum")
#: operators between a scale and the weights that take it, at most
_DEPTH = 32
#: scales to divide a constant by; smaller or larger ones lose digits
_LEAST, _MOST = 1e-3, 1e3


class MoveScale:
    """Find the edits that move a scale; the values between it and the constants are scaled in place."""

    def __init__(self, graph: Dataflow):
        self._graph = graph

    def into(self, var: relax.Var, call: relax.Call, operand: relax.Expr, scale: Channels) -> Edits | None:
        """Return edits that make `var`, the scaled operand, the operand itself; None if no weights take the scale."""
        edits = self._backward(operand, scale, _DEPTH)
        if edits is None:
            edits = self._forward(var, scale, _DEPTH)
        return None if edits is None else {**edits, var: operand}

    def _backward(self, expr: relax.Expr, scale: Channels, depth: int) -> Edits | None:
        """Return edits that scale a value by the weights before it."""
        graph, call = self._graph, self._graph.value(expr)
        if depth == 0 or graph.uses(expr) != 1 or not isinstance(call, relax.Call):
            return None
        var = graph.variable(expr)
        linear = Linear.of(call, graph)
        if linear is not None and self._graph.is_owned(linear.weight):
            new = linear.scaled(scale, graph, backward=True)
            if new is not None:
                return {var: new}
        name = operator_of(call)
        if name in _SUMS or (name in _BOUNDS and (scale.values >= 0).all()):
            return self._terms(var, call, scale, depth)
        if name == "relax.concat":
            return self._parts(call, scale, depth)
        if name == "relax.matmul":
            return self._matrices(call, scale, depth)
        if name in ("relax.multiply", "relax.divide"):
            return self._factors(call, scale, depth)
        if is_homogeneous(call, scale):
            inner = through(call, scale, backward=True)
            return None if inner is None else self._backward(call.args[0], inner, depth - 1)
        return None

    def _terms(self, var: relax.Var, call: relax.Call, scale: Channels, depth: int) -> Edits | None:
        """Scale both terms of a sum, or of a bound; a constant term becomes a scaled constant."""
        edits: Edits = {}
        terms = list(call.args)
        for place, term in enumerate(call.args):
            constant = self._scale_constant(term, call, scale, inverse=False)
            if constant is not None:
                terms[place] = constant
                continue
            inner = self._backward(term, scale, depth - 1) if shape_of(term) == shape_of(call) else None
            if inner is None or inner.keys() & edits.keys():
                return None
            edits |= inner
        return {**edits, var: relax.Call(call.op, terms, call.attrs, call.ty_args)} if edits else None

    def _parts(self, call: relax.Call, scale: Channels, depth: int) -> Edits | None:
        """Scale every part of a concatenation."""
        fields, shape = self._graph.value(call.args[0]), shape_of(call)
        if not isinstance(fields, relax.Tuple) or shape is None or self._graph.uses(call.args[0]) != 1:
            return None
        axis, start = int(call.attrs.axis) % len(shape), 0
        edits: Edits = {}
        for field in fields.fields:
            extent = static_shape(field)[axis]
            part = scale.with_values(scale.values[start : start + extent]) if scale.axis == axis else scale
            if len(part.values) == 1:
                part = Channels(None, part.values)
            inner = self._backward(field, part, depth - 1)
            if inner is None or inner.keys() & edits.keys():
                return None
            edits |= inner
            start += extent
        return edits

    def _factors(self, call: relax.Call, scale: Channels, depth: int) -> Edits | None:
        """Scale one factor of a product, or the numerator of a quotient, that has all channels."""
        shape = shape_of(call) or ()
        for factor in call.args[: 1 if operator_of(call) == "relax.divide" else 2]:
            own = shape_of(factor) or ()
            axis = None
            if scale.axis is not None:
                axis = scale.axis - len(shape) + len(own)
                if axis < 0 or own[axis] != shape[scale.axis]:
                    continue
            edits = self._backward(factor, Channels(axis, scale.values), depth - 1)
            if edits is not None:
                return edits
        return None

    def _matrices(self, call: relax.Call, scale: Channels, depth: int) -> Edits | None:
        """Scale one factor of a product of two computed matrices: rows of the left, columns of the right."""
        rank = len(shape_of(call) or ())
        for place, axis in ((0, rank - 2), (1, rank - 1)):
            factor = call.args[place]
            own = len(shape_of(factor) or ())
            if scale.axis not in (None, axis) or own < 2 or rank < 2:
                continue
            moved = scale if scale.axis is None else Channels(own - rank + axis, scale.values)
            edits = self._backward(factor, moved, depth - 1)
            if edits is not None:
                return edits
        return None

    def _forward(self, var: relax.Var, scale: Channels, depth: int) -> Edits | None:
        """Return edits that let every reader of `var` take the scale into its weight."""
        graph, edits = self._graph, Edits()
        readers = graph.users(var)
        if depth == 0 or not readers or len(readers) != graph.uses(var):
            return None
        for reader in readers:
            call = graph.value(reader)
            inner = self._reader(reader, call, var, scale, depth) if isinstance(call, relax.Call) else None
            if inner is None or inner.keys() & edits.keys():
                return None
            edits |= inner
        return edits

    def _reader(self, reader: relax.Var, call: relax.Call, var: relax.Var, scale: Channels, depth: int) -> Edits | None:
        linear = Linear.of(call, self._graph)
        if linear is not None:
            new = linear.scaled(scale, self._graph, backward=False) if self._graph.is_owned(linear.weight) else None
            return None if new is None else {reader: new}
        if is_homogeneous(call, scale) and self._graph.same(call.args[0], var):
            moved = through(call, scale, backward=False)
            return None if moved is None else self._forward(reader, moved, depth - 1)
        name = operator_of(call)
        if not (name in _SUMS or (name in _BOUNDS and (scale.values > 0).all())) or shape_of(var) != shape_of(call):
            return None
        terms = [
            each if self._graph.same(each, var) else self._scale_constant(each, call, scale, inverse=True)
            for each in call.args
        ]
        if None in terms:
            return None
        inner = self._forward(reader, scale, depth - 1)
        return None if inner is None else {**inner, reader: relax.Call(call.op, terms, call.attrs, call.ty_args)}

    def _scale_constant(
        self, expr: relax.Expr, call: relax.Call, scale: Channels, *, inverse: bool
    ) -> relax.Expr | None:
        """Return a constant term of `call`, scaled; None if it is computed, or would grow beyond both operands."""
        value = constant_value(expr, self._graph)
        if value is None:
            return None
        if not value.any():
            return expr  # zero scaled, which stays one number
        factor = scale.array(len(shape_of(call) or ()))
        if inverse and not ((np.abs(factor) >= _LEAST) & (np.abs(factor) <= _MOST)).all():
            return None
        new = value / factor if inverse else value * factor
        return None if new.size > max(value.size, factor.size) else constant_of(new, dtype_of(call))
