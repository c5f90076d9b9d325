"""Show the targets a model fits, levers for the next smaller one, and predicted beside built sizes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from ..fit.fit_model import FitReport
from ..fit.remedies import Int8Reach
from ..fit.verdict import FitVerdict, Sizes
from ..memory.footprint import FootprintReport
from ..support.sizes import format_bytes, format_milliseconds
from .fit import Name, fitted, table
from .levers import percent

#: mark of sizes that are not computed for the target itself
_NEAR = "≈"


def targets_that_fit(report: FitReport, wide: bool = False) -> RenderableType:
    """Show every target with its verdict, then the smallest that fits, and remedies for the next smaller one."""
    made = table(
        f"does {report.model} fit? predicted, nothing is built",
        "<target",
        ">ram",
        ">of",
        ">flash",
        ">of",
        ">time",
        "<verdict",
    )
    for each in report.verdicts:
        near = f"{_NEAR} " if each.sizes.near else ""
        ram, flash = (
            "–" if each.refused else near + format_bytes(nbytes) for nbytes in (each.sizes.ram, each.sizes.flash)
        )
        time = "" if each.refused or each.milliseconds is None else f"{_NEAR} {format_milliseconds(each.milliseconds)}"
        made.add_row(
            Name(each.target),
            ram,
            format_bytes(each.limits.ram),
            flash,
            format_bytes(each.limits.flash),
            time,
            verdict(each),
        )
    return fitted(made, *_lines(report), wide=wide)


def verdict(found: FitVerdict) -> str:
    """Say in a few words whether a model fits, and by how much of the fuller memory."""
    if found.refused:
        return f"no: {found.refused}"
    if found.fits:
        used = {"ram": found.sizes.ram / found.limits.ram, "flash": found.sizes.flash / found.limits.flash}
        fuller = max(used, key=lambda memory: used[memory])
        return f"fits, {percent(1 - used[fuller])} of {fuller} left"
    return "no: " + ", ".join(f"{memory} {format_bytes(nbytes)} over" for memory, nbytes in found.lacking.items())


def _lines(report: FitReport) -> Iterator[str]:
    if report.verdicts:
        yield _plan(report)
    if any(each.sizes.near for each in report.verdicts):
        yield f"{_NEAR} sizes: from a target like it, or code and stack by a model; --target computes its own"
    if any(each.milliseconds is not None for each in report.verdicts):
        yield f"{_NEAR} time: by a model of cycles at the board's clock, right by a factor of two; `passfit compile` counts its instructions"
    if report.next is None:
        return
    below = report.on(report.next)
    what = (
        "nothing fits; the largest"
        if report.smallest is None
        else f"{report.smallest} is the smallest that fits; the next smaller"
    )
    yield f"{what}, {report.next}, lacks {_lacking(below)}:"
    for each in report.remedies:
        verdict = "fits" if each.fits(below.limits) else "does not fit either"
        yield f"  {each.say(below.sizes.ram, below.sizes.flash)}: {verdict}"
    if not report.remedies:
        yield "  nothing that a quick search tried takes less; `passfit optimize` searches longer"
    if report.int8 is not None:
        reach = report.int8
        yield (
            f"quantised to int8, with --io int8, it would fit {reach.target}: ram {format_bytes(reach.ram)}, "
            f"flash {format_bytes(reach.flash)}; {_accuracy(reach)}"
        )


def _accuracy(reach: Int8Reach) -> str:
    if reach.loss is None:
        return "these are sizes only: accuracy needs samples, --data"
    return (
        f"{reach.loss:.4f} of {reach.metric} lost on {reach.samples} samples; `passfit quantize` leaves layers in float"
    )


def _plan(report: FitReport) -> str:
    """Name the plan of the sizes, and the sizes of others."""
    parts = [f"quick plan, searched for {report.searched}"]
    if report.slowdown:
        parts.append(f"{report.slowdown:.2f} × the time of the fastest whole kernels")
    if report.extra_compute:
        parts.append(f"{percent(report.extra_compute)} extra arithmetic")
    parts.append(f"whole kernels take {format_bytes(report.whole)} of ram")
    return ", ".join(parts) + "; `passfit compile` searches longer and finds the same or less"


def _lacking(found: FitVerdict) -> str:
    return " and ".join(f"{format_bytes(nbytes)} of {memory}" for memory, nbytes in found.lacking.items())


def predicted_beside_built(sizes: Sizes, built: FootprintReport) -> RenderableType:
    """Show predicted sizes beside the built library's."""
    made = table(f"{built.model} on {built.target}", "<", ">predicted", ">built", ">difference")
    best = built.best
    # with an operating system no stack is predicted
    rams = (
        [("ram", sizes.ram, best.ram), ("stack", sizes.stack, best.stack)]
        if sizes.stack
        else [("ram without stack", sizes.ram, best.planned_ram)]
    )
    for name, one, other in (*rams, ("flash", sizes.flash, best.flash), ("code", sizes.code, best.code)):
        made.add_row(name, f"{one:,}", f"{other:,}", f"{one / other - 1:+.1%}".replace("%", " %") if other else "–")
    return fitted(made)
