"""Check limits of latency as people write them."""

import pytest

from passfit.errors import ConfigError
from passfit.params.latency_limit import LatencyLimit, parse_latency


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("20ms", LatencyLimit(milliseconds=20)),
        (" 0.5 s ", LatencyLimit(milliseconds=500)),
        ("800us", LatencyLimit(milliseconds=0.8)),
        ("1.5x", LatencyLimit(ratio=1.5)),
    ],
)
def test_times_and_ratios(text, limit):
    assert parse_latency(text) == limit and parse_latency(str(limit)) == limit


@pytest.mark.parametrize("text", ["", "20", "0ms", "0.0x", "-1ms", "fast", "1.5", "x", "1e3ms", "nanx", "20 min"])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match="not a latency limit.*Write it like 20ms"):
        parse_latency(text)
