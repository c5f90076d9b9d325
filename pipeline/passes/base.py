"""What a pass is: a frozen dataclass whose fields are its options, with a spec string that round-trips.

    fold-constant            fuse-operators{depth=4}            order{by=greedy}
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tvm.ir import IRModule

    from ..memory.streaming.region import Region
    from ..program import Program, Splits


class Level(IntEnum):
    """What a pass works on. A sequence never goes back to a lower level."""

    GRAPH = 0
    """the Relax module of operators, before kernels"""
    KERNELS = 1
    """the Relax module of kernel calls; `legalize` leads here"""
    LOWERED = 2
    """the lowered program, steps and buffers, its kernels not yet scheduled"""
    PROGRAM = 3
    """the program with its kernels as they are compiled"""


@dataclass(frozen=True)
class Pass:
    """A transformation. Exact unless `lossy`: results change by float re-association only."""

    name: ClassVar[str]
    summary: ClassVar[str]
    levels: ClassVar[frozenset[Level]]
    lossy: ClassVar[bool] = False

    @property
    def spec(self) -> str:
        """The name, with the options that differ from their defaults."""
        options = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.default is MISSING or getattr(self, field.name) != field.default
        ]
        return f"{self.name}{{{','.join(options)}}}" if options else self.name

    def level_after(self, level: Level) -> Level:
        """The level of what the pass returns, given the level of what it gets."""
        return level


class ModulePass(Pass):
    """A pass on a Relax module; it returns a new one and leaves its argument as it was."""

    def apply(self, module: IRModule) -> IRModule:
        raise NotImplementedError

    def simpler(self) -> Iterable[Pass]:
        """This pass with a little less of what its options ask for."""
        return ()

    @classmethod
    def instances(cls) -> Iterable[Pass]:
        """The instances of this pass worth trying on any graph."""
        return (cls(),)


class SplitPass(Pass):
    """A pass on the lowered program that makes one of several kernels; how, is for `kernels` to know."""

    levels: ClassVar[frozenset[Level]] = frozenset({Level.LOWERED})

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        """The steps that become one; `splits` are how each kernel can be split. Raises SequenceError."""
        raise NotImplementedError


class ProgramPass(Pass):
    """A pass on the steps and buffers of a program."""

    levels: ClassVar[frozenset[Level]] = frozenset({Level.PROGRAM})

    def apply(self, program: Program) -> Program:
        raise NotImplementedError
