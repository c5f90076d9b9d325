"""Tell the accuracy of a library: its classes and samples, worst first, beside the file's."""

from __future__ import annotations

from ..data.accuracy import AccuracyReport, ClassScore

#: classes and samples that are named in a line
NAMED = 3


def score_text(value: float | None) -> str:
    """Write a metric; a dash where it is not known."""
    return "–" if value is None else f"{value:.4g}"


def accuracy_summary(report: AccuracyReport) -> str:
    """Say in a phrase how accurate the library is, on what, and how far its decisions agree with its file's."""
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
    classes = [f"{each.name} {score_text(each.library)} of {each.samples:,}" for each in worst_classes(report)[:NAMED]]
    found = [
        ("accuracy", [accuracy_summary(report)]),
        ("the worst classes", classes),
        ("the worst samples", worst_samples(report)[:NAMED]),
    ]
    return [f"{name}: {', '.join(said)}" for name, said in found if said]


def share(value: float) -> str:
    """Write a fraction in per cent: 1 is 100 %, and nothing less is."""
    text = f"{value:.2%}"
    return "100%" if value == 1 else "99.99%" if text == "100.00%" else text


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
