"""Hide differences, comparisons and logic of floats before TVM simplifies them.

    x - x               ─►    x + x * -1             TVM (0.27) takes the first for 0
    (x + y) - y         ─►    (x + y) + y * -1       this for x
    x == x              ─►    not isnan(x)           this for true
    not x < y           ─►    (x < y) xor true       this for y <= x
    x < y or y <= x     ─►    (x < y) | (y <= x)     this for true
    x != y              ─►    (x == y) xor true      and LLVM's comparison for false if one is NaN

None of that holds for infinities, NaN and rounded sums. LLVM makes subtractions and comparisons of the new forms again.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, IRModule
from tvm.tirx import EQ, GE, GT, LE, LT, NE, Add, Not, Or, PrimFunc, Sub

from ..expressions import collect, loads

_COMPARISONS = (EQ, NE, LT, LE, GT, GE)


@tirx.transform.prim_func_pass(opt_level=0, name="passfit.FloatDifferences")
def float_differences(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    """Replace differences of floats that cancel, and what is not the same of comparisons with NaN."""
    rules = [(Sub, _difference), ((EQ, NE), _comparison), (Not, _negation), (Or, _choice)]
    return function.with_body(tvm_ffi.structural_map(function.body, rules, order="post"))


def _difference(difference: Sub) -> Expr:
    a, b = difference.a, difference.b
    if not _is_float(b) or not (_equal(a, b) or _is_term(b, a) or _is_term(a, b)):
        return difference
    return Add(a, b * tirx.const(-1.0, str(b.ty.dtype)))


def _comparison(comparison: EQ | NE) -> Expr:
    if not _is_float(comparison.a):
        return comparison
    if not _equal(comparison.a, comparison.b):
        return comparison if isinstance(comparison, EQ) else _opposite(EQ(comparison.a, comparison.b))
    unknown = tirx.isnan(comparison.a)
    return unknown if isinstance(comparison, NE) else Not(unknown)


def _negation(negation: Not) -> Expr:
    return _opposite(negation.a) if _compares_floats(negation.a) else negation


def _choice(choice: Or) -> Expr:
    both = _compares_floats(choice.a) and _compares_floats(choice.b)
    return tirx.bitwise_or(choice.a, choice.b) if both else choice


def _opposite(condition: Expr) -> Expr:
    return tirx.bitwise_xor(condition, tirx.const(True, "bool"))


def _compares_floats(condition: Expr) -> bool:
    return any(_is_float(each.a) for each in collect(condition, *_COMPARISONS))


def _is_float(expr: Expr) -> bool:
    return "float" in str(expr.ty.dtype)


def _is_term(expr: Expr, total: Expr) -> bool:
    return isinstance(total, Add) and (_equal(total.a, expr) or _equal(total.b, expr))


def _equal(one: Expr, other: Expr) -> bool:
    """Return whether two values are the same once their indices are simplified."""
    if type(one) is not type(other):
        return False
    reads = [[load.source for load in loads(each)] for each in (one, other)]
    if len(reads[0]) != len(reads[1]) or not all(a.same_as(b) for a, b in zip(*reads)):
        return False
    analyzer = sym.Analyzer()
    return tvm_ffi.structural_equal(one, other) or tvm_ffi.structural_equal(
        analyzer.simplify(one), analyzer.simplify(other)
    )
