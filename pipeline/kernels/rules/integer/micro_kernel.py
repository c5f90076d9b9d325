"""Define rows of instructions that sum integer products: each row is a schedule rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tvm.ir import Expr
from tvm.tirx import PrimFunc

from ....targets import Machine
from ....tir.index_grid import Unknown
from ....tir.workspace import held_bytes
from ..rule import RuleResult
from .integer_sum import IntegerSum, integer_sum


@dataclass(frozen=True)
class MicroKernel:
    """Row: a name, the machines that it `needs`, and the loops that `build` makes around its instruction: a Rule.

    `multiply` adds `group` products to an int32, of weights and of `values` that are neighbours.
    Data is held as this dtype: as int16 less its zero point, as bytes with it, as in memory if it is empty. `others` are
    the registers for operands besides a row of weights, `lanes` those of a vector that fills lines. Groups are `vectors`, or
    integers.
    """

    name: str
    needs: Callable[[Machine], bool]
    build: Callable[[IntegerSum, Machine, MicroKernel], Any]
    depthwise: bool = False
    multiply: Callable[[Expr, Expr, Expr], Expr] | None = None
    group: int = 1
    values: str = ""
    others: int = 1
    lanes: int = 16
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
        with suppress(Unknown):
            built = self.build(form, machine, self)
            found = built.kernel()
            yield RuleResult(found, built.repacks, workspace=held_bytes(found))
