"""What `passfit tune` found, as a table."""

from __future__ import annotations

from rich.table import Table

from ..tuning.database import RULES, Database

#: characters of a choice: a trace goes on for thousands
_WIDTH = 60


def tuning_table(database: Database) -> Table:
    """A row for each kernel, the one that takes longest first: microseconds a call before and after, and the choice."""
    before = sum(each.calls * each.before_ns for each in database.kernels)
    after = sum(each.calls * each.after_ns for each in database.kernels)
    title = f"kernels for {database.target}, {database.how}: {before / 1e6:.3f} ms a run, tuned {after / 1e6:.3f} ms"
    table = Table(title=title)
    for column in ("kernel", "operands", "choice", "tried"):
        table.add_column(column)
    for column in ("calls", "µs by rules", "µs tuned"):
        table.add_column(column, justify="right")
    for each in sorted(database.kernels, key=lambda each: (-each.calls * each.before_ns, each.fingerprint)):
        spec = "a trace of MetaSchedule" if isinstance(each.choice, list) else each.choice
        tried = ", ".join(f"{count} {kind}" for kind, count in each.tried.items()) or "nothing"
        choice = "as by rules" if spec == RULES else spec[:_WIDTH]
        table.add_row(
            each.fingerprint[:8], ", ".join(each.operands), choice, tried, str(each.calls), f"{each.before_ns / 1e3:.1f}",
            f"{each.after_ns / 1e3:.1f}",
        )  # fmt: skip
    return table
