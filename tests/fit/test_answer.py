"""Test the sentence that answers which target holds a model: each part is there if it is known."""

from __future__ import annotations

import pytest

from passfit.fit.answer import fit_answer
from passfit.fit.remedies import Int8Reach

LOSSY = Int8Reach("t", 1024, 2048, "accuracy", 0.0125, 200, "int8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rp2040", None, {}), "rp2040 is the smallest that fits"),
        (("rp2040", "nrf52840", {"flash": 2048}), "rp2040 is the smallest that fits; nrf52840 lacks 2.0 KiB of flash"),
        ((None, "rp2040", {"ram": 512, "flash": 1024}), "nothing fits; rp2040 lacks 512 B of ram and 1.0 KiB of flash"),
        (
            ("b", "s", {"ram": 1}, Int8Reach("t", 1024, 2048)),
            "b is the smallest that fits; s lacks 1 B of ram; quantised to int8 it would fit t: ram 1.0 KiB, flash 2.0 KiB; "
            "these are sizes only: `passfit quantize` measures the accuracy, on samples",
        ),
        (
            (None, "s", {"ram": 1}, LOSSY),
            "nothing fits; s lacks 1 B of ram; quantised to int8, with --io int8, it would fit t: ram 1.0 KiB, flash 2.0 KiB; "
            "0.0125 of accuracy lost on 200 samples; `passfit quantize` leaves layers in float",
        ),
    ],
)  # fmt: skip
def test_it_says_which_target_holds_it_what_is_lacking_and_what_int8_would_do(arguments, said):
    assert fit_answer(*arguments) == said
