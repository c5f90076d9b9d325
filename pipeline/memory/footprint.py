"""Describe the memory cost of one model on one target, as footprint.json holds it. All sizes are bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from .limits import Budget, RegionUse, fits
from .measured import Measured

#: slow kernels named in a line
_NAMED = 2
_BASELINE = "tvm-default"


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
class Baseline:
    """Hold the same model through TVM's own pipeline. `code` is the text and read-only data of its kernels.

    `flash` is weights + code; both are None where the kernels were not built. All sizes are None where TVM's pipeline
    failed: `unavailable` is the reason then, and empty otherwise.
    """

    name: str
    ram: int | None
    flash: int | None
    arena: int | None
    workspace: int | None
    weights: int | None
    code: int | None = field(default=None, kw_only=True)
    kernels: int | None
    sum: int | None
    unavailable: str = field(default="", kw_only=True)

    @classmethod
    def of(cls, footprint: Footprint, code: int | None = None) -> Baseline:
        """Name the footprint of TVM's default, without bound, floor and proof, which TVM lacks."""
        arena, workspace = footprint.arena, footprint.workspace
        found = cls(
            _BASELINE, footprint.ram, None, arena, workspace, footprint.weights, footprint.kernels, footprint.sum
        )
        return found.compiled(code)

    @classmethod
    def missing(cls, reason: str) -> Baseline:
        """Name TVM's default without sizes."""
        return cls(_BASELINE, *[None] * 7, unavailable=reason)

    def compiled(self, code: int | None) -> Baseline:
        """Return the baseline with the bytes of its code; None where its kernels were not built."""
        if code is None or self.weights is None:
            return self
        return replace(self, code=code, flash=self.weights + code)


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
        """Return the object written to footprint.json; what there is none of is left out: regions, reasons, reordered rows, outputs without rows."""
        found = asdict(self)
        for part in (found["best"], found["measured"]):
            if not part["regions"]:
                del part["regions"]
        if not self.measured.no_rows:
            del found["measured"]["no_rows"]
        if self.measured.reordered is None:
            del found["measured"]["reordered"]
        if not self.baseline.unavailable:
            del found["baseline"]["unavailable"]
        return found
