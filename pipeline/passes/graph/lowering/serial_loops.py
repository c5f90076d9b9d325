"""Make the parallel loops of kernels serial, for a device has no thread pool of TVM's.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import AttrStmt, For, IfThenElse, PrimFunc, SeqStmt, Stmt

_SERIAL, _PARALLEL = 0, 1


def serial_loops(module: IRModule) -> IRModule:
    """Make the parallel loops of all kernels serial: a device has no thread pool."""
    changed = {}
    for var, function in module.functions.items():
        if isinstance(function, PrimFunc):
            body = _serial(function.body)
            if not body.same_as(function.body):
                changed[var] = function.with_body(body, function.span)
    result = IRModule(module.functions, attrs=module.attrs)
    for var, function in changed.items():
        result.update_func(var, function)
    return result


def _serial(stmt: Stmt) -> Stmt:
    """Make parallel loops serial; return the same object if nothing changes.

    Also drops `pragma_scope`, which only draws warnings from LLVM.
    """
    if isinstance(stmt, For):
        body = _serial(stmt.body)
        if body.same_as(stmt.body) and int(stmt.kind) != _PARALLEL:
            return stmt
        kind = _SERIAL if int(stmt.kind) == _PARALLEL else stmt.kind
        return For(stmt.loop_var, stmt.min, stmt.extent, kind, body, stmt.thread_binding, stmt.annotations, stmt.step)
    if isinstance(stmt, SeqStmt):
        parts = [_serial(part) for part in stmt.seq]
        return stmt if all(new.same_as(old) for new, old in zip(parts, stmt.seq)) else SeqStmt(parts)
    if isinstance(stmt, AttrStmt):
        body = _serial(stmt.body)
        if stmt.attr_key == "pragma_scope":
            return body
        return stmt if body.same_as(stmt.body) else AttrStmt(stmt.node, stmt.attr_key, stmt.value, body)
    if isinstance(stmt, IfThenElse):
        then, other = _serial(stmt.then_case), stmt.else_case and _serial(stmt.else_case)
        same = then.same_as(stmt.then_case) and (other is None or other.same_as(stmt.else_case))
        return stmt if same else IfThenElse(stmt.condition, then, other)
    if isinstance(stmt, SBlockRealize):
        block = stmt.block
        body = _serial(block.body)
        if body.same_as(block.body):
            return stmt
        inner = SBlock(
            block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init,
            block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip
        return SBlockRealize(stmt.iter_values, stmt.predicate, inner)
    return stmt
