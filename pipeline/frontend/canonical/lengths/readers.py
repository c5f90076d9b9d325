"""Say how each operator works on a value of open length: what it reads instead, and along which axis its results are open.

What lies behind a length is arbitrary. So a rule holds if no element of a result within its length depends on one behind
that of an operand; where one does, the operand is filled with what changes nothing, or the node refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...traits import ELEMENTWISE, PASSES
from .extent import Extent
from .indexing import gather, gather_elements, gather_nd, scatter
from .loops import loop
from .open_graph import Open, Reader, Rule
from .reductions import filling, normalise_all, reduce_by
from .reshaping import concat, constant_of_shape, expand, pad, reshape, shape_of, size_of, slice_rows, span, tile


def _elementwise(reader: Reader) -> list[Open | None]:
    """Work on each element, also with operands that are the same for all rows."""
    divides = reader.op_type in ("Div", "Mod") and reader.open(1) is not None and reader.dtype(1).kind in "iu"
    kept = reader.op_type in (*PASSES, "Dropout") and reader.only.zero
    return reader.follow(kept, **({"_1": reader.masked(1, 1)} if divides else {}))


def _move_axes(reader: Reader) -> list[Open | None]:
    """Move axes, or insert or remove axes of one element."""
    if reader.op_type != "Transpose" and not reader.has(1):
        reader.refuse("without axes it removes that of a single row")
    return reader.follow(reader.only.zero)


def _rows(axes: Callable[[Reader, int], Iterable[int]]) -> Rule:
    """Return the rule of an operator that works along some axes of its first operand alone."""

    def rule(reader: Reader) -> list[Open | None]:
        rank = len(reader.shape(0))
        if any(reader.opens[1:]):
            reader.refuse("an operand but the first is of open length")
        if reader.only.axis in {axis % rank for axis in axes(reader, rank)}:
            reader.refuse("it works along the axis of the length")
        return reader.follow()

    return rule


def _summed_axes(reader: Reader, rank: int) -> Iterable[int]:
    """Return the axes of a Gemm's first operand that its sums, or the rows of its addend, bind."""
    bound = reader.get("transA", 0) or (reader.has(2) and len(reader.shape(2)) == 2 and reader.shape(2)[0] != 1)
    return range(rank) if bound else (1,)


def _accumulate(reader: Reader) -> list[Open | None]:
    extent = reader.only
    axis = int(reader.held(1).item()) % len(reader.shape(0))
    if axis == extent.axis and reader.get("reverse", 0):
        reader.refuse("it adds from the end")
    return reader.follow()


def _product(reader: Reader) -> list[Open | None]:
    """Multiply rows, columns or matrices in open number, or along an open axis of both operands."""
    one, other = reader.open(0), reader.open(1)
    sums = one is not None and one.axis == len(reader.shape(0)) - 1
    of_other = other is not None and other.axis == max(len(reader.shape(1)) - 2, 0)
    if sums and of_other and reader.only:
        reader.keep(_0=reader.masked(0, 0), _1=reader.masked(1, 0))
        return [None]
    if sums or of_other:
        reader.refuse("its sums run along the axis of one operand's length")
    return reader.follow()


def _align_regions(reader: Reader) -> list[Open | None]:
    regions, pictures = reader.open(1), reader.open(2)
    if reader.open(0) is not None or regions is None or pictures is None:
        reader.refuse("its pictures are of open length, or its regions and their pictures are not both")
    extent = reader.only
    reader.keep(_1=reader.masked(1, 0), _2=reader.input[2] if pictures.zero else reader.masked(2, 0))
    return [extent.along(0)]


def _best(reader: Reader) -> list[Open | None]:
    """Select the largest along another axis, or so many along the open one as there are at most."""
    extent, shape, (size,) = reader.open(0), reader.shape(0), reader.held(1).flat
    axis = int(reader.get("axis", -1)) % len(shape)
    if not isinstance(size, Extent):
        if extent is None or extent.axis == axis:
            reader.refuse("it selects a fixed number of rows, and there may be fewer")
        return reader.follow()
    if size.scale < 1 or size.largest > shape[axis] or (extent is not None and extent.axis != axis):
        reader.refuse("it may select more than there are")
    length = reader.graph.length_of(reader.build, size)
    behind = filling("lowest" if reader.get("largest", 1) else "highest", reader.dtype(0))
    reader.keep(**({} if extent is None else {"_0": reader.masked(0, behind)}))
    return [Open(axis, length, size.largest)] * 2


_OF_BATCHES = "AveragePool BatchNormalization Conv ConvTranspose InstanceNormalization MaxPool".split()
READERS: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise), **dict.fromkeys(_OF_BATCHES, _rows(lambda _, rank: range(1, rank))),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), normalise_all), "CumSum": _accumulate,
    "Gemm": _rows(_summed_axes), "LayerNormalization": _rows(lambda reader, rank: range(int(reader.get("axis", -1)) % rank, rank)),
    "OneHot": _rows(lambda *_: ()), "Split": _rows(lambda reader, _: (int(reader.get("axis", 0)),)),
    **dict.fromkeys(("GlobalAveragePool", "ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"), reduce_by("0")), "ReduceProd": reduce_by("1"),
    **dict.fromkeys(("ArgMax", "GlobalMaxPool", "ReduceLogSumExp", "ReduceMax"), reduce_by("lowest")), **dict.fromkeys(("ArgMin", "ReduceMin"), reduce_by("highest")),
    "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter, "ScatterND": scatter, "Transpose": _move_axes, "MatMul": _product,
    "Loop": loop, "RoiAlign": _align_regions, "Squeeze": _move_axes, "Unsqueeze": _move_axes, "TopK": _best,
    "Concat": concat, "ConstantOfShape": constant_of_shape, "Expand": expand, "Flatten": reshape, "Pad": pad, "Range": span,
    "Reshape": reshape, "Shape": shape_of, "Size": size_of, "Slice": slice_rows, "Tile": tile,
}  # fmt: skip
