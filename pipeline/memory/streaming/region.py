"""Run several steps as one, row by row: a streaming region keeps a few rows of each tensor in a ring.

    tick    0   1   2   3   4   5   6
    step 1  r0  r1  r2  r3  r4  r5  r6        a row at each tick
    step 2          r0      r1      r2        every second tick, from three rows of step 1, the last just computed
    ring    0   01  012 123 234 345 456

Nothing is computed twice: rows shared with the window before are kept. The row just computed is in a slot, which
several rings share (`slots.py`). A pooling can take rows as they come, and keep
none: its own row is accumulated in parts, each some ticks ahead of the last. The idea is that of line buffers in hardware,
and of msf-CNN's fused blocks with a cache. Rows may be lines of an image, or its channels, which a convolution at the
end takes into its sum (partial execution, as in Pex).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...program import Program, Splits
from ..liveness import ALIGNMENT, aligned
from .in_place import GROWING, Replacement, replacements
from .live_bytes import births_and_deaths
from .region_builder import Pace, RegionBuilder, last_needs
from .slots import FreshRows, assign_slots
from .stage import Read, Stage, StageResult


@dataclass(frozen=True)
class Region:
    """Steps that run as one.

    `rings` are the tensors that are never whole. `results` are the tensors that later steps or the caller need. One of
    them may replace operands.
    """

    stages: tuple[Stage, ...]
    rings: tuple[int, ...]
    results: tuple[int, ...]
    replacement: Replacement | None = None

    @property
    def ticks(self) -> range:
        """Return the ticks from the first stage's begin to the last one's end."""
        late = 0 if self.replacement is None else self.replacement.lag
        return range(min(stage.begin for stage in self.stages), max(stage.end for stage in self.stages) + max(0, late))

    def nbytes(self, program: Program, alignment: int = ALIGNMENT) -> int:
        """Return the bytes that the region adds to those around it: its workspaces, less what its replacement saves."""
        saved = self.replacement.saved(program, alignment) if self.replacement is not None else 0
        return sum([aligned(each, alignment) for each in self.workspaces(program)]) - saved

    def workspaces(self, program: Program) -> list[int]:
        """Return the bytes of each ring, and of each slot."""
        rings, slots = [], dict[int, int]()
        for stage in self.stages:
            tensor = program.steps[stage.step].writes[0]
            row = program.tensors[tensor].nbytes // stage.extent if stage.operand is None else 0
            if tensor in self.rings and stage.kept:
                rings.append(row * stage.kept)
            if stage.slot is not None:
                slots[stage.slot] = max(row * stage.group, slots.get(stage.slot, 0))
            if self.replacement is not None and self.replacement.result == tensor and self.replacement.held:
                rings.append(row * self.replacement.held)
        return [*rings, *slots.values()]

    def stage_of(self, program: Program, tensor: int) -> Stage:
        """Return the stage that writes a tensor."""
        return next(stage for stage in self.stages if program.steps[stage.step].writes[0] == tensor)


def region(
    program: Program,
    splits: Mapping[str, Splits],
    first: int,
    last: int,
    axis: int,
    group: int = 1,
    in_place: int = 0,
) -> Region | None:
    """Join steps `first` to `last`, included, into a region; None if they cannot run as one.

    `splits` are those of each kernel. The rows are those of the first step's result along `axis`, computed `group` at a
    time, which must divide all rows if a result is stored in place. `in_place` asks for a result in place of an
    operand; None if there is none.
    """
    builder = RegionBuilder(program, splits, first, axis, last_needs(program))
    while builder.last < last:
        if not builder.grow():
            return None
    found = region_of(builder, group)
    if in_place and any(choice.extent % group for choice in builder.choices.values()):
        return None  # rows would be computed again from operands that are overwritten
    if not in_place or found is None:
        return found
    return replace_operands(builder, found, births_and_deaths(program)[1], in_place == GROWING)


def replace_operands(
    builder: RegionBuilder, found: Region, deaths: Sequence[int], growing: bool = False
) -> Region | None:
    """Return the region with the result in place of operands that saves most; None if none saves anything.

    `deaths` are those of `births_and_deaths`. With `growing`, the result may grow over an operand of another size.
    """
    program, stages = builder.program, {stage.step: stage for stage in found.stages}
    dying = [
        [Read(builder.choices[n], stages[n], place, program.steps[n].reads[place]) for n, place in reads]
        for buffer, reads in builder.read_outside.items()
        if deaths[buffer] <= builder.last + 1
    ]
    written = [(program.steps[stage.step].writes[0], stage) for stage in found.stages if stage.operand is None]
    results = [StageResult(tensor, stage) for tensor, stage in written if tensor in found.results] if dying else []
    ways = replacements(program, dying, results, builder.read_inside, growing) if results else ()
    # the same choice for any alignment: a sequence does not name it
    most = found.nbytes(program, 1)
    least = min(
        (replace(found, replacement=each) for each in ways), key=lambda each: each.nbytes(program, 1), default=found
    )
    return least if least.nbytes(program, 1) < most else None


def region_of(builder: RegionBuilder, group: int = 1) -> Region | None:
    """Return the region of the steps taken in; None if a branch is not joined yet, or the rows do not go together."""
    if builder.waiting or (group > 1 and any(choice.extent < group for choice in builder.choices.values())):
        return None
    needs = builder.paces if group == 1 else {n: builder.needs(each, group) for n, each in builder.choices.items()}
    if group > 1 and any(_slopes(needs[number]) != _slopes(single) for number, single in builder.paces.items()):
        return None  # groups of rows have another rate than single rows
    program, stages, results, rings = builder.program, list[Stage](), list[int](), list[int]()
    fresh: list[tuple[Stage, FreshRows]] = []
    for stage, readers, whole in _schedule(builder, group, needs):
        stages.append(stage)
        (number,) = program.steps[stage.step].writes
        (results if whole else rings).append(number)
        at_once = not whole and not stage.leads and 0 < stage.held < stage.extent
        if at_once and (stage.period == group == 1 or _are_at_ticks_of(stage, readers)):
            tensor = program.tensors[number]
            last = readers[0][1].step if readers else stage.step
            nbytes = tensor.nbytes // stage.extent * group
            fresh.append((stage, FreshRows(nbytes, tensor.dtype, stage.step, last, stage.held > group)))
    for (stage, _), slot in zip(fresh, assign_slots([rows for _, rows in fresh])):
        stage.slot = slot
    return Region(tuple(reversed(stages)), tuple(reversed(rings)), tuple(reversed(results)))


def _are_at_ticks_of(stage: Stage, readers: Sequence[tuple[Pace, Stage]]) -> bool:
    """Return whether all readers run only at ticks at which the group that they read may be computed."""
    divided = not any(each.extent % each.group for each in (stage, *(reader for _, reader in readers)))
    if not divided and (not stage.lockstep or stage.held > stage.group):
        return False
    return all(
        (reader.offset - stage.offset) % stage.period == 0 and reader.period % stage.period == 0
        for _, reader in readers
    )


def _schedule(
    builder: RegionBuilder, group: int, needs: Mapping[int, tuple[Pace, ...]]
) -> Iterator[tuple[Stage, list[tuple[Pace, Stage]], bool]]:
    """Yield the stages, the last first, each as late as its readers allow and with room for the rows that they take.

    With each, its readers and whether its result is whole. `needs` are the rows that each step needs.
    """
    reading: dict[int, list[tuple[Pace, Stage]]] = defaultdict(list)
    for number in sorted(builder.choices, reverse=True):
        choice, step = builder.choices[number], builder.program.steps[number]
        readers, whole = reading[step.writes[0]], True
        if choice.rows is None:
            assert choice.operand is not None
            period = builder.period(step.reads[choice.operand])
            stage = Stage(number, choice.axis, choice.extent, group, period, 0, 0, choice.operand)
        else:
            period, whole = builder.period(step.writes[0]), builder.is_kept(step.writes[0])
            leads: tuple[int, ...] = ()
            if choice.taps is not None and group == 1:  # the parts of a row come before the last one
                leads = tuple(early * builder.period(choice.taps.tensor) for early in choice.taps.early)
            offset, held = 0, 1
            if len(readers) == 1 and not leads:
                ((need, reader),) = readers
                offset, held = reader.offset - period * (need.high - 1), need.high - need.low
            elif readers:
                offset = min([reader.offset - period * (need.high - 1) for need, reader in readers])
                begin = offset - max(leads, default=0)
                held = max([_groups_held(need, reader.offset - begin, period) for need, reader in readers])
            held *= group
            lockstep = choice.extent % group > 0 and held == group and bool(readers) and not whole
            lockstep = lockstep and all(_is_lockstep(need, reader, choice.extent) for need, reader in readers)
            held = choice.extent if whole or held > choice.extent else held
            stage = Stage(number, choice.axis, choice.extent, group, period, offset, held, None, leads, lockstep)
        for need in needs[number]:
            reading[need.tensor].append((need, stage))
        yield stage, readers, whole


def _is_lockstep(need: Pace, reader: Stage, extent: int) -> bool:
    """Return whether a reader's groups are the rows it needs, of `extent` in all."""
    return (need.rises, need.runs, need.low, need.high) == (1, 1, 0, 1) and reader.extent == extent


def _groups_held(need: Pace, lead: int, period: int) -> int:
    """Count the groups a ring must hold for a writer `lead` ticks ahead."""
    ahead = lead // period if need.runs == 1 else -(-lead // period)
    return ahead - need.low + 1


def _slopes(needs: Iterable[Pace]) -> list[tuple[int, int]]:
    return [(need.rises, need.runs) for need in needs]
