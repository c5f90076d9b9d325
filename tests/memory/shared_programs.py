"""Generate random programs of kernels that may share memory, and run them byte by byte."""

from __future__ import annotations

import hashlib

from hypothesis import strategies as st

from passfit.memory import ArenaPlan
from passfit.program import DTYPE_BYTES, Buffer, Overlay, Program, Step, Tensor

from ..strategies import Builder, programs

_KINDS = st.sampled_from(["compute", "in place", "in place", "in place of part", "concat", "concat", "split"])


class SharingBuilder(Builder):
    """Builder of steps that compute in place, and of steps that join tensors or take them apart."""

    def step(self, readable: list[int]) -> list[int]:
        kind = self.draw(_KINDS)
        known = [number for number in readable if self.tensors[number].nbytes]
        if kind == "compute" or not known:
            return super().step(readable)
        first = known[-1 - self.draw(st.integers(0, min(2, len(known) - 1)))]
        dtype = self.tensors[first].dtype
        fitting = [number for number in known if self.tensors[number].dtype == dtype]
        reads = [first, *self.draw(st.lists(st.sampled_from(fitting[-4:]), max_size=2))]
        return getattr(self, kind.replace(" ", "_"))(reads, dtype)

    def in_place(self, reads: list[int], dtype: str) -> list[int]:
        """Add a step with every operand of the result's size allowed in it."""
        result = self.result(self.tensors[reads[0]].nbytes, dtype)
        allowed = [n for n, read in enumerate(reads) if self.tensors[read].nbytes == self.tensors[result].nbytes]
        return self.add_step(reads, [result], in_place=tuple(Overlay(n, 0) for n in allowed))

    def in_place_of_part(self, reads: list[int], dtype: str) -> list[int]:
        """Add a step with the operand in the result, or the reverse, at some element."""
        element, nbytes = DTYPE_BYTES[dtype], self.tensors[reads[0]].nbytes
        other = element * self.draw(st.integers(1, 12))
        low, high = sorted((0, (other - nbytes) // element))
        result = self.result(other, dtype)
        return self.add_step(reads, [result], in_place=(Overlay(0, 0, element * self.draw(st.integers(low, high))),))

    def concat(self, reads: list[int], dtype: str) -> list[int]:
        sizes = [self.tensors[read].nbytes for read in reads]
        result = self.result(sum(sizes), dtype)
        places = tuple(Overlay(n, 0, sum(sizes[:n])) for n in range(len(reads)))
        return self.add_step(reads, [result], in_place=places, copies=places)

    def split(self, reads: list[int], dtype: str) -> list[int]:
        element = DTYPE_BYTES[dtype]
        count = self.tensors[reads[0]].nbytes // element
        ends = sorted({self.draw(st.integers(1, count)) for _ in range(2)})
        starts = [self.draw(st.integers(0, ends[0] - 1)), *ends[:-1]]
        results = [self.result((end - start) * element, dtype) for start, end in zip(starts, ends, strict=True)]
        places = tuple(Overlay(0, n, -start * element) for n, start in enumerate(starts))
        return self.add_step(reads[:1], results, copies=places)

    def result(self, nbytes: int, dtype: str) -> int:
        tensor = Tensor((nbytes // DTYPE_BYTES[dtype],), dtype, buffer=len(self.buffers))
        self.buffers.append(Buffer(f"b{len(self.buffers)}", nbytes))
        return self._add(tensor)

    def add_step(self, reads: list[int], writes: list[int], **sharing: tuple[Overlay, ...]) -> list[int]:
        self.steps.append(Step(f"kernel{len(self.steps)}", tuple(reads), tuple(writes), **sharing))
        return writes


def sharing_programs(max_steps: int = 10) -> st.SearchStrategy[Program]:
    return programs(max_steps=max_steps, kind=SharingBuilder)


def outputs(program: Program, plan: ArenaPlan) -> list[bytes]:
    """Return the outputs of a program in an arena: a kernel's result is a digest of its name and operands.

    A kernel that overwrites an operand at a place it does not allow is an error.
    """
    arena = bytearray(b"\xee" * plan.arena)

    def place(number: int) -> slice:
        tensor = program.tensors[number]
        start = plan.offsets[tensor.buffer] + tensor.offset
        return slice(start, start + tensor.nbytes)

    def read(number: int) -> bytes:
        tensor = program.tensors[number]
        if tensor.weight is None:
            return bytes(arena[place(number)])
        return _digest(f"weight {program.weights[tensor.weight].name}", tensor.nbytes)

    for port in program.inputs:
        arena[place(port.tensor)] = _digest(f"input {port.name}", program.tensors[port.tensor].nbytes)
    for step in program.steps:
        _check_meeting(program, step, place)
        values = [read(number) for number in step.reads]
        for result, number in enumerate(step.writes):
            nbytes = program.tensors[number].nbytes
            value = bytearray(_digest(f"{step.kernel} {result} {[each.hex() for each in values]}", nbytes))
            for overlay in step.copies:
                if overlay.write == result:
                    for at, byte in enumerate(values[overlay.read]):
                        if 0 <= at + overlay.shift < nbytes:
                            value[at + overlay.shift] = byte
            arena[place(number)] = value
    return [read(port.tensor) for port in program.outputs]


def _check_meeting(program: Program, step: Step, place) -> None:
    for n, source in enumerate(step.reads):
        if program.tensors[source].weight is not None:
            continue
        for m, target in enumerate(step.writes):
            one, other = place(source), place(target)
            if max(one.start, other.start) < min(one.stop, other.stop):
                overlay = Overlay(n, m, one.start - other.start)
                assert overlay in step.in_place, f"{step.kernel} overwrites what it reads"


def _digest(text: str, nbytes: int) -> bytes:
    return hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(nbytes)
