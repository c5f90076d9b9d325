"""Make the workspace of a kernel a parameter, which a plan may put into the arena.

kernel(x, y)                          kernel(x, y, workspace)
    line = allocate 3008 bytes  ──►       line = workspace + 0
    tile = allocate 256 bytes             tile = allocate 256 bytes            registers, or the stack
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import PointerType, PrimType, Var
from tvm.tirx import AllocBuffer, AttrStmt, DeclBuffer, PrimFunc, Stmt

from ..memory import ALIGNMENT
from .expressions import collect
from .workspace import buffer_bytes

#: kernel attribute: bytes of an allocation that stays on the stack; the last parameter is for larger ones
_ON_STACK = "passfit.on_stack"


def add_workspace_parameter(kernel: PrimFunc, nbytes: int, on_stack: int) -> PrimFunc:
    """Add a last parameter for `nbytes` of workspace; allocations of up to `on_stack` bytes stay as they are."""
    params = [*kernel.params, tirx.decl_buffer([tirx.const(nbytes, "int64")], "uint8", "workspace")]
    return PrimFunc(params, kernel.body, kernel.ret_type, attrs=kernel.attrs).with_attr(_ON_STACK, on_stack)


def has_workspace_parameter(kernel: PrimFunc) -> bool:
    """Return whether the last parameter of `kernel` is its workspace."""
    return bool(kernel.attrs) and _ON_STACK in kernel.attrs


def allocate_in_workspace(kernel: PrimFunc) -> Stmt:
    """Return the body of a lowered kernel, its allocations in its workspace.

    Small ones stay on the stack, for LLVM may keep them in registers. Raises ValueError, a bug, if the others do not fit.
    """
    places: dict[Var, int] = {}
    end = 0
    for buffer in (each.buffer for each in collect(kernel.body, AllocBuffer)):
        if buffer_bytes(buffer) > int(kernel.attrs[_ON_STACK]):
            places[buffer] = end
            end += buffer_bytes(buffer)
    room = int(kernel.params[-1].ty.shape[0])
    if end > room:
        raise ValueError(f"a kernel needs {end} bytes of workspace, planned were {room}")

    def place(each: AllocBuffer) -> Stmt:
        if each.buffer not in places:
            return each
        start = tirx.address_of(tirx.BufferLoad(kernel.params[-1], [tirx.const(places[each.buffer], "int64")]))
        return DeclBuffer(each.buffer, data=tirx.reinterpret(PointerType(PrimType(str(each.buffer.ty.dtype))), start))

    body = tvm_ffi.structural_map(kernel.body, (AllocBuffer, place))
    for buffer in places:  # LLVM may read and write whole vectors
        body = AttrStmt(buffer, "storage_alignment", tirx.const(ALIGNMENT, "int32"), body)
    return body
