"""List the candidate schedules of a kernel by rule, fastest first, and pick one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc

from ...frontend.relax.loop_kernel import ITERATIONS
from ...targets import Machine
from ...tir.expressions import collect
from ...tir.in_place.analysis import Sharing, analyse_sharing
from ...tir.inlining import REFUSALS
from ...tir.memoise import memoise_by_structure
from ...tir.switches import is_on
from ...tir.workspace import held_bytes, workspace_bytes
from ..rules.axes.block_transposes import block_transposes
from ..rules.axes.vector_columns import vector_columns
from ..rules.flatten_axes import flatten_axes, with_shapes_of
from ..rules.forms.narrow_sums import narrow_sums
from ..rules.forms.scales_last import scales_last
from ..rules.fuse_loops import fuse_loops
from ..rules.integer.micro_kernel import MicroKernel
from ..rules.integer.rows import ROWS
from ..rules.nt_matmul import nt_matmul
from ..rules.parallel_loops import has_parallel_loop, parallelise_loops
from ..rules.rule import Rule, Speed
from ..rules.sliding_window import sliding_windows
from ..rules.split_by_range import split_by_range
from ..rules.tiles.tile_reduction import register_tiles
from ..rules.vector_reduction import sums_of_one_tensor, vector_sums
from ..rules.windows.direct_window import direct_windows
from ..weights.repack import Repack

#: largest workspace of a fast schedule, in bytes a thread
RULE_WORKSPACE = 4096
#: rules for reductions, the best first: the first whose workspace fits wins
RULES: tuple[Rule, ...] = (
    sums_of_one_tensor, direct_windows, sliding_windows, *ROWS, nt_matmul, register_tiles, vector_sums, vector_columns,
)  # fmt: skip
#: multiple of the least workspace that a rule's schedule may take where none fits: plain loops take tens of times as long
_TWICE = 2
_SCHEDULED = "passfit.scheduled"


@dataclass(frozen=True)
class Schedule:
    """A scheduled kernel with its needs.

    `workspace` is in bytes, `repacks` are the weight layouts it reads, `threads` is how many run it, `speed` that of
    its reductions, if it has any.
    """

    kernel: PrimFunc
    workspace: int
    repacks: tuple[Repack, ...] = ()
    threads: int = 1
    speed: Speed = Speed.LOOPS

    @cached_property
    def sharing(self) -> Sharing:
        return Sharing() if is_scheduled(self.kernel) else analyse_sharing(self.kernel)


def fits(workspace: int, threads: int, most: int, per_thread: int) -> bool:
    """Return whether a workspace takes at most `most` bytes, or `per_thread` a thread."""
    return workspace <= max(most, per_thread * threads)


class Schedules:
    """Hold the schedules of a kernel, fastest first, each computed on demand."""

    def __init__(self, default: Callable[[], int], candidates: Iterable[Schedule]):
        self._default = default
        self._known: list[Schedule] = []
        self._more = iter(candidates)
        self._failure: Exception | None = None

    @cached_property
    def default(self) -> int:
        """Return the workspace of the kernel as TVM made it, in bytes."""
        return self._default()

    def within(self, most: int, per_thread: int = 0) -> Schedule:
        """Return the fastest schedule that fits; else the fastest that needs at most twice the least workspace."""
        fitting = (each for each in self.candidates() if fits(each.workspace, each.threads, most, per_thread))
        found = next(fitting, None)
        if found is None:
            least = min(each.workspace for each in self._known)
            found = next(each for each in self._known if each.workspace <= _TWICE * least)
        return found

    def candidates(self) -> Iterator[Schedule]:
        """Yield the schedules, computing each on demand; raise what TVM raised, each time."""
        yield from self._known
        if self._failure is not None:
            raise self._failure
        try:
            for schedule in self._more:
                self._known.append(schedule)
                yield schedule
        except Exception as error:
            self._failure = error
            raise


def as_it_is(kernel: PrimFunc) -> PrimFunc:
    """Mark `kernel` as scheduled already, so that no rule touches it."""
    return kernel.with_attr(_SCHEDULED, True)


def is_scheduled(kernel: PrimFunc) -> bool:
    """Return whether no rule may touch a kernel: it is scheduled already, or a loop, whose body has kernels of its own."""
    return bool(kernel.attrs) and (_SCHEDULED in kernel.attrs or ITERATIONS in kernel.attrs)


@memoise_by_structure
def schedules(kernel: PrimFunc, repackable: frozenset[int], machine: Machine, fixed_shapes: bool = False) -> Schedules:
    """List the schedules of `kernel`, fastest first.

    `repackable` are the parameters whose layout may be chosen. With `fixed_shapes` no axes are flattened: best if the
    caller has to find a parameter again.
    """
    if is_scheduled(kernel):
        only = _scheduled(kernel, machine)
        return Schedules(lambda: max(only.workspace, RULE_WORKSPACE * only.threads), (only,))
    serial = _serial(kernel, repackable, machine, fixed_shapes)
    return Schedules(lambda: workspace_bytes(kernel), (each for one in serial for each in threaded(one, machine)))


def _scheduled(kernel: PrimFunc, machine: Machine) -> Schedule:
    threads = machine.threads if has_parallel_loop(kernel) else 1
    return Schedule(kernel, workspace_bytes(kernel, threads), threads=threads)


def threaded(schedule: Schedule, machine: Machine) -> Iterator[Schedule]:
    """Yield the schedule with parallel loops, if there are any, then the schedule itself."""
    if machine.threads > 1:
        kernel = parallelise_loops(schedule.kernel, machine.threads)
        if not kernel.same_as(schedule.kernel):
            yield replace(_scheduled(kernel, machine), repacks=schedule.repacks)
    yield schedule


def _serial(kernel: PrimFunc, repackable: frozenset[int], machine: Machine, fixed_shapes: bool) -> Iterator[Schedule]:
    """Yield the single-thread schedules of `kernel`."""
    if _reduces(kernel):
        kernel = scales_last(narrow_sums(kernel))
    ranges = split_by_range(kernel)
    if ranges is not None:
        flat = ranges if fixed_shapes else flatten_axes(ranges)
        yield Schedule(with_shapes_of(ranges, flat, flat), 0)
        return
    flat = kernel if fixed_shapes else flatten_axes(kernel, repackable)
    for each in _fastest_first(flat, repackable, machine):
        yield replace(each, kernel=with_shapes_of(kernel, flat, each.kernel))


def _fastest_first(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[Schedule]:
    """Yield the schedules of a flat kernel: the fast rule's, fused loops, then as TVM made it."""
    blocked = None if _reduces(kernel) else block_transposes(kernel, machine)
    if blocked is not None:
        yield Schedule(blocked, workspace_bytes(blocked))
    yield from _fast(kernel, repackable, machine)
    if held_bytes(kernel):
        fused = fuse_loops(kernel)
        with suppress(*REFUSALS):  # TVM cannot lower every nest of loops it has fused
            yield Schedule(fused, workspace_bytes(fused))
    yield Schedule(kernel, workspace_bytes(kernel))


def _fast(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[Schedule]:
    """Yield the rules' schedules with a small workspace, up to the first in registers."""
    unit = unit_of(kernel, machine)
    for rule in RULES if _reduces(kernel) else ():  # each of them looks for a reduction
        if not is_on(rule.__name__):
            continue
        own = machine if isinstance(rule, MicroKernel) else unit
        for found in rule(kernel, repackable, own):
            workspace = workspace_bytes(found.kernel) if found.workspace is None else found.workspace
            if workspace <= RULE_WORKSPACE:
                yield Schedule(found.kernel, workspace, found.repacks, speed=found.speed)
            if workspace <= own.register_bytes:
                return


def unit_of(kernel: PrimFunc, machine: Machine) -> Machine:
    """Return the machine as the sums of a kernel see it, if all are of one dtype."""
    sums = {
        str(block.body.value.ty.dtype) if isinstance(block.body, BufferStore) else ""
        for block in collect(kernel.body, SBlock)
        if block.init is not None
    }
    return machine.vectors_of(sums.pop()) if len(sums) == 1 else machine


@lru_cache(1 << 12)
def reads_machine(kernel: PrimFunc) -> bool:
    """Return whether the schedules of `kernel` may depend on more of a machine than its threads: it has sums."""
    return not is_scheduled(kernel) and _reduces(kernel)


def _reduces(kernel: PrimFunc) -> bool:
    return any(block.init is not None for block in collect(kernel.body, SBlock))
