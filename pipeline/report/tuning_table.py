"""Show the schedules of `passfit tune` as a table."""

from __future__ import annotations

from rich.console import RenderableType

from ..tuning.database import RULES, Database
from .fit import Name, fitted, table

#: for each unit of a database: the unit shown, how many make one of that, and digits after the point
_SHOWN = {"ns": ("µs", 1e3, 1), "instructions": ("instructions", 1, 0)}


def tuning_table(database: Database) -> RenderableType:
    """Show a row per kernel, the costliest first: a call before and after tuning, and the choice."""
    unit, scale, digits = _SHOWN[database.unit]
    before = sum(each.calls * each.before for each in database.kernels) / scale
    after = sum(each.calls * each.after for each in database.kernels) / scale
    amounts = f"{before:,.{digits}f} {unit} a run, tuned {after:,.{digits}f}"
    title = f"kernels for {database.target}, {database.how}: {amounts}"
    columns = "<kernel", "<operands", "<choice", "<tried", ">calls", f">{unit}\nby rules", f">{unit}\ntuned"
    made = table(title, *columns)
    for each in sorted(database.kernels, key=lambda each: (-each.calls * each.before, each.fingerprint)):
        spec = "a trace of MetaSchedule" if isinstance(each.choice, list) else each.choice
        tried = ", ".join(f"{count} {kind}" for kind, count in each.tried.items()) or "nothing"
        choice = "as by rules" if spec == RULES else spec
        times = (f"{amount / scale:,.{digits}f}" for amount in (each.before, each.after))
        names = (Name(name) for name in (", ".join(each.operands), choice, tried))
        made.add_row(each.fingerprint[:8], *names, str(each.calls), *times)
    return fitted(made, *filter(None, (_of_layout(database), _of_kernels(database))))


def _of_layout(database: Database) -> str | None:
    laid = database.layout
    if laid is None:
        return None
    if laid.whole is None:
        return f"layouts: all results stay planes: {laid.note}"
    whole, steps = laid.whole, len(laid.spec.split("+"))
    kept = "" if laid.taken else f": all stay planes: {laid.note}"
    said = f"{whole.before:,.6g} {whole.unit} as planes, {whole.after:,.6g} with {steps} results with channels last"
    return f"layouts: the whole library: {said}{kept}"


def _of_kernels(database: Database) -> str | None:
    if not any(each.choice != RULES for each in database.kernels):
        return None
    whole = database.whole
    if whole is None:
        return "the libraries were not compared: they execute too much to be counted"
    taken = "" if whole.taken else ": no better, so that the rules' schedules are kept"
    return f"the whole library: {whole.before:,.6g} {whole.unit} by rules, {whole.after:,.6g} tuned{taken}"
