"""Round products on their own in kernels of quantised numbers, so that every target gives the same.

LLVM joins a product and a sum into one instruction with one rounding where a target has it. A number between two steps
of a quantised result then falls to one side or the other. No instruction takes in a product through a maximum: all
finite products are larger than the one here. In kernels with other results, that holds for dequantised numbers alone,
and not for terms of a sum over weights, whose order differs from target to target anyway.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Call, Expr, Var
from tvm.tirx import BufferStore, PrimFunc

from ...tir.expressions import collect, map_body
from ...tir.switches import switchable
from ..bare.helium import has_vectors
from .shuffle import constant

#: the least finite float32
_LEAST = -3.4028234663852886e38
#: operations that a product enters without being joined
_OTHERS = (tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Cast)


@switchable
def separate_products(kernel: PrimFunc) -> PrimFunc:
    """Return a lowered, vectorised kernel without products to join; the same one if it has none of these."""
    every = _is_quantising(kernel)
    if not any(every or _is_dequantised(each) for each in collect(kernel.body, tirx.Mul)):
        return kernel

    def separate(product: tirx.Mul) -> Expr:
        product = _restore(product)
        dtype = str(product.ty.dtype)
        if not dtype.startswith("float32") or not (every or _is_dequantised(product)):
            return product
        if helium and dtype != "float32":  # a maximum is three instructions there
            return _fenced(product)
        return tirx.max(product, tirx.const(_LEAST, dtype))

    helium = has_vectors(kernel, floats=True)
    sums = set() if every else _sums(kernel)

    def restore_in_sums(store: BufferStore) -> BufferStore:
        total = store.value
        if store.buffer not in sums or not isinstance(total, tirx.Add):
            return store
        return BufferStore(store.buffer, _inner(total.a) + _inner(total.b), store.indices)

    maps = [(tirx.Mul, separate), *((kind, _restore) for kind in _OTHERS[1:]), (BufferStore, restore_in_sums)]
    return map_body(kernel, *maps)


def _sums(kernel: PrimFunc) -> set[Var]:
    """Return the buffers that start out as 0: those of sums."""
    starts = ((store.buffer, constant(store.value)) for store in collect(kernel.body, BufferStore))
    return {buffer for buffer, start in starts if isinstance(start, float) and start == 0}


def _is_dequantised(product: tirx.Mul) -> bool:
    """Return whether a product converts an integer to a float."""
    factors = [each for each in (product.a, product.b) if isinstance(each, tirx.Cast)]
    return any("int" in str(each.value.ty.dtype) for each in factors)


def _is_quantising(kernel: PrimFunc) -> bool:
    return any(str(store.value.ty.dtype).startswith(("int8", "uint8")) for store in collect(kernel.body, BufferStore))


def _restore(expr: Expr) -> Expr:
    """Return an operation on products as they were."""
    if isinstance(expr, tirx.Cast):
        value = _inner(expr.value)
        return expr if value.same_as(expr.value) else tirx.Cast(expr.ty.dtype, value)
    a, b = _inner(expr.a), _inner(expr.b)
    return expr if a.same_as(expr.a) and b.same_as(expr.b) else type(expr)(a, b)


def _inner(expr: Expr) -> Expr:
    """Return the product within a maximum or a fence made here, else the expression."""
    if getattr(getattr(expr, "op", None), "name", "") == "tirx.call_llvm_pure_intrin" and _is_fence(expr):
        return expr.args[1]
    if isinstance(expr, tirx.Max) and isinstance(expr.a, tirx.Mul) and constant(expr.b) == _LEAST:
        return expr.a
    return expr


def _is_fence(call: Call) -> bool:
    return int(call.args[0]) == int(_fenced(tirx.const(0, "float32")).args[0])


def _fenced(value: Expr) -> Call:
    kind = f"v{value.ty.dtype.lanes}f32" if value.ty.dtype.lanes > 1 else "f32"
    return tirx.call_llvm_pure_intrin(str(value.ty.dtype), f"llvm.arithmetic.fence.{kind}", value)
