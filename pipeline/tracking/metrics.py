"""The figures of an MLflow run. The part before the slash is the section they are shown in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..memory.footprint import FootprintReport


def metrics(result: FootprintReport, trajectory: Sequence[tuple[int, int]]) -> Iterator[tuple[str, float]]:
    """Name and value, `memory/ram` first: MLflow compares runs by the metric logged first. Sizes in bytes.

    `trajectory` is (evaluation, best ram so far) of the search; its last point, one step later, is the ram of what was
    taken, as `memory/ram` is.
    """
    best, before, ran = result.best, result.baseline, result.measured
    for name in ("ram", "arena", "workspace", "weights", "flash", "code", "bound", "floor", "kernels", "sum"):
        yield f"memory/{name}", getattr(best, name)
    yield "memory/proved", float(best.proved)
    for name in ("ram", "arena", "workspace", "weights", "flash", "code", "kernels", "sum"):
        if getattr(before, name) is not None:
            yield f"baseline/{name}", getattr(before, name)
    if before.ram > 0:
        yield "baseline/ratio", best.ram / before.ram
    yield "start/kernels", result.start.kernels
    yield "start/sum", result.start.sum
    yield "budget/fits", float(result.fits)
    if result.budget.ram is not None:
        yield "budget/ram", result.budget.ram
        yield "budget/margin", result.budget.ram - best.ram
    if result.budget.flash is not None:
        yield "budget/flash", result.budget.flash
    yield "verify/ran", float(ran.ran)
    measured = {
        "verify/measured_ram": ran.ram,
        "verify/max_rel_error": ran.max_rel_error,
        "verify/max_abs_error": ran.max_abs_error,
        "verify/error_to_double": ran.error and ran.error.library_to_double,
        "verify/onnxruntime_to_double": ran.error and ran.error.onnxruntime_to_double,
        "verify/stack": ran.stack,
        "time/latency_ms": ran.latency_ms,
        "time/instructions": ran.instructions,
    }
    yield from ((name, value) for name, value in measured.items() if value is not None)
    if trajectory:
        yield "search/evaluations", max(evaluation for evaluation, _ in trajectory)
