"""`share`: buffers that share memory on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...memory.sharing.share import share
from ..base import ProgramPass

if TYPE_CHECKING:
    from ...program import Program


@dataclass(frozen=True)
class Share(ProgramPass):
    """`in_place=0` leaves results their own memory, `copies=0` leaves kernels that only copy; see memory.sharing.share."""

    name = "share"
    summary = "results take over the memory of operands; what would be copied is made where it is copied to"

    in_place: int = 1
    copies: int = 1

    def rearrange(self, program: Program) -> Program:
        return share(program, in_place=bool(self.in_place), copies=bool(self.copies))
