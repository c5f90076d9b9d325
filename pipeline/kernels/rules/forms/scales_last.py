"""Multiply sums of products, not their terms, by the scales of quantised weights.

    sum[m, n] = Σ a[m, k] · (float(w[k, n]) · scale[n]);  y = relu(sum[m, n])            one product more for each term

    sum[m, n] = Σ a[m, k] · float(w[k, n]);               y = relu(sum[m, n] · scale[n])

Equal but for rounding. The weight is then the only operand that moves along n: rules may repack its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import Add, BufferStore, Mul, PrimFunc, Stmt
from tvm.tirx.analysis import undefined_vars

from ....tir.expressions import is_dequantised, loads, reads, replaced
from ....tir.loop_nests import (
    buffer_of,
    fresh_axes,
    int64,
    kernel_of,
    move_accesses,
    nest_of,
)
from ....tir.switches import switchable
from .on_blocks import on_blocks


@switchable
@on_blocks
def scales_last(kernel: PrimFunc, blocks: Sequence[SBlock]) -> PrimFunc | None:
    """Return `kernel` with sums over quantised weights that their readers scale."""
    scaled = {block.body.buffer: found for block in blocks if (found := _scaled(block, blocks)) is not None}
    return _rewritten(kernel, blocks, scaled) if scaled else None


def _scaled(block: SBlock, blocks: Sequence[SBlock]) -> tuple[BufferStore, Expr] | None:
    """Return the update of a sum without its scale, and the scale; None for another form."""
    update = block.body
    total = update.value
    if block.init is None or not isinstance(total, Add) or str(total.ty.dtype) != "float32":
        return None
    others = [each for each in blocks if not each.same_as(block)]
    if any(each.body.buffer.same_as(update.buffer) for each in others):
        return None
    if any(each.init is not None and reads(each.body.value, update.buffer) for each in others):
        return None
    axes = {index for index in update.indices if isinstance(index, Var)}
    for own, term in ((total.a, total.b), (total.b, total.a)):
        if isinstance(own, TensorLoad) and own.source.same_as(update.buffer):
            factors = _factors(term)
            apart = [
                each
                for each in factors
                if loads(each) and set(undefined_vars(each)) <= axes | {load.source for load in loads(each)}
            ]
            rest = [each for each in factors if not any(each.same_as(one) for one in apart)]
            if apart and len(rest) == 2 and any(map(is_dequantised, rest)):
                return BufferStore(update.buffer, own + _product(rest), update.indices), _product(apart)
    return None


def _factors(term: Expr) -> list[Expr]:
    return [*_factors(term.a), *_factors(term.b)] if isinstance(term, Mul) else [term]


def _product(factors: Sequence[Expr]) -> Expr:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def _rewritten(kernel: PrimFunc, blocks: Sequence[SBlock], scaled: dict[Var, tuple[BufferStore, Expr]]) -> PrimFunc:
    """Return the kernel with each sum of `scaled` unscaled, and its readers scaling it; a result gets a reader."""
    results = set(kernel.params)
    sums = {
        buffer: buffer_of(f"{buffer.name}_sum", list(map(int, buffer.ty.shape)), "float32")
        for buffer in scaled
        if buffer in results
    }
    scales = {buffer: (store.indices, scale) for buffer, (store, scale) in scaled.items()}

    def load(each: TensorLoad) -> Expr:
        if each.source not in scales:
            return each
        indices, scale = scales[each.source]
        return each * replaced(scale, {axis: at for axis, at in zip(indices, each.indices) if isinstance(axis, Var)})

    nests: list[Stmt] = []
    for block in blocks:
        written, init = block.body.buffer, block.init
        store = scaled[written][0] if written in scaled else tvm_ffi.structural_map(block.body, (TensorLoad, load))
        own = sums.get(written)
        if own is not None:
            store, init = (move_accesses(each, {written: own}) for each in (store, init))
        axes, fresh = fresh_axes(block)
        start = None if init is None else replaced(init, fresh)
        nests.append(nest_of(axes, block.name_hint, replaced(store, fresh), start))
        if own is not None:
            nests.append(_copy(block, own, scaled[written][1]))
    return kernel_of(kernel.params, nests, [*kernel.body.block.alloc_buffers, *sums.values()], kernel.attrs)


def _copy(block: SBlock, own: Var, scale: Expr) -> Stmt:
    """Return the loops that scale the sums of `block` from `own` into its result."""
    written, indices = block.body.buffer, list(block.body.indices)
    axes, fresh = fresh_axes(block)
    axes = [axis for axis in axes if int(axis.iter_type) == 0]
    at = [replaced(index, fresh) if isinstance(index, Var) else int64(0) for index in indices]
    return nest_of(
        axes, f"{block.name_hint}_scaled", BufferStore(written, tirx.BufferLoad(own, at) * replaced(scale, fresh), at)
    )
