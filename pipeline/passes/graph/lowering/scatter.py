"""Lower ScatterElements and ScatterND to loops over the updates.

    result = data
    for each place p of the updates:  result[p, but indices[p] along the axis] ∘= updates[p]                      elements
    for each place p of the updates:  result[indices[p, 0], indices[p, 1], …, rest] ∘= updates[p, rest]           ND

TVM's own rules count places of the data in the shape of the updates, right only where both agree except along the axis;
and add the indices of ScatterND up to one place in all the data, where one beyond its axis lands in another row.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import tvm
from tvm import relax, te, tirx
from tvm.ir import Expr
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt

_Join = Callable[[Expr, Expr], Expr]
#: how an element joins its update
_REDUCTIONS: dict[str, _Join] = {
    "update": lambda _, update: update, "add": lambda one, update: one + update, "mul": lambda one, update: one * update,
    "min": lambda one, update: tirx.min(one, update), "max": lambda one, update: tirx.max(one, update),
}  # fmt: skip
#: extremes that keep the element where the update is NaN
_EXTREMES: dict[str, _Join] = {
    "min": lambda one, update: tirx.min(update, one), "max": lambda one, update: tirx.max(update, one),
}  # fmt: skip
#: extents of the loops around an update, the last ones over the updates; and the element of the result that it goes to
_Walk = tuple[Sequence[int], Callable[[Sequence[Expr], te.Tensor], Sequence[Expr]]]


def legalize_scatter_elements(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.scatter_elements`; a rule for LegalizeOps."""

    def walk(shape: list[int], places: list[int]) -> _Walk:
        axis = int(call.attrs.axis) % len(shape)

        def target(here: Sequence[Expr], indices: te.Tensor) -> Sequence[Expr]:
            index = indices[tuple(here)]
            wrapped = index + tirx.Cast(index.ty.dtype, index < 0) * tirx.const(shape[axis], index.ty.dtype)
            return [*here[:axis], wrapped, *here[axis + 1 :]]

        return places, target

    return _legalize(builder, call, walk, _REDUCTIONS | _EXTREMES)


def legalize_scatter_nd(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.scatter_nd`, whose indices are not negative; a rule for LegalizeOps."""

    def walk(shape: list[int], places: list[int]) -> _Walk:
        *outer, depth = places

        def target(here: Sequence[Expr], indices: te.Tensor) -> Sequence[Expr]:
            return [*(indices[(*here[: len(outer)], axis)] for axis in range(depth)), *here[len(outer) :]]

        return [1, *outer, *shape[depth:]], target  # of one tuple of indices there may be no other loop

    return _legalize(builder, call, walk, _REDUCTIONS)


def _legalize(
    builder: relax.BlockBuilder,
    call: relax.Call,
    walk: Callable[[list[int], list[int]], _Walk],
    joins: Mapping[str, _Join],
) -> relax.Expr:
    """Legalize a scatter by its `walk`, given the shapes of its data and its indices."""
    name, join = call.op.name.removeprefix("relax."), joins[str(call.attrs.reduction)]

    def scatter(data: te.Tensor, indices: te.Tensor, updates: te.Tensor) -> te.Tensor:
        shape, places = ([int(extent) for extent in each.shape] for each in (data, indices))
        extents, target = walk(shape, places)

        def generate(ins: list, outs: list) -> Stmt:
            (given, at, new), (result,) = ins, outs
            with IRBuilder() as ib:
                with T.seq_scope():
                    with ExitStack() as loops:
                        here = [loops.enter_context(T.serial(0, extent)) for extent in (shape or [1])][: len(shape)]
                        T.buffer_store(result, given[tuple(here)], here)
                    with ExitStack() as loops:
                        here = [loops.enter_context(T.serial(0, extent)) for extent in extents]
                        here = here[len(here) - len(updates.shape) :]
                        place = target(here, at)
                        T.buffer_store(result, join(result[tuple(place)], new[tuple(here)]), place)
                return ib.get()

        written = tvm.tirx.decl_buffer(shape, data.dtype, "written")
        operands = [data, indices, updates]
        return te.extern([shape], operands, generate, out_buffers=[written], name=name, tag=name)

    return builder.call_te(scatter, *call.args, primfunc_name_hint=name)
