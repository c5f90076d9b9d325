"""Project the features of a head after its attention, so that keys and values are never whole.

    softmax(q · (x · K + k)ᵀ) · (x · V + v)  ─►  softmax((q · Kᵀ) · xᵀ) · x · V + v

The bias of the keys adds the same number to all scores of a row, which changes no share; shares sum to one, so the bias
of the values stays. Imports TVM: only imported once a graph is transformed.
"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_lowercase
from typing import NamedTuple

from tvm import relax
from tvm.ir import GenericConst

from ..rules.dataflow import axes_of
from ..rules.operators import RESHAPES
from .slice_propagation import NotSliceable, shape_of

#: operators that keep a number added to a whole row the same for all of it; factors must not vary along the row
_SCALING = ("relax.multiply", "relax.divide")
_LINEAR = ("relax.add", "relax.subtract", *_SCALING)


class Projection(NamedTuple):
    """Projection of each row of `data` by `weight`, plus `bias` if there is one."""

    data: relax.Expr
    weight: GenericConst
    bias: GenericConst | None


class LateProjection:
    """Emit heads whose projections come late; `value_of` looks up the values of emitted variables."""

    def __init__(self, emit: Callable[[relax.Expr], relax.Var], value_of: Callable[[relax.Var], relax.Expr | None]):
        self._emit, self._value_of = emit, value_of

    def head(self, head: relax.Expr, keys: bool) -> relax.Expr | None:
        """Emit a head with late values, and late `keys` if asked; None for one of another form."""
        try:
            return self._head(head, keys)
        except NotSliceable:
            return None

    def _head(self, head: relax.Expr, keys: bool) -> relax.Expr:
        shares, values = self._call(head, "relax.matmul").args
        softmax = self._call(shares, "relax.nn.softmax")
        projection = self._projection(values)
        last = len(shape_of(shares)) - 1
        if int(softmax.attrs.axis) % (last + 1) != last:
            raise NotSliceable("no shares of rows")
        if keys:
            scores = self._scores(softmax.args[0])
            shares = self._emit(relax.op.nn.softmax(scores, softmax.attrs.axis))
        means = self._emit(relax.op.matmul(shares, projection.data))
        found = self._emit(relax.op.matmul(means, projection.weight))
        return found if projection.bias is None else self._emit(relax.op.add(found, projection.bias))

    def _scores(self, scores: relax.Expr) -> relax.Expr:
        """Emit scores of late keys, through the operators of single elements after the product."""
        call = self._call(scores)
        name = str(getattr(call.op, "name", ""))
        if name == "relax.matmul":
            return self._late_keys(*call.args)
        inner = [
            n
            for n, each in enumerate(call.args)
            if shape_of(each) == shape_of(scores) and not isinstance(each, GenericConst)
        ]
        if len(inner) != 1 or name not in _LINEAR or (inner != [0] and name == "relax.divide"):
            raise NotSliceable("scores of several products, or not linear in one")
        factor = call.args[1 - inner[0]]
        if name in _SCALING and any(extent > 1 for extent in shape_of(factor)[-1:]):
            raise NotSliceable("a factor for each column")
        args = [self._scores(each) if n == inner[0] else each for n, each in enumerate(call.args)]
        return self._emit(relax.Call(call.op, args, call.attrs, call.ty_args))

    def _late_keys(self, queries: relax.Expr, columns: relax.Expr) -> relax.Expr:
        flipped = self._call(columns, "relax.permute_dims")
        rank = len(shape_of(columns))
        if axes_of(flipped) != (*range(rank - 2), rank - 1, rank - 2):
            raise NotSliceable("keys in another order")
        data, weight, _ = self._projection(flipped.args[0])
        turned = relax.const(weight.value.numpy().T.copy(), str(weight.value.dtype))
        wide = self._emit(relax.op.matmul(queries, turned))
        batch = ascii_lowercase[: rank - 2]  # rows times rows: the data is never transposed
        return self._emit(relax.op.einsum(relax.Tuple([wide, data]), f"{batch}xz,{batch}yz->{batch}xy"))

    def _projection(self, expr: relax.Expr) -> Projection:
        """Return the projection that made rows. Raises NotSliceable."""
        call, bias = self._call(expr), None
        shape = shape_of(expr)
        while str(call.op.name) in RESHAPES and shape_of(call.args[0])[-1:] == shape[-1:]:  # the rows stay the same
            call = self._call(call.args[0])
        if str(call.op.name) == "relax.add":
            constants = [each for each in call.args if isinstance(each, GenericConst)]
            others = [each for each in call.args if not isinstance(each, GenericConst)]
            if len(constants) != 1 or shape_of(constants[0]) != shape[-1:]:
                raise NotSliceable("no bias of features")
            (bias,), call = constants, self._call(others[0])
        if str(call.op.name) != "relax.matmul":
            raise NotSliceable("no projection")
        data, weight = call.args
        if not isinstance(weight, GenericConst) or len(shape_of(weight)) != 2:
            raise NotSliceable("no projection by constants")
        rows = (*shape[:-1], shape_of(data)[-1])
        return Projection(data if shape_of(data) == rows else self._emit(relax.op.reshape(data, rows)), weight, bias)

    def _call(self, expr: relax.Expr, name: str = "") -> relax.Call:
        value = self._value_of(expr) if isinstance(expr, relax.Var) else expr
        if not isinstance(value, relax.Call) or (name and str(getattr(value.op, "name", "")) != name):
            raise NotSliceable(f"no {name or 'call'}")
        return value
