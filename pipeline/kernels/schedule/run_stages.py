"""Run the stages of a fused kernel one after another, each by the schedule of its own rule.

    means ─► gate                            held whole: few bytes
    for first in 0, 7, 14, …:                7 rows at a time, as many as may be held
        depthwise: 7 rows of x ─► held
        1×1:       held ─► 7 rows of the result

Rows of a value between two stages are computed once: each row of the result needs the same row of it, or all of it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

from ...memory import ALIGNMENT
from ...memory.liveness import aligned
from ...program import DTYPE_BYTES
from ...tir.expressions import replaced, uses
from ...tir.index_grid import Unknown
from ...tir.inlining import REFUSALS
from ...tir.loop_nests import (
    all_of,
    blocks_of,
    int64,
    kernel_of,
    nest_of,
    nests_in,
    reshaped,
    resized,
    sequence,
    simplified,
)
from ...tir.row_window import row_window, rows_of
from ..rules.flatten_axes import flatten_axes
from ..rules.rule import Speed
from ..weights.repack import Repack
from .divide_stages import Stage, divide_stages

_SERIAL = 0


@dataclass(frozen=True)
class StagedKernel:
    """Kernel that runs its stages, with the weight layouts it reads, and the speed of its slowest stage.

    `again` counts the bytes of operands that are read again by each window of rows but the first.
    """

    kernel: PrimFunc
    repacks: tuple[Repack, ...]
    speed: Speed
    again: int


@dataclass(frozen=True)
class StageSchedule:
    """Scheduled kernel of a stage, with its repacks and its speed."""

    kernel: PrimFunc
    repacks: tuple[Repack, ...]
    speed: Speed


#: schedule a stage: its kernel, the positions of parameters that may be repacked, and whether shapes stay as they are
ScheduleStage = Callable[[PrimFunc, frozenset[int], bool], StageSchedule]


@dataclass(frozen=True)
class _Windows:
    """Rows of a kernel's values along an axis each; `count` at a time, `extent` together.

    Values not in `axes` are computed whole; of operands in `partly`, each window reads its part.
    """

    axes: dict[Var, int] = field(default_factory=dict)
    partly: frozenset[Var] = frozenset()
    count: int = 1
    extent: int = 1


def run_stages(kernel: PrimFunc, repackable: frozenset[int], held: int, schedule: ScheduleStage) -> Iterator[StagedKernel]:
    """Yield `kernel` in stages that hold at most `held` bytes between them, nothing if it has one stage or cannot."""
    try:
        stages = divide_stages(kernel)
        windows = _windows(stages, held) if len(stages) > 1 else None
        if windows is not None:
            yield _Runner(kernel, stages, windows, repackable, schedule).run()
    except (Unknown, *REFUSALS):
        return


def _windows(stages: Sequence[Stage], held: int) -> _Windows | None:
    """Find the rows to compute at a time: all if they may be held, else as many as the best axis allows."""
    between = [stage.result for stage in stages[:-1]]
    if sum(map(_nbytes, between)) <= held:
        return _Windows()
    found = []
    for axis in range(len(stages[-1].result.ty.shape)):
        windows = _rows_along(stages, axis)
        if windows is None:
            continue
        rows = [each for each in between if each in windows.axes]
        whole = sum(_nbytes(each) for each in between if each not in windows.axes)
        counts = (n for n in range(windows.extent - 1, 0, -1) if windows.extent % n == 0)
        fitting = (n for n in counts if whole + sum(_nbytes(each, n, windows.extent) for each in rows) <= held)
        if rows and (count := next(fitting, None)) is not None:
            found.append(replace(windows, count=count))
    return min(found, key=lambda each: each.extent // each.count, default=None)


def _rows_along(stages: Sequence[Stage], axis: int) -> _Windows | None:
    """Follow the rows of the result to all values they are computed from, one row from one; None if they do not."""
    result = stages[-1].result
    extent = int(result.ty.shape[axis])
    axes: dict[Var, int] = {result: axis}
    whole: set[Var] = set()
    partly: set[Var] = set()
    computed = {stage.result for stage in stages}
    for stage in reversed(stages):
        if stage.result in whole or stage.result not in axes:
            whole.update(stage.operands)
            continue
        rows = rows_of(stage.kernel, axes[stage.result])
        if rows is None:
            return None
        follows = dict(rows.operands)
        for number, operand in enumerate(stage.operands):
            found = follows.get(number)
            partly.update([operand] if found is not None else [])
            same = found is not None and found.low == tuple(range(extent)) and found.high == tuple(range(1, extent + 1))
            if found is not None and same and axes.setdefault(operand, found.axis) == found.axis:
                continue
            whole.add(operand)
    kept = {value: at for value, at in axes.items() if value not in whole and int(value.ty.shape[at]) == extent}
    return _Windows(kept, frozenset(partly), 1, extent) if all(each in kept or each in whole for each in computed) else None


def _nbytes(buffer: Var, count: int = 1, extent: int = 1) -> int:
    size = math.prod(int(each) for each in buffer.ty.shape) * DTYPE_BYTES[str(buffer.ty.dtype)]
    return aligned(size // extent * count, ALIGNMENT)


class _Runner:
    """Build the kernel; `places` maps the values of the divided kernel to its buffers."""

    def __init__(
        self, kernel: PrimFunc, stages: Sequence[Stage], windows: _Windows, repackable: frozenset[int], schedule: ScheduleStage
    ):
        self.kernel, self.stages, self.windows, self.schedule = kernel, stages, windows, schedule
        self.params = {param: number for number, param in enumerate(kernel.params)}
        uses = [operand for stage in stages for operand in stage.operands]
        self.free = {param for param, number in self.params.items() if number in repackable and uses.count(param) == 1}
        self.first = Var("first", "int64")
        self.places = {param: resized(param, 0, int(param.ty.shape[0])) if len(param.ty.shape) else param for param in kernel.params}
        for stage in stages[:-1]:
            value = stage.result
            axis = windows.axes.get(value)
            elements = math.prod(int(each) for each in value.ty.shape)
            self.places[value] = reshaped(value, [elements if axis is None else elements // windows.extent * windows.count])
        self.between = {stage.result for stage in stages[:-1]}
        self.own: list[Var] = [self.places[stage.result] for stage in stages[:-1]]
        self.repacks: list[Repack] = []
        self.speed = Speed.FAST

    def run(self) -> StagedKernel:
        before, inside = [], []
        again = 0
        windows = self.windows.extent // self.windows.count
        for stage in self.stages:
            if stage.result in self.windows.axes:
                inside.append(self._rows(stage))
                again += (windows - 1) * sum(_nbytes(each) for each in stage.operands if each not in self.windows.partly)
            else:
                before.append(self._whole(stage))
        if inside:
            window = Var("window", "int64")
            body = replaced(sequence(inside), {self.first: window * int64(self.windows.count)})
            before.append(For(window, int64(0), int64(windows), _SERIAL, body))
        params = [self.places[param] for param in self.kernel.params]
        made = kernel_of(params, before, self.own, self.kernel.attrs)
        return StagedKernel(made, tuple(self.repacks), self.speed, again)

    def _whole(self, stage: Stage) -> Stmt:
        return self._bound(stage, stage.kernel, [*stage.operands, stage.result], fixed=False)

    def _rows(self, stage: Stage) -> Stmt:
        """Schedule and bind a stage for `count` rows from `first` on."""
        axes, count = self.windows.axes, self.windows.count
        made = _with_unit_axes(row_window(stage.kernel, axes[stage.result], count))
        number, *operands, result = made.params
        values = [*stage.operands, stage.result]
        narrow = {
            param: resized(param, axes[value], count)
            for param, value in zip(operands, stage.operands)
            if value in axes and int(param.ty.shape[axes[value]]) > count
        }
        body = _from_row(made.body, narrow, {param: axes[value] for param, value in zip(operands, stage.operands) if param in narrow}, number)
        params = [narrow.get(param, param) for param in operands]
        if uses(body, number):
            return self._bound(stage, PrimFunc([number, *params, result], body, attrs=made.attrs), values, fixed=True)
        return self._bound(stage, PrimFunc([*params, result], body, attrs=made.attrs), values, fixed=False)

    def _bound(self, stage: Stage, kernel: PrimFunc, values: Sequence[Var], *, fixed: bool) -> Stmt:
        """Schedule the kernel of a stage, bind its parameters to `values`, and take over its own buffers."""
        shift = len(kernel.params) - len(values)
        free = frozenset(number + shift for number, value in enumerate(values) if value in self.free)
        fixed = fixed or not self._keeps_lines(kernel, free, values)
        found = self.schedule(kernel, free, fixed)
        cut = {repack.parameter for repack in found.repacks if not self._repacks_in_windows(repack, values[repack.parameter - shift])}
        if cut:
            found = self.schedule(kernel, free - cut, fixed)
        self.speed = max(self.speed, found.speed)
        scheduled = s_tir.renew_defs(found.kernel)
        params = list(scheduled.params)
        held = dict(zip(params[shift:], values))
        #: dimension and step of the rows of each value
        rows = {each: (axis, 1) for each, axis in self.windows.axes.items()} if stage.result in self.windows.axes else {}
        for repack in found.repacks:
            value = values[repack.parameter - shift]
            self.repacks.append(replace(repack, parameter=self.params[value]))
            shape = repack.shape(tuple(int(extent) for extent in value.ty.shape))
            self.places[value] = reshaped(params[repack.parameter], shape)
            if value in rows:
                rows[value] = _row_of_repacked(repack, rows[value][0])

        def placed(param: Var, indices: Sequence[Expr]) -> tuple[Var, list[Expr]]:
            value = held[param]
            place, moved = self.places[value], list(indices)
            if value in self.between:
                return place, [_flat(param, moved)]
            axis, step = rows.get(value, (None, 1))
            if axis is not None and int(param.ty.shape[axis]) < int(place.ty.shape[axis]):
                moved[axis] = moved[axis] + (tirx.floordiv(self.first, int64(step)) if step > 1 else self.first)
            return place, moved

        def load(each: TensorLoad) -> TensorLoad:
            return tirx.BufferLoad(*placed(each.source, each.indices)) if each.source in held else each

        def store(each: BufferStore) -> BufferStore:
            if each.buffer not in held:
                return each
            place, indices = placed(each.buffer, each.indices)
            return BufferStore(place, each.value, indices)

        def region(each: TensorRegion) -> TensorRegion:
            return all_of(self.places[held[each.source]]) if each.source in held else each

        body = scheduled.body
        if not isinstance(body, SBlockRealize) or body.iter_values or body.block.match_buffers:
            raise Unknown("the schedule of a stage is no plain sequence of loop nests")
        self.own += list(body.block.alloc_buffers)
        inner = tvm_ffi.structural_map(body.block.body, [(TensorLoad, load), (BufferStore, store), (TensorRegion, region)])
        return replaced(inner, {params[0]: self.first}) if shift else inner


    def _keeps_lines(self, kernel: PrimFunc, free: frozenset[int], values: Sequence[Var]) -> bool:
        """Tell whether fused axes stay within the windows: rows of the whole value lie further apart."""
        flat = flatten_axes(kernel, free)
        for param, made, value in zip(kernel.params, flat.params, values):
            axis = None if value in self.between else self.windows.axes.get(value)
            shape, fused = [int(each) for each in param.ty.shape], [int(each) for each in made.ty.shape]
            if axis is not None and math.prod(shape[:axis]) not in accumulate(fused, operator.mul, initial=1):
                return False
        return True

    def _repacks_in_windows(self, repack: Repack, value: Var) -> bool:
        """Tell whether windows of rows start at blocks of a repacked weight."""
        axis = self.windows.axes.get(value)
        if axis is None:
            return True
        return not repack.inner and (repack.dimension != axis or self.windows.count % repack.width == 0)


def _flat(buffer: Var, indices: Sequence[Expr]) -> Expr:
    """Return the place of an element in memory: an index may run past the end of its line, of which TVM would cut a buffer."""
    found: Expr = int64(0)
    for extent, index in zip(buffer.ty.shape, indices):
        found = found * int64(int(extent)) + index
    return found


def _row_of_repacked(repack: Repack, axis: int) -> tuple[int, int]:
    """Return the dimension of a repacked weight that `axis` became, and the rows that one step of it holds."""
    if axis == repack.dimension:
        return 0, repack.width
    return (axis + 1 if axis < repack.dimension else axis), 1


def _with_unit_axes(kernel: PrimFunc) -> PrimFunc:
    """Index elements by axes of one value too, where a window has a constant: rules match padding by its axes."""
    nests, blocks = nests_in(kernel), blocks_of(kernel)
    for number, block in enumerate(blocks):
        store, axes = block.body, list(block.iter_vars)
        if block.init is None and len(axes) == len(store.indices):
            at = [axis.var if int(axis.dom.extent) == 1 and isinstance(index, IntImm) else index for axis, index in zip(axes, store.indices)]
            nests[number] = nest_of(axes, block.name_hint, BufferStore(store.buffer, store.value, at))
    own = [block.body.buffer for block in blocks[:-1]]
    return kernel_of(kernel.params, nests, own, kernel.attrs)


def _from_row(body: Stmt, narrow: dict[Var, Var], axes: dict[Var, int], first: Var) -> Stmt:
    """Rewrite loads of the buffers `narrow`: indices along their axes count from row `first`."""
    from tvm import sym

    analyzer = sym.Analyzer()

    def load(each: TensorLoad) -> TensorLoad:
        new = narrow.get(each.source)
        if new is None:
            return each
        indices = list(each.indices)
        indices[axes[each.source]] = simplified(analyzer, indices[axes[each.source]] - first)
        return tirx.BufferLoad(new, indices)

    def region(each: TensorRegion) -> TensorRegion:
        return all_of(narrow[each.source]) if each.source in narrow else each

    return tvm_ffi.structural_map(body, [(TensorLoad, load), (TensorRegion, region)])
