"""Show the accuracy on the user's samples: files and library side by side, by class, with the worst samples."""

from __future__ import annotations

from ..accuracy_table import accuracy_summary, score_text, worst_classes
from ..results import Result
from .parts import Part, Section, Table, Text

_TITLE = "Accuracy on samples"


def samples_section(result: Result) -> Section:
    """Show the accuracy of a library on its model's samples."""
    report = result.accuracy
    if report is None:
        how = "`passfit add MODEL --data SAMPLES` lets `dvc repro` evaluate it"
        return Section(_TITLE, [Text(result.why_unevaluated or f"The model has no samples: {how}.")])
    library, original = report.library, report.original
    sides = [] if original is None else [("the float file, in ONNX Runtime", original.samples, original.value)]
    name = "the file" if original is None else "the quantised file"
    sides.append((f"{name}, in ONNX Runtime", report.reference.samples, report.reference.value))
    if library.samples < report.reference.samples:
        sides.append((f"{name}, on the samples of the library", library.samples, library.reference))
    sides.append((f"the library, {library.how}", library.samples, library.value))
    rows = [(side, f"{samples:,}", score_text(value)) for side, samples, value in sides]
    parts: list[Part] = [
        Text(f"{accuracy_summary(report)}. Their digest is {report.data.digest[:12]}.", loud=not library.within),
        Table(("", ">samples", f">{report.metric}"), rows),
    ]
    if not library.within:
        said = (
            f"A sample is further off than verification allows: {library.max_rel_error:.1e} of the range of its output."
        )
        parts.append(Text(said, loud=True))
    if report.classes:
        classes = [
            (each.name, f"{each.samples:,}", score_text(each.reference), score_text(each.library))
            for each in worst_classes(report)
        ]
        parts.append(
            Table(
                ("class", ">samples", ">file", ">library"), classes, fold=f"Classes, the worst first ({len(classes)})"
            )
        )
    if report.worst:
        worst = [
            (each.sample, each.label or "–", each.reference, each.library, score_text(each.error))
            for each in report.worst
        ]
        parts.append(
            Table(("sample", "label", "file", "library", ">error"), worst, fold=f"Worst samples ({len(worst)})")
        )
    return Section(_TITLE, parts)
