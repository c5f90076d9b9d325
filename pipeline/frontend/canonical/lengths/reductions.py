"""Reduce values of open length: fill the rest with numbers that change nothing.

ReduceMean(v) ──► ReduceSum(v, 0 behind its length) ÷ length
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .open_graph import Open, Reader, Rule


def reduce_by(fill: str) -> Rule:
    """Return the rule of a reduction, which `fill` leaves unchanged along the open axis: `0`, `1`, `lowest` or `highest`."""

    def rule(reader: Reader) -> list[Open | None]:
        extent, rank = reader.only, len(reader.shape(0))
        given: Any = reader.get("axes")
        if given is None and reader.has(1):
            given = [int(each) for each in reader.held(1)]
        if reader.op_type.startswith("Arg"):
            given = [reader.get("axis", 0)]
        if reader.op_type.startswith("Global"):
            given = range(2, rank)
        if not given and reader.get("noop_with_empty_axes", 0):
            given, axes = [], set()
        else:
            axes = {int(each) % rank for each in (given or range(rank))}
        keepdims = int(reader.get("keepdims", 1))
        if extent.axis in axes:
            if reader.op_type in ("GlobalAveragePool", "ReduceMean"):
                return _mean(reader, sorted(axes), keepdims)
            if reader.get("select_last_index", 0):
                reader.refuse("the last of equal ones may be behind the length")
            if reader.op_type == "ReduceLogSumExp" and reader.dtype(0).kind != "f":
                reader.refuse("it subtracts integers, and the lowest one leaves no room below it")
            reader.keep(_0=reader.masked(0, filling(fill, reader.dtype(0))))
            return [None]
        return reader.follow()

    return rule


def filling(fill: str, dtype: np.dtype) -> float:
    """Return 0, 1, or the lowest or highest number of a dtype."""
    if dtype.kind == "b":
        return fill in ("1", "highest")
    if fill in "01":
        return int(fill)
    sign = -1 if fill == "lowest" else 1
    if dtype.kind == "f":
        return sign * np.inf
    limits = np.iinfo(dtype)
    return limits.min if sign < 0 else limits.max


def normalise_all(reader: Reader) -> list[Open | None]:
    """Normalise along another axis, or along rows of open length, without a share for the rest."""
    extent = reader.only
    along = int(reader.get("axis", -1)) % len(reader.shape(0)) == extent.axis
    return reader.follow(False, **({"_0": reader.masked(0, -np.inf)} if along else {}))


def _mean(reader: Reader, axes: Sequence[int], keepdims: int) -> list[Open | None]:
    """Build the sum along axes, divided by the number of elements within the length."""
    extent, build, dtype = reader.only, reader.build, reader.dtype(0)
    others = math.prod(reader.shape(0)[axis] for axis in axes) // extent.bound
    length = reader.graph.length(build, "times", extent.length, others) if others > 1 else extent.length
    length = build.node("Max", length, build.integers(1))  # of none ONNX Runtime gives 0
    count = build.cast(build.node("Reshape", length, build.integers()), dtype)
    total = build.node("ReduceSum", reader.masked(0, 0), build.integers(*axes), keepdims=keepdims)
    build.node("Div", total, count, result=reader.result)
    return [None]
