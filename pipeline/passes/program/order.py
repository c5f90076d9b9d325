"""`order`: schedule the kernels in an order of low peak memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...memory.order.best_order import CHEAP_ORDERS, beam_order, orders
from ...memory.order.stored_order import stored_order
from ..base import Level, ProgramPass

if TYPE_CHECKING:
    from ...program import Program

#: cheap orders by name, and two searches: `beam`, and `best`, which continues from the beam's result
ORDERS = (*CHEAP_ORDERS, "beam", "best")


@dataclass(frozen=True)
class Order(ProgramPass):
    """Reorder the steps. `by` is one of ORDERS; see memory.order.best_order."""

    name = "order"
    summary = "reorder kernels so that less memory is alive at once"
    levels = frozenset({Level.LOWERED, Level.PROGRAM})

    by: str = "beam"

    def __post_init__(self) -> None:
        if self.by not in ORDERS:
            raise ValueError(f"by is '{self.by}', not one of {', '.join(ORDERS)}")

    def rearrange(self, program: Program) -> Program:
        return program.reordered(self.numbers(program))

    def numbers(self, program: Program) -> tuple[int, ...]:
        """Return the order as step numbers."""
        if self.by == "best":
            return stored_order(program)
        return beam_order(program).order if self.by == "beam" else dict(orders(program))[self.by]
