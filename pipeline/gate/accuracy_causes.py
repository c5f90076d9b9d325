"""Locate the loss of accuracy: in quantisation or in the library, on which classes and samples, and what gets it back."""

from __future__ import annotations

from collections.abc import Iterator

from ..data.accuracy import AccuracyReport
from ..params.params import Params
from ..report.accuracy_table import NAMED, accuracy_lines, moved_classes, score_text, share


def accuracy_causes(params: Params, report: AccuracyReport, before: AccuracyReport | None) -> Iterator[str]:
    """Yield the causes of a failed limit of accuracy, and the next step; `before` is the report of an earlier revision."""
    library, file = report.library, report.reference.value
    steps = [
        ("float file", report.original.value if report.original else None),
        ("file", file),
        ("library", report.value),
    ]
    known = [(name, value) for name, value in steps if value is not None]
    if known:
        yield f"{report.metric}: " + ", ".join(f"{name} {score_text(value)}" for name, value in known)
    moved = [] if before is None else [each for each in moved_classes(before, report) if each[2] < each[1]]
    if moved:
        said = (f"{name}: {share(one)} → {share(two)}" for name, one, two in moved[:NAMED])
        yield f"the classes that lost most: {'; '.join(said)}"
    yield from accuracy_lines(report)[1:]
    if before is not None and before.data.digest != report.data.digest:
        yield f"the samples are others than then: {before.data.samples:,} then, {report.data.samples:,} now"
    yield f"next: {_next(params, report, library.agreement < 1)}"


def _next(params: Params, report: AccuracyReport, differs: bool) -> str:
    """Name the step that lost accuracy, and a remedy."""
    quantize = params.models[report.model].quantize
    original, file = report.original, report.reference.value
    lost = None if original is None or original.value is None or file is None else abs(original.value - file)
    if quantize is not None and lost:
        return (
            f"lower models.{report.model}.quantize.max-accuracy-loss ({quantize.max_accuracy_loss:g} now), "
            "or calibrate with more samples: quantisation lost it"
        )
    if differs and params.search.lossy:
        return "`search: {lossy: false}`: the library decides otherwise than its file, and its passes are lossy"
    if differs:
        return "`passfit explain` and the report name the samples: the library decides otherwise than its file"
    return "train it again: the library decides as its file does, so no setting of passfit raises it"
