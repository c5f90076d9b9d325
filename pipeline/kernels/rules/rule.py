"""Define a schedule rule: a function from a kernel as TVM made it to scheduled kernels, fastest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

from tvm.tirx import PrimFunc

from ...targets import Machine
from ..weights.repack import Repack


class Speed(IntEnum):
    """Ways a reduction runs, fastest first: by its own rule, products summed by lanes, plain loops."""

    FAST = 0
    LANES = 1
    LOOPS = 2


class RuleResult(NamedTuple):
    """Kernel scheduled by a rule, and the weight layouts it reads.

    `workspace` is in bytes; None: to be measured, which takes TVM up to half a second. `speed` is that of its reductions.
    """

    kernel: PrimFunc
    repacks: tuple[Repack, ...] = ()
    workspace: int | None = None
    speed: Speed = Speed.FAST


#: from a kernel with flat axes, the positions of parameters that may be repacked, and the machine; nothing for a kernel
#: of another form
Rule = Callable[[PrimFunc, frozenset[int], Machine], Iterator[RuleResult]]
