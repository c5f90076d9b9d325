"""Convert a Gather whose indices a Clip bounds, and lower all others: TVM's own rule prints a warning for each.

No bounded index counts from the end, and none needs a check. Its kernel joins its neighbours: FuseOps takes one with computed indices for opaque, unless it says otherwise. Others stay
kernels of their own, whose indices are checked as they are read.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

import onnx
from onnx import numpy_helper
from tvm import relax, te, topi
from tvm.ir import Expr, Op, register_op_attr

from ...canonical.shapes import constant_tensors

GATHERS = frozenset({"Gather", "GatherElements"})
#: TVM's kind of a kernel whose every result is computed from elements alone
_INJECTIVE = 2
#: TVM's rule of a Gather, and TVM's priority of its own rules
_LEGALIZE, _TVM_PRIORITY = Op.get("relax.take").get_attr("FLegalize"), 10


def clipped_indices(graph: onnx.GraphProto) -> dict[str, tuple[int, int]]:
    """Return the bounds of the results of Clips of integers."""
    constants = constant_tensors(graph)
    found = {}
    for node in graph.node:
        if node.op_type == "Clip" and len(node.input) == 3 and {*node.input[1:]} <= constants.keys():
            low, high = (numpy_helper.to_array(constants[name]) for name in node.input[1:])
            if low.dtype.kind == "i":
                found[node.output[0]] = int(low), int(high)
    return found


def convert_bounded_gather(
    builder: relax.BlockBuilder,
    operator: str,
    data: relax.Expr,
    indices: relax.Expr,
    axis: int,
    bounds: tuple[int, int],
) -> relax.Expr | None:
    """Emit the kernel; None if the bounds are not those of the axis."""
    rank = len(data.ty.shape)
    if not 0 <= bounds[0] <= bounds[1] < int(data.ty.shape[axis]):
        return None
    kernel = take if operator == "Gather" else _gathered
    made = builder.call_te(
        kernel, data, indices, axis % rank, primfunc_name_hint="take", primfunc_attrs={"op_pattern": _INJECTIVE}
    )
    return builder.emit(made)


def take(data: te.Tensor, indices: te.Tensor, axis: int) -> te.Tensor:
    """Read slices of `data` along `axis` at `indices` [any shape]; these are not checked, and count from the start."""
    rank = len(indices.shape)

    def element(*places: Expr) -> Expr:
        return data[(*places[:axis], indices[places[axis : axis + rank]], *places[axis + rank :])]

    return te.compute((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), element, name="T_take")


def _gathered(data: te.Tensor, indices: te.Tensor, axis: int) -> te.Tensor:
    return topi.gather(data, axis, indices)


def legalize_take(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.take`, wherever TVM does so. Indices out of range are for `codegen.checks`."""
    axis, rank = call.attrs.axis, len(call.args[0].ty.shape)
    if axis is None or str(call.attrs.mode) != "fast":
        return _LEGALIZE(builder, call)
    return builder.call_te(take, *call.args, int(axis) % rank, primfunc_name_hint="take")


register_op_attr("relax.take", "FLegalize", legalize_take, _TVM_PRIORITY + 1)
