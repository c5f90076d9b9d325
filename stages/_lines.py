"""Summarise the result of a stage in one line, for the log of `dvc repro`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..data.accuracy import AccuracyReport
from ..memory.footprint import FootprintReport
from ..memory.limits import telling
from ..report.accuracy_table import accuracy_summary, score_text
from ..report.effects_table import shown
from ..report.footprint_table import error_phrase
from ..report.front_table import slowdown_needed
from ..support.sizes import format_bytes, format_pair

if TYPE_CHECKING:
    import onnx

_LISTED = 3


def import_line(model: str, canonical: onnx.ModelProto) -> str:
    """Name the inputs with their shapes, and count the nodes."""
    ports = [
        f"{port.name} {'x'.join(str(dim.dim_value) for dim in port.type.tensor_type.shape.dim) or 'scalar'}"
        for port in canonical.graph.input
    ]
    return f"{model}: {_listed(ports)}; {len(canonical.graph.node)} nodes"


def profile_line(model: str, effects: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
    """Count the effective passes, and name the best one for the arena."""
    passes = effects["passes"]
    changed = [each for each in passes if each.get("changed")]
    return f"{model}: {len(changed)} of {len(passes)} passes change something{_most(changed)}"


def optimize_line(report: FootprintReport, found: Mapping[str, Any]) -> str:
    """Summarise a search; `found` is the object of search.json."""
    closed = ", closed" if found["closed"] else ""
    needed = "".join(f"; {each}" for each in slowdown_needed(found["tradeoff"])) if "tradeoff" in found else ""
    return f"{_pair(report)}: {_footprint(report)}; {found['evaluations']} states looked at{closed}{needed}"


def accuracy_line(report: AccuracyReport) -> str:
    """Summarise an evaluation: the metric of library and file, and the decisions that agree."""
    name = f"{report.model} @ {report.target}"
    if not report.library.samples:
        return f"{name}: {report.metric} of the file {score_text(report.reference.value)}; {report.library.how}"
    return f"{name}: {accuracy_summary(report)}"


def compile_line(report: FootprintReport) -> str:
    """Summarise a library: predicted and measured footprint, and error of its outputs."""
    measured = report.measured
    parts = [f"{_pair(report)}: {_footprint(report)}"]
    if measured.ram is not None:
        parts.append(f"measured {format_bytes(measured.ram)}")
    parts.append(f"flash {format_bytes(report.best.flash)}")
    if not measured.ran:
        parts.append(measured.how)
    else:
        parts.append(f"{error_phrase(measured)}, ran {measured.how}")
    if measured.given is not None and measured.given.summary:
        parts.append(measured.given.summary)
    parts += (each.summary for each in report.defects)
    if report.slow:
        parts.append(report.slow_summary)
    return "; ".join(parts)


def fits_line(result: FootprintReport, ram: int, flash: int) -> str:
    """Say whether a result is within its budget, or within the capacities `ram` and `flash`, in bytes."""
    parts = []
    for quantity, capacity in (("ram", ram), ("flash", flash)):
        limit = getattr(result.budget, quantity)
        whose = "the device's" if limit is None else "the budget's"
        parts.append(_part(quantity, getattr(result.best, quantity), capacity if limit is None else limit, f"{whose} "))
    parts += (_part(region.name, region.used, region.limit) for region in telling(result.best.regions))
    return f"{result.model} @ {result.target}: {'fits' if result.fits else 'does NOT fit'}: {', '.join(parts)}"


def _part(name: str, used: int, limit: int, whose: str = "") -> str:
    """Compare bytes used with a limit, and say by how many they exceed it."""
    one, other = format_pair(used, limit)
    return f"{name} {one} of {whose}{other}{f' (over by {format_bytes(used - limit)})' if used > limit else ''}"


def _pair(report: FootprintReport) -> str:
    return f"{report.model} @ {report.target}"


def _footprint(report: FootprintReport) -> str:
    best, base = report.best.ram, report.baseline.ram
    ratio = f", {best / base:.2f} of tvm-default" if base else f", {report.without_baseline}" if base is None else ""
    return f"ram {format_bytes(best)}{ratio}"


def _most(changed: Iterable[Mapping[str, Any]]) -> str:
    """Name the single pass with the largest arena reduction, if there is one."""
    lowered = [(each["delta"]["arena"], str(each["spec"])) for each in changed if each.get("delta")]
    least, spec = min(lowered, default=(0, ""))
    return f"; most by {shown(spec)}: {format_bytes(least)} of arena" if least < 0 else ""


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return ", ".join(words[:_LISTED]) + more if words else "no inputs"
