"""Read and write byte sizes for people. Inside passfit a size is always an `int` of bytes."""

from __future__ import annotations

import re
from decimal import Decimal

from ..errors import ConfigError

_UNITS = {
    "": 1, "B": 1,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
}  # fmt: skip
_BY_LOWER_CASE = {unit.lower(): nbytes for unit, nbytes in _UNITS.items()}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_HINT = "Write it like 512KiB, 1.5MiB, 2MB, or a number of bytes."


def parse_size(text: str | int) -> int:
    """Read a size in bytes: `512KiB`, `1.5 MiB`, `2MB`, `300B` or `4096`.

    Parts of a byte are dropped. Raises ConfigError.
    """
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise ConfigError(f"'{text}' is not a size.", _HINT)
    number, unit = match.groups()
    if unit.lower() not in _BY_LOWER_CASE:
        raise ConfigError(f"'{text}' is not a size: the unit '{unit}' is unknown.", _HINT)
    scale = _BY_LOWER_CASE[unit.lower()]
    if scale == 1 and "." in number:
        raise ConfigError(f"'{text}' is not a size: there are no parts of a byte.", _HINT)
    return int(Decimal(number) * scale)


def format_pair(one: int, other: int) -> tuple[str, str]:
    """Format two sizes so that they differ if the numbers do: to the byte, as `131,073 B`, where rounding hides it."""
    texts = format_bytes(one), format_bytes(other)
    return texts if one == other or texts[0] != texts[1] else (f"{one:,} B", f"{other:,} B")


def format_bytes(nbytes: int) -> str:
    """Format a size as `100 B`, `19.0 KiB` or `1.5 MiB`: one decimal above 1023 bytes, powers of 1024."""
    sign, size = ("-", -nbytes) if nbytes < 0 else ("", nbytes)
    if size < 1024:
        return f"{sign}{size} B"
    for unit in ("KiB", "MiB"):
        # 1048575 bytes would round to 1024.0 KiB
        if round(size / _UNITS[unit], 1) < 1024:
            return f"{sign}{size / _UNITS[unit]:.1f} {unit}"
    return f"{sign}{size / _UNITS['GiB']:.1f} GiB"


def format_count(count: int) -> str:
    """Format a count as `999`, `14.7 k`, `691 k` or `2.95 M`: three digits from 1,000 on."""
    for unit, scale in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 0.9995 * scale:  # 999,500 would round to 1000 k
            value = count / scale
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return str(count)


def format_milliseconds(value: float) -> str:
    """Format a time as `0.042 ms`, `12.3 ms` or `1,180 ms`: three digits, or whole milliseconds."""
    return f"{value:.3g} ms" if value < 100 else f"{value:,.0f} ms"
