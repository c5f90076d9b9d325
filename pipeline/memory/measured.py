"""Describe the measurements of a library that ran, as footprint.json holds it. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..support.sizes import format_milliseconds
from .limits import RegionUse

#: begins the reason why a library that ran was not compared with its file
NOT_VERIFIED = "not-verified"


@dataclass(frozen=True)
class ErrorDistances:
    """Distance of the library and of ONNX Runtime from the model in double precision.

    Each is the largest error divided by the range of its output in the reference. `reference` is "double", or
    "onnxruntime: " and the reason why there are no doubles.
    """

    reference: str
    library_to_double: float | None = None
    onnxruntime_to_double: float | None = None


@dataclass(frozen=True)
class ReorderedRows:
    """Rows of outputs in another order than the reference's, as a sort of scores within rounding leaves it open.

    `rows` of `total` rows are elsewhere; `max_rel_error` is the largest error once they are matched, as a share of the range.
    """

    rows: int
    total: int
    max_rel_error: float


@dataclass(frozen=True)
class Energy:
    """Energy of a run in millijoules; None where it is absent. `how` names the counters, or says why it is absent."""

    how: str
    mj_per_run: float | None = None


@dataclass(frozen=True)
class EstimatedTime:
    """Time of a run on a board at `mhz`, by cycles of the instructions that an emulator counted: see `targets/core_timings.py`.

    `cycles` are at least, likely and at most: without and with pairing, waits for flash, and the longest divisions.
    """

    cycles: tuple[int, int, int]
    mhz: int

    @property
    def milliseconds(self) -> tuple[float, float, float]:
        """Return the time at least, likely and at most."""
        least, likely, most = (each / self.mhz / 1e3 for each in self.cycles)
        return least, likely, most

    @property
    def likely(self) -> float:
        """Return the likely time in milliseconds."""
        return self.milliseconds[1]

    @property
    def summary(self) -> str:
        """Describe the estimate in one phrase."""
        least, likely, most = map(format_milliseconds, self.milliseconds)
        return f"about {likely} at {self.mhz} MHz ({least} to {most}, estimated)"


@dataclass(frozen=True)
class OutputAgreement:
    """Agreement of an output with the quantised model as given, over all cases; None where there is nothing to count.

    `differing` counts the elements at least one unit apart; `max_lsb` is the most units. A unit is 1 of an integer, and
    the scale of a float that is dequantised at the end. A decision is the largest element along the last axis.
    """

    output: str
    elements: int
    differing: int | None = None
    max_lsb: int | None = None
    decisions: int | None = None
    same_decisions: int | None = None


@dataclass(frozen=True)
class GivenAgreement:
    """Agreement of the library with the quantised model as given: ONNX Runtime on its file, without optimisations."""

    cases: int
    outputs: tuple[OutputAgreement, ...]

    @property
    def max_lsb(self) -> int | None:
        """Return the most units of any output."""
        return max((each.max_lsb for each in self.outputs if each.max_lsb is not None), default=None)

    @property
    def differing(self) -> float | None:
        """Return the share of elements that differ, among outputs with units."""
        counted = [(each.differing, each.elements) for each in self.outputs if each.differing is not None]
        return sum(some for some, _ in counted) / max(1, sum(total for _, total in counted)) if counted else None

    @property
    def same_decisions(self) -> float | None:
        """Return the share of equal decisions."""
        counted = [
            (each.same_decisions, each.decisions)
            for each in self.outputs
            if each.decisions and each.same_decisions is not None
        ]
        return sum(same for same, _ in counted) / sum(total for _, total in counted) if counted else None

    @property
    def summary(self) -> str:
        """Describe the agreement in one phrase."""
        parts = []
        if self.max_lsb is not None and self.differing is not None:
            parts.append(
                f"at most {self.max_lsb} LSB from the model as given ({self.differing:.2%} of elements differ)"
            )
        if self.same_decisions is not None:
            parts.append(f"{self.same_decisions:.1%} of its decisions")
        return ", ".join(parts)


@dataclass(frozen=True)
class Measured:
    """Measurements of one run of the library.

    `ram` is the anonymous memory, in whole pages of `page` bytes, that a process gains over its twin that never calls
    the library. It leaves out the stack, and is None where it was not measured natively. `stack` is the most that a run
    uses of the caller's stack, in bytes. Without an operating system `ram` is that of the image, .data and .bss, and `flash` .text,
    .rodata and .data, and `regions` tells them by memory; elsewhere `flash` is None. `latency_ms` is the median of a run, None under an emulator. `instructions`
    are counted over one run under an emulator; None natively, and where there are too many to count. `cycles` are those of the first run on a device on the desk, `estimated` the time of a run on a board
    whose image an emulator ran. `max_rel_error` is
    the largest absolute error divided by the range of that output in the reference. `verified_by` names the reference, on
    the file as given: "onnxruntime", or ONNX's own evaluator, "onnx"; or "not-verified: " and the reason. It is None
    where the library did not run.

    `throughput` is in runs per second, one after the other, `compile_seconds` the time from the model to the measured
    library. These, `energy` and `latency_ms` are those of Verma et al. (2022); all are None under an emulator, but for
    the time of the compilation. `given` is there for quantised models, `reordered` if outputs have rows in another order. `samples` are those of the user's own
    that were compared, next to the seeded cases; None without any. `no_rows` are outputs of open length that no case gave a row.
    """

    ran: bool
    how: str
    ram: int | None = None
    latency_ms: float | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    instructions: int | None = None
    stack: int | None = None
    page: int | None = None
    error: ErrorDistances | None = None
    throughput: float | None = None
    energy: Energy | None = None
    compile_seconds: float | None = None
    given: GivenAgreement | None = None
    verified_by: str | None = None
    flash: int | None = None
    regions: tuple[RegionUse, ...] = ()
    cycles: int | None = None
    estimated: EstimatedTime | None = None
    reordered: ReorderedRows | None = None
    samples: int | None = None
    no_rows: tuple[str, ...] = ()

    @property
    def matched_error(self) -> float | None:
        """Return the largest relative error, of rows that were matched if they are in another order."""
        return self.max_rel_error if self.reordered is None else self.reordered.max_rel_error

    @property
    def error_summary(self) -> str:
        """Describe the largest error in one phrase, with the rows that were matched for it."""
        said = f"{self.matched_error or 0:.1e} of the range"
        if (moved := self.reordered) is None:
            return said
        return (
            f"{said} after matching {moved.rows} of {moved.total} rows, which scores within rounding order otherwise "
            f"({self.max_rel_error or 0:.1e} in place)"
        )

    @property
    def no_rows_summary(self) -> str:
        """Say which outputs were compared without a row, and how to compare rows; an empty string where there is none."""
        names = ", ".join(f"'{name}'" for name in self.no_rows)
        return f"no verified case has a row of {names}: --data compares samples that have some, too" if names else ""

    @property
    def repeatable(self) -> Measured:
        """Return the figures that every run on every machine repeats: no times, no errors, no memory of a process."""
        return replace(
            self, ram=None if self.flash is None else self.ram, page=None, latency_ms=None, throughput=None, energy=None,
            compile_seconds=None, cycles=None, max_abs_error=None, max_rel_error=None, error=None, given=None,
            reordered=None,
        )  # fmt: skip

    @property
    def unverified(self) -> str:
        """Return the reason why outputs were not compared with the file's; an empty string where they were."""
        return self.verified_by or "" if (self.verified_by or "").startswith(NOT_VERIFIED) else ""
