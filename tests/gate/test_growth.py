from __future__ import annotations

import pytest

from passfit.errors import ConfigError
from passfit.gate.growth import parse_growth


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0", 1000), ("0%", 1000), ("5%", 1050), ("0.15 %", 1001), ("100%", 2000), ("1KiB", 2024), ("24", 1024)],
)
def test_growth_is_a_share_or_bytes(text, limit):
    assert parse_growth(text).limit(1000) == limit


@pytest.mark.parametrize("text", ["", "%", "five", "-5%", "5%%", "1e3%", "KiB", "-1"])
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigError, match="max-growth"):
        parse_growth(text)
