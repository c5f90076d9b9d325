"""Evaluate simple kernels by numpy, bit-identical to LLVM's code.

Compiling such a kernel takes longer than running it. Simple kernels are loop nests with one store each, of sums,
products, quotients, comparisons, roots and copies.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import tvm
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import Cast, FloatImm, IntImm, IterVar, PrimFunc, Select

from ....tir.index_grid import NoMatch
from ....tir.loop_nests import block_of, nests_in

#: elements gathered one by one at most; whole axes are read without limit
_MOST_LOOKED_UP = 1 << 20
#: dtypes with identical arithmetic in numpy and LLVM
_DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64")
_BINARY = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "FloorDiv": operator.floordiv, "FloorMod": operator.mod,
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
    "And": np.logical_and, "Or": np.logical_or,
    "Max": lambda a, b: np.where(b > a, b, a), "Min": lambda a, b: np.where(b < a, b, a),
}  # fmt: skip
_UNARY = {"sqrt": np.sqrt, "fabs": np.abs, "isnan": np.isnan}


def values_of(kernel: PrimFunc, arguments: Sequence[tvm.runtime.Tensor]) -> list[tvm.runtime.Tensor] | None:
    """Compute the results of `kernel`, its last parameters, from `arguments`; None unless it is simple."""
    if not all(str(each.dtype) in _DTYPES for each in arguments):
        return None
    try:
        buffers = dict(zip(kernel.params, map(np.from_dlpack, arguments)))
        results = list(kernel.params)[len(arguments) :]
        nests = nests_in(kernel)
        # arrays of numpy's own: before 2.1 it may not write to those it is lent
        buffers |= {each: np.empty(_shape(each), _dtype(each)) for each in (*results, *kernel.body.block.alloc_buffers)}
        with np.errstate(all="ignore"):
            for nest in nests:
                _run(block_of(nest, in_order=False), buffers)
    except NoMatch:
        return None
    return [tvm.runtime.tensor(buffers[each]) for each in results]


def _run(block: SBlock, buffers: dict[Var, np.ndarray]) -> None:
    if block.init is not None:
        raise NoMatch("the kernel reduces")
    store, axes = block.body, _Axes(list(block.iter_vars), buffers)
    value = np.broadcast_to(axes.value(store.value), axes.shape)
    target = buffers[store.buffer]
    written = axes.whole(store.indices, target.shape)
    if written is not None and sorted(written) == list(written) and value.size == target.size:
        target[...] = value.reshape(target.shape)
    else:
        target[axes.looked_up(store.indices)] = value


class _Axes:
    """Evaluate expressions over a block's iteration space, as arrays that broadcast to `shape`."""

    def __init__(self, axes: list[IterVar], buffers: dict[Var, np.ndarray]):
        self.shape = tuple(int(axis.dom.extent) for axis in axes)
        self._buffers = buffers
        self._number = {axis.var: number for number, axis in enumerate(axes)}

    def value(self, expr: Expr) -> np.ndarray:
        if isinstance(expr, (IntImm, FloatImm)):
            return _dtype(expr).type(expr.value)
        if isinstance(expr, Var) and expr in self._number:
            number = self._number[expr]
            along = [1] * len(self.shape)
            along[number] = self.shape[number]
            return np.arange(self.shape[number], dtype=np.int64).reshape(along)
        if isinstance(expr, TensorLoad):
            return self._load(expr)
        dtype, name = _dtype(expr), type(expr).__name__
        if name in _BINARY or (name == "Div" and dtype.kind == "f"):
            made = _BINARY.get(name, operator.truediv)(self.value(expr.a), self.value(expr.b))
        elif isinstance(expr, Select):
            made = np.where(*map(self.value, (expr.condition, expr.true_value, expr.false_value)))
        elif isinstance(expr, Cast):
            made = self.value(expr.value).astype(dtype)
        elif isinstance(expr, Call) and len(expr.args) == 1 and _dtype(expr.args[0]).kind == "f":
            function = _UNARY.get(str(getattr(expr.op, "name", "")).rpartition(".")[2])
            if function is None:
                raise NoMatch(name)
            made = function(self.value(expr.args[0]))
        else:
            raise NoMatch(name)
        return np.asarray(made, dtype)

    def whole(self, indices: Sequence[Expr], shape: Sequence[int]) -> dict[int, int] | None:
        """Map each axis to its dimension; None unless every index is a distinct whole axis or 0."""
        found: dict[int, int] = {}
        for place, index in enumerate(indices):
            axis = self._number.get(index) if isinstance(index, Var) else None
            if axis is not None and axis not in found and self.shape[axis] == shape[place]:
                found[axis] = place
            elif not isinstance(index, IntImm) or int(index):
                return None
        return found

    def looked_up(self, indices: Sequence[Expr]) -> tuple[np.ndarray, ...]:
        if np.prod(self.shape) > _MOST_LOOKED_UP:
            raise NoMatch("too many elements are read one by one")
        return tuple(np.broadcast_to(self.value(index), self.shape) for index in indices)

    def _load(self, load: TensorLoad) -> np.ndarray:
        if load.source not in self._buffers:
            raise NoMatch("a buffer is read before it is written")
        array = self._buffers[load.source]
        if _dtype(load) != array.dtype:
            raise NoMatch("a buffer is read as another dtype")
        read = self.whole(load.indices, array.shape)
        if read is None:
            return array[self.looked_up(load.indices)]
        array = array[tuple(slice(None) if place in read.values() else 0 for place in range(array.ndim))]
        kept = sorted(read.values())
        array = array.transpose([kept.index(read[axis]) for axis in sorted(read)])
        return array.reshape([extent if axis in read else 1 for axis, extent in enumerate(self.shape)])


def _shape(buffer: Var) -> tuple[int, ...]:
    return tuple(int(extent) for extent in buffer.ty.shape)


def _dtype(expr: Expr) -> np.dtype:
    name = str(expr.ty.dtype)
    if name not in _DTYPES:
        raise NoMatch(f"numpy and LLVM may differ in {name}")
    return np.dtype(name)
