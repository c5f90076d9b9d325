"""Describe the memory cost of one model on one target, as footprint.json holds it. All sizes are bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from .baseline import Baseline
from .limits import Budget, RegionUse, fits

#: begins the reason why a library that ran was not compared with its file
NOT_VERIFIED = "not-verified"
#: slow kernels named in a line
_NAMED = 2


@dataclass(frozen=True)
class Start:
    """Metric of the ONNX file as given: the literature's sum of all tensors, and its node count."""

    sum: int
    kernels: int


@dataclass(frozen=True)
class Footprint:
    """Footprint of the compiled model or the baseline; design.md, section 1, defines the words.

    `ram` is arena + workspace + stack, and the weights where a target copies them. `stack` is 0 until it is measured. `regions`
    are the memories of a target without an operating system, once the image is linked: those of one kind add up to `ram` or `flash`.
    """

    ram: int
    flash: int
    arena: int
    workspace: int
    weights: int
    code: int
    bound: int
    floor: int
    proved: bool
    kernels: int
    sum: int
    stack: int = 0
    regions: tuple[RegionUse, ...] = ()

    @property
    def planned_ram(self) -> int:
        """Return ram without the stack, which no plan knows."""
        return self.ram - self.stack


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
    are counted over one run under an emulator; None natively, and where there are too many to count. `cycles` are those of the first run on a device on the desk. `max_rel_error` is
    the largest absolute error divided by the range of that output in the reference. `verified_by` names the reference, on
    the file as given: "onnxruntime", or ONNX's own evaluator, "onnx"; or "not-verified: " and the reason. It is None
    where the library did not run.

    `throughput` is in runs per second, one after the other, `compile_seconds` the time from the model to the measured
    library. These, `energy` and `latency_ms` are those of Verma et al. (2022); all are None under an emulator, but for
    the time of the compilation. `given` is there for quantised models, `reordered` if outputs have rows in another order.
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
    reordered: ReorderedRows | None = None

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


@dataclass(frozen=True)
class RamAndWeights:
    """Estimated ram and weights of a model in bytes, by TVM's default sequence and passfit's plan: nothing is built."""

    ram: int
    weights: int


@dataclass(frozen=True)
class BesideFloats:
    """Quantised model next to its float twin: the same layers without quantisation.

    `integer_share` is the share of multiplications done on integers. `integers` and `floats` come from one sequence, so
    `integers` is no less than the best footprint; None where the estimate failed.
    """

    integer_share: float
    integers: RamAndWeights | None = None
    floats: RamAndWeights | None = None

    @property
    def summary(self) -> str:
        """Describe the layers' dtypes in one phrase."""
        return f"{self.integer_share:.0%} of its multiplications on integers"


@dataclass(frozen=True)
class Defect:
    """Plan that was not delivered: `kind` is "wrong" for one that computes wrong, "crash" for one that does not build.

    `passes` are the specs of its passes that the delivered plan does without.
    """

    kind: str
    passes: tuple[str, ...]
    reason: str

    @property
    def summary(self) -> str:
        """Describe the defect in one phrase."""
        what = "computes wrong" if self.kind == "wrong" else "does not compile"
        passes = f" with {', '.join(self.passes)}" if self.passes else ""
        return f"a simpler plan was delivered, since the one{passes} {what}: {self.reason}"


@dataclass(frozen=True)
class SlowKernel:
    """Kernel far below the roofline of the core, by the model of cycles.

    `share` is its part of the time of a run, `roofline` the least time for its operations and bytes, divided by its time.
    """

    step: int
    kernel: str
    nodes: tuple[str, ...]
    share: float
    roofline: float

    @property
    def summary(self) -> str:
        """Describe the kernel in one phrase."""
        return f"k{self.step:02} {self.kernel} ({self.share:.0%} of the time, {self.roofline:.3f} of the roofline)"


@dataclass(frozen=True)
class FootprintReport:
    """One model on one target: footprint.json. `fits` is against the budget, and against the target's capacity
    where no budget is set. `exact` is false where the sequence has a lossy pass. `quantised` is there for quantised
    models. `defects` are better plans that failed, in order. `slow` are slow kernels, the most time first; none
    where nothing was compiled."""

    model: str
    target: str
    start: Start
    best: Footprint
    baseline: Baseline
    measured: Measured
    budget: Budget = field(default_factory=Budget)
    fits: bool = True
    exact: bool = True
    quantised: BesideFloats | None = None
    defects: tuple[Defect, ...] = ()
    slow: tuple[SlowKernel, ...] = ()

    @property
    def slow_summary(self) -> str:
        """Name the slow kernels in one line; empty without any."""
        if not self.slow:
            return ""
        more = f" and {len(self.slow) - _NAMED} more" if len(self.slow) > _NAMED else ""
        return f"slow kernels, predicted: {', '.join(each.summary for each in self.slow[:_NAMED])}{more}"

    def within(self, budget: Budget, ram: int, flash: int) -> FootprintReport:
        """Return the report with a budget, and whether it fits; `ram` and `flash` are the target's capacities in bytes.

        Compilation reads no budget, so that a new one reruns none: `budget` and `fits` are filled in afterwards.
        """
        whole = fits(self.best.ram, self.best.flash, budget, ram, flash)
        return replace(self, budget=budget, fits=whole and all(region.fits for region in self.best.regions))

    @property
    def without_baseline(self) -> str:
        """Say why there is nothing to compare with; empty where there is."""
        return f"{self.baseline.name} is not available: {reason}" if (reason := self.baseline.unavailable) else ""

    @property
    def kept(self) -> FootprintReport:
        """Return the report as git keeps it, without the figures that each run measures anew."""
        return replace(self, measured=self.measured.repeatable)

    def to_json(self) -> dict:
        """Return the object written to footprint.json; regions, reasons and reordered rows are left out where there are none."""
        found = asdict(self)
        for part in (found["best"], found["measured"]):
            if not part["regions"]:
                del part["regions"]
        if self.measured.reordered is None:
            del found["measured"]["reordered"]
        if not self.baseline.unavailable:
            del found["baseline"]["unavailable"]
        return found
