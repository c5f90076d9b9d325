"""Schedule integer products of weights by fours along runs on a core without vectors, by Arm's sxtb16 and smlad.

A word of four bytes is spread into two words of two int16, the even and the odd bytes; two instructions multiply and add the
four products of two words. Data is read in place where nothing is padded: it keeps its sign and its zero point, which the
start of each sum takes off. The frame is that of `dot_runs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tvm.ir import Expr
from tvm.tirx import PrimFunc

from .....targets import Machine
from .....tir.loop_nests import buffer_of
from .....tir.operators.pairs import fours
from .....tir.operators.quads import dots
from ...rule import RuleResult
from ..product_schedule import product_schedule
from .dot_runs import GROUP, DotRuns
from .run_products import RunProducts

#: registers for sums, and a row of weights beside them: of 13, others hold addresses, counters and spread words
_REGISTERS = 8


def word_runs(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.lanes == 1 and machine.dots:
        yield from product_schedule(WordRuns, kernel, repackable, replace(machine, registers=_REGISTERS))


class WordRuns(DotRuns):
    """Build the kernel; data keeps its dtype. Raises Unknown for other forms."""

    offset = 0
    filled = GROUP

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        RunProducts.__init__(self, kernel, repackable, machine)
        self.lines = buffer_of("lines", self._extents(self.tiles * self.high), self.dtype)

    def products(self, sum_: Expr, weights: Expr, values: Expr) -> Expr:
        return (dots if self.dtype == "int8" else fours)(sum_, weights, values)
