"""Define passes as frozen dataclasses: fields are options, and the spec string round-trips.

fold-constant            fuse-operators{depth=4}            order{by=greedy}
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from ..kernels.lower.lower import Lowered
    from ..program import Program


class Level(IntEnum):
    """Representation a pass works on. A sequence never returns to a lower level."""

    GRAPH = 0
    """the Relax module of operators, before kernels"""
    KERNELS = 1
    """the Relax module of kernel calls; `legalize` leads here"""
    LOWERED = 2
    """the lowered program, steps and buffers, its kernels not yet scheduled"""
    PROGRAM = 3
    """the program with its kernels scheduled, as compiled"""


@dataclass(frozen=True)
class Pass:
    """Describe a transformation. Exact unless `lossy`: results change by float re-association only."""

    name: ClassVar[str]
    summary: ClassVar[str]
    levels: ClassVar[frozenset[Level]]
    lossy: ClassVar[bool] = False

    @property
    def spec(self) -> str:
        """Return the name with all options that differ from their defaults."""
        options = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.default is MISSING or getattr(self, field.name) != field.default
        ]
        return f"{self.name}{{{','.join(options)}}}" if options else self.name

    def level_after(self, level: Level) -> Level:
        """Return the level of the result for an input of `level`."""
        return level


class ModulePass(Pass):
    """Transform a Relax module: of operators, unless its levels say otherwise."""

    levels: ClassVar[frozenset[Level]] = frozenset({Level.GRAPH})

    def apply(self, module: IRModule) -> IRModule:
        """Return the transformed module; leave `module` unchanged."""
        raise NotImplementedError

    def simpler(self) -> Iterable[ModulePass]:
        """Yield variants of this pass with one option weakened; a sequence is minimised with them."""
        return ()

    @classmethod
    def instances(cls) -> Iterable[Pass]:
        """Return the instances of this pass worth trying on any graph."""
        return (cls(),)


class LoweredPass(Pass):
    """Transform a lowered program together with its kernels and weights."""

    levels: ClassVar[frozenset[Level]] = frozenset({Level.LOWERED})

    def apply(self, lowered: Lowered) -> Lowered:
        """Return the transformed program; leave `lowered` unchanged. Raises SequenceError for a program of other form."""
        raise NotImplementedError


class ProgramPass(LoweredPass):
    """Transform the steps and buffers of a program; leave its kernels alone."""

    levels: ClassVar[frozenset[Level]] = frozenset({Level.PROGRAM})

    def apply(self, lowered: Lowered) -> Lowered:
        return replace(lowered, program=self.rearrange(lowered.program))

    def rearrange(self, program: Program) -> Program:
        """Return the transformed program. Raises SequenceError for a program of other form."""
        raise NotImplementedError
