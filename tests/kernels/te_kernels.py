"""Build one kernel of TE operators, and run it on random operands."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import te

#: LLVM without its optimisations, as in programs.py
PLAIN = tvm.target.Target({"kind": "llvm", "opt-level": 0})


def kernel_of(shapes, body):
    """Build one kernel of a value computed from float32 operands of these shapes."""
    operands = placeholders(shapes, ["float32"] * len(shapes))
    return te.create_prim_func([*operands, body(*operands)])


def placeholders(shapes, dtypes):
    """Declare operands of these shapes with extents in int64."""
    extents = [[tvm.tirx.const(extent, "int64") for extent in shape] for shape in shapes]
    return [te.placeholder(shape, dtype, f"x{number}") for number, (shape, dtype) in enumerate(zip(extents, dtypes))]


def run(kernel, seed=0, number=0):
    """Run a kernel on random operands, and on `number` if it takes one; its result starts out as NaN."""
    tensors = [tvm.runtime.tensor(each) for each in operands_of(kernel, seed)]
    numbers = [number] * (len(kernel.params) - len(tensors))
    built = tvm.compile(tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")}), target=PLAIN)
    built["main"](*numbers, *tensors)
    return tensors[-1].numpy()


def operands_of(kernel, seed=0):
    """Draw the operands of a kernel; its result is NaN."""
    random = np.random.default_rng(seed)
    types = [param.ty for param in kernel.params if getattr(param.ty, "shape", None) is not None]
    shapes = [([int(extent) for extent in each.shape], str(each.dtype)) for each in types]
    arrays = [
        random.integers(0, 100, shape).astype(kind) if "int" in kind else random.standard_normal(shape).astype(kind)
        for shape, kind in shapes
    ]
    arrays[-1][:] = np.nan
    return arrays
