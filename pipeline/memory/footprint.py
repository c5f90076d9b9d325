"""Describe the memory cost of one model on one target, as footprint.json holds it. All sizes are bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Start:
    """Metric of the ONNX file as given: the literature's sum of all tensors, and its node count."""

    sum: int
    kernels: int


@dataclass(frozen=True)
class Footprint:
    """Footprint of the compiled model or the baseline; design.md, section 1, defines the words."""

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
class Measured:
    """Measurements of one run of the library.

    `ram` is the anonymous memory, in whole pages of `page` bytes, that a process gains over its twin that never calls
    the library. It leaves out the stack, and is None where it was not measured natively. `stack` is the most that a run
    uses of the caller's stack, in bytes. `latency_ms` is the median of a run, None under an emulator. `instructions`
    are counted over one run under an emulator; None natively, and where there are too many to count. `max_rel_error` is
    the largest absolute error divided by the range of that output in the reference, which is ONNX Runtime.
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


@dataclass(frozen=True)
class Budget:
    """Limits the deployer sets on a target, in bytes; None is no limit."""

    ram: int | None = None
    flash: int | None = None


@dataclass(frozen=True)
class FootprintReport:
    """One model on one target: the content of footprint.json.

    `fits` is against the budget, and against the target's capacity where no budget is set. `exact` is false if the
    sequence has a lossy pass. `baseline_code` is the text and read-only data of the baseline's kernels. It is None
    where they were not built: the baseline's flash is unknown then.
    """

    model: str
    target: str
    start: Start
    best: Footprint
    baseline: Footprint
    measured: Measured
    budget: Budget = field(default_factory=Budget)
    fits: bool = True
    exact: bool = True
    baseline_code: int | None = None

    @property
    def baseline_flash(self) -> int | None:
        """Return weights and code of the baseline, in bytes; None if its code is unknown."""
        return None if self.baseline_code is None else self.baseline.weights + self.baseline_code

    def to_json(self) -> dict:
        """Return the object of footprint.json.

        The baseline is named, and leaves out the fields that TVM does not tell.
        """
        data = asdict(self)
        code = data.pop("baseline_code")
        baseline = {"name": "tvm-default", **data["baseline"], "flash": self.baseline_flash, "code": code}
        for unknown in ("bound", "floor", "proved"):
            del baseline[unknown]
        return data | {"baseline": baseline}
