"""What a schedule rule wants to know of a processor."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: bytes of a float32, which rules count in
_FLOAT = 4
#: vectors for a tile of joined registers: with 24 or 32, unrolled loops spill (counted for mtcnn-rnet with RISC-V's V)
_UNSPILLED = 16
#: bytes of memory that a thread of a library takes besides its workspace: the pages it touches of its stack, where libc
#: keeps what it knows of the thread. Measured: 8 KiB to 16 KiB; the rest of the 64 KiB of its stack is addresses only
_THREAD = 16384


@dataclass(frozen=True)
class Machine:
    """Vectors of `lanes` float32, of which `registers` are at hand for a tile; or as if: of 32 registers of 4 lanes two
    make one of 8. The default is AVX2. Loops are for as many `threads`.

    `by_element` says that a vector is multiplied by an element of another, or by a scalar, as NEON and RISC-V do: a
    scalar needs no vector of its own. `joined` registers are one such vector where the processor joins them itself, so
    that shorter ones leave more.
    """

    lanes: int = 8
    registers: int = 16
    threads: int = 1
    by_element: bool = False
    joined: int = 1

    def registers_of(self, lanes: int) -> int:
        """How many vectors of so many lanes are at hand; of short ones no more than LLVM does not put into memory."""
        return max(self.registers, min(self.registers * min(self.joined, self.lanes // lanes), _UNSPILLED))

    @property
    def register_bytes(self) -> int:
        return self.lanes * self.registers * _FLOAT

    @property
    def thread_bytes(self) -> int:
        """Bytes of memory that all threads but the caller's take, their workspaces aside."""
        return (self.threads - 1) * _THREAD


#: 32 registers of one float: with more for a tile, LLVM puts accumulators into memory (counted for mtcnn-rnet on rv64gc)
_SCALAR = Machine(lanes=1, registers=20)
#: of the 32 vector registers of RISC-V so many are joined (LMUL): fewest instructions of 1, 2 and 4 for five small models
_JOINED = 4


def machine_of(architecture: str, features: tuple[str, ...]) -> Machine:
    """As LLVM is told; an architecture that is not listed is as the default, which is slower than need be at worst."""
    if architecture == "riscv64":
        bits = riscv_vector_bits(features)
        return Machine(_JOINED * bits // 32, 32 // _JOINED, by_element=True, joined=_JOINED) if bits else _SCALAR
    if architecture == "arm":
        return Machine(lanes=4, registers=16, by_element=True) if "+neon" in features else _SCALAR
    return Machine(by_element=architecture == "aarch64")


def riscv_vector_bits(features: tuple[str, ...]) -> int:
    """Bits that each vector register has at least, by V and Zvl*b; 0 where there are none."""
    said = [int(word[4:-1]) for word in features if re.fullmatch(r"\+zvl\d+b", word)]
    return max([128, *said]) if "+v" in features else 0
