"""Generate random programs of splittable kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

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
        return self.step((source,), (result, columns), Rows(0, result, ((0, resized(rows, result, before, after)),)))

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
