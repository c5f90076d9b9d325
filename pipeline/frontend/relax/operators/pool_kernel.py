"""Convert MaxPool with its second result, the places of the largest elements, to one kernel of plain loops.

A place counts elements of the whole tensor, rows first, or columns first within an image (storage_order 1). TVM has no
operator for it.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.ir import Expr
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt

from ...canonical.operators.auto_pad import begin_of


@dataclass(frozen=True)
class _Window:
    """Window of a pooling: sizes, steps, distances of taps and padding before, by axis; and the shape of the result."""

    sizes: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    result: list[int]
    columns_first: bool


def convert_max_pool(
    builder: relax.BlockBuilder, data: relax.Expr, attributes: Mapping[str, Any], result: list[int]
) -> relax.Expr:
    """Emit values and places of a MaxPool whose result has the shape `result`."""
    sizes = [int(each) for each in attributes["kernel_shape"]]
    ones = [1] * len(sizes)
    strides, dilations = (list(attributes.get(name, ones)) for name in ("strides", "dilations"))
    shape = [int(extent) for extent in data.ty.shape]
    before = list(attributes.get("pads", [0] * len(sizes)))[: len(sizes)]
    automatic = attributes.get("auto_pad", b"NOTSET").decode()
    if automatic == "VALID":
        before = [0] * len(sizes)
    elif automatic != "NOTSET":
        wholes = [
            (extent - 1) * stride + size - given
            for extent, stride, size, given in zip(result[2:], strides, sizes, shape[2:], strict=True)
        ]
        before = [begin_of(whole, automatic) for whole in wholes]
    window = _Window(sizes, strides, dilations, before, result, bool(attributes.get("storage_order", 0)))
    return builder.emit(builder.call_te(partial(_pool, window=window), data, primfunc_name_hint="max_pool_places"))


def _pool(data: te.Tensor, window: _Window) -> list[te.Tensor]:
    shape = [int(extent) for extent in data.shape]
    dtype = str(data.dtype)
    least = tirx.const(-math.inf, dtype) if "float" in dtype else tirx.min_value(dtype)

    def generate(ins: list, outs: list) -> Stmt:
        (given,), (values, places) = ins, outs
        with IRBuilder() as builder:
            with ExitStack() as loops:
                here = [loops.enter_context(T.serial(0, extent)) for extent in window.result]
                T.buffer_store(values, least, here)
                T.buffer_store(places, tirx.const(-1, "int64"), here)
                taps = [loops.enter_context(T.serial(0, size)) for size in window.sizes]
                at = [
                    place * stride + tap * dilation - before
                    for place, tap, stride, dilation, before in zip(
                        here[2:], taps, window.strides, window.dilations, window.before, strict=True
                    )
                ]
                inside = tirx.all(
                    *(
                        each
                        for index, extent in zip(at, shape[2:], strict=True)
                        for each in (index >= 0, index < extent)
                    )
                )
                with T.If(inside), T.Then():
                    found = given[(*here[:2], *at)]
                    with T.If(tirx.any(found > values[tuple(here)], places[tuple(here)] < 0)), T.Then():
                        T.buffer_store(values, found, here)
                        T.buffer_store(places, _place([*here[:2], *at], shape, window.columns_first), here)
            return builder.get()

    buffers = [
        tvm.tirx.decl_buffer(window.result, kind, name) for kind, name in ((dtype, "values"), ("int64", "places"))
    ]
    return te.extern(
        [window.result] * 2, [data], generate, out_buffers=buffers, name="max_pool_places", tag="max_pool_places"
    )


def _place(index: list[Expr], shape: list[int], columns_first: bool) -> Expr:
    """Return the number of an element."""
    image = list(range(2, len(shape)))
    place: Expr = tirx.const(0, "int64")
    for axis in (0, 1, *(reversed(image) if columns_first else image)):
        place = place * tirx.const(shape[axis], "int64") + tirx.Cast("int64", index[axis])
    return place
