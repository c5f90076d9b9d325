"""Generate random programs of splittable kernels, and run regions tick by tick, checking every row."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from passfit.memory.streaming.region import Region, Stage
from passfit.program import Buffer, Follows, Port, Program, Rows, Splits, Step, Tensor

_EXTENTS = st.sampled_from([1, 2, 4, 5, 6, 8, 9, 12])
_KINDS = st.sampled_from(["window", "window", "resize", "join", "join", "join", "transpose", "sum", "flip"])


def windows(
    extent: int, size: int, stride: int = 1, pad: int = 0, after: int | None = None, dilation: int = 1
) -> Follows:
    """Return the rows each result row of a convolution or a pooling needs; `after` is the padding at the end."""
    reach = dilation * (size - 1) + 1
    count = (extent + pad + (pad if after is None else after) - reach) // stride + 1
    low = tuple(stride * row - pad for row in range(count))
    return Follows(0, extent, low, tuple(row + reach for row in low))


def resized(extent: int, result: int, before: int = 0, after: int = 0) -> Follows:
    """Return the rows needed of a picture of another size."""
    at = [row * extent // result for row in range(result)]
    return Follows(0, extent, tuple(row - before for row in at), tuple(row + 1 + after for row in at))


def along(axis: int, follows: Follows) -> Follows:
    return Follows(axis, follows.extent, follows.low, follows.high)


@dataclass
class RowBuilder:
    """Builder of steps over matrices of one byte per element, with the splits of each."""

    tensors: list[tuple[int, int]] = field(default_factory=list)
    steps: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    splits: list[Splits] = field(default_factory=list)

    def tensor(self, rows: int, columns: int) -> int:
        self.tensors.append((rows, columns))
        return len(self.tensors) - 1

    def step(
        self, reads: tuple[int, ...], shape: tuple[int, int], *rows: Rows, sums=(), work: int | None = None
    ) -> int:
        result = self.tensor(*shape)
        self.steps.append((reads, result))
        self.splits.append(Splits(rows, tuple(sums), shape[0] * shape[1] if work is None else work))
        return result

    def window(self, source: int, taps: bool = False, **options: int) -> int:
        """Add a window along the first axis; element by element along the other. With `taps`, it accumulates."""
        rows, columns = self.tensors[source]
        follows = windows(rows, **options)
        extent = len(follows.low)
        steps = range(0, options["size"] * options.get("dilation", 1), options.get("dilation", 1)) if taps else ()
        parts = (tuple(low + step for low in follows.low) for step in steps)
        each = tuple(Follows(0, rows, low, tuple(row + 1 for row in low)) for low in parts)
        beside = Rows(1, columns, ((0, along(1, windows(columns, 1))),))
        return self.step((source,), (extent, columns), Rows(0, extent, ((0, follows),), each), beside)

    def resize(self, source: int, result: int, before: int = 0, after: int = 0) -> int:
        rows, columns = self.tensors[source]
        return self.step(
            (source,), (result, columns), Rows(0, result, ((0, resized(rows, result, before, after)),))
        )

    def join(self, *sources: int) -> int:
        """Add an operation in the shape of the first source; the others are resized to it."""
        shape = self.tensors[sources[0]]
        rows = []
        for axis, extent in enumerate(shape):
            follows = (along(axis, resized(self.tensors[source][axis], extent)) for source in sources)
            rows.append(Rows(axis, extent, tuple(enumerate(follows))))
        return self.step(sources, shape, *rows)

    def transpose(self, source: int) -> int:
        rows, columns = self.tensors[source]
        crossed = [
            Rows(axis, extent, ((0, along(1 - axis, windows(extent, 1))),))
            for axis, extent in enumerate((columns, rows))
        ]
        return self.step((source,), (columns, rows), *crossed)

    def flip(self, source: int) -> int:
        rows, columns = self.tensors[source]
        low = tuple(reversed(range(rows)))
        follows = Follows(0, rows, low, tuple(at + 1 for at in low))
        return self.step((source,), (rows, columns), Rows(0, rows, ((0, follows),)))

    def sum(self, source: int, rows: int) -> int:
        """Add a matrix product with the source."""
        taken, columns = self.tensors[source]
        beside = Rows(1, columns, ((0, along(1, windows(columns, 1))),))
        return self.step((source,), (rows, columns), beside, sums=((0, 0),), work=taken * rows * columns)

    def program(self, *outputs: int) -> tuple[Program, dict[str, Splits]]:
        """Return the program: inputs are tensors no step writes, unread results are handed out too."""
        written = {result for _, result in self.steps}
        read = {tensor for reads, _ in self.steps for tensor in reads}
        ports = sorted({*outputs, *(written - read)})
        program = Program(
            name="rows",
            steps=tuple(Step(f"k{n}", reads, (result,)) for n, (reads, result) in enumerate(self.steps)),
            tensors=tuple(Tensor(shape, "bool", buffer=n) for n, shape in enumerate(self.tensors)),
            buffers=tuple(Buffer(f"b{n}", rows * columns) for n, (rows, columns) in enumerate(self.tensors)),
            weights=(),
            inputs=tuple(Port(f"x{n}", n) for n in range(len(self.tensors)) if n not in written),
            outputs=tuple(Port(f"y{n}", n) for n in ports),
        )
        return program, {f"k{n}": splits for n, splits in enumerate(self.splits)}


@st.composite
def row_programs(draw: st.DrawFn, most: int = 7) -> tuple[Program, dict[str, Splits]]:
    """Generate chains and branches over one or two inputs, all of which are read."""
    builder = RowBuilder()
    recent = [builder.tensor(draw(_EXTENTS), draw(_EXTENTS)) for _ in range(draw(st.integers(1, 2)))]
    if len(recent) == 2:
        recent.append(builder.join(*recent))
    for _ in range(draw(st.integers(1, most))):
        source = recent[-1 - min(draw(st.sampled_from([0, 0, 0, 1, 2])), len(recent) - 1)]
        rows = builder.tensors[source][0]
        kind = draw(_KINDS)
        if kind == "window":
            size, dilation = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2]))
            pad, after = draw(st.integers(-1, 3)), draw(st.integers(0, 3))
            after = max(after, dilation * (size - 1) + 1 - rows - pad)
            options = {"size": size, "stride": draw(st.integers(1, 4)), "pad": pad, "after": after}
            made = builder.window(source, draw(st.booleans()), dilation=dilation, **options)
        elif kind == "resize":
            made = builder.resize(source, draw(_EXTENTS), draw(st.integers(-1, 1)), draw(st.integers(0, 2)))
        elif kind == "join":
            made = builder.join(source, *draw(st.lists(st.sampled_from(recent[-5:]), min_size=1, max_size=2)))
        elif kind == "sum":
            made = builder.sum(source, draw(_EXTENTS))
        else:
            made = getattr(builder, kind)(source)
        recent.append(made)
    return builder.program(*draw(st.lists(st.sampled_from(recent[1:]), max_size=1)))


def simulate(program: Program, splits: dict[str, Splits], region: Region) -> None:
    """Run the region by its stages: at each tick each due stage, in the order of the steps.

    A tensor has room for the rows it keeps, row r at r modulo their number; a place holds the number of its row, and of the
    part of it that comes next as long as there is one. Rows in a slot of the region are those last put there; they go to
    their ring after the last step that reads them. A result in place of operands overwrites their rows, at once or from its ring of waiting rows.
    """
    over = region.replacement
    waiting = [None] * over.held if over else []
    overwritten: list[int] = []
    made = {program.steps[stage.step].writes[0]: stage for stage in region.stages}
    room = {t: [None] * (stage.kept or 1) for t, stage in made.items()}
    slots: dict[int, tuple[int, tuple[int, ...]]] = {}
    readers = {t: [s.step for s in region.stages if t in program.steps[s.step].reads] or [made[t].step] for t in made}
    done: dict[int, list[int]] = {t: [] for t in made}

    def check(tensor: int, low: int, high: int, axis: int) -> None:
        writer = made[tensor]
        if writer.lockstep:
            inside = {max(0, low), min(high, writer.extent)}
            assert inside <= set(range(done[tensor][-writer.group], done[tensor][-1] + 2)), "rows of another group"
        assert writer.operand is None, "a sum is read before it is complete"
        assert writer.axis == axis, "rows of another axis"
        there: tuple[int, ...] = ()
        if writer.slot is not None and slots.get(writer.slot, (None,))[0] == tensor:
            there = slots[writer.slot][1]
        for row in range(max(0, low), min(high, program.tensors[tensor].shape[axis])):
            assert row in there or writer.kept, f"row {row} of tensor {tensor} is in no slot"
            assert row in there or room[tensor][row % len(room[tensor])] == row, f"row {row} of tensor {tensor} is not there"

    def untouched(rows: Rows | None, step: Step, taken: range) -> None:
        for n, tensor in enumerate(step.reads):
            if over and tensor in over.operands:
                assert rows is not None
                follows = rows.follows(n)
                assert follows is not None, "an operand in place is needed whole"
                needed = {at for row in taken for at in range(follows.low[row], follows.high[row])}
                assert needed.isdisjoint(lost(tensor)), "a row is overwritten before it is read"

    def lost(operand: int) -> set[int]:
        if over.growth is None:
            return set(overwritten)
        what, result = program.tensors[operand], program.tensors[over.result]
        row, made_of = what.nbytes // what.shape[over.growth.axis], result.nbytes // region.stage_of(program, over.result).extent
        stored = (range(at * made_of - over.growth.shift, (at + 1) * made_of - over.growth.shift) for at in overwritten)
        return {byte // row for each in stored for byte in each}

    def store(stage: Stage, tick: int) -> None:
        k, odd = divmod(tick - stage.offset - over.lag, stage.period)
        if over.held and not odd and 0 <= k < stage.groups:
            for row in range(k * stage.group, (k + 1) * stage.group):
                assert waiting[row % over.held] == row, "a row is not in the ring any more"
                overwritten.append(row)

    def copy(tensor: int, tick: int) -> None:
        writer = made[tensor]
        k, odd = divmod(tick - writer.offset, writer.period)
        if not odd and 0 <= k < writer.groups:
            first = min(k * writer.group, writer.extent - writer.group)
            assert slots[writer.slot] == (tensor, tuple(range(first, first + writer.group))), "rows in a slot are overwritten"
            for row in range(first, first + writer.group) if writer.kept else ():
                room[tensor][row % writer.kept] = row

    for tick, stage in ((tick, stage) for tick in region.ticks for stage in region.stages):
        step = program.steps[stage.step]
        (result,) = step.writes
        for part, lead in enumerate(stage.leads):
            row, odd = divmod(tick - stage.offset + lead, stage.period)
            if not odd and 0 <= row < stage.extent:
                (taps,) = (each.taps for each in splits[step.kernel].rows if each.axis == stage.axis)
                slot = row % len(room[result])
                assert part == 0 or room[result][slot] == (row, part), f"row {row} is not in parts up to {part}"
                check(step.reads[0], taps[part].low[row], taps[part].high[row], taps[part].axis)
                last = part == len(taps) - 1
                room[result][slot] = row if last else (row, part + 1)
                done[result] += [row] * last
        if stage.leads:
            assert not over or over.result != result
            continue
        k, odd = divmod(tick - stage.offset, stage.period)
        if not odd and 0 <= k < stage.groups:
            inside = {n for n, t in enumerate(step.reads) if t in made}
            first = min(k * stage.group, stage.extent - stage.group)
            taken = range(k * stage.group if stage.operand is not None else first, first + stage.group)
            done[result] += taken
            if stage.operand is not None:
                assert inside == {stage.operand} and (stage.operand, stage.axis) in splits[step.kernel].sums
                check(step.reads[stage.operand], taken.start, taken.stop, stage.axis)
                untouched(None, step, taken)
                continue
            (rows,) = (each for each in splits[step.kernel].rows if each.axis == stage.axis)
            if over and over.result == result and not over.held:
                overwritten += taken  # its own kernel may not even read the row it writes
            untouched(rows, step, taken)
            assert inside <= {n for n, _ in rows.operands}
            for n, follows in rows.operands:
                if n in inside:
                    for row in taken:
                        check(step.reads[n], follows.low[row], follows.high[row], follows.axis)
            if stage.slot is not None:
                slots[stage.slot] = result, tuple(taken)
            for row in taken:
                if stage.slot is None:
                    room[result][row % len(room[result])] = row
                if over and over.result == result and over.held:
                    waiting[row % over.held] = row
        if over and over.result == result:
            store(stage, tick)
        for tensor in dict.fromkeys((*step.reads, *step.writes)):
            if tensor in made and made[tensor].slot is not None and max(readers[tensor]) == stage.step:
                copy(tensor, tick)
    if over:
        assert overwritten == list(range(region.stage_of(program, over.result).extent)), "a result is not stored"
    for tensor, stage in made.items():
        taken = tensor if stage.operand is None else program.steps[stage.step].reads[stage.operand]
        extent = program.tensors[taken].shape[stage.axis]
        again = -extent % stage.group
        assert not (again and over), "rows are stored twice"
        starts = [min(k * stage.group, extent - stage.group) for k in range(stage.groups)]
        rows = [row for start in starts for row in range(start, start + stage.group)]
        rows = rows if stage.operand is None else list(range(extent))
        assert done[tensor] == rows, f"the rows of tensor {tensor} are not computed in order, once but for {again}"
        assert set(rows) == set(range(extent))
        if tensor in region.results and stage.operand is None:
            assert room[tensor] == list(range(extent)), "a result is not complete"
