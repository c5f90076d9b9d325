"""Count the bytes of a region's rings, one row at a time, without its stages: the same as `region_of` and `replacing`.

A search measures thousands of regions for each one that it makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ..liveness import aligned
from .in_place import replacements_of
from .region import leads_of, reads_at_ticks_of
from .region_builder import RegionBuilder
from .slots import FreshRows, assign_slots, fullest
from .stage import Read, Stage, StageResult


class RegionBytes(NamedTuple):
    """Bytes a region takes in addition to the buffers alive around it.

    `in_place`: with a result in place of an operand, None if that saves nothing. `least` is a lower bound on the
    `rings` of any region that ends with these steps.
    """

    rings: int
    in_place: int | None = None
    least: int = 0


def region_bytes(
    builder: RegionBuilder,
    alignment: int,
    last_uses: Mapping[int, int] | None,
    most: float = math.inf,
    growing: bool = False,
) -> RegionBytes | int | None:
    """Measure the region of the steps taken in; None if it cannot run.

    `last_uses` are those of `last_uses_of`, None if no result takes the place of an operand; with `growing`, it may grow.
    Once the rings take more than `most` bytes, returns the bytes counted so far.
    """
    if builder.waiting:
        return None
    tensors, steps, period_of = builder.program.tensors, builder.program.steps, builder.period
    readers: dict[int, list[tuple[int, int, int, bool, int]]] = {}
    offsets: dict[int, tuple[int, int]] = {}
    results = []
    least = row = 0
    #: per ring: bytes of a row, rows held, and whether the last of them may be stored in a slot
    rings: list[tuple[int, int, bool]] = []
    fresh: list[FreshRows] = []
    for number in sorted(builder.choices, reverse=True):
        choice = builder.choices[number]
        offset = 0
        if choice.rows is None:
            assert choice.operand is not None
            period = period_of(steps[number].reads[choice.operand])
        else:
            tensor = steps[number].writes[0]
            period = period_of(tensor)
            held = 1
            reading = readers.get(tensor)
            if reading is not None and len(reading) == 1:
                ((at, low, high, _, _),) = reading
                offset, held = at - period * (high - 1), high - low
            elif reading is not None:
                offset = min([at - period * (high - 1) for at, _, high, _, _ in reading])
                # as region._groups_held
                begin = offset - max(leads_of(builder, choice), default=0)
                held = max(
                    [
                        ((at - begin) // period if whole else -((begin - at) // period)) - low + 1
                        for at, low, _, whole, _ in reading
                    ]
                )
            if builder.is_kept(tensor):
                results.append(number)
            else:
                size = tensors[tensor].nbytes // choice.extent
                at_once = (
                    0 < held < choice.extent
                    and not leads_of(builder, choice)
                    and (
                        period == 1
                        or all(
                            reads_at_ticks_of(offset, period, at, offsets[reader][1])
                            for at, _, _, _, reader in reading or ()
                        )
                    )
                )
                held = min(held, choice.extent)
                if at_once:
                    last = reading[0][4] if reading else number
                    fresh.append(FreshRows(size, tensors[tensor].dtype, number, last, held > 1))
                    row = max(row, size)
                rings.append((size, held, at_once))
                least += size * (held - at_once)
                if least + row > most:
                    return least + row
        offsets[number] = offset, period
        for read, _, runs, low, high in builder.paces[number]:
            needing = offset, low, high, runs == 1, number
            if read in readers:
                readers[read].append(needing)
            else:
                readers[read] = [needing]
    slots = assign_slots(fresh)
    numbers = iter(slots.numbers)
    rows = [size * (held - (at_once and next(numbers) is not None)) for size, held, at_once in rings]
    nbytes = sum(aligned(each, alignment) for each in (*rows, *slots.nbytes))
    least += fullest(fresh)
    if last_uses is None:
        return RegionBytes(nbytes, None, least)
    return RegionBytes(
        nbytes, _bytes_in_place(builder, nbytes, offsets, results[::-1], alignment, last_uses, growing), least
    )


def _bytes_in_place(
    builder: RegionBuilder,
    rings: int,
    offsets: Mapping[int, tuple[int, int]],
    results: list[int],
    alignment: int,
    last_uses: Mapping[int, int],
    growing: bool,
) -> int | None:
    """Return the bytes with the result in place of an operand that saves most."""
    program = builder.program

    def stage(number: int) -> Stage:
        choice, (offset, period) = builder.choices[number], offsets[number]
        return Stage(
            number, choice.axis, choice.extent, 1, period, offset, 0, choice.operand, leads_of(builder, choice)
        )

    dying = [reads for buffer, reads in builder.read_outside.items() if last_uses[buffer] <= builder.last]
    if not dying or not results:
        return None
    readers = [
        [
            Read(builder.choices[number], stage(number), place, program.steps[number].reads[place])
            for number, place in reads
        ]
        for reads in dying
    ]
    made = [StageResult(program.steps[number].writes[0], stage(number)) for number in results]
    best = None
    for each in replacements_of(program, readers, made, builder.read_inside, growing):
        extent = builder.choices[each.step].extent
        gain = each.saved(program, extent, 1)
        if gain > 0 and (best is None or gain > best[0]):
            best = gain, rings - each.saved(program, extent, alignment)
    return None if best is None else best[1]
