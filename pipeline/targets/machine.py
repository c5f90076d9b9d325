"""Describe a processor for schedule rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

#: bytes of a float32, the unit of the rules
_FLOAT = 4
#: vectors for a tile of joined registers: with 24 or 32, unrolled loops spill (counted for mtcnn-rnet with RISC-V's V)
_UNSPILLED = 16
#: largest bytes that TVM's LowerTVMBuiltin leaves on the stack, so that LLVM may keep them in registers: below 1024
_STACK = 1023
#: registers of AVX-512 and the bytes of all of them, which are left on the stack too (see codegen/expand/stack_buffers.py)
WIDE_REGISTERS, WIDE_STACK = 32, 2048
#: bytes of memory per thread of a library besides its workspace: the touched pages of its stack, with libc's record of
#: the thread. Measured: 8 KiB to 16 KiB; the rest of its 64 KiB stack is address space only
_THREAD = 16384


@dataclass(frozen=True)
class Machine:
    """Vector unit and threads of a processor. The default is AVX2.

    Its vectors have `lanes` float32, and `registers` of them are at hand for a tile. This may be a grouping: of 32
    registers of 4 lanes, two make one of 8. `threads` run a loop.

    `by_element` says that a vector is multiplied by an element of another, or by a scalar, as NEON and RISC-V do: a
    scalar needs no vector of its own. `lmul` registers form one such vector if the processor joins them itself, so
    that shorter vectors leave more registers. `compact` asks for short code: loops where unrolled code would be faster. `pmaddwd` says that one instruction adds up
    the products of two pairs of int16 in each lane, as AVX2's vpmaddwd. `smull_sadalp` says that products of eight bytes are
    summed in int16, and pairs of these in int32, as NEON's smull, smlsl and sadalp; `dots` names
    the instructions that add up four products of bytes in each int32 (see dot_products.py). `vmlava` says that
    one instruction adds up sixteen products of bytes in one int32, as Helium's of that name: LLVM makes no such vectors by itself, so
    that `lanes` is 1, and rules write those of `vectors_of`, which `float_vectors` says are for floats too. `keep_tap_loops`
    says that loops over taps stay loops if tiles fill the registers. `transposes` says that blocks of vectors are transposed
    before they are stored (see codegen/expand/transposed_stores.py). `l1_bytes` bytes of vectors stay in the nearest cache from tile
    to tile. `soft_floats` says that floats are computed by functions. Buffers of up to `stack` bytes are on the stack, where LLVM may keep them in registers.
    """

    lanes: int = 8
    registers: int = 16
    threads: int = 1
    by_element: bool = False
    lmul: int = 1
    compact: bool = False
    pmaddwd: bool = False
    smull_sadalp: bool = False
    dots: tuple[str, ...] = ()
    vmlava: bool = False
    float_vectors: bool = False
    keep_tap_loops: bool = False
    transposes: bool = False
    l1_bytes: int = 16384
    stack: int = _STACK
    soft_floats: bool = False

    def registers_of(self, lanes: int) -> int:
        """Count the vectors of `lanes` lanes at hand.

        Short vectors get no more than LLVM keeps out of memory.
        """
        return max(self.registers, min(self.registers * min(self.lmul, self.lanes // lanes), _UNSPILLED))

    def vectors_of(self, dtype: str) -> Machine:
        """Return the machine as rules write loops over a dtype: with Helium's vectors, if it has any of it."""
        if not self.vmlava or dtype not in (_HELIUM if self.float_vectors else _HELIUM[1:]):
            return self
        return replace(self, lanes=4 if dtype.endswith("32") else 16, registers=8, by_element=True, compact=False)

    @property
    def register_bytes(self) -> int:
        """Return the bytes of registers for a tile that need no workspace."""
        return _HELIUM_BYTES if self.vmlava else min(self.lanes * self.registers * _FLOAT, self.stack)

    @property
    def thread_bytes(self) -> int:
        """Return the memory of all threads but the caller's, in bytes, without their workspaces."""
        return (self.threads - 1) * _THREAD


#: 32 registers of one float: with more for a tile, LLVM puts accumulators into memory (counted for mtcnn-rnet on rv64gc)
_SCALAR = Machine(lanes=1, registers=20)
#: dtypes of Helium's vectors, that of floats first, and the bytes of its eight registers
_HELIUM, _HELIUM_BYTES = ("float32", "int32", "int8", "uint8"), 128
#: RISC-V's LMUL, the vector registers joined into one: fewest instructions of 1, 2 and 4 for five small models
_JOINED = 4


def machine_of(architecture: str, features: tuple[str, ...]) -> Machine:
    """Return the machine of an architecture and its LLVM features.

    An unlisted architecture gets the default, which is slower than need be at worst.
    """
    if architecture in ("riscv32", "thumb"):
        floats = any(re.match(r"\+(f$|fp|vfp)", word) for word in features)
        vmlava = any(word.startswith("+mve") for word in features)
        return replace(_SCALAR, soft_floats=not floats, vmlava=vmlava, float_vectors="+mve.fp" in features)
    if architecture == "riscv64":
        bits = riscv_vector_bits(features)
        return Machine(_JOINED * bits // 32, 32 // _JOINED, by_element=True, lmul=_JOINED) if bits else _SCALAR
    if architecture == "arm":
        return Machine(lanes=4, registers=16, by_element=True, smull_sadalp=True) if "+neon" in features else _SCALAR
    if architecture == "aarch64":
        return Machine(by_element=True, smull_sadalp=True)
    return Machine(keep_tap_loops=architecture == "x86_64", transposes=architecture == "x86_64")


def riscv_vector_bits(features: tuple[str, ...]) -> int:
    """Return the least bits of a vector register, by V and Zvl*b; 0 without vectors."""
    said = [int(word[4:-1]) for word in features if re.fullmatch(r"\+zvl\d+b", word)]
    return max([128, *said]) if "+v" in features else 0
