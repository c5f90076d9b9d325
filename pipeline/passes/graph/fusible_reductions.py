"""Find reductions that read each input element at most once, and admit them to fusion.

TVM fuses a convolution only with element-wise consumers. A pooling with disjoint windows, or the mean over a whole
plane, also reads each element of the convolution just once: fused, the convolution's result never exists as a tensor,
and nothing is computed twice.
"""

from __future__ import annotations

from tvm.ir import IRModule, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.sym import detect_linear_equation
from tvm.tirx import For, IterVar, PrimFunc, SeqStmt, Stmt

#: TVM's OpPatternKind: element-wise, and a commutative reduction
ELEMENT_WISE, REDUCTION = 0, 3
_REDUCE_AXIS = 2


def mark_fusible_reductions(module: IRModule, *, windows_only: bool) -> IRModule:
    """Mark read-once reductions as element-wise, so that FuseOps fuses their producers into them.

    With `windows_only`, only poolings are marked, not reductions of whole axes.
    Run AnnotateTIROpPattern before: it would overwrite the marks.
    """
    marked = IRModule(module.functions, attrs=module.attrs)
    for var, function in module.functions.items():
        if isinstance(function, PrimFunc) and reads_each_element_once(function):
            if windows_only and int(function.attrs["op_pattern"]) == REDUCTION:
                continue
            marked.update_func(var, function.with_attr("op_pattern", ELEMENT_WISE))
    return marked


def reads_each_element_once(kernel: PrimFunc) -> bool:
    """Tell whether a kernel reduces its only input, reading each element at most once."""
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
    """Tell whether no two instances of a block read the same element of `source`.

    True if every index is a mixed-radix number of axes, and each axis is in one index.
    """
    regions = [read for read in block.reads if read.source.same_as(source)]
    axes = [axis for axis in block.iter_vars if int(axis.dom.extent) > 1]
    if len(regions) != 1 or any(int(index.extent) != 1 for index in regions[0].region):
        return False
    used: list[int] = []
    for index in regions[0].region:
        taken = _mixed_radix(index.min, axes)
        if taken is None:
            return False
        used += taken
    return sorted(used) == list(range(len(axes)))


def _mixed_radix(index: object, axes: list[IterVar]) -> list[int] | None:
    """Return the numbers of the axes in `index`, None unless it is a mixed-radix number.

    That is a sum of axis·stride, each stride greater than the sum of all smaller terms.
    """
    coefficients = detect_linear_equation(index, [axis.var for axis in axes])
    if len(coefficients) != len(axes) + 1:
        return None
    strides = [int(each) for each in list(coefficients)[:-1]]
    terms = sorted((stride, int(axes[number].dom.extent), number) for number, stride in enumerate(strides) if stride)
    reach = 1
    for stride, extent, _ in terms:
        if stride < reach:
            return None
        reach = stride * (extent - 1) + reach
    return [number for _, _, number in terms]


def _blocks(stmt: Stmt) -> list[SBlock]:
    """Collect the blocks of a kernel without its root."""
    if isinstance(stmt, SBlockRealize):
        inner = _blocks(stmt.block.body)
        return inner if stmt.block.name_hint == "root" else [stmt.block, *inner]
    if isinstance(stmt, For):
        return _blocks(stmt.body)
    if isinstance(stmt, SeqStmt):
        return [block for part in stmt.seq for block in _blocks(part)]
    return []
