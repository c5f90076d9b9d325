"""Name the schedules a tuning chooses among, each by a spec.

    tile{along=1,vectors=2,rows=1x6}     slide{at-once=2,rows=4,band=8}     lane-sums{lanes=8}     fuse     plain

The vectors of a tile lie along axis `along` of the reduction, its rows along axes of the other operand. `turned`: the tiles
walk first along the operand they would take second. `late`: padding is copied step by step. For `slide` see
`rules.sliding_window.Lines`.

The rules choose one of them by themselves: see schedule/candidates.py. A MetaSchedule result is a choice too; its spec
is its trace, a list in JSON. A choice is for one kernel: for another it may mean nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from tvm.s_tir.schedule import Trace
from tvm.tirx import PrimFunc

from ...errors import ConfigError
from ...targets import Machine
from ...tir.index_grid import NoMatch
from ...tir.inlining import REFUSALS, inlined, new_schedule, scheduled_kernel
from ...tir.memoise import memoise_by_structure
from ...tir.workspace import workspace_bytes
from ..rules.flatten_axes import flatten_axes, with_shapes_of
from ..rules.fuse_loops import fuse_loops
from ..rules.rule import RuleResult
from ..rules.sliding_window import Lines, sliding_variants, sliding_window
from ..rules.tiles.tile_candidates import Reduced, Tiling, tilings
from ..rules.tiles.tile_reduction import tile_reduction, tiling_variants
from ..rules.vector_reduction import LANES, vector_reduction
from .candidates import Schedule

#: tilings worth a measurement: the first so many by estimated cycles
_TILES = 24
_COUNT = r"([1-9]\d*)"
_TILE = re.compile(r"tile\{(along=\d+,vectors=\d+,rows=\d+(?:x\d+)*)(,turned)?(,late)?\}")


def _tiled(
    flat: PrimFunc, repackable: frozenset[int], machine: Machine, tile: str, turned: str | None, late: str | None
) -> RuleResult | None:
    def choose(reduced: Reduced) -> Tiling | None:
        found = next((each for each in tilings(reduced) if _options_of(each) == tile), None)
        return found.turned() if found is not None and turned else found

    tiled = tile_reduction(flat, repackable, machine, copy_late=late is not None, choose=choose)
    return None if tiled is None else RuleResult(tiled.kernel, tiled.repacks)


def _options_of(tiling: Tiling) -> str:
    return f"along={tiling.lane},vectors={tiling.tile.groups},rows={'x'.join(map(str, tiling.tile.rows)) or '1'}"


def _slid(flat: PrimFunc, _repackable: frozenset[int], machine: Machine, *lines: str) -> RuleResult:
    return RuleResult(sliding_window(inlined(flat), machine, Lines(*map(int, lines))))


def _summed(flat: PrimFunc, _repackable: frozenset[int], _machine: Machine, lanes: str) -> RuleResult | None:
    along = vector_reduction(flat, (int(lanes),))
    return None if along is None else RuleResult(along)


def _traced(flat: PrimFunc, _repackable: frozenset[int], _machine: Machine, trace: str) -> RuleResult:
    schedule = new_schedule(flat)
    Trace.apply_json_to_schedule(json.loads(trace), schedule)
    return RuleResult(scheduled_kernel(schedule, flat))


#: forms of specs, and how to schedule a flat kernel by the options of each; None if impossible
_KINDS: dict[re.Pattern, Callable[..., RuleResult | None]] = {
    _TILE: _tiled,
    re.compile(rf"slide\{{at-once={_COUNT},rows={_COUNT},band={_COUNT}\}}"): _slid,
    re.compile(rf"lane-sums\{{lanes={_COUNT}\}}"): _summed,
    re.compile("fuse"): lambda flat, *_: RuleResult(fuse_loops(flat)),
    re.compile("plain"): lambda flat, *_: RuleResult(flat),
    re.compile(r"(\[.*)", re.DOTALL): _traced,
}


@memoise_by_structure
def schedule_by_spec(
    kernel: PrimFunc, repackable: frozenset[int], machine: Machine, fixed_shapes: bool, spec: str
) -> Schedule | None:
    """Schedule `kernel` by a spec; parameters as of `candidates.schedules`. None if the spec does not fit it.

    Raises ConfigError for a malformed spec.
    """
    chosen = next(((kind, matched) for form, kind in _KINDS.items() if (matched := form.fullmatch(spec))), None)
    if chosen is None:
        raise ConfigError(f"'{spec[:80]}' is not a choice for a kernel.", "Run `passfit tune` again.")
    kind, matched = chosen
    as_made = fixed_shapes or kind is _traced  # MetaSchedule finds no element-wise blocks in flat axes
    flat = kernel if as_made else flatten_axes(kernel, repackable)
    try:
        found = kind(flat, repackable, machine, *matched.groups())
        if found is None:
            return None
        return Schedule(with_shapes_of(kernel, flat, found.kernel), workspace_bytes(found.kernel), found.repacks)
    except (*REFUSALS, NoMatch, RuntimeError, TypeError, ValueError, AttributeError, LookupError):
        return None  # a trace or a size of another kernel


def schedule_choices(
    kernel: PrimFunc, repackable: frozenset[int], machine: Machine, fixed_shapes: bool = False
) -> Iterator[str]:
    """Yield the specs worth a measurement, by the rules' own parameters, most promising first.

    Each may turn out impossible, or need too much workspace.
    """
    flat = kernel if fixed_shapes else flatten_axes(kernel, repackable)
    found, padded = tiling_variants(flat, repackable, machine)
    tiles = [_options_of(tiling) for tiling in found[:_TILES]]
    with suppress(NoMatch):
        for lines in sliding_variants(inlined(flat), machine):
            yield f"slide{{at-once={lines.at_once},rows={lines.rows},band={lines.band}}}"
    yield from (f"tile{{{tile}}}" for tile in tiles)
    if padded:
        yield from (f"tile{{{tile},late}}" for tile in tiles[:4])
    yield from (f"lane-sums{{lanes={lanes}}}" for lanes in LANES)
    yield from ("fuse", "plain")


def turned(spec: str) -> str | None:
    """Return the same tile walking along the other operand first; None for a spec without tiles."""
    matched = _TILE.fullmatch(spec)
    if matched is None:
        return None
    tile, first, late = matched.groups("")
    return f"tile{{{tile}{'' if first else ',turned'}{late}}}"
