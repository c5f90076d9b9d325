"""Choose the loop nests of a Scan to run for many trips at once, before the others: legal and worth it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tvm.ir import Expr, Var
from tvm.s_tir import SBlock

from ...tir.expressions import loads
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import block_of, statements
from ..lower.loop_stages import accesses_of, buffers_written, direction_of


class Nest(NamedTuple):
    """Loop nest of a plain stage, by its number there."""

    stage: SBlock
    number: int

    @property
    def target(self) -> Var:
        """Return the buffer that the nest writes."""
        return block_of(statements(self.stage.body)[self.number]).body.buffer


def nests_first(
    around: SBlock, before: Sequence[SBlock], stages: Sequence[SBlock], number: Var, trips: int
) -> dict[Nest, int]:
    """Choose the nests to run for many trips at once, with their producers, each by the direction of its slices."""
    changed = {buffer for stage in (*before, *stages) for buffer in (*buffers_written(stage), *stage.alloc_buffers)}
    single = _values_of_one_nest(around, before, stages)
    ways: dict[Nest, int] = {}
    made: dict[Var, Nest] = {}
    read: set[Var] = set()
    blocks: dict[Nest, SBlock] = {}
    for stage in stages:
        for nest, block in _blocks(stage):
            blocks[nest], target, sources = block, block.body.buffer, sources_of(block)
            ways_read = [
                direction_of(indices, number, trips)
                if source not in changed
                else ways[made[source]]
                if source in made
                else 0
                for source, indices in sources.items()
            ]
            found = {way for way in ways_read if way is not None}
            if found in ({1}, {-1}) and target in single and target not in read:
                (ways[nest],) = found
                made[target] = nest
            read.update(sources)
        read.update(accesses_of(stage))
    wanted = {nest for nest in ways if _sums_over_shared(blocks[nest], number, trips, changed)}
    left = list(wanted)
    while left:
        needed = {made[source] for source in sources_of(blocks[left.pop()]) if source in made} - wanted
        wanted |= needed
        left += needed
    for nest in ways:  # what takes the place of a sum, such as that with its bias
        values = [made[source] for source in sources_of(blocks[nest]) if source in made]
        if blocks[nest].init is None and values and wanted.issuperset(values):
            sizes = {math.prod(map(int, blocks[each].body.buffer.ty.shape)) for each in (nest, *values)}
            wanted |= {nest} if len(sizes) == 1 else set()
    return {nest: way for nest, way in ways.items() if nest in wanted}


def _values_of_one_nest(around: SBlock, before: Sequence[SBlock], stages: Sequence[SBlock]) -> set[Var]:
    """Collect the buffers of a loop that nothing but one nest of a plain stage writes."""
    count = Counter(block.body.buffer for stage in stages for _, block in _blocks(stage))
    others = [stage for stage in stages if not _blocks(stage)]
    taken = {buffer for stage in before for buffer in accesses_of(stage)} | {
        buffer for stage in others for buffer in buffers_written(stage)
    }
    local = {*around.alloc_buffers, *(buffer for stage in stages for buffer in stage.alloc_buffers)}
    return {buffer for buffer in local - taken if count[buffer] == 1}


def _blocks(stage: SBlock) -> list[tuple[Nest, SBlock]]:
    """List the blocks of a stage's loop nests; none if it runs anything else."""
    try:
        return [(Nest(stage, number), block_of(nest)) for number, nest in enumerate(statements(stage.body))]
    except NoMatch:
        return []


def sources_of(block: SBlock) -> dict[Var, list[Sequence[Expr]]]:
    """Collect the indices with which a block reads each buffer, but for its own sum."""
    found: dict[Var, list[Sequence[Expr]]] = {}
    for each in loads(block.body):
        if block.init is None or not each.source.same_as(block.body.buffer):
            found.setdefault(each.source, []).append(each.indices)
    return found


def _sums_over_shared(block: SBlock, number: Var, trips: int, changed: set[Var]) -> bool:
    """Return whether a block sums over an operand that all trips share."""
    return block.init is not None and any(
        source not in changed and direction_of(indices, number, trips) is None
        for source, indices in sources_of(block).items()
    )
