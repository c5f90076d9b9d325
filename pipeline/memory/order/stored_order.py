"""Keep the best orders in the store, by the form of their program: splits, states and targets share most of them.

"order 1f3a… 64": [0, 2, 1, 3]        step numbers
"""

from __future__ import annotations

from ...program import Program
from ...program.form import form_key
from ...support.result_store import shared_store
from ..liveness import ALIGNMENT
from .best_order import best_order


def stored_order(program: Program) -> tuple[int, ...]:
    """Return the `best_order` of the program, found once for each form."""
    return tuple(
        shared_store().get_or_make(f"order {form_key(program)} {ALIGNMENT}", lambda: best_order(program).order)
    )
