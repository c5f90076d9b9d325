"""Use a tuned schedule if it shares as much memory and needs no more workspace.

The memory plan follows the rules' choice alone: a tuned kernel shares at least as much as the rules' one, and needs no
more workspace than is planned for it. So no tuning costs ram.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import ConfigError

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from ...targets import Machine
    from .candidates import Schedule


@dataclass(frozen=True)
class ScheduleRequest:
    """Ask for the schedule of a kernel: see `candidates.schedules` for the first four fields.

    `rules` is the rules' schedule, `most` the workspace allowed, in bytes; `calls` counts its calls a run.
    """

    kernel: PrimFunc
    repackable: frozenset[int]
    machine: Machine
    fixed_shapes: bool
    rules: Schedule
    most: int
    calls: int

    @cached_property
    def fingerprint(self) -> str:
        """Return the key of all kernels of one structure that are scheduled alike; the same in every process."""
        from ...tir.structural_key import structural_key

        kernel = self.kernel
        if kernel.attrs and "global_symbol" in kernel.attrs:
            kernel = kernel.without_attr("global_symbol")
        return structural_key(kernel, operand_types(kernel), sorted(self.repackable), self.fixed_shapes)

    def scheduled(self, spec: str) -> Schedule | None:
        """Schedule the kernel by a spec, for the threads of the machine; None if it does not fit.

        Raises ConfigError for a malformed spec.
        """
        from .candidates import threaded
        from .choices import schedule_by_spec

        found = schedule_by_spec(self.kernel, self.repackable, self.machine, self.fixed_shapes, spec)
        return None if found is None else next(threaded(found, self.machine))

    def allows(self, schedule: Schedule) -> bool:
        """Return whether a schedule may replace the rules' one: small enough, and sharing as much."""
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
    """Map kernel fingerprints to schedule specs (see schedule/choices.py); false if empty."""

    choices: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.choices)

    def schedule(self, request: ScheduleRequest) -> Schedule:
        """Return the tuned schedule; the rules' own if none is known, or it is not allowed.

        Raises ConfigError for a choice that does not fit the kernel.
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
    """List the dtype and shape of each parameter, `float32 1x3x8x8`; a scalar has no shape."""
    found = []
    for param in kernel.params:
        shape = getattr(param.ty, "shape", None)
        extents = "" if shape is None else " " + "x".join(str(int(extent)) for extent in shape)
        found.append(f"{param.ty.dtype}{extents}")
    return found
