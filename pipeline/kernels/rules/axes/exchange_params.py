"""Exchange parameters of a scheduled kernel for parameters of other shapes, with their accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ....tir.loop_nests import all_of


def exchange_params(
    scheduled: PrimFunc,
    made: Mapping[Var, Var],
    placed: Callable[[Var, Sequence[Expr]], list[Expr]],
    guarded: Callable[[BufferStore], Stmt] = lambda store: store,
) -> PrimFunc:
    """Return the kernel with the parameters `made`, by the one each replaces; the others stay.

    `placed` gives the indices in the new parameter for those in the former one; `guarded` may put a condition around a
    store to a new one. Blocks claim regions whole.
    """

    def load(each: TensorLoad) -> TensorLoad:
        if each.source not in made:
            return each
        return tirx.BufferLoad(made[each.source], placed(each.source, each.indices))

    def store(each: BufferStore) -> Stmt:
        if each.buffer not in made:
            return each
        return guarded(BufferStore(made[each.buffer], each.value, placed(each.buffer, each.indices)))

    def region(each: TensorRegion) -> TensorRegion:
        return all_of(made[each.source]) if each.source in made else each

    body = tvm_ffi.structural_map(scheduled.body, [(TensorLoad, load), (BufferStore, store), (TensorRegion, region)])
    return PrimFunc([made.get(param, param) for param in scheduled.params], body, attrs=scheduled.attrs)
