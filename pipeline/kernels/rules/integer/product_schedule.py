"""Schedule an integer product of weights by a builder of one form: the frame of all these rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from tvm.tirx import PrimFunc

from ....targets import Machine
from ....tir.index_grid import Unknown
from ....tir.inlining import inlined
from ....tir.workspace import held_bytes
from ...weights.repack import Repack
from ..rule import RuleResult


class Builder(Protocol):
    """Builder of one kernel, and the repack of its weight."""

    @property
    def repack(self) -> Repack: ...

    def kernel(self) -> PrimFunc: ...


def product_schedule(
    build: Callable[[PrimFunc, frozenset[int], Machine], Builder],
    kernel: PrimFunc,
    repackable: frozenset[int],
    machine: Machine,
) -> Iterator[RuleResult]:
    """Yield the schedule by a builder; none if it raises Unknown."""
    with suppress(Unknown):
        found = build(inlined(kernel), repackable, machine)
        made = found.kernel()
        yield RuleResult(made, (found.repack,), workspace=held_bytes(made))
