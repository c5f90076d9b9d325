"""Name the operators that rules treat alike, as Relax names them."""

from __future__ import annotations


def relax_operators(names: str) -> frozenset[str]:
    """Return the names of operators as Relax has them: `relax.add` for `add`."""
    return frozenset(f"relax.{name}" for name in names.split())


#: one tensor in, each element of the result from the element in its place; numbers next to it are bounds
UNARY = relax_operators(
    "abs acos acosh asin asinh astype atan atanh bitwise_not ceil clip cos cosh erf exp floor isfinite isinf isnan log"
    " logical_not negative nn.gelu nn.gelu_tanh nn.leakyrelu nn.relu nn.relu6 nn.selu nn.silu nn.softplus round rsqrt"
    " sigmoid sign sin sinh sqrt square tan tanh trunc"
)
#: two tensors in, broadcast to each other
BINARY = relax_operators(
    "add atan2 bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal left_shift"
    " less less_equal log_add_exp logical_and logical_or logical_xor maximum minimum mod multiply not_equal power"
    " right_shift subtract"
)
#: all that work element by element: each operand that is a tensor broadcasts to the result
ELEMENTWISE = UNARY | BINARY | relax_operators("where")
#: the same elements in the same order
RESHAPES = relax_operators("reshape flatten nn.batch_flatten squeeze expand_dims")
#: poolings, of one to three dimensions
MAX_POOLS = relax_operators("nn.max_pool1d nn.max_pool2d nn.max_pool3d")
AVERAGE_POOLS = relax_operators("nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d")
REDUCTIONS = relax_operators("sum mean max min prod")
#: the result is one of the operands, so any order and any repetition gives the same bits
LATTICE = relax_operators("maximum minimum logical_and logical_or bitwise_and bitwise_or")
#: no result is below 0
NEVER_NEGATIVE = relax_operators("abs exp sigmoid sqrt square nn.relu nn.relu6 nn.softmax")
#: operands may come in any order; floats re-associate
COMMUTATIVE = LATTICE | relax_operators("add multiply bitwise_xor")


def is_float(dtype: str) -> bool:
    """Return whether a dtype holds floating-point numbers."""
    return dtype.startswith(("float", "bfloat"))


def is_integer(dtype: str) -> bool:
    """Return whether a dtype holds whole numbers, which wrap around; booleans are none."""
    return dtype.startswith(("int", "uint"))
