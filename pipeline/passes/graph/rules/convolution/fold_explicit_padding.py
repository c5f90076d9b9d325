"""`fold-explicit-padding`: let convolutions and poolings pad, not an operator that copies the plane.

    conv(pad(x, 0))              =  conv(x), padding grown
    conv_transpose(pad(x, 0))    =  conv_transpose(x), padding less stride · pad, where it was as much
    avg_pool(pad(x, 0))          =  avg_pool(x), padding counted         if padding was none, or counted
    max_pool(pad(x, v))          =  max_pool(x), padding grown           if v is −∞, or v is 0 and x ≥ 0

Legal for constant padding of spatial axes alone, none negative, any layout, rank, stride, dilation, number of groups.
Every window of a maximum must meet data: no padding as wide as the window, no dilation, no ceil mode. A concatenation with
constant zeros is padding too. All readers must take the padding, else the padded copy stays and nothing is gained.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..operators import AVERAGE_POOLS, MAX_POOLS
from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow
    from .padding import Padding


class FoldExplicitPadding(Rule):
    """Move padding into the operators that read it."""

    name = "fold-explicit-padding"
    summary = "let convolutions and poolings pad, not an operator that copies the plane"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from .padding import padding_of

        found: dict[Var, Expr] = {}
        for var, call in graph.calls("relax.nn.pad", "relax.concat"):
            padding = padding_of(call, graph)
            readers = graph.users(var)
            if padding is None or len(readers) != graph.uses(var):
                continue
            new = {reader: _pad(graph.value(reader), padding, graph) for reader in readers}
            if new and None not in new.values():
                found |= new
        return found


def _pad(call: Expr, padding: Padding, graph: Dataflow) -> Expr | None:
    """Return a call that reads the data and pads by itself; None if it cannot."""
    from .geometry import Geometry

    operator = graph.operator(call)
    if operator in AVERAGE_POOLS | MAX_POOLS:
        return _pad_pooling(call, padding, graph)
    geometry = Geometry.of(call) if operator else None
    if geometry is None or padding.value != 0:
        return None
    widths = padding.along(geometry.data_axes())
    if widths is None:
        return None
    signs = [-stride for stride in geometry.strides] if geometry.transposed else [1] * len(geometry.strides)
    before, after = (
        tuple(own + sign * width for own, sign, width in zip(owns, signs, side))
        for owns, side in zip((geometry.before, geometry.after), widths)
    )
    if min((*before, *after)) < 0:
        return None
    return replace(geometry, before=before, after=after).call(padding.data, call.args[1])


def _pad_pooling(call: Call, padding: Padding, graph: Dataflow) -> Expr | None:
    from tvm import relax

    from .padding import windows_meet_data

    operator, attrs = graph.operator(call), call.attrs
    layout = str(attrs.layout)
    if not layout.isalpha() or attrs.ceil_mode:
        return None
    widths = padding.along(tuple(axis for axis, letter in enumerate(layout) if letter not in "NC"))
    if widths is None:
        return None
    own = [int(each) for each in attrs.padding]
    total = [width + more for width, more in zip(own, (*widths[0], *widths[1]))]
    counted = bool(attrs.count_include_pad)
    if operator in AVERAGE_POOLS:
        if padding.value != 0 or (any(own) and not counted):
            return None
        counted = True
    elif not windows_meet_data(call, total) or not padding.is_below(graph):
        return None
    return getattr(relax.op.nn, operator.removeprefix("relax.nn."))(
        padding.data, pool_size=list(attrs.pool_size), strides=list(attrs.strides), padding=total,
        dilation=list(attrs.dilation), ceil_mode=False, count_include_pad=counted, layout=layout,
        out_layout=str(attrs.out_layout or layout),
    )  # fmt: skip
