"""Test the refusal of a library with too much static data, before anything is linked."""

from __future__ import annotations

import pytest

from passfit.codegen.build_library import STATIC_LIMIT, refuse_large_library
from passfit.errors import ModelError
from passfit.targets import get_target

TARGET = get_target("rpi4")


@pytest.mark.parametrize("sizes", [(STATIC_LIMIT, 0, 0), (1, STATIC_LIMIT - 2, 1), (0, 0, 0)])
def test_what_fits_is_not_refused(sizes):
    refuse_large_library(*sizes, TARGET)


@pytest.mark.parametrize(
    "sizes, said",
    [
        ((3 << 30, 0, 0), "arena 3.00 GiB"),
        ((1 << 30, 1 << 29, 1 << 29), "weights 0.50 GiB"),
        ((0, 1 << 62, 0), "workspace"),
    ],
)
def test_what_does_not_says_by_how_much(sizes, said):
    with pytest.raises(ModelError, match=said) as refusal:
        refuse_large_library(*sizes, TARGET)
    assert "rpi4 has" in refusal.value.what and "--shape" in refusal.value.hint
