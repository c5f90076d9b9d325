"""Outline the stages of streaming regions: make each a function, which equal stages share.

    for tick in 140:                                         for tick in 140:
        if (tick - 3) % 4 == 0 and 0 <= tick - 3 < 112:          if (tick - 3) % 4 == 0 and 0 <= tick - 3 < 112:
            y[…] = … x[… (tick - 3) // 4 …]                ──►       stage((tick - 3) // 4, x, y)

LLVM takes more than linear time for a function, and one function cannot be compiled by two threads. In one function it
also keeps what is constant over all ticks in registers: the coefficients of a sigmoid in the last stage leave none to the
sums of the others, which then take 3.4 times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, IRModule, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import LT, Add, BufferStore, Evaluate, FloorDiv, For, IfThenElse, IntImm, PrimFunc, Stmt, Sub

from ...kernels.rules.parallel_loops import has_parallel_loop
from ...program.free_name import free_name
from ...tir.arena_workspace import has_workspace_parameter, with_workspace_of
from ...tir.expressions import conjuncts, replaced
from ...tir.loop_nests import int64, kernel_of, sequence, statements
from ...tir.workspace import held_bytes, workspace_bytes
from .merge_kernels import first_equal

#: bytes from which TVM takes a buffer from the workspace, which may run out
_FROM_WORKSPACE = 1024
_NO_ALIAS = "tirx.noalias"


@dataclass(frozen=True)
class Outlined:
    """Hold kernels that call functions, and all `others`: LLVM inlines functions into callers of the same object."""

    callers: dict[str, PrimFunc]
    others: dict[str, PrimFunc]


def outline_stages(kernels: Mapping[str, PrimFunc]) -> Outlined:
    """Outline the stages of all kernels that have several.

    Deterministic. Functions are named after the first kernel that calls them.
    """
    regions = _simplified({name: region for name in sorted(kernels) if (region := _region(kernels[name])) is not None})
    names = {(name, n): free_name(f"{name}_stage{n}", kernels) for name, region in regions.items() for n in region.outlines}
    functions = {own: regions[name].outlines[n].function for (name, n), own in names.items()}
    kept = first_equal(functions)
    callers = {name: region.calling({n: kept[names[name, n]] for n in region.outlines}) for name, region in regions.items()}
    others = {name: kernel for name, kernel in kernels.items() if name not in callers}
    return Outlined(callers, others | {name: functions[name] for name in dict.fromkeys(kept.values())})


@dataclass(frozen=True)
class _Ticks:
    """Give the ticks a stage runs at: `number` of `groups` at tick `period` × number - `offset`."""

    number: Expr
    groups: int
    period: int
    offset: int


@dataclass(frozen=True)
class _Outline:
    """Hold a stage, its function, and the arguments of the call."""

    stage: IfThenElse
    function: PrimFunc
    arguments: tuple[Expr, ...]
    may_fail: bool

    def call(self, name: str) -> Stmt:
        """Return the stage with a call of its function, now `name`."""
        call = tirx.call_extern("int32", name, *self.arguments)
        failed = Evaluate(tirx.tvm_throw_last_error())  # returns -1 from the kernel
        return IfThenElse(self.stage.condition, IfThenElse(call != 0, failed, None) if self.may_fail else Evaluate(call), None)


@dataclass(frozen=True)
class _Region:
    """Hold the kernel of a streaming region: its `loop` over ticks, and the `outlines` of its stages by their place.

    Statements `before` the loop check indices, those `after` it copy.
    """

    kernel: PrimFunc
    before: tuple[Stmt, ...]
    loop: For
    after: tuple[Stmt, ...]
    outlines: dict[int, _Outline]

    def calling(self, names: Mapping[int, str]) -> PrimFunc:
        """Return the kernel with calls of functions, given their `names` by stage place."""
        parts = statements(self.loop.body)
        for number, outline in self.outlines.items():
            parts[number] = outline.call(names[number])
        loop = For(self.loop.loop_var, self.loop.min, self.loop.extent, self.loop.kind, sequence(parts))
        return self.kernel.with_body(kernel_of(self.kernel.params, [*self.before, loop, *self.after], [], None).body)


def _region(kernel: PrimFunc) -> _Region | None:
    """Return the region a kernel was made from; None for another kernel, and for one of a single stage."""
    if not isinstance(kernel.body, SBlockRealize) or kernel.body.block.alloc_buffers or kernel.body.block.match_buffers:
        return None
    parts = statements(kernel.body.block.body)
    stages = [len(statements(part.body)) if isinstance(part, For) else 0 for part in parts]
    place = stages.index(max(stages))
    if stages[place] < 2:
        return None
    loop = parts[place]
    outlines = {number: _outline(kernel, stage, loop.loop_var) for number, stage in enumerate(statements(loop.body))}
    found = {number: each for number, each in outlines.items() if each is not None}
    return _Region(kernel, tuple(parts[:place]), loop, tuple(parts[place + 1 :]), found) if len(found) > 1 else None


def _outline(kernel: PrimFunc, stage: Stmt, tick: Var) -> _Outline | None:
    """Make the function of a stage; None for another statement, and for a stage whose workspace may not fit."""
    ticks = _ticks(stage, tick)
    if ticks is None:
        return None
    number = Var("number", "int32")
    # the range lets TVM compute indices in 32 bits, and without care for negative numbers
    bounded = tirx.Cast("int64", tirx.max(tirx.min(number, tirx.const(ticks.groups - 1, "int32")), tirx.const(0, "int32")))
    at = bounded * ticks.period - ticks.offset
    body = replaced(stage.then_case, {tick: at})
    tensors = _accessed(body, kernel)
    function = kernel_of([number, *tensors], [body], [], None)
    if kernel.attrs and _NO_ALIAS in kernel.attrs:
        function = function.with_attr(_NO_ALIAS, kernel.attrs[_NO_ALIAS])
    held, in_arena = held_bytes(function), has_workspace_parameter(kernel)
    if in_arena:
        workspace = kernel.params[-1]
        room = int(workspace.ty.shape[0])
        if held > room and workspace_bytes(function) > room:  # the latter takes a while
            return None
        function, tensors = with_workspace_of(function, kernel), [*tensors, workspace]
    addresses = [tirx.address_of(tirx.BufferLoad(each, [int64(0)] * len(each.ty.shape))) for each in tensors]
    may_fail = (held >= _FROM_WORKSPACE and not in_arena) or has_parallel_loop(function) or _throws(function)
    return _Outline(stage, s_tir.renew_defs(function), (tirx.Cast("int32", ticks.number), *addresses), may_fail)


def _throws(function: PrimFunc) -> bool:
    """Tell whether a stage checks indices."""
    found: list[Evaluate] = []
    failed = Evaluate(tirx.tvm_throw_last_error())
    tvm_ffi.structural_walk(function.body, [(Evaluate, lambda each: found.append(each) if tvm_ffi.structural_equal(each, failed) else None)])
    return bool(found)


def _simplified(regions: Mapping[str, _Region]) -> dict[str, _Region]:
    """Simplify the functions of all stages: those that differ in their ticks are equal then."""
    functions = {f"{name}/{n}": each.function for name, region in regions.items() for n, each in region.outlines.items()}
    module = s_tir.transform.StmtSimplify()(IRModule(functions))
    return {
        name: replace(region, outlines={n: replace(each, function=module[f"{name}/{n}"]) for n, each in region.outlines.items()})
        for name, region in regions.items()
    }


def _ticks(stage: Stmt, tick: Var) -> _Ticks | None:
    """Return the ticks a stage runs at, by its condition `0 <= number and number < groups`; None for another form."""
    if not isinstance(stage, IfThenElse) or stage.else_case is not None:
        return None
    for each in conjuncts(stage.condition):
        if isinstance(each, LT) and isinstance(each.b, IntImm):
            number, period = each.a, 1
            since = number
            if isinstance(number, FloorDiv) and isinstance(number.b, IntImm):
                since, period = number.a, int(number.b)
            offset = _after(since, tick)
            if offset is not None:
                return _Ticks(number, int(each.b), period, offset)
    return None


def _after(since: Expr, tick: Var) -> int | None:
    """Return n of an expression `tick + n`; None for another."""
    if since.same_as(tick):
        return 0
    if isinstance(since, (Add, Sub)) and isinstance(since.b, IntImm):
        before = _after(since.a, tick)
        if before is not None:
            return before + (int(since.b) if isinstance(since, Add) else -int(since.b))
    return None


def _accessed(body: Stmt, kernel: PrimFunc) -> list[Var]:
    """Return the kernel's parameters that `body` accesses, in order of access."""
    params, found = set(kernel.params), {}

    def see(buffer: Var) -> None:
        if buffer in params:
            found.setdefault(buffer, None)

    tvm_ffi.structural_walk(
        body,
        [
            (TensorLoad, lambda each: see(each.source)),
            (BufferStore, lambda each: see(each.buffer)),
            (TensorRegion, lambda each: see(each.source)),
        ],
    )
    return list(found)
