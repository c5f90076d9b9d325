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
from dataclasses import dataclass, replace
from itertools import accumulate

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

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
from ...tir.row_window import row_window, takes_a_row
from ..rules.flatten_axes import flatten_axes
from ..rules.rule import Speed
from ..weights.repack import Repack
from .divide_stages import Stage, divide_stages
from .row_windows import RowWindows, row_windows, value_bytes

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


def run_stages(kernel: PrimFunc, repackable: frozenset[int], held: int, schedule: ScheduleStage) -> Iterator[StagedKernel]:
    """Yield `kernel` in several stages with at most `held` bytes between them, if possible."""
    try:
        stages = divide_stages(kernel)
        windows = row_windows(stages, held) if len(stages) > 1 else None
        if windows is not None and not (takes_a_row(kernel) and windows.axes):
            yield _Runner(kernel, stages, windows, repackable, schedule).run()
    except (Unknown, *REFUSALS):
        return


class _Runner:
    """Build the kernel; `places` maps the values of the divided kernel to its buffers."""

    def __init__(
        self, kernel: PrimFunc, stages: Sequence[Stage], windows: RowWindows, repackable: frozenset[int], schedule: ScheduleStage
    ):
        self.kernel, self.stages, self.windows, self.schedule = kernel, stages, windows, schedule
        self.params = {param: number for number, param in enumerate(kernel.params)}
        uses = [operand for stage in stages for operand in stage.operands]
        self.free = {param for param, number in self.params.items() if number in repackable and uses.count(param) == 1}
        self.first = Var("first", "int64")
        #: number of the row, if the kernel takes one
        self.number = kernel.params[0] if takes_a_row(kernel) else None
        self.places = {param: resized(param, 0, int(param.ty.shape[0])) if getattr(param.ty, "shape", ()) else param for param in kernel.params}
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
                again += (windows - 1) * sum(value_bytes(each) for each in stage.operands if each not in self.windows.partly)
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
        kernel, values = stage.kernel, [*stage.operands, stage.result]
        if self.number is None or not uses(kernel.body, self.number):
            return self._bound(stage, kernel, values, fixed=False)
        numbered = PrimFunc([self.number, *kernel.params], kernel.body, attrs=kernel.attrs)
        return replaced(self._bound(stage, s_tir.renew_defs(numbered), values, fixed=True), {self.first: self.number})

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
        return not repack.inner and (repack.dimension != axis or (not repack.lanes and self.windows.count % repack.width == 0))


def _flat(buffer: Var, indices: Sequence[Expr]) -> Expr:
    """Return the place of an element in memory: an index may run past the end of its line, of which TVM would cut a buffer."""
    found: Expr = int64(0)
    for extent, index in zip(buffer.ty.shape, indices):
        found = found * int64(int(extent)) + index
    return found


def _row_of_repacked(repack: Repack, axis: int) -> tuple[int, int]:
    """Return the dimension `axis` became in a repacked weight, and rows per step."""
    if axis == repack.dimension:
        return 0, repack.width
    return (axis + 1 if axis < repack.dimension else axis), 1


def _with_unit_axes(kernel: PrimFunc) -> PrimFunc:
    """Index elements by axes of extent 1 too, in place of a window's constants: rules match padding by its axes."""
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
