"""Make kernels plain C functions of pointers: `int32_t kernel(const void *x, void *y)`.

TVM's own calling convention (`MakePackedAPI`) unpacks tensors from a table of tagged values, and checks types, ranks,
shapes, strides and devices of each in every call. A library calls kernels with tensors of its own plan only: these
checks cannot fail, and took 59 to 69 % of the code of small libraries.
"""

from __future__ import annotations

from collections.abc import Iterator

import tvm
from tvm import tirx
from tvm.ir import IRModule, PointerType, PrimType, Var
from tvm.tirx import AttrStmt, Bind, BufferType, DeclBuffer, PrimFunc, Return, SeqStmt, Stmt

from ...tir.arena_workspace import allocate_in_workspace, has_workspace_parameter

#: DLPack's number of the device that workspace is allocated on
_CPU = 1


@tirx.transform.prim_func_pass(opt_level=0, name="passfit.RawPointers")
def raw_pointers(kernel: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    """Replace the tensor parameters of a lowered kernel by pointers; keep numbers.

    The kernel returns 0, and another number if workspace runs out or a thread fails. With `tirx.noalias`, LLVM takes all
    pointers to point to different memory, so operands read in place must be read through their result: see
    `kernels/lower/specialise.py`.
    """
    tensors = [param for param in kernel.params if isinstance(param.ty, BufferType)]
    pointers = {tensor: Var(tensor.name, PointerType(PrimType("void"))) for tensor in tensors}
    declarations = [each for tensor, pointer in pointers.items() for each in _declarations(tensor, pointer)]
    inner = allocate_in_workspace(kernel) if has_workspace_parameter(kernel) else kernel.body
    body = SeqStmt([*declarations, inner])
    for key, value in (("device_id", 0), ("device_type", _CPU)):  # TVM reads them to allocate workspace
        body = AttrStmt("default", key, _int32(value), body)
    for tensor in reversed(tensors):
        body = AttrStmt(tensor, "storage_alignment", _int32(int(tensor.ty.data_alignment)), body)
    params = [pointers.get(param, param) for param in kernel.params]
    return PrimFunc(params, SeqStmt([body, Return(_int32(0))]), PrimType("int32"), attrs=kernel.attrs)


def _declarations(tensor: Var, pointer: Var) -> Iterator[Stmt]:
    """Yield the declaration of `tensor` at `pointer`, after its offset if that is a variable: kernels of `te.extern`."""
    offset = tensor.ty.elem_offset
    if isinstance(offset, Var):
        yield Bind(offset, tirx.const(0, str(offset.ty.dtype)))
    yield DeclBuffer(tensor, data=tirx.reinterpret(PointerType(PrimType(str(tensor.ty.dtype))), pointer))


def _int32(value: int) -> tirx.IntImm:
    return tirx.const(value, "int32")
