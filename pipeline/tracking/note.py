"""Describe an MLflow run: a Markdown table of its footprint next to the baseline."""

from __future__ import annotations

from ..data.accuracy import AccuracyReport
from ..memory.footprint import FootprintReport
from ..report.accuracy_table import accuracy_summary
from ..support.sizes import format_bytes
from .metrics import BASELINE, PASSFIT


def note(result: FootprintReport, accuracy: AccuracyReport | None = None) -> str:
    """Describe a run in Markdown: a table of its footprint next to the baseline, and its verification."""
    best, before = result.best, result.baseline
    rows = [
        "| | passfit | " + before.name + " |",
        "| --- | ---: | ---: |",
        *(
            f"| {name} | {format_bytes(getattr(best, name))} | {_bytes(getattr(before, name))} |"
            for name in ("ram", "arena", "workspace", "weights", "flash")
        ),
        f"| kernels | {best.kernels} | {'–' if before.kernels is None else before.kernels} |",
    ]
    ran = result.measured
    lines = [f"**{result.model} @ {result.target}**: {_budget_line(result)}", "", *rows, ""]
    lines.append(f"Executed: {ran.how}." if ran.ran else f"Not executed ({ran.how}).")
    if result.without_baseline:
        lines.append(f"{result.without_baseline}.")
    if ran.unverified:
        lines.append(f"Outputs were not compared: {ran.unverified}.")
    if ran.max_rel_error is not None:
        lines.append(f"Largest error against ONNX Runtime: {ran.error_summary}.")
    if ran.error is not None and ran.error.library_to_double is not None:
        own = f"ONNX Runtime's own is {ran.error.onnxruntime_to_double:.1e}"
        lines.append(f"Largest error against double precision: {ran.error.library_to_double:.1e}; {own}.")
    if accuracy is not None:
        lines.append(f"On samples: {accuracy_summary(accuracy)}.")
    if result.quantised is not None:
        lines.append(f"Quantised: {result.quantised.summary}.")
    if ran.given is not None and ran.given.summary:
        lines.append(f"Agreement: {ran.given.summary}.")
    if not result.exact:
        lines.append("Lossy: the sequence has passes that change results by more than rounding.")
    if ran.ram is not None:
        lines.append(f"Measured ram: {format_bytes(ran.ram)}, without the stack.")
    lines += ["", f"Charts: step {BASELINE} is {before.name}, step {PASSFIT} is passfit. All bytes: footprint.json."]
    return "\n".join(lines)


def _bytes(value: int | None) -> str:
    return "–" if value is None else format_bytes(value)


def _budget_line(result: FootprintReport) -> str:
    limit = result.budget.ram
    if limit is None:
        return "no ram budget" if result.fits else "does not fit"
    distance = format_bytes(abs(limit - result.best.ram))
    side = "below" if result.best.ram <= limit else "over"
    return f"ram {distance} {side} the budget of {format_bytes(limit)}"
