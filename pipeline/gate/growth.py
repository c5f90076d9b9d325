"""Parse growth limits: a share of the earlier figure (`5%`), or bytes (`16KiB`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from ..errors import ConfigError
from ..support.sizes import parse_size


@dataclass(frozen=True)
class Growth:
    """Limit on growth since an earlier revision.

    `text` is the user's spelling: a `share` of the earlier figure, or `nbytes`.
    """

    text: str
    share: Fraction = Fraction(0)
    nbytes: int = 0

    def limit(self, base: int) -> int:
        """Return the largest allowed figure after `base`, in bytes, rounded down."""
        return base + int(base * self.share) + self.nbytes


def parse_growth(text: str) -> Growth:
    """Parse `5%`, `0.5 %`, `0`, `16KiB`. Raises ConfigError."""
    text = text.strip()
    percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    if percent:
        return Growth(text, share=Fraction(percent[1]) / 100)
    if text == "0":
        return Growth("0", nbytes=0)
    try:
        return Growth(text, nbytes=parse_size(text))
    except ConfigError:
        raise ConfigError(f"--max-growth {text!r} is not a growth.", "Write it like 5% or 16KiB.") from None
