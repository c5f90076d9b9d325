"""Hoist choices by the number of a call out of its loops: a row of a concatenation comes from one operand, or from the other.

for y, x: result[c, y, x] = a[c, y, x] if c < 24 else b[c - 24, y, x]      c is the number of the call
if c < 24: for y, x: result[c, y, x] = a[c, y, x]
else:      for y, x: result[c, y, x] = b[c - 24, y, x]                      loops over one operand have vectors
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import Call, Expr, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import For, IfThenElse, PrimFunc, Stmt
from tvm.tirx.analysis import undefined_vars

from ...tir.expressions import collect, is_choice, is_one, loads, replaced
from ...tir.loop_nests import kernel_of, renewed, statements
from ...tir.switches import switchable


@switchable
def decide_once(kernel: PrimFunc) -> PrimFunc:
    """Hoist choices out of loops by the first parameter, the number of a call; return `kernel` itself if it has none."""
    body, (number, *_) = kernel.body, kernel.params
    if not isinstance(body, SBlockRealize):
        return kernel
    parts = statements(body.block.body)
    found = [_decide(part, number) for part in parts]
    if all(one.same_as(other) for one, other in zip(found, parts)):
        return kernel
    return kernel_of(list(kernel.params), found, body.block.alloc_buffers, kernel.attrs)


def _decide(nest: Stmt, number: Var) -> Stmt:
    """Hoist the choices of a nest by the number."""
    if not isinstance(nest, For):
        return nest
    single = {loop.loop_var: loop.min for loop in collect(nest, For) if is_one(loop.extent)}
    axes = (axis for block in collect(nest, SBlock) for axis in block.iter_vars)
    single |= {axis.var: axis.dom.min for axis in axes if is_one(axis.dom.extent)}
    choices = (replaced(each.args[0], single) for each in collect(nest, Call) if _chooses_operand(each))
    asked = [condition for condition in choices if {*undefined_vars(condition)} == {number}]
    if not asked:
        return nest

    def by(branch: int) -> Stmt:
        def taken(each: Call) -> Expr:
            same = _chooses_operand(each) and tvm_ffi.structural_equal(replaced(each.args[0], single), asked[0])
            return each.args[branch] if same else each

        return _decide(renewed(tvm_ffi.structural_map(nest, (Call, taken))), number)

    return IfThenElse(asked[0], by(1), by(2))


def _chooses_operand(call: Call) -> bool:
    """Return whether a call chooses between operands. Padding stays: a copy of the loops for each row of a window is long."""
    return is_choice(call) and all(map(loads, call.args[1:]))
