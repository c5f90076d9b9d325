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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...program import Program, Splits
from ..liveness import ALIGNMENT, aligned
from .in_place import GROWING, Replacement, last_uses_of, replacements
from .region_builder import Need, RegionBuilder, StepSplit, last_needs
from .slots import FreshRows, assign_slots
from .stage import Stage


@dataclass(frozen=True)
class Region:
    """Steps that run as one.

    `rings` are the tensors that are never whole, `nbytes` the size of all rings and slots, each aligned: what the loop's
    workspaces take, but for those of its kernels. `results` are the
    tensors that later steps or the caller need. One of them may replace operands, which saves `saved` bytes.
    """

    stages: tuple[Stage, ...]
    rings: tuple[int, ...]
    results: tuple[int, ...]
    nbytes: int
    replacement: Replacement | None = None
    saved: int = 0

    @property
    def ticks(self) -> range:
        """Return the ticks from the first stage's begin to the last one's end."""
        late = 0 if self.replacement is None else self.replacement.lag
        return range(min(stage.begin for stage in self.stages), max(stage.end for stage in self.stages) + max(0, late))

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
    alignment: int = ALIGNMENT,
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
    found = region_of(builder, group, alignment)
    if in_place and any(choice.extent % group for choice in builder.choices.values()):
        return None  # rows would be computed again from operands that are overwritten
    return (
        replacing(builder, found, last_uses_of(program), alignment, in_place == GROWING)
        if in_place and found is not None
        else found
    )


def replacing(
    builder: RegionBuilder,
    found: Region,
    last_uses: Mapping[int, int],
    alignment: int = ALIGNMENT,
    growing: bool = False,
) -> Region | None:
    """Return the region with the result in place of an operand that saves most; None if that saves nothing.

    `last_uses` are those of `last_uses_of`. With `growing`, the result may grow over one of another size.
    """
    program = builder.program
    chosen = [builder.choices[stage.step] for stage in found.stages]
    best: tuple[int, Region] | None = None
    for each in replacements(program, chosen, found.stages, found.results, last_uses, growing):
        extent = found.stage_of(program, each.result).extent
        # the same choice for any alignment: a sequence does not name it
        gain = each.saved(program, extent, 1)
        if gain > 0 and (best is None or gain > best[0]):
            ring = aligned(program.tensors[each.result].nbytes // extent * each.held, alignment)
            saved = each.saved(program, extent, alignment) + ring
            best = gain, replace(found, nbytes=found.nbytes + ring, replacement=each, saved=saved)
    return None if best is None else best[1]


def region_of(builder: RegionBuilder, group: int = 1, alignment: int = ALIGNMENT) -> Region | None:
    """Return the region of the steps taken in.

    None if a branch is not joined yet, or the rows do not go together.
    """
    program = builder.program
    chosen = [builder.choices[number] for number in sorted(builder.choices)]
    if builder.waiting or any(choice.extent < group for choice in chosen):
        return None
    needs = [builder.needs(choice, group) for choice in chosen]
    if group > 1 and any(_slopes(of) != _slopes(builder.needs(choice, 1)) for choice, of in zip(chosen, needs)):
        return None  # groups of rows have another rate than single rows
    stages = _stages(builder, list(zip(chosen, needs)), group)
    writes = [program.steps[stage.step].writes[0] for stage in stages]
    rings = [t for t, stage in zip(writes, stages) if stage.operand is None and not builder.is_kept(t)]
    stages, slots = _assign_slots(program, stages, rings)
    held = [program.tensors[t].nbytes // stage.extent * stage.kept for t, stage in zip(writes, stages) if t in rings]
    nbytes = sum(aligned(each, alignment) for each in (*held, *slots))
    return Region(stages, tuple(rings), tuple(t for t in writes if t not in rings), nbytes)


def _assign_slots(
    program: Program, stages: tuple[Stage, ...], rings: Sequence[int]
) -> tuple[tuple[Stage, ...], tuple[int, ...]]:
    """Put each ring's fresh group into a slot, if all its readers run at one tick.

    Returns the stages and the bytes of the slots.
    """
    places, fresh = [], []
    for place, stage in enumerate(stages):
        tensor = program.steps[stage.step].writes[0]
        if tensor not in rings or stage.leads or not 0 < stage.held < stage.extent:
            continue
        readers = [each for each in stages if tensor in program.steps[each.step].reads]
        divided = all(each.extent % each.group == 0 for each in (stage, *readers)) or (
            stage.lockstep and stage.held == stage.group
        )
        if divided and all(reads_at_ticks_of(stage.offset, stage.period, each.offset, each.period) for each in readers):
            what = program.tensors[tensor]
            last = max((each.step for each in readers), default=stage.step)
            nbytes = what.nbytes // stage.extent * stage.group
            places.append(place)
            fresh.append(FreshRows(nbytes, what.dtype, stage.step, last, stage.held > stage.group))
    slots = assign_slots(fresh)
    numbers = dict(zip(places, slots.numbers))
    return tuple(replace(stage, slot=numbers.get(place)) for place, stage in enumerate(stages)), slots.nbytes


def reads_at_ticks_of(offset: int, period: int, reader_offset: int, reader_period: int) -> bool:
    """Tell whether a reader runs only at ticks at which its operand may be computed."""
    return (reader_offset - offset) % period == 0 and reader_period % period == 0


def _stages(builder: RegionBuilder, chosen: list[tuple[StepSplit, list[Need]]], group: int) -> tuple[Stage, ...]:
    """Schedule the stages as late as their readers allow, and size their rings."""
    readers: dict[int, list[tuple[Need, Stage]]] = {}
    stages = []
    for choice, needs in reversed(chosen):
        step = builder.program.steps[choice.step]
        tensor = step.writes[0]
        if choice.rows is None:
            assert choice.operand is not None
            period = builder.period(step.reads[choice.operand])
            stage = Stage(choice.step, choice.axis, choice.extent, group, period, 0, 0, choice.operand)
        else:
            period = builder.period(tensor)
            reading = readers.get(tensor, ())
            offset = min((reader.offset - period * (need.high - 1) for need, reader in reading), default=0)
            leads = leads_of(builder, choice, group)
            begin = offset - max(leads, default=0)
            held = (
                max((_groups_held(need, reader.offset - begin, period) for need, reader in reading), default=1) * group
            )
            whole = builder.is_kept(tensor) or held > choice.extent
            lockstep = bool(reading) and choice.extent % group > 0 and held == group and not whole
            lockstep = lockstep and all(_is_lockstep(need, reader, choice.extent) for need, reader in reading)
            stage = Stage(
                choice.step,
                choice.axis,
                choice.extent,
                group,
                period,
                offset,
                choice.extent if whole else held,
                leads=leads,
                lockstep=lockstep,
            )
        for need in needs:
            readers.setdefault(need.tensor, []).append((need, stage))
        stages.append(stage)
    return tuple(reversed(stages))


def _is_lockstep(need: Need, reader: Stage, extent: int) -> bool:
    """Tell whether a reader's groups are the rows it needs, of `extent` in all."""
    return need.slope == 1 and (need.low, need.high) == (0, 1) and reader.extent == extent


def leads_of(builder: RegionBuilder, choice: StepSplit, group: int = 1) -> tuple[int, ...]:
    """Return by how many ticks the parts of a row come before the last one; empty for a row computed at once."""
    if choice.taps is None or group > 1:
        return ()
    period = builder.period(choice.taps.tensor)
    return tuple(early * period for early in choice.taps.early)


def _groups_held(need: Need, lead: int, period: int) -> int:
    """Count the groups a ring must hold for a writer `lead` ticks ahead."""
    ahead = lead // period if need.slope.denominator == 1 else -(-lead // period)
    return ahead - need.low + 1


def _slopes(needs: list[Need]) -> list[Fraction]:
    return [need.slope for need in needs]
