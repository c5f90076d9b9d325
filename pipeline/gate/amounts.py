"""Format the amounts of the gate: bytes, milliseconds of latency, instructions."""

from __future__ import annotations

from ..support.sizes import format_bytes, format_pair


def format_amount(quantity: str, amount: int | float) -> str:
    """Format an amount of a quantity, such as `19.0 KiB`, `1.25 ms` or `1,200,000`."""
    if quantity == "latency":
        return f"{amount:,.2f} ms" if amount >= 1 else f"{amount:.3g} ms"
    return f"{amount:,}" if quantity == "instructions" else format_bytes(int(amount))


def format_amounts(quantity: str, one: int | float, other: int | float) -> tuple[str, str]:
    """Format two amounts of a quantity; sizes so that they differ if the numbers do."""
    if quantity in ("latency", "instructions"):
        return format_amount(quantity, one), format_amount(quantity, other)
    return format_pair(int(one), int(other))


def format_growth(base: int, used: int | float) -> str:
    """Format the earlier size in bytes and the change since, such as `500.0 KiB +3.2%`."""
    change = f"{(used - base) / base:+.1%}" if base else f"+{format_bytes(int(used))}"
    return f"{format_bytes(base)} {change}"
