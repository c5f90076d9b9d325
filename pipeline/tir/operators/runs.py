"""Declare the operators for sums along runs of bytes; codegen/expand/byte_runs.py writes them for a target."""

from tvm.ir import Call, Expr, Op, PrimType, register_op_attr

#: bytes of a run, and the sums it is added to
RUN, SUMS = 16, 4
RUNS, TOTALS = "passfit.runs", "passfit.totals"
for _name in (RUNS, TOTALS):
    register_op_attr(_name, "TVectorizable", True)
    register_op_attr(_name, "TCallEffectKind", 1)


def runs(sums: Expr, weights: Expr, values: Expr) -> Call:
    """Add the products of sixteen int8 to four int32, less those of the second half: in a vectorised loop of four.

    Lane i adds w · x of the bytes 2 i and 2 i + 1, and takes off those of 8 + 2 i and 9 + 2 i. An int16 holds the
    difference of two products: it is from -32512 to 32640. `weights` and `values` are int32 of four bytes each.
    """
    return Call(Op.get(RUNS), [sums, weights, values], ret_ty=PrimType("int32"))


def totals(*sums: Expr) -> Call:
    """Add up four loads, neighbours in memory: in a vectorised loop of fours, the loads fill memory without gaps."""
    assert len(sums) == SUMS
    return Call(Op.get(TOTALS), [*sums], ret_ty=PrimType("int32"))
