"""Declare the operators for sums along runs of bytes; codegen/expand/byte_runs.py writes them for a target."""

from collections.abc import Sequence

from tvm.ir import Call, Expr, Op, PrimType
from tvm.tirx import const

from . import declare

#: bytes of a run, and the sums it is added to
RUN, SUMS = 16, 4
RUNS, TOTALS = "passfit.runs", "passfit.totals"
GROUP, ACROSS, TURNED = "passfit.group", "passfit.across", "passfit.turned"
declare(RUNS, TOTALS, GROUP, ACROSS, TURNED)


def runs(sums: Expr, weights: Expr, values: Expr) -> Call:
    """Add products of sixteen int8 to four int32, the second half subtracted: in a vectorised loop of four.

    Lane i adds w · x of the bytes 2 i and 2 i + 1, and takes off those of 8 + 2 i and 9 + 2 i. An int16 holds the
    difference of two products: it is from -32512 to 32640. `weights` and `values` are int32 of four bytes each.
    """
    return Call(Op.get(RUNS), [sums, weights, values], ret_ty=PrimType("int32"))


def totals(*sums: Expr) -> Call:
    """Add up four loads, neighbours in memory: in a vectorised loop of fours, the loads fill memory without gaps."""
    assert len(sums) == SUMS
    return Call(Op.get(TOTALS), [*sums], ret_ty=PrimType("int32"))


def group(sums: Expr, weights: Expr, values: Expr, products: Sequence[tuple[int, int]]) -> Call:
    """Add products of bytes to four int32, added up in int16 first: in a vectorised loop of four.

    `weights` loads the first bytes of neighbouring runs, `values` the first of others. A product is half a run of
    weights, by its number, times the same half of a run of values. Lane i adds its bytes 2 i and 2 i + 1. The caller
    proves the sums of each byte to fit into int16.
    """
    numbers = [const(each, "int32") for product in products for each in product]
    return Call(Op.get(GROUP), [sums, weights, values, *numbers], ret_ty=PrimType("int32"))


def across(*sums: Expr) -> Call:
    """Add up four vectors of four: in a vectorised loop of four, lane i is the total of vector i."""
    assert len(sums) == SUMS
    return Call(Op.get(ACROSS), [*sums], ret_ty=PrimType("int32"))


def turned(load: Expr, place: int) -> Call:
    """Read one of four neighbours in memory: in a vectorised loop of fours, lane i reads those of the i-th four."""
    return Call(Op.get(TURNED), [load, const(place, "int32")], ret_ty=PrimType("int32"))
