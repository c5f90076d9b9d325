import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.support.sizes import format_bytes, format_pair, parse_size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("4096", 4096),
        (4096, 4096),
        ("300B", 300),
        ("1KiB", 1024),
        ("8MiB", 8 << 20),
        ("1.5 MiB", 3 << 19),
        ("0.1KiB", 102),
        ("2GiB", 2 << 30),
        ("1KB", 1000),
        ("2.5MB", 2_500_000),
        ("1GB", 10**9),
        (" 512kib ", 512 << 10),
    ],
)
def test_a_size_is_read(text, nbytes):
    assert parse_size(text) == nbytes


@given(st.integers(0, 1 << 40), st.integers(-9, 9))
def test_a_pair_of_sizes_differs_if_the_numbers_do(one, more):
    texts = format_pair(one, max(0, one + more))
    assert (texts[0] == texts[1]) == (one == max(0, one + more))
    assert format_pair(131073, 131072) == ("131,073 B", "131,072 B") and format_pair(1024, 4096) == (
        "1.0 KiB",
        "4.0 KiB",
    )


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1", "+1", "1e3", "1.5", "1.5B", "1,5MiB", "1 M", "8MiBs", "٣KiB", "1.KiB", -3]
)
def test_a_malformed_size_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match="is not a size.*512KiB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (19 * 1024, "19.0 KiB"),
        (1048575, "1.0 MiB"),
        (3 << 19, "1.5 MiB"),
        (5 << 30, "5.0 GiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_bytes_are_shown(nbytes, text):
    assert format_bytes(nbytes) == text


@given(st.integers(0, 1 << 42))
def test_what_is_shown_can_be_read_and_is_near(nbytes):
    assert abs(parse_size(format_bytes(nbytes)) - nbytes) <= nbytes * 0.051


@given(st.integers(0, 1 << 50))
def test_a_number_of_bytes_is_exact(nbytes):
    assert parse_size(str(nbytes)) == nbytes
