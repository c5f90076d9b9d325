"""Name the schedules a tuning chooses among, each with a spec string that parses back.

    tile{along=1,vectors=2,rows=1x6}     slide{at-once=2,rows=4,band=8}     lane-sums{lanes=8}     fuse     plain

The rules choose one of them by themselves: see schedule/candidates.py. A MetaSchedule result is a choice too; its spec
is its trace, a list in JSON. A choice is for one kernel: for another it may mean nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from tvm.s_tir.schedule import Trace
from tvm.tirx import PrimFunc

from ...errors import ConfigError
from ...targets import Machine
from ...tir.index_grid import Unknown
from ...tir.inlining import REFUSALS, inlined, new_schedule, scheduled_kernel
from ...tir.memoise import memoise_by_structure
from ...tir.workspace import workspace_bytes
from ..rules.flatten_axes import flatten_axes, with_shapes_of
from ..rules.fuse_loops import fuse_loops
from ..rules.sliding_window import Lines, sliding_variants, sliding_window
from ..rules.tiles.tile_candidates import Reduced, Tiling, tilings
from ..rules.tiles.tile_reduction import tile_reduction, tiling_variants
from ..rules.vector_reduction import LANES, vector_reduction
from ..weights.repack import Repack
from .candidates import Schedule

#: tilings worth a measurement: the first so many by estimated cycles
_TILES = 24
_SPEC = re.compile(r"([a-z-]+)(?:\{([^{}]*)\})?")
#: a scheduled kernel, and the repacks it reads
_Made = tuple[PrimFunc, tuple[Repack, ...]]


@dataclass(frozen=True)
class ScheduleChoice:
    """Describe one schedule; its fields are its options, `False` for an option not taken."""

    name: ClassVar[str]

    @property
    def spec(self) -> str:
        given = [(field.name.replace("_", "-"), getattr(self, field.name)) for field in fields(self)]
        options = [name if value is True else f"{name}={value}" for name, value in given if value is not False]
        return f"{self.name}{{{','.join(options)}}}" if options else self.name

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        """Schedule `flat` accordingly; None if impossible. May raise TVM's refusals of a step."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tiles(ScheduleChoice):
    """Register tiles of `vectors` vectors by `rows` rows.

    The vectors lie along axis `along` of the reduction, the rows along axes of the other operand. `turned`: the tiles
    walk first along the operand they would take second. `late`: padding is copied step by step.
    """

    name: ClassVar[str] = "tile"
    along: int
    vectors: int
    rows: str
    turned: bool = False
    late: bool = False

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        tiled = tile_reduction(flat, repackable, machine, copy_late=self.late, choose=self._among)
        return None if tiled is None else (tiled.kernel, tiled.repacks)

    @classmethod
    def of(cls, tiling: Tiling) -> Tiles:
        return cls(tiling.lane, tiling.tile.groups, "x".join(map(str, tiling.tile.rows)) or "1")

    def _among(self, reduced: Reduced) -> Tiling | None:
        plain = Tiles(self.along, self.vectors, self.rows)
        found = next((tiling for tiling in tilings(reduced) if Tiles.of(tiling) == plain), None)
        return found.turned() if found is not None and self.turned else found


@dataclass(frozen=True)
class Slides(ScheduleChoice):
    """Sliding windows over a line buffer: see `rules.sliding_window.Lines`."""

    name: ClassVar[str] = "slide"
    at_once: int
    rows: int
    band: int

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        if min(self.at_once, self.rows, self.band) < 1:
            return None
        slid = sliding_window(inlined(flat), machine, Lines(self.at_once, self.rows, self.band))
        return None if slid is None else (slid, ())


@dataclass(frozen=True)
class LaneSums(ScheduleChoice):
    """Sums along memory, in `lanes` vector lanes."""

    name: ClassVar[str] = "lane-sums"
    lanes: int

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        if self.lanes < 1:
            return None
        along = vector_reduction(flat, one_operand=False, lanes=(self.lanes,))
        return None if along is None else (along, ())


@dataclass(frozen=True)
class Fuse(ScheduleChoice):
    """Fused loops, without vectors except LLVM's own."""

    name: ClassVar[str] = "fuse"

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        return fuse_loops(flat), ()


@dataclass(frozen=True)
class Plain(ScheduleChoice):
    """Kernel as TVM made it."""

    name: ClassVar[str] = "plain"

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        return flat, ()


@dataclass(frozen=True)
class Traced(ScheduleChoice):
    """Trace of a MetaSchedule schedule, in its JSON."""

    name: ClassVar[str] = "trace"
    text: str

    @property
    def spec(self) -> str:
        return self.text

    def made(self, flat: PrimFunc, repackable: frozenset[int], machine: Machine) -> _Made | None:
        schedule = new_schedule(flat)
        Trace.apply_json_to_schedule(json.loads(self.text), schedule)
        return scheduled_kernel(schedule, flat), ()


_KINDS: dict[str, type[ScheduleChoice]] = {kind.name: kind for kind in (Tiles, Slides, LaneSums, Fuse, Plain)}


def parse_choice(spec: str) -> ScheduleChoice:
    """Parse a spec. Raises ConfigError."""
    if spec.startswith("["):
        return Traced(spec)
    matched = _SPEC.fullmatch(spec)
    kind = _KINDS.get(matched[1]) if matched else None
    if matched is None or kind is None:
        raise _refused(spec)
    known = {field.name: str(field.type) for field in fields(kind)}
    options: dict[str, object] = {}
    for item in filter(None, (matched[2] or "").split(",")):
        name, equals, value = item.partition("=")
        name = name.replace("-", "_")
        kinds = {"int": int, "str": str}
        if name not in known or bool(equals) == (known[name] == "bool"):
            raise _refused(spec)
        try:
            options[name] = True if not equals else kinds[known[name]](value)
        except ValueError:
            raise _refused(spec) from None
    try:
        return kind(**options)
    except TypeError:
        raise _refused(spec) from None


def _refused(spec: str) -> ConfigError:
    return ConfigError(f"'{spec[:80]}' is not a choice for a kernel.", "Run `passfit tune` again.")


@memoise_by_structure
def schedule_by_spec(
    kernel: PrimFunc, repackable: frozenset[int], machine: Machine, fixed_shapes: bool, spec: str
) -> Schedule | None:
    """Schedule `kernel` by a spec; parameters as of `candidates.schedules`. None if the spec does not fit it.

    Raises ConfigError for a malformed spec.
    """
    choice = parse_choice(spec)
    as_made = fixed_shapes or isinstance(choice, Traced)  # MetaSchedule finds no element-wise blocks in flat axes
    flat = kernel if as_made else flatten_axes(kernel, repackable)
    try:
        made = choice.made(flat, repackable, machine)
        if made is None:
            return None
        function, repacks = made
        return Schedule(with_shapes_of(kernel, flat, function), workspace_bytes(function), repacks)
    except (*REFUSALS, Unknown, RuntimeError, TypeError, ValueError, AttributeError, LookupError):
        return None  # a trace or a size of another kernel


def schedule_choices(
    kernel: PrimFunc, repackable: frozenset[int], machine: Machine, fixed_shapes: bool = False
) -> Iterator[ScheduleChoice]:
    """Yield the choices worth a measurement, by the rules' own parameters, most promising first.

    Each may turn out impossible, or need too much workspace.
    """
    flat = kernel if fixed_shapes else flatten_axes(kernel, repackable)
    found, padded = tiling_variants(flat, repackable, machine)
    tiles = [Tiles.of(tiling) for tiling in found[:_TILES]]
    with suppress(Unknown):
        yield from (Slides(each.at_once, each.rows, each.band) for each in sliding_variants(inlined(flat), machine))
    yield from tiles
    if padded:
        yield from (Tiles(each.along, each.vectors, each.rows, late=True) for each in tiles[:4])
    yield from map(LaneSums, LANES)
    yield Fuse()
    yield Plain()


def turned(choice: ScheduleChoice) -> ScheduleChoice | None:
    """Return the same tile walking along the other operand first; None for a choice without tiles."""
    return replace(choice, turned=not choice.turned) if isinstance(choice, Tiles) else None
