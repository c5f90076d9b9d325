"""Show the targets a model fits, levers for the next smaller one, and predicted beside built sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType

from ..fit.fit_model import FitReport
from ..fit.verdict import FitVerdict, Sizes
from ..memory.footprint import FootprintReport
from ..support.sizes import format_bytes, format_milliseconds
from .fit import fitted, printable, table
from .levers import percent

#: mark of sizes that are not computed for the target itself
_NEAR = "≈"
_COLUMNS = ("target", "ram", "of", "flash", "of", "time", "verdict")
#: columns of the numbers: a row is shown before the next is known
_WIDTHS = (11, 9, 11, 9, 11)


def fit_head(model: str, targets: Iterable[str]) -> tuple[str, str]:
    """Return the title and the head of the table of targets, whose rows come one by one."""
    return f"does {printable(model)} fit? predicted, nothing is built", _row(_name_width(targets), *_COLUMNS)


def fit_row(found: FitVerdict, targets: Iterable[str]) -> str:
    """Return the row of a target, in the columns of `fit_head`."""
    near = f"{_NEAR} " if found.sizes.near else ""
    ram, flash = (
        "–" if found.refused else near + format_bytes(nbytes) for nbytes in (found.sizes.ram, found.sizes.flash)
    )
    time = "" if found.refused or found.milliseconds is None else f"{_NEAR} {format_milliseconds(found.milliseconds)}"
    limits = format_bytes(found.limits.ram), format_bytes(found.limits.flash)
    name = printable(found.target)
    return _row(_name_width(targets), name, ram, limits[0], flash, limits[1], time, verdict(found))


def fit_lines(report: FitReport) -> RenderableType:
    """Show what the rows were made from, remedies for the next smaller target, and the answer."""
    return fitted(*_lines(report))


def _name_width(targets: Iterable[str]) -> int:
    return max(map(len, (_COLUMNS[0], *targets)))


def _row(width: int, name: str, *cells: str) -> str:
    *numbers, last = cells
    return "  ".join((name.ljust(width), *(cell.rjust(room) for cell, room in zip(numbers, _WIDTHS)), last)).rstrip()


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
        yield report.answer
        return
    below = report.on(report.next)
    if report.remedies:
        yield f"on {report.next}:"
    for each in report.remedies:
        verdict = "fits" if each.fits(below.limits) else "does not fit either"
        yield f"  {each.say(below.sizes.ram, below.sizes.flash)}: {verdict}"
    if not report.remedies:
        yield f"on {report.next} nothing that a quick search tried takes less; `passfit optimize` searches longer"
    yield report.answer


def _plan(report: FitReport) -> str:
    """Name the plan of the sizes, and the sizes of others."""
    parts = [f"quick plan, searched for {report.searched}"]
    if report.slowdown:
        parts.append(f"{report.slowdown:.2f} × the time of the fastest whole kernels")
    if report.extra_compute:
        parts.append(f"{percent(report.extra_compute)} extra arithmetic")
    parts.append(f"whole kernels take {format_bytes(report.whole)} of ram")
    return ", ".join(parts) + "; `passfit compile` searches longer and finds the same or less"


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
