"""What a tuning found, and where it counts: instead of the rules' choice, where it fits into what that one takes.

Whatever is planned by the rules' choice stays as it is: a kernel that is tuned shares what that one shares, and needs no
more workspace than the program has. So no tuning costs ram.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import ConfigError

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from ...targets import Machine
    from .candidates import Schedule


@dataclass(frozen=True)
class ScheduleRequest:
    """A kernel to be scheduled: see `scheduling.schedules` for the first four.

    `rules` is what the rules made of it, `most` the workspace it may have, in bytes; it is called `calls` times a run.
    """

    kernel: PrimFunc
    repackable: frozenset[int]
    machine: Machine
    fixed_shapes: bool
    rules: Schedule
    most: int
    calls: int

    @property
    def fingerprint(self) -> str:
        """The same in every process, whatever the names, for kernels of one structure that are scheduled alike."""
        from ...tir.structural_key import structural_key

        kernel = self.kernel
        if kernel.attrs and "global_symbol" in kernel.attrs:
            kernel = kernel.without_attr("global_symbol")
        return structural_key(kernel, operand_types(kernel), sorted(self.repackable), self.fixed_shapes)

    def scheduled(self, spec: str) -> Schedule | None:
        """The kernel as a choice says, for the threads of the machine; None where it cannot be. Raises ConfigError where
        `spec` is none."""
        from .candidates import threaded
        from .choices import schedule_by_spec

        found = schedule_by_spec(self.kernel, self.repackable, self.machine, self.fixed_shapes, spec)
        return None if found is None else next(threaded(found, self.machine))

    def allows(self, schedule: Schedule) -> bool:
        """Whether it may take the place of the rules' schedule: small enough, and sharing as much."""
        if schedule.workspace > self.most:
            return False
        ours, theirs = schedule.sharing, self.rules.sharing
        return (
            ours.results >= theirs.results
            and set(theirs.in_place) <= set(ours.in_place)
            and set(theirs.copies) <= set(ours.copies)
        )


@dataclass(frozen=True)
class Tuning:
    """Map kernel fingerprints to schedule specs (see `choices.py`); false without any."""

    choices: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.choices)

    def schedule(self, request: ScheduleRequest) -> Schedule:
        """The chosen schedule; the rules' own where none is known, or it is not allowed there.

        Raises ConfigError where the choice is of another kernel.
        """
        spec = self.choices.get(request.fingerprint) if self.choices else None
        if spec is None:
            return request.rules
        found = request.scheduled(spec)
        if found is None:
            raise ConfigError(
                f"The tuning's choice for the kernel {request.fingerprint} does not fit it: {spec[:80]}.",
                "Run `passfit tune` again.",
            )
        return found if request.allows(found) else request.rules


def operand_types(kernel: PrimFunc) -> list[str]:
    """The dtype and shape of each parameter, `float32 1x3x8x8`; a number has no shape."""
    found = []
    for param in kernel.params:
        shape = getattr(param.ty, "shape", None)
        extents = "" if shape is None else " " + "x".join(str(int(extent)) for extent in shape)
        found.append(f"{param.ty.dtype}{extents}")
    return found
