"""Show the result of `passfit optimize` and `passfit compile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType

from ..memory.footprint import FootprintReport, Measured
from ..memory.limits import telling
from ..support.sizes import format_bytes, format_pair
from .fit import Name, fitted, table

_FIELDS = ("ram", "arena", "workspace", "stack", "weights", "flash")

_LOSSY = "lossy: the sequence has passes that change results by more than rounding"


def footprint_table(report: FootprintReport) -> RenderableType:
    """Show the footprint beside TVM's default, the measurements, and the verdict."""
    made = table(f"{report.model} @ {report.target}", "<", ">passfit", ">tvm-default", ">ratio")
    for row in footprint_rows(report):
        made.add_row(Name(row[0]), *row[1:])
    lines = [
        measured_phrase(report),
        *(each.summary for each in report.defects),
        *_quantised(report),
        *filter(None, [report.measured.no_rows_summary, report.slow_summary]),
        *([] if report.exact else [_LOSSY]),
        *filter(None, [report.without_baseline]),
        verdict_phrase(report),
    ]
    return fitted(made, *lines)


def footprint_rows(report: FootprintReport) -> Iterator[tuple[str, str, str, str]]:
    """Yield the figures of a footprint in words: name, passfit's, tvm-default's, their ratio."""
    for field in _FIELDS:
        ours, theirs = getattr(report.best, field), getattr(report.baseline, field, None)
        if field == "stack" and not ours:
            continue
        ratio = f"{ours / theirs:.2f}" if theirs else "–"
        yield field, format_bytes(ours), "–" if theirs is None else format_bytes(theirs), ratio
    for region in telling(report.best.regions):
        used, limit = format_pair(region.used, region.limit)
        yield f"  {region.name}", used, f"of {limit}", f"{region.used / region.limit:.2f}" if region.limit else "–"
    theirs = report.baseline.kernels
    yield "kernels", str(report.best.kernels), "–" if theirs is None else str(theirs), ""


def measured_line(report: FootprintReport, wide: bool = False) -> RenderableType:
    """Show the measurements alone; with `wide`, on one line."""
    return fitted(measured_phrase(report), wide=wide)


def error_phrase(measured: Measured) -> str:
    """Describe the comparison of the outputs: the largest error, or why there is none."""
    return measured.unverified or f"max error {measured.error_summary}"


def measured_phrase(report: FootprintReport) -> str:
    """List the measurements of a library, or say why there are none."""
    measured = report.measured
    if not measured.ran:
        return measured.how
    parts = [f"ran {measured.how}", error_phrase(measured)]
    if measured.samples is not None:
        parts.append(f"{measured.samples} of {measured.samples} samples agree")
    if measured.ram is not None:
        parts.append(f"measured ram {format_bytes(measured.ram)}")
    if measured.error is not None and measured.error.library_to_double is not None:
        ours, theirs = measured.error.library_to_double, measured.error.onnxruntime_to_double
        parts.insert(2, f"{ours:.1e} from double precision (ONNX Runtime: {theirs:.1e})")
    if measured.given is not None and measured.given.summary:
        parts.append(measured.given.summary)
    if measured.latency_ms is not None:
        parts.append(f"{measured.latency_ms:.2f} ms")
    if measured.throughput is not None:
        parts.append(f"{measured.throughput:.4g} runs/s")
    if measured.energy is not None:
        mj = measured.energy.mj_per_run
        parts.append(f"energy {measured.energy.how}" if mj is None else f"{mj:.3g} mJ a run")
    if measured.instructions is not None:
        parts.append(f"{measured.instructions} instructions a run")
    if measured.estimated is not None:
        parts.append(measured.estimated.summary)
    if measured.cycles is not None:
        parts.append(f"{measured.cycles} cycles a run")
    if measured.compile_seconds is not None:
        parts.append(f"compiled in {measured.compile_seconds:.1f} s")
    return ", ".join(parts)


def _quantised(report: FootprintReport) -> Iterator[str]:
    """Yield the dtypes of a quantised model, and memory beside its float twin."""
    found = report.quantised
    if found is None:
        return
    yield f"quantised: {found.summary}"
    if found.integers is not None and found.floats is not None:
        pairs = [
            f"{name} {format_bytes(getattr(found.integers, name))} instead of {format_bytes(getattr(found.floats, name))}"
            for name in ("ram", "weights")
        ]
        yield f"beside its float twin, both by TVM's default sequence, not searched: {', '.join(pairs)}"


def verdict_phrase(report: FootprintReport) -> str:
    """Say whether a result is within its budget and the device, and by how much it is over."""
    regions = report.best.regions
    budget = [
        (name, getattr(report.best, name), limit)
        for name in ("ram", "flash")
        if (limit := getattr(report.budget, name)) is not None
    ]
    budget += [(region.name, region.used, region.room) for region in regions if region.room is not None]
    asked = ", ".join(f"{name} {format_pair(used, limit)[1]}" for name, used, limit in budget)
    if report.fits:
        return f"fits the budget ({asked})" if budget else "fits the device"
    beyond = [
        (f"the budget ({asked})", _over(budget)),
        ("the device", _over((region.name, region.used, region.size) for region in regions)),
    ]
    found = [f"{what}: {over}" for what, over in beyond if over]
    return f"does NOT fit {', nor '.join(found) or 'the device'}"


def _over(amounts: Iterable[tuple[str, int, int]]) -> str:
    """Say by how many bytes each name uses more than its limit; `amounts` are name, bytes used, limit."""
    return ", ".join(f"{name} over by {format_bytes(used - limit)}" for name, used, limit in amounts if used > limit)
