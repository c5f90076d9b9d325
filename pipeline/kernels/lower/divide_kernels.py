"""Run each sum of a kernel that no rule takes as a step of its own.

    step 4: fused_mean_conv2d_sigmoid_multiply           step 4: mean      ──► 128 bytes
                                                  ──►    step 5: conv2d    ──► 128 bytes
                                                         step 6: conv2d_sigmoid_multiply ──► result

What was between them is a value of the program like any other: ordered, shared and placed, or split by rows. Rows of a
softmax may divide where the whole does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ...program import Buffer, Loop, Program, Step, Tensor
from ...program.free_name import free_name
from ...tir.switches import switchable
from ..schedule.divide_stages import Stage, faster_stages
from ..weights.repack import repackable_parameters
from .lower import Lowered
from .row_kernel import RowKernel, RowPlace


@switchable
def divide_kernels(lowered: Lowered) -> Lowered:
    """Divide kernels of several sums that run as plain loops, in bodies too.

    Kernels of rows whose result replaces an operand, or continues a sum, stay as they are.
    """
    private = repackable_parameters(lowered.program)
    kept = {call.step.kernel for call in lowered.program.calls() if call.step.in_place} | {
        name for name, each in lowered.rows.items() if each.continues
    }
    free = {name: frozenset[int]() if name in lowered.rows else private[name] for name in sorted(private.keys() - kept)}
    found = {name: stages for name, own in free.items() if (stages := faster_stages(lowered.kernels[name], own))}
    return divide(lowered, found)


def divide(lowered: Lowered, stages: Mapping[str, Sequence[Stage]], ends: Sequence[str] = ()) -> Lowered:
    """Divide kernels into stages, whose names end with `ends`, or are numbered."""
    return _Division(lowered, stages, ends).lowered() if stages else lowered


class _Division:
    """Divide kernels into their stages: `names` are those of each, `rows` where the rows of those lie that compute rows."""

    def __init__(self, lowered: Lowered, stages: Mapping[str, Sequence[Stage]], ends: Sequence[str]):
        self.given, self.stages = lowered, stages
        self.kernels = {name: kernel for name, kernel in lowered.kernels.items() if name not in stages}
        self.rows = {name: each for name, each in lowered.rows.items() if name not in stages}
        self.names: dict[str, list[str]] = {}
        for name, parts in stages.items():
            places: list[RowPlace | None] = list(lowered.rows[name].places[:-1]) if name in lowered.rows else []
            self.names[name] = []
            for number, part in enumerate(parts):
                own = free_name(f"{name}_{ends[number] if ends else number + 1}", self.kernels)
                self.kernels[own] = part.kernel
                self.names[name].append(own)
                if name in lowered.rows:
                    places.append(lowered.rows[name].places[-1] if part is parts[-1] else None)
                    self.rows[own] = replace(
                        lowered.rows[name], places=(*(places[each] for each in part.reads), places[-1])
                    )

    def lowered(self) -> Lowered:
        program = self._divide(self.given.program)
        return replace(self.given, program=program, kernels=dict(sorted(self.kernels.items())), rows=self.rows)

    def _divide(self, program: Program) -> Program:
        tensors, buffers, steps = list(program.tensors), list(program.buffers), list[Loop | Step]()
        for step in program.steps:
            if isinstance(step, Loop):
                steps.append(replace(step, body=self._divide(step.body)))
                continue
            if step.kernel not in self.stages:
                steps.append(step)
                continue
            parts, values = self.stages[step.kernel], _operands(step, self.given.rows.get(step.kernel))
            for name, part in zip(self.names[step.kernel], parts, strict=True):
                written = step.writes
                if part is not parts[-1]:
                    result = part.kernel.params[-1].ty
                    written = (len(tensors),)
                    tensors.append(
                        Tensor(tuple(int(extent) for extent in result.shape), str(result.dtype), buffer=len(buffers))
                    )
                    buffers.append(Buffer(free_name(name, {each.name for each in buffers}), tensors[-1].nbytes))
                reads = [values[each] for each in part.reads]
                read = (*(each.tensor for each in reads), *(each.fresh for each in reads if each.fresh is not None))
                values.append(_Operand(written[0]))
                steps.append(replace(step, kernel=name, reads=read, writes=written))
        return replace(program, steps=tuple(steps), tensors=tuple(tensors), buffers=tuple(buffers))


@dataclass(frozen=True)
class _Operand:
    """Tensor behind a parameter, and the one with its fresh rows, if another."""

    tensor: int
    fresh: int | None = None


def _operands(step: Step, rows: RowKernel | None) -> list[_Operand]:
    """Return the operands of a step in the order of its kernel's parameters; see `RowKernel.bind`."""
    if rows is None:
        return list(map(_Operand, step.reads))
    places = rows.places[:-1]
    more = islice(step.reads, len(places), None)
    return [
        _Operand(tensor, next(more) if place is not None and place.fresh is not None and place.held != 0 else None)
        for tensor, place in zip(step.reads, places, strict=False)
    ]
