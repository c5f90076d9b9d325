"""Describe the accuracy of one model on one target, as accuracy.json holds it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..support.text_files import decode

#: digits of a difference of metrics: 0.9 - 0.89 is 0.01
_DIGITS = 12


@dataclass(frozen=True)
class DataRecord:
    """Samples that were evaluated: where they come from, the sha256 of their content, and how many have labels."""

    source: str
    digest: str
    samples: int
    labelled: int


@dataclass(frozen=True)
class Score:
    """Metric over `samples` samples; None without labels."""

    samples: int
    value: float | None


@dataclass(frozen=True)
class LibraryScore:
    """Metric of the executed library, and the reference on the same samples.

    `how` says where it ran: native, or the emulator. `agreement` is the fraction of samples with the reference's decision,
    `max_rel_error` the largest difference of an output relative to its range, `within` whether every sample is within the
    bound of verification.
    """

    how: str
    samples: int
    value: float | None
    reference: float | None
    agreement: float
    max_rel_error: float
    within: bool


@dataclass(frozen=True)
class ClassScore:
    """Fraction of right decisions on the samples of one class."""

    name: str
    samples: int
    reference: float
    library: float


@dataclass(frozen=True)
class WorstSample:
    """Sample on which library and label, or library and reference, differ most; `sample` is its name or number.

    `error` is None where one of them is not finite.
    """

    sample: str
    label: str
    reference: str
    library: str
    error: float | None


@dataclass(frozen=True)
class AccuracyReport:
    """Accuracy of a model on a target.

    `metric` is its name, `higher_is_better` its direction. `original` is the float file behind a quantised one, `reference` the
    file that the library is made of, both in ONNX Runtime on all samples.
    """

    model: str
    target: str
    metric: str
    higher_is_better: bool
    data: DataRecord
    reference: Score
    library: LibraryScore
    original: Score | None = None
    classes: tuple[ClassScore, ...] = ()
    worst: tuple[WorstSample, ...] = ()

    @property
    def value(self) -> float | None:
        """Return the metric of the library; of one that ran on fewer samples, the file's less what it loses on these."""
        library, whole, part = self.library, self.reference.value, self.library.reference
        if library.samples >= self.reference.samples or library.value is None or whole is None or part is None:
            return library.value
        return round(whole - (part - library.value), _DIGITS)

    @property
    def agreement(self) -> float:
        """Return the fraction of decisions of the library that are its file's."""
        return self.library.agreement

    @property
    def loss(self) -> float | None:
        """Return how much worse the library is than the original file; None without labels."""
        before = (self.original or self.reference).value
        if before is None or self.value is None:
            return None
        lost = round(before - self.value, _DIGITS)
        return lost if self.higher_is_better else -lost


def report_fields(report: AccuracyReport) -> dict[str, Any]:
    """Return the fields of accuracy.json."""
    return asdict(report)


def parse_accuracy(text: str, place: str, hint: str) -> AccuracyReport:
    """Read an accuracy.json; `place` is how messages call it. Raises ConfigError with `hint`."""
    return decode(AccuracyReport, text, place, hint)
