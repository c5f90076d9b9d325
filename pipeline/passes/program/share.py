"""`share`: overlay buffers that may share memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...memory.sharing.stored_share import stored_share
from ..base import ProgramPass

if TYPE_CHECKING:
    from ...program import Program


@dataclass(frozen=True)
class Share(ProgramPass):
    """Overlay results on operands and remove copies; see memory.sharing.share.

    `in_place=0` leaves results their own memory, `copies=0` keeps kernels that only copy.
    """

    name = "share"
    summary = "let results overwrite their operands, and compute copied values in their destination"

    in_place: int = 1
    copies: int = 1

    def rearrange(self, program: Program) -> Program:
        return stored_share(program, in_place=bool(self.in_place), copies=bool(self.copies))
