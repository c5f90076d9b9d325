"""Tell the accuracy of a library in words and tables: its classes and samples, worst first, beside the file's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from ..data.accuracy import AccuracyReport, ClassScore
from .fit import fitted, table

#: classes in a table; the rest is in accuracy.json
_CLASSES = 20

#: classes and samples that are named in a line
NAMED = 3


def score_text(value: float | None) -> str:
    """Write a metric; a dash where it is not known."""
    return "–" if value is None else f"{value:.4g}"


def accuracy_summary(report: AccuracyReport) -> str:
    """Summarise accuracy in a phrase: metric, samples, and decisions that agree with the file's."""
    library, data = report.library, report.data
    value = (
        "accuracy not known, without labels" if report.value is None else f"{report.metric} {score_text(report.value)}"
    )
    sides = [("float file", report.original), ("quantised file" if report.original else "file", report.reference)]
    others = ", ".join(f"{name} {score_text(each.value)}" for name, each in sides if each and each.value is not None)
    agreed = f"{share(library.agreement)} of decisions as the file's ({library.samples:,} samples, {library.how})"
    return f"{value}{f' ({others})' if others else ''} on {data.samples:,} samples of {data.source}; {agreed}"


def accuracy_lines(report: AccuracyReport) -> list[str]:
    """Return the summary, the worst classes and the worst samples, in a line each."""
    classes = [f"{each.name}: {share(each.library)} of {each.samples:,}" for each in worst_classes(report)[:NAMED]]
    found = [
        ("accuracy", [accuracy_summary(report)]),
        ("fewest right, by class", classes),
        ("worst samples", worst_samples(report)[:NAMED]),
    ]
    return [f"{name}: {'; '.join(said)}" for name, said in found if said]


def share(value: float) -> str:
    """Write a fraction in per cent: 1 is 100 %, and nothing less is."""
    return "99.99%" if 0.9999 < value < 1 else f"{100 * value:.4g}%"


def worst_classes(report: AccuracyReport) -> list[ClassScore]:
    """Return the classes with the fewest right decisions of the library first."""
    return sorted((each for each in report.classes if each.samples), key=lambda each: (each.library, each.name))


def moved_classes(before: AccuracyReport, after: AccuracyReport) -> list[tuple[str, float, float]]:
    """Return the classes of both whose right decisions differ, as name, before and after; the largest loss first."""
    then = {each.name: each.library for each in before.classes}
    moved = [(each.name, then[each.name], each.library) for each in after.classes if each.name in then]
    return sorted((each for each in moved if each[1] != each[2]), key=lambda each: (each[2] - each[1], each[0]))


def worst_samples(report: AccuracyReport) -> list[str]:
    """Describe the samples on which the library is furthest off, such as `0042.png: cat, not dog`."""
    return [
        f"{each.sample}: {each.library}, not {each.label or each.reference}"
        + (f" (the file says {each.reference})" if each.label and each.reference != each.library else "")
        for each in report.worst
    ]


def accuracy_tables(reports: Sequence[AccuracyReport]) -> Iterator[RenderableType]:
    """Yield the table of all libraries, and of each one the classes and worst samples that differ."""
    first = reports[0]
    shown = table(
        f"{first.model} on {first.data.source}: {first.data.samples} samples, {first.data.labelled} with labels",
        "<", "<run by", ">samples", f">{first.metric}", ">of the file", ">agree", ">error", "<in bound",
    )  # fmt: skip
    if first.original is not None:
        shown.add_row(
            "original", "ONNX Runtime", str(first.original.samples), score_text(first.original.value), *[""] * 4
        )
    shown.add_row("file", "ONNX Runtime", str(first.reference.samples), score_text(first.reference.value), *[""] * 4)
    for report in reports:
        library = report.library
        figures = (
            (score_text(library.value), score_text(library.reference), f"{library.agreement:.2%}", f"{library.max_rel_error:.1e}",
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
        for each in worst_classes(report)[:_CLASSES]:
            shown.add_row(each.name, str(each.samples), f"{each.reference:.2%}", f"{each.library:.2%}")
        more = len(report.classes) - _CLASSES
        yield fitted(shown, "the worst first" + (f"; {more} more are in accuracy.json" if more > 0 else ""))
    if report.worst:
        shown = table(f"worst samples, {report.target}", "<sample", "<label", "<file", "<library", ">error")
        for worst in report.worst:
            shown.add_row(worst.sample, worst.label, worst.reference, worst.library, score_text(worst.error))
        yield fitted(shown, "other decisions than the file's first, then the farthest from their labels")
