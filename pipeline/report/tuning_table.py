"""What `passfit tune` found, as a table."""

from __future__ import annotations

from rich.table import Table

from ..tuning.database import RULES, Database

#: characters of a choice: a trace goes on for thousands
_WIDTH = 60
#: how the unit of a database is shown, how many make one of that, and digits after the point
_SHOWN = {"ns": ("µs", 1e3, 1), "instructions": ("instructions", 1, 0)}


def tuning_table(database: Database) -> Table:
    """A row for each kernel, the one that takes most first: what a call takes before and after, and the choice."""
    unit, scale, digits = _SHOWN[database.unit]
    before = sum(each.calls * each.before for each in database.kernels) / scale
    after = sum(each.calls * each.after for each in database.kernels) / scale
    title = f"kernels for {database.target}, {database.how}: {before:,.{digits}f} {unit} a run, tuned {after:,.{digits}f}"
    table = Table(title=title, caption=_said(database))
    for column in ("kernel", "operands", "choice", "tried"):
        table.add_column(column)
    for column in ("calls", f"{unit} by rules", f"{unit} tuned"):
        table.add_column(column, justify="right")
    for each in sorted(database.kernels, key=lambda each: (-each.calls * each.before, each.fingerprint)):
        spec = "a trace of MetaSchedule" if isinstance(each.choice, list) else each.choice
        tried = ", ".join(f"{count} {kind}" for kind, count in each.tried.items()) or "nothing"
        choice = "as by rules" if spec == RULES else spec[:_WIDTH]
        table.add_row(
            each.fingerprint[:8], ", ".join(each.operands), choice, tried, str(each.calls), f"{each.before / scale:,.{digits}f}",
            f"{each.after / scale:,.{digits}f}",
        )  # fmt: skip
    return table


def _said(database: Database) -> str | None:
    """What became of the layout, and of the whole library."""
    return "\n".join(filter(None, (_of_layout(database), _of_kernels(database)))) or None


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
