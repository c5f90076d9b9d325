"""Find reductions that read each input element at most once, and admit them to fusion.

TVM fuses a convolution only with element-wise consumers. A pooling with disjoint windows, or the mean over a whole
plane, also reads each element of the convolution just once: fused, the convolution's result never exists as a tensor,
and nothing is computed twice. A large window behind a product stays a kernel: its elements fit into no tile of the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import tvm_ffi
from tvm.ir import GlobalVar, IRModule, Var
from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc, Stmt

from ...tir.mapping_types import is_injective
from .fusion_barriers import is_kernel_call
from .rules.dataflow import bindings_of

#: TVM's OpPatternKind: element-wise, a commutative reduction, and a product that element-wise kernels may follow
ELEMENT_WISE, REDUCTION, PRODUCT = 0, 3, 4
#: most elements of a window that a tile of a product holds
_MOST = 16
_REDUCE_AXIS = 2


def mark_fusible_reductions(module: IRModule, *, windows_only: bool) -> IRModule:
    """Mark read-once reductions as element-wise, so that FuseOps fuses their producers into them.

    With `windows_only`, only poolings are marked, not reductions of whole axes.
    Run AnnotateTIROpPattern before: it would overwrite the marks.
    """
    marked = IRModule(module.functions, attrs=module.attrs)
    behind = set(_behind_products(module))
    for var, function in module.functions.items():
        if isinstance(function, PrimFunc) and reads_each_element_once(function):
            if windows_only and int(function.attrs["op_pattern"]) == REDUCTION:
                continue
            if var in behind and _window(function) > _MOST:
                continue
            marked.update_func(var, function.with_attr("op_pattern", ELEMENT_WISE))
    return marked


def _behind_products(module: IRModule) -> Iterator[GlobalVar]:
    """Yield the kernels called on a product, directly or behind element-wise kernels."""
    products: set[Var] = set()
    for binding in bindings_of(module["main"]):
        if not is_kernel_call(binding.value):
            continue
        kernel, operands = binding.value.args[:2]
        pattern = int(module[kernel].attrs["op_pattern"])
        follows = any(operand in products for operand in operands.fields)
        if follows:
            yield kernel
        if pattern == PRODUCT or (follows and pattern < REDUCTION):
            products.add(binding.var)


def _window(kernel: PrimFunc) -> int:
    """Count the elements of each window of a reduction."""
    axes = [axis for block in _blocks(kernel.body) for axis in block.iter_vars if int(axis.iter_type) == _REDUCE_AXIS]
    return prod(int(axis.dom.extent) for axis in axes)


def reads_each_element_once(kernel: PrimFunc) -> bool:
    """Return whether a kernel reduces its only input, reading each element at most once."""
    blocks = _blocks(kernel.body)
    reductions = [block for block in blocks if any(int(axis.iter_type) == _REDUCE_AXIS for axis in block.iter_vars)]
    inputs = list(kernel.params)[:-1]
    if len(inputs) != 1 or len(reductions) != 1:
        return False
    readers = [block for block in blocks if any(read.source.same_as(inputs[0]) for read in block.reads)]
    if len(readers) != 1 or not readers[0].same_as(reductions[0]):
        return False
    return _is_injective(reductions[0], inputs[0])


def _is_injective(block: SBlock, source: Var) -> bool:
    """Return whether no two instances of a block read the same element of `source`."""
    regions = [read for read in block.reads if read.source.same_as(source)]
    if len(regions) != 1 or any(int(index.extent) != 1 for index in regions[0].region):
        return False
    return is_injective([index.min for index in regions[0].region], block.iter_vars)


def _blocks(stmt: Stmt) -> list[SBlock]:
    """Collect the blocks of a kernel without its root."""
    found: list[SBlock] = []
    tvm_ffi.structural_walk(stmt, (SBlock, found.append))
    return [block for block in found if block.name_hint != "root"]
