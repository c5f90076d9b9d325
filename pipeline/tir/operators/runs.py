"""Declare the operators for sums along runs of bytes; codegen/expand/products.py writes them for a target."""

from collections.abc import Sequence

from tvm.ir import Call, Expr

from .declare import call, declare

#: bytes of a run, and the sums it is added to
RUN, SUMS = 16, 4
RUNS, TOTALS = declare("passfit.runs"), declare("passfit.totals")
GROUP, ACROSS, TURNED = declare("passfit.group"), declare("passfit.across"), declare("passfit.turned")


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


def group(sums: Expr, weights: Expr, values: Expr, products: Sequence[tuple[int, int]]) -> Call:
    """Add products of bytes to four int32, added up in int16 first: in a vectorised loop of four.

    `weights` loads the first bytes of neighbouring runs, `values` the first of others. A product is half a run of
    weights, by its number, times the same half of a run of values. Lane i adds its bytes 2 i and 2 i + 1. The caller
    proves the sums of each byte to fit into int16.
    """
    numbers = [each for product in products for each in product]
    return call(GROUP, "int32", sums, weights, values, *numbers)


def across(*sums: Expr) -> Call:
    """Add up four vectors of four: in a vectorised loop of four, lane i is the total of vector i."""
    assert len(sums) == SUMS
    return call(ACROSS, "int32", *sums)


def turned(load: Expr, place: int) -> Call:
    """Read one of four neighbours in memory: in a vectorised loop of fours, lane i reads those of the i-th four."""
    return call(TURNED, "int32", load, place)
