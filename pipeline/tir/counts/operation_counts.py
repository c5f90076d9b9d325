"""Count the instructions of a scheduled kernel per statement, for the model in `targets/cycles.py`.

    for i in 48:                      a load of w[j] runs 48 times: the loop k, which it does not depend on, hoists it
        for k in serial 8:            x[k, i, v] runs 48 * 8 times, one vector of `lanes` each
            for j in unrolled 4:      unrolled loops share loads they do not depend on
                for v in vectorized 8: acc[j, v] += x[k, i, v] * w[j]

Neighbours in memory that are read as one integer are one load. A load from one of two places, by position, chooses its address first: an instruction for each place. Conditions on the
innermost loop are evaluated in each iteration, and so are quotients and remainders that move by no constant step. What the
number of a call decides, rows of a ring and guards of rows, is hoisted, but never known before: each row of a tile has a
remainder and a branch of its own, and rows with branches share no loads.
Divisions and functions are hoisted as loads are. Accumulators that no inner serial loop moves stay in registers. What
LLVM vectorizes by itself counts as vectorized: innermost loops whose stores are contiguous and whose loads move a few
elements at most, except sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm.ir import Expr, PrimType, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, For, IfThenElse, IntImm, PrimFunc, SeqStmt, Stmt

from ...program import Loop, Program
from ...targets import Machine, Target
from ...targets.cycles import CORES, FIRST_CACHE, Core, KernelWork, StatementWork, core_of, kernel_cycles
from ..expressions import chosen_places, element_bytes, is_one, loads
from ..index_grid import GridLoop, NoMatch, grid_over
from ..loop_nests import axis_values
from ..memoise import memoise_by_structure
from ..operators.quads import joined_loads
from ..row_window import calls_of
from .cache_traffic import CacheTraffic, StatementNest, StridedAccess
from .instructions import DIVISION, instructions, long_instructions, soft_instructions, widest
from .loop_counts import (
    BRANCHED,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    CountedLoop,
    accesses,
    branches,
    dependent_steps,
    executions,
    extent_of,
    independent_sums,
    loop_ends,
    unrolled_by_llvm,
    vectorized_by_llvm,
    vectors_of,
)
from .strides import Strides, depends

#: machine on which an operation on one element is an instruction
BY_ELEMENT = Machine(lanes=1)
#: iterations over which a condition is evaluated; it is taken to hold beyond
_CONDITIONS = 1 << 12
#: lanes of Helium's vectors of int32
_LANES = 4
#: kind of a block's axis that is summed over
_REDUCE = 2


@dataclass(frozen=True)
class _Place:
    """Surroundings of a statement: loops, outermost first, values of block axes, and its share of the iterations."""

    loops: tuple[CountedLoop, ...] = ()
    bound: tuple[tuple[Var, Expr], ...] = ()
    share: float = 1.0
    registers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Counted:
    """Instructions of straight-line statements, and their accesses to memory."""

    work: StatementWork
    nests: tuple[StatementNest, ...]


@memoise_by_structure
def instructions_of(kernel: PrimFunc, machine: Machine) -> tuple[StatementWork, ...]:
    """Count the instructions of one call of a scheduled kernel on `machine`, statement by statement; no bytes."""
    return tuple(each.work for each in _Counter(machine, kernel).of(kernel.body, _all_calls(kernel)))


@memoise_by_structure
def kernel_work(kernel: PrimFunc, machine: Machine, core: Core = CORES["x86_64"]) -> KernelWork:
    """Count the instructions of a call of a scheduled kernel, and the bytes for the caches of `core`."""
    place = _all_calls(kernel)
    nbytes = round(place.share * sum(_nbytes(param) for param in kernel.params if not isinstance(param.ty, PrimType)))
    counted = _Counter(machine, kernel).of(kernel.body, place)
    traffic = CacheTraffic([nest for each in counted for nest in each.nests])

    def add_traffic(each: _Counted) -> StatementWork:
        refilled = sum(traffic.brought_in(nest, FIRST_CACHE) for nest in each.nests)
        return replace(
            each.work, refilled=refilled, missed=sum(traffic.brought_again(nest, core.cache) for nest in each.nests)
        )

    return KernelWork(tuple(map(add_traffic, counted)), nbytes)


def predicted_cycles(kernel: PrimFunc, target: Target, near: bool = False) -> float:
    """Return the cycles of one call of a scheduled kernel on `target`, by the model in `targets/cycles.py`."""
    core = core_of(target.architecture)
    return kernel_cycles(kernel_work(kernel, target.machine, core), core, near)


def program_cycles(program: Program, kernels: Mapping[str, PrimFunc], target: Target) -> float:
    """Return the cycles of one run of a program with scheduled kernels."""
    return sum_cycles(program, target, lambda name, near: predicted_cycles(kernels[name], target, near))


def sum_cycles(program: Program, target: Target, cycles: Callable[[str, bool], float]) -> float:
    """Sum the `cycles` of all calls in one run, by name of the kernel and whether its operands are near."""
    nearby = near_calls(program, core_of(target.architecture).second)
    return sum(cycles(call.step.kernel, near) * call.runs for call, near in zip(program.calls(), nearby))


def near_calls(program: Program, cache: int, around: bool = False) -> Iterator[bool]:
    """Yield for each of `calls` whether its operands are in the cache: a loop around it, all of whose tensors fit, runs again."""
    for step in program.steps:
        if isinstance(step, Loop):
            fits = sum(tensor.nbytes for tensor in step.body.tensors) <= cache
            yield from near_calls(step.body, cache, around or (step.trips > 1 and fits))
        else:
            yield around


def operations_of_elements(kernel: PrimFunc) -> float:
    """Count the operations on single elements of one call of a scheduled kernel; a multiply-add is one."""
    return sum(each.arithmetic for each in instructions_of(kernel, BY_ELEMENT))


def _all_calls(kernel: PrimFunc) -> _Place:
    """Return the surroundings of a kernel's body: for one of rows, the mean of the loop that calls it."""
    called = calls_of(kernel)
    return _Place() if called is None else _Place((CountedLoop(*called, SERIAL),), share=1 / called[1])


class _Counter:
    """Walk a kernel's statements."""

    def __init__(self, machine: Machine, kernel: PrimFunc):
        self._machine = machine
        called = calls_of(kernel)
        self._number = None if called is None else called[0]

    def of(self, stmt: Stmt, place: _Place) -> list[_Counted]:
        if isinstance(stmt, BufferStore):
            return [self._store(stmt, place)]
        if isinstance(stmt, For):
            loop = CountedLoop(stmt.loop_var, extent_of(stmt.extent), int(stmt.kind))
            return self.of(stmt.body, replace(place, loops=(*place.loops, loop)))
        if isinstance(stmt, SeqStmt):
            straight = [part for part in stmt.seq if _is_straight(part)]
            rest = [each for part in stmt.seq if not _is_straight(part) for each in self.of(part, place)]
            return [*rest, *_side_by_side(straight, [each for part in straight for each in self.of(part, place)])]
        if isinstance(stmt, SBlockRealize):
            return self._block(stmt, place)
        if isinstance(stmt, IfThenElse):
            share = _share(stmt.condition, place)
            then = replace(place, loops=self._branched(stmt.condition, place), share=place.share * share)
            other = replace(place, share=place.share * (1 - share))
            return self.of(stmt.then_case, then) + (self.of(stmt.else_case, other) if stmt.else_case else [])
        body = getattr(stmt, "body", None)
        return self.of(body, place) if isinstance(body, Stmt) else []

    def _branched(self, condition: Expr, place: _Place) -> tuple[CountedLoop, ...]:
        """Mark the unrolled loops that a condition depends on, if the number of a call decides it: a branch for each row."""
        bound = dict(place.bound)
        if self._number is None or not depends(condition, self._number, bound):
            return place.loops
        return tuple(
            replace(loop, kind=BRANCHED) if loop.kind == UNROLLED and depends(condition, loop.var, bound) else loop
            for loop in place.loops
        )

    def _block(self, stmt: SBlockRealize, place: _Place) -> list[_Counted]:
        block = stmt.block
        small = {buffer for buffer in block.alloc_buffers if _nbytes(buffer) <= self._machine.register_bytes}
        bound = (*place.bound, *axis_values(stmt).items())
        registers = place.registers | {hash(each) for each in small}
        inside = _Place(place.loops, bound, place.share * _share(stmt.predicate, place), registers)
        found = self.of(block.body, inside)
        if block.init is not None:
            first = [axis for axis, value in zip(block.iter_vars, stmt.iter_values) if int(axis.iter_type) == _REDUCE]
            over = math.prod(extent_of(axis.dom.extent) for axis in first)
            found += self.of(block.init, replace(inside, share=inside.share / max(1, over)))
        return found

    def _store(self, store: BufferStore, place: _Place) -> _Counted:
        # vectors for integers alone are those of rules: LLVM makes none by itself
        own = self._machine.vmlava and any(loop.kind == VECTORIZED for loop in place.loops)
        nbytes = 4 * (_LANES if own else self._machine.lanes)
        lanes = max(1, nbytes // max(element_bytes(store.buffer), widest(store.value)))
        read = loads(store.value)
        strides = Strides(place.loops, place.bound)
        target, _ = strides.of(store.buffer, store.indices)
        accessed = [strides.of(each.source, each.indices) for each in read]
        sources = [moves for moves, _ in accessed]
        loops = vectorized_by_llvm(place.loops, target, sources, lanes)
        vectors = vectors_of(loops, lanes, by_llvm=loops != place.loops)
        everywhere = executions(loops, self._machine, vectors) * place.share

        def bytes_moved(buffer: Var, moves: Sequence[int | None], at_once: int = 1) -> float:
            if hash(buffer) in place.registers:
                return 0.0
            steps = [
                -(-move // at_once) if move and loop.kind == VECTORIZED else move for loop, move in zip(loops, moves)
            ]
            return accesses(loops, vectors, steps) * place.share

        seen: set[tuple] = set()
        joined = joined_loads(store.value)
        chosen = set(map(hash, chosen_places(store.value)))
        loaded = addresses = 0.0
        for each, (moves, first) in zip(read, accessed):
            key = (hash(each.source), first, tuple(moves))
            at_once = joined.get(hash(each), 1)
            if at_once and key not in seen:
                seen.add(key)
                times = bytes_moved(each.source, moves, at_once)
                loaded += times
                addresses += times if hash(each) in chosen else 0.0
        reached = {
            (hash(buffer), tuple(moves)): StridedAccess(
                tuple(moves), element_bytes(buffer), hash(buffer), _nbytes(buffer)
            )
            for buffer, moves in [*((each.source, moves) for each, moves in zip(read, sources)), (store.buffer, target)]
            if hash(buffer) not in place.registers
        }
        names, extents = tuple(hash(loop.var) for loop in place.loops), tuple(loop.extent for loop in place.loops)
        summed = any(each.source.same_as(store.buffer) and moves == target for each, moves in zip(read, sources))
        steps = dependent_steps(loops, target) if summed else 1
        chain = everywhere / independent_sums(loops, vectors, target) if steps > 1 else 0.0
        indices = [index for each in (store, *read) for index in each.indices]
        addresses += everywhere * (DIVISION * strides.divisions(indices) + strides.conditions(store.value))
        wrapped = sum(
            accesses(unrolled_by_llvm(loops, moves), vectors, moves) for moves in strides.wrapped(indices, self._number)
        )
        addresses += (DIVISION * wrapped + branches(loops, vectors)) * place.share
        arithmetic = instructions(store.value) * everywhere
        if self._machine.soft_floats:
            arithmetic += soft_instructions(store.value) * everywhere
        for each, cost in long_instructions(
            store.value, lanes if any(loop.kind == VECTORIZED for loop in loops) else 1
        ):
            arithmetic += cost * accesses(loops, vectors, strides.moving(each)) * place.share
        work = StatementWork(
            arithmetic=arithmetic, loads=loaded, stores=bytes_moved(store.buffer, target),
            control=loop_ends(place.loops, vectors) * place.share + addresses, chain=chain, steps=steps,
        )  # fmt: skip
        return _Counted(work, (StatementNest(names, extents, tuple(reached.values()), place.share),))


def _is_straight(stmt: Stmt) -> bool:
    """Return whether a statement is straight-line code once its loops are unrolled and vectorized."""
    if isinstance(stmt, For):
        return (int(stmt.kind) in (VECTORIZED, UNROLLED) or is_one(stmt.extent)) and _is_straight(stmt.body)
    if isinstance(stmt, SBlockRealize):
        return stmt.block.init is None and _is_straight(stmt.block.body)
    return isinstance(stmt, BufferStore) or (isinstance(stmt, SeqStmt) and all(map(_is_straight, stmt.seq)))


def _side_by_side(parts: Sequence[Stmt], found: Sequence[_Counted]) -> list[_Counted]:
    """Join straight-line statements: they share the end of their loop, and their sums run side by side.

    A sum that one of them starts is not carried by the loop around.
    """
    if len(found) < 2:
        return list(found)
    works = [each.work for each in found]
    starts = any(not each.chain for each in works)
    work = StatementWork(
        sum(each.arithmetic for each in works),
        sum(each.loads for each in works),
        sum(each.stores for each in works),
        max(each.control for each in works),
        0.0 if starts else max(each.chain for each in works),
        max(each.steps for each in works),
    )
    return [_Counted(work, tuple(nest for each in found for nest in each.nests))]


def _share(condition: Expr, place: _Place) -> float:
    """Return the share of the iterations for which a condition on loops holds; 1 if unknown."""
    if isinstance(condition, IntImm):
        return float(bool(int(condition)))
    bound: Mapping[Var, Expr] = dict(place.bound)
    wanted = [GridLoop(loop.var, 0, loop.extent) for loop in place.loops if depends(condition, loop.var, bound)]
    if math.prod(loop.extent for loop in wanted) > _CONDITIONS:
        return 1.0
    grid = grid_over(wanted)
    try:
        for var, value in place.bound:
            if depends(condition, var, bound):
                grid.values[var] = grid.evaluate(value)
        return float(grid.holds(condition).mean())
    except NoMatch:
        return 1.0


def _nbytes(buffer: Var) -> int:
    return math.prod(int(extent) for extent in buffer.ty.shape) * element_bytes(buffer)
