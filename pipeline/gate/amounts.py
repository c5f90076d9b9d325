"""Format the amounts of the gate: bytes, milliseconds of latency, instructions, accuracies."""

from __future__ import annotations

from ..support.sizes import format_bytes, format_pair
from .verdict import ACCURACIES

#: digits of an accuracy, and the most where two would look alike
_DIGITS, _MOST = 4, 12


def format_amount(quantity: str, amount: int | float) -> str:
    """Format an amount of a quantity, such as `19.0 KiB`, `1.25 ms`, `1,200,000` or `0.9042`."""
    if quantity in ACCURACIES:
        return f"{amount:.{_DIGITS}g}"
    if quantity == "latency":
        return f"{amount:,.2f} ms" if amount >= 1 else f"{amount:.3g} ms"
    return f"{amount:,}" if quantity == "instructions" else format_bytes(int(amount))


def format_amounts(quantity: str, one: int | float, other: int | float) -> tuple[str, str]:
    """Format two amounts of a quantity; sizes and accuracies so that they differ if the numbers do."""
    if quantity in ACCURACIES:
        pairs = ((f"{one:.{digits}g}", f"{other:.{digits}g}") for digits in range(_DIGITS, _MOST + 1))
        return next((pair for pair in pairs if pair[0] != pair[1]), (f"{one:.{_DIGITS}g}", f"{other:.{_DIGITS}g}"))
    if quantity in ("latency", "instructions"):
        return format_amount(quantity, one), format_amount(quantity, other)
    return format_pair(int(one), int(other))


def format_growth(quantity: str, base: int | float, used: int | float) -> str:
    """Format the earlier amount and the change since, such as `500.0 KiB +3.2%` or `0.9042 -0.01`."""
    if quantity in ACCURACIES:
        return f"{format_amount(quantity, base)} {used - base:+.{_DIGITS}g}"
    change = f"{(used - base) / base:+.1%}" if base else f"+{format_bytes(int(used))}"
    return f"{format_bytes(int(base))} {change}"
