"""Declare the operators for sums along runs of bytes; codegen/expand/products.py writes them for a target."""

from tvm.ir import Call, Expr

from .declare import call, declare

#: bytes of a run, and the sums it is added to
RUN, SUMS = 16, 4
RUNS, TOTALS = declare("passfit.runs"), declare("passfit.totals")


def runs(sums: Expr, weights: Expr, values: Expr) -> Call:
    """Add products of sixteen int8 to four int32, the second half subtracted: in a vectorised loop of four.

    Lane i adds w · x of the bytes 2 i and 2 i + 1, and takes off those of 8 + 2 i and 9 + 2 i. An int16 holds the
    difference of two products: it is from -32512 to 32640. `weights` and `values` are int32 of four bytes each.
    """
    return call(RUNS, "int32", sums, weights, values)


def totals(*sums: Expr) -> Call:
    """Add up four loads, neighbours in memory: in a vectorised loop of fours, the loads fill memory without gaps."""
    assert len(sums) == SUMS
    return call(TOTALS, "int32", *sums)
