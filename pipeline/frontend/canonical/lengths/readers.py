"""Say how each operator works on a value of open length: what it reads instead, and along which axis its results are open.

What lies behind a length is arbitrary. So a rule holds if no element of a result within its length depends on one behind
that of an operand; where one does, the operand is filled with what changes nothing, or the node refused.
"""

from __future__ import annotations

from .extent import Extent
from .indexing import gather, gather_elements, gather_nd, scatter, spread
from .loops import loop
from .open_graph import Open, Reader, Rule
from .reductions import filling, normalise_all, pool_all, reduce_by
from .reshaping import concat, constant_of_shape, expand, pad, reshape, shape_of, size_of, slice_rows, span, tile


def _elementwise(reader: Reader) -> list[Open | None]:
    """Work on each element, also with operands that are the same for all rows."""
    extent, ranks = (
        reader.only,
        [len(reader.shape(place)) for place in range(len(reader.input)) if reader.has(place)],
    )
    axis = extent.axis
    for place, each in enumerate(reader.opens):
        if each is not None:
            axis = each.axis + max(ranks) - len(reader.shape(place))
    for place, each in enumerate(reader.opens):
        if not reader.has(place):
            continue
        own = axis - max(ranks) + len(reader.shape(place))
        if each is not None and each.axis != own:
            reader.refuse("its operands are open along axes that differ")
        if each is None and own >= 0 and reader.shape(place)[own] != 1:
            reader.refuse(f"'{reader.input[place]}' has a fixed number of rows")
    operands = {}
    if reader.op_type in ("Div", "Mod") and reader.open(1) is not None and reader.dtype(1).kind in "iu":
        operands["_1"] = reader.masked(1, 1)
    reader.keep(**operands)
    kept = reader.op_type in ("Identity", "Cast", "Dropout") and extent.zero
    return [extent.along(axis, kept)]


def _transpose(reader: Reader) -> list[Open | None]:
    rank = len(reader.shape(0))
    order = list(reader.get("perm", range(rank)[::-1]))
    reader.keep()
    return [reader.only.along(order.index(reader.only.axis), reader.only.zero)]


def _along_another(default: int) -> Rule:
    """Return the rule of an operator that works along one axis, by default that one, and keeps the shape."""

    def rule(reader: Reader) -> list[Open | None]:
        if int(reader.get("axis", default)) % len(reader.shape(0)) == reader.only.axis:
            reader.refuse("it works along the axis of the length")
        if any(reader.opens[1:]):
            reader.refuse("an operand but the first is of open length")
        reader.keep()
        return [reader.only.along(reader.only.axis)] * len(reader.output)

    return rule


def _normalise(reader: Reader) -> list[Open | None]:
    """Normalise rows, each by itself, with a scale that all share."""
    if int(reader.get("axis", -1)) % len(reader.shape(0)) <= reader.only.axis or any(reader.opens[1:]):
        reader.refuse("it works along the axis of the length")
    reader.keep()
    return [reader.only.along(reader.only.axis)]


def _accumulate(reader: Reader) -> list[Open | None]:
    extent = reader.only
    axis = int(reader.held(1).item()) % len(reader.shape(0))
    if axis == extent.axis and reader.get("reverse", 0):
        reader.refuse("it adds from the end")
    reader.keep()
    return [extent.along(extent.axis)]


def _product(reader: Reader) -> list[Open | None]:
    """Multiply rows, columns or matrices in open number, or along an open axis of both operands."""
    one, other = reader.open(0), reader.open(1)
    rank, fixed = len(reader.shape(0)), len(reader.shape(1))
    most = max(rank, fixed)
    if one is not None and other is not None:
        if one.length == other.length and (one.axis, other.axis) == (rank - 1, max(fixed - 2, 0)):
            reader.keep(_0=reader.masked(0, 0), _1=reader.masked(1, 0))
            return [None]
        if one.length == other.length and one.axis - rank == other.axis - fixed < -2:
            reader.keep()
            return [one.along(most + one.axis - rank)]
    elif one is not None and one.axis < rank - 1:
        own = one.axis - rank + fixed
        if one.axis < rank - 2 and own >= 0 and reader.shape(1)[own] != 1:
            reader.refuse("its second operand has a fixed number of matrices")
        reader.keep()
        return [one.along(most + one.axis - rank)]
    elif other is not None and other.axis == fixed - 1 > 0:
        reader.keep()
        return [other.along(most - 1 - (rank == 1))]
    reader.refuse("its operands are open along axes that the product does not keep apart")


def _gemm(reader: Reader) -> list[Open | None]:
    rows = reader.open(0)
    if rows is None or any(reader.opens[1:]) or rows.axis or reader.get("transA", 0):
        reader.refuse("only the rows of its first operand may be of open length")
    if reader.has(2) and len(reader.shape(2)) == 2 and reader.shape(2)[0] != 1:
        reader.refuse(f"'{reader.input[2]}' has a fixed number of rows")
    reader.keep()
    return [rows]


def _batched(reader: Reader) -> list[Open | None]:
    """Work on each row of a batch by itself."""
    if reader.open(0) is None or any(reader.opens[1:]) or reader.only.axis:
        reader.refuse("only the batch of its first operand may be of open length")
    reader.keep()
    return [reader.only.along(0)]


def _align_regions(reader: Reader) -> list[Open | None]:
    regions, pictures = reader.open(1), reader.open(2)
    if reader.open(0) is not None or regions is None or pictures is None:
        reader.refuse("its pictures are of open length, or its regions and their pictures are not both")
    extent = reader.only
    reader.keep(_1=reader.masked(1, 0), _2=reader.input[2] if pictures.zero else reader.masked(2, 0))
    return [extent.along(0)]


def _move_axes(reader: Reader) -> list[Open | None]:
    """Insert or remove axes of one element."""
    extent, rank = reader.only, len(reader.shape(0))
    adds = reader.op_type == "Unsqueeze"
    if not reader.has(1):
        reader.refuse("without axes it removes that of a single row")
    given = [int(each) for each in reader.held(1).flat]
    axes = [each % (rank + len(given) if adds else rank) for each in given]
    if not adds and extent.axis in axes:
        reader.refuse("it removes the axis of the length")
    reader.keep()
    if adds:
        axis = [each for each in range(rank + len(axes)) if each not in axes][extent.axis]
    else:
        axis = extent.axis - sum(each < extent.axis for each in axes)
    return [extent.along(axis, extent.zero)]


def _best(reader: Reader) -> list[Open | None]:
    """Select the largest along another axis, or so many along the open one as there are at most."""
    extent, shape, (size,) = reader.open(0), reader.shape(0), reader.held(1).flat
    axis = int(reader.get("axis", -1)) % len(shape)
    if not isinstance(size, Extent):
        if extent is None or extent.axis == axis:
            reader.refuse("it selects a fixed number of rows, and there may be fewer")
        reader.keep()
        return [extent.along(extent.axis)] * 2
    if size.scale < 1 or size.largest > shape[axis] or (extent is not None and extent.axis != axis):
        reader.refuse("it may select more than there are")
    length = reader.graph.length_of(reader.build, size)
    behind = filling("lowest" if reader.get("largest", 1) else "highest", reader.dtype(0))
    reader.keep(**({} if extent is None else {"_0": reader.masked(0, behind)}))
    return [Open(axis, length, size.largest)] * 2


_OF_ELEMENTS = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Celu Clip Cos Cosh DequantizeLinear Div Dropout
    Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log
    Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow QuantizeLinear Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign
    Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor
""".split()
_OF_BATCHES = "AveragePool BatchNormalization Conv ConvTranspose InstanceNormalization MaxPool".split()
READERS: dict[str, Rule] = {
    **dict.fromkeys(_OF_ELEMENTS, _elementwise), **dict.fromkeys(_OF_BATCHES, _batched),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), normalise_all), "Split": _along_another(0), "CumSum": _accumulate, "LayerNormalization": _normalise,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"), reduce_by("0")), "ReduceProd": reduce_by("1"),
    **dict.fromkeys(("ArgMax", "ReduceLogSumExp", "ReduceMax"), reduce_by("lowest")), **dict.fromkeys(("ArgMin", "ReduceMin"), reduce_by("highest")),
    "GlobalAveragePool": pool_all, "GlobalMaxPool": pool_all,
    "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "OneHot": spread, "ScatterElements": scatter, "ScatterND": scatter, "Transpose": _transpose, "MatMul": _product, "Gemm": _gemm,
    "Loop": loop, "RoiAlign": _align_regions, "Squeeze": _move_axes, "Unsqueeze": _move_axes, "TopK": _best,
    "Concat": concat, "ConstantOfShape": constant_of_shape, "Expand": expand, "Flatten": reshape, "Pad": pad, "Range": span,
    "Reshape": reshape, "Shape": shape_of, "Size": size_of, "Slice": slice_rows, "Tile": tile,
}  # fmt: skip
