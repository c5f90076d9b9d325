"""Schedule integer products of weights by sixteen along runs on a core that sums vectors of bytes, by Arm's vmlava.

    for … rows of the result, bands of places along them:
        lines[i, column · C + c] = x as int8, or its zero point as padding     (none if x can be read in place)
        for places of the band, blocks of filters:
            acc[filters] = − zero point · Σ weight[filters]
            for i, groups r of sixteen along a run (taps along the line, and the channels of each):
                acc[f] = dots(acc[f], weight[i, r, f], lines[i, p · stride · C + 16 r : + 16])
            sums[filters] = acc
            result[p, filters] = epilogue(sums)          in vectors of four filters

A vector of data is read once for the filters of a block. Data of uint8 is offset by -128, and so is its zero point.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, Stmt

from .....support.divisors import divisors
from .....targets import Machine
from .....tir.index_grid import NoMatch
from .....tir.loop_nests import buffer_of, int64
from ...line_buffer import loop_of
from ..integer_sum import IntegerSum
from ..loops import overlapped
from ..micro_kernel import MicroKernel
from ..sum_builder import Axes
from .nhwc_runs import ALONE
from .word_runs import LONGEST, WordRuns

_SERIAL, _UNROLLED = 0, 3
#: most groups of a tile without loops, and of one whose filters are read once for all places
_GROUPS, _FEW = 10, 3
#: sums of a tile at most: one instruction adds to even registers only, of which three hold addresses and the count of steps
_SUMS = 5
#: lanes of vectors of results, and of bytes: short runs are widened as they are loaded
_FOUR, _LANES = 4, (16, 8, 4)


class VectorRuns(WordRuns):
    """Build the kernel. Raises NoMatch for other forms."""

    alone = False
    unrolled = 6

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.kind = _UNROLLED if self.steps <= self.unrolled and self.groups <= _GROUPS else _SERIAL
        #: the sums as a vector: in one from the start, LLVM would take them out and put them back at each step
        self.sums = buffer_of("sums", [1, self.width], "int32")

    def buffers(self) -> list[Var]:
        return [*super().buffers(), self.sums]

    def _check_run(self) -> None:
        self.grouped = next(lanes for lanes in _LANES if self.run > lanes // 2 or lanes == _FOUR)
        super()._check_run()

    def _tile_shape(self) -> tuple[int, int]:
        """Choose the filters of a place."""
        if not self.in_place and self._bytes(1) > (ALONE if self.axes[self.x] == 1 else LONGEST):
            raise NoMatch("a tile's lines are too long")
        return 1, max(divisors(self.axes[self.f], _SUMS), key=lambda width: (width % _FOUR == 0, width))

    def _tiles(self, count: int, build: Callable[[Expr, Var], Stmt]) -> Stmt:
        """Loop over places, and blocks of filters in each, unless they are small: LLVM keeps the weights of a block on the stack."""
        if self.groups <= _FEW:
            return super()._tiles(count, build)
        block, blocks = Var("block", "int64"), self.axes[self.f] // self.width
        return overlapped("tile", count, self.high, lambda at: loop_of(block, blocks, build(at, block)))

    def _together(self) -> int:
        return 1 if self.width % _FOUR else _FOUR

    def _moved_sums(self) -> tuple[list[Stmt], Var]:
        places = [[int64(0), int64(filter_)] for filter_ in range(self.width)]
        return [BufferStore(self.sums, tirx.BufferLoad(self.acc, place), place) for place in places], self.sums

    def value_at(self, values: Axes, column: Expr, at: Expr) -> TensorLoad:
        if self.chosen:
            return super().value_at(values, column, at)
        first = super().value_at(values, column, int64(0))  # TVM sees a vector where the last index alone grows
        return tirx.BufferLoad(first.source, [*first.indices[:-1], first.indices[-1] + at])
