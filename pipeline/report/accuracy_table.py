"""Show the accuracy of a model's file and its libraries on samples, by class, and the worst samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from ..data.accuracy import AccuracyReport
from .fit import fitted, table

#: classes listed; the rest is in accuracy.json
_CLASSES = 20


def accuracy_tables(reports: Sequence[AccuracyReport]) -> Iterator[RenderableType]:
    """Yield the table of all libraries, and of each one the classes and worst samples that differ."""
    first = reports[0]
    shown = table(
        f"{first.model} on {first.data.source}: {first.data.samples} samples, {first.data.labelled} with labels",
        "<model", "<run by", ">samples", f">{first.metric}", ">of the file", ">same decisions", ">error", "<within the bound",
    )  # fmt: skip
    if first.original is not None:
        shown.add_row("original", "ONNX Runtime", str(first.original.samples), number(first.original.value), *[""] * 4)
    shown.add_row("file", "ONNX Runtime", str(first.reference.samples), number(first.reference.value), *[""] * 4)
    for report in reports:
        library = report.library
        figures = (
            (number(library.value), number(library.reference), f"{library.agreement:.2%}", f"{library.max_rel_error:.1e}",
             "yes" if library.within else "no")
            if library.samples else [""] * 5
        )  # fmt: skip
        shown.add_row(f"library, {report.target}", library.how, str(library.samples), *figures)
    better = "higher" if first.higher_is_better else "lower"
    yield fitted(
        shown,
        f"{first.metric}: {better} is better; of the file: on the same samples",
        "error: largest difference of an output from the file's, relative to its range",
    )
    for report in reports:
        yield from _details(report)


def _details(report: AccuracyReport) -> Iterator[RenderableType]:
    if report.classes:
        shown = table(f"right decisions by class, {report.target}", "<class", ">samples", ">file", ">library")
        for each in sorted(report.classes, key=lambda each: each.library)[:_CLASSES]:
            shown.add_row(each.name, str(each.samples), f"{each.reference:.2%}", f"{each.library:.2%}")
        more = len(report.classes) - _CLASSES
        yield fitted(shown, "the worst first" + (f"; {more} more are in accuracy.json" if more > 0 else ""))
    if report.worst:
        shown = table(f"worst samples, {report.target}", "<sample", "<label", "<file", "<library", ">error")
        for worst in report.worst:
            shown.add_row(worst.sample, worst.label, worst.reference, worst.library, f"{worst.error:.2e}")
        yield fitted(shown, "other decisions than the file's first, then the farthest from their labels")


def number(value: float | None) -> str:
    """Show a metric; without labels there is none."""
    return "no labels" if value is None else f"{value:.4g}"
