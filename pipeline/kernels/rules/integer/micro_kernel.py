"""Define rows of instructions that sum integer products: each row is a schedule rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tvm.ir import Expr
from tvm.tirx import PrimFunc

from ....targets import Machine
from ....tir.index_grid import NoMatch
from ....tir.workspace import held_bytes
from ..rule import RuleResult
from .integer_sum import IntegerSum, integer_sum


@dataclass(frozen=True)
class MicroKernel:
    """Row: a name, the machines that it `needs`, and the loops that `build` makes around its instruction: a Rule.

    `multiply(sum, weights, values)` returns an int32: the sum with `group` products, written in a vectorised loop over filters.
    Weights and values are `group` neighbours each, in one integer (two int16 or four bytes in an int32), or a vector of bytes with
    `vectors`. `values` is the dtype that lines hold them in: int16 less the zero point, or int32 of two, bytes with it; empty: as in memory. `others`
    are the registers besides those of a row of weights, `fill_lanes` the lanes of a vector that fills lines, 0: as many as divide the channels.

    Builders that take `multiply`: NhwcRuns, NhwcPmaddwdBlocked and NchwPmaddwd two int16; NhwcRuns four bytes too; VectorRuns 16 bytes.
    The others call the operators of tir/operators themselves. Weights are repacked as `r k/group f k%group`.
    """

    name: str
    needs: Callable[[Machine], bool]
    build: Callable[[IntegerSum, Machine, MicroKernel], Any]
    depthwise: bool = False
    multiply: Callable[[Expr, Expr, Expr], Expr] | None = None
    group: int = 1
    values: str = ""
    others: int = 1
    fill_lanes: int = 16
    vectors: bool = False

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
        """Yield the schedule of a kernel; none for another form, or another machine."""
        if not self.needs(machine):
            return
        of = frozenset(range(len(kernel.params) - 1)) if self.depthwise else repackable
        form = integer_sum(kernel, of, self.depthwise)
        if form is None:
            return
        with suppress(NoMatch):
            built = self.build(form, machine, self)
            found = built.kernel()
            yield RuleResult(found, built.repacks, workspace=held_bytes(found))
