"""Dequantise inside the kernels that read quantised numbers, so that no float copy of them exists.

    int8 ─► dequantize ─► float32 ─► add        becomes        int8 ─► add, which dequantises each element it reads

A number is dequantised again in each reader: it takes two operations, and a fourth of the memory. A reader that is written
as loops of its own (a cumulative sum, a scatter) reads a float copy. Weights stay as they
are in the model, whatever moves them about before a kernel reads them. Form decides: a kernel of one block that makes a
wider number of each 8-bit one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

import tvm_ffi
from tvm import relax
from tvm.ir import GenericConst, GlobalVar, IRModule, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc

from ....program import DTYPE_BYTES
from ....tir.expressions import is_costly
from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ..bound_groups import group_function, is_plain_call
from ..rules.dataflow import bindings_of
from ..rules.replace_values import replace_values

#: TVM's OpPatternKind of reductions that take what follows them into their kernel
OUT_FUSIBLE = 4
_NARROW = ("int8", "uint8")


def inline_dequantisation(module: IRModule) -> IRModule:
    """Fuse kernels that dequantise or grow constants into all readers; `module` is legalised."""
    repeated = _bindings_to_repeat(module)
    if not repeated:
        return module
    patterns = relax.transform.AnnotateTIROpPattern()(module)
    builder = relax.BlockBuilder(module)
    made: dict[str, GlobalVar] = {}
    replaced: dict[Var, relax.Expr] = {}
    for binding in bindings_of(module["main"]):
        if binding.var in repeated or not is_plain_call(binding) or not _reads_as_made(module, repeated, binding):
            continue
        needed = _bindings_for(repeated, binding)
        if needed:
            function, operands = group_function([*needed, binding])
            names = [str(each.value.args[0].name_hint) for each in (*needed, binding)]
            callee = builder.add_func(function, "_".join(dict.fromkeys(["fused", *names])))
            made[str(callee.name_hint)] = binding.value.args[0]
            replaced[binding.var] = relax.Call(callee, operands)
    fused = relax.transform.FuseTIR()(relax.transform.DeadCodeElimination()(replace_values(builder.get(), replaced)))
    for var, function in list(fused.functions.items()):
        reader = made.get(str(var.name_hint))
        if reader is not None and isinstance(function, PrimFunc):
            fused.update_func(var, _inline_first(function, patterns[reader]))
    return fused


def _bindings_to_repeat(module: IRModule) -> dict[Var, relax.VarBinding]:
    """Collect the bindings to compute again in each reader."""
    found: dict[Var, relax.VarBinding] = {}
    constant: set[Var] = set()
    for binding in bindings_of(module["main"]):
        if not is_plain_call(binding) or not isinstance(module[binding.value.args[0]], PrimFunc):
            continue
        kernel, operands = module[binding.value.args[0]], list(binding.value.args[1].fields)
        moved = any(each in constant for each in operands) and _is_simple(kernel)
        whole = all(isinstance(each, GenericConst) or each in constant for each in operands)
        if not widens(kernel) and not moved and not (whole and unpacks(kernel)):
            continue
        if whole:
            constant.add(binding.var)
        elif moved and not widens(kernel):
            continue
        found[binding.var] = binding
    return found


def widens(kernel: PrimFunc) -> bool:
    """Return whether a kernel makes a wider number of each 8-bit one, and does no more."""
    *operands, result = kernel.params
    if not operands or not _is_simple(kernel):
        return False
    largest = max(operands, key=_elements)
    narrow = str(largest.ty.dtype) in _NARROW and DTYPE_BYTES.get(str(result.ty.dtype), 0) > 1
    return narrow and _elements(largest) == _elements(result) and _elements(result) > 1


def unpacks(kernel: PrimFunc) -> bool:
    """Return whether a kernel makes several 8-bit numbers of each one, and does no more."""
    *operands, result = kernel.params
    if not operands or not _is_simple(kernel):
        return False
    narrow = {str(each.ty.dtype) for each in kernel.params} <= set(_NARROW)
    return narrow and _elements(result) > sum(map(_elements, operands))


def _is_simple(kernel: PrimFunc) -> bool:
    """Return whether a kernel is one block that stores cheap values, and sums nothing."""
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(kernel.body, (SBlock, blocks.append))
    inner = [block for block in blocks if block.name_hint != "root"]
    return (
        len(inner) == 1
        and inner[0].init is None
        and isinstance(inner[0].body, BufferStore)
        and not is_costly(inner[0].body)
    )


def _elements(buffer: Var) -> int:
    return math.prod(int(extent) for extent in buffer.ty.shape)


def _inline_first(kernel: PrimFunc, reader: PrimFunc) -> PrimFunc:
    """Inline the first blocks of a fused kernel; keep the reader's pattern if results may be fused into it.

    FuseOps finds that pattern only where operands are read as they are.
    """
    with suppress(NoMatch):
        kernel = inlined(kernel)
    pattern = int(reader.attrs["op_pattern"])
    return kernel.with_attr("op_pattern", pattern) if pattern == OUT_FUSIBLE else kernel


def _reads_as_made(module: IRModule, repeated: Mapping[Var, relax.VarBinding], reader: relax.VarBinding) -> bool:
    """Return whether a reader declares its operands as their makers do: not so kernels written as loops, of any offset."""
    callee, operands = reader.value.args[:2]
    return all(
        tvm_ffi.structural_equal(module[repeated[each].value.args[0]].params[-1].ty, buffer.ty)
        for each, buffer in zip(operands.fields, module[callee].params)
        if each in repeated
    )


def _bindings_for(repeated: Mapping[Var, relax.VarBinding], reader: relax.VarBinding) -> list[relax.VarBinding]:
    """Return the repeated bindings that a reader needs, in order."""
    wanted, left = set(), [each for each in reader.value.args[1].fields]
    while left:
        each = left.pop()
        if each in repeated and each not in wanted:
            wanted.add(each)
            left.extend(repeated[each].value.args[1].fields)
    return [binding for var, binding in repeated.items() if var in wanted]
