"""What a schedule rule wants to know of a processor."""

from __future__ import annotations

from dataclasses import dataclass

#: bytes of a float32, which rules count in
_FLOAT = 4


@dataclass(frozen=True)
class Machine:
    """Vectors of `lanes` float32, of which `registers` are at hand for a tile; or as if: of 32 registers of 4 lanes two
    make one of 8. The default is AVX2, or NEON on AArch64."""

    lanes: int = 8
    registers: int = 16

    @property
    def register_bytes(self) -> int:
        return self.lanes * self.registers * _FLOAT


#: 32 registers of one float: with more for a tile, LLVM puts accumulators into memory (counted for mtcnn-rnet on rv64gc)
_SCALAR = Machine(lanes=1, registers=20)


def machine_of(architecture: str, features: tuple[str, ...]) -> Machine:
    """As LLVM is told; an architecture that is not listed is as the default, which is slower than need be at worst."""
    if architecture == "riscv64" and "+v" not in features:
        return _SCALAR
    if architecture == "arm":
        return Machine(lanes=4, registers=16) if "+neon" in features else _SCALAR
    return Machine()
