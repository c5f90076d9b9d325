"""Say in one sentence which target holds a model, what another lacks, and what int8 would do."""

from __future__ import annotations

from collections.abc import Mapping

from ..support.sizes import format_bytes
from .remedies import Int8Reach


def fit_answer(
    smallest: str | None, lacks: str | None, lacking: Mapping[str, int], int8: Int8Reach | None = None
) -> str:
    """Name the `smallest` target that holds a model, the bytes that the target `lacks`, by memory, and the reach of int8.

    None as the smallest: none holds it. None as `lacks`: no smaller target does.
    """
    parts = ["nothing fits" if smallest is None else f"{smallest} is the smallest that fits"]
    if lacks is not None:
        parts.append(f"{lacks} lacks {lacked(lacking)}")
    if int8 is not None:
        parts.append(int8_answer(int8))
    return "; ".join(parts)


def lacked(lacking: Mapping[str, int]) -> str:
    """Say how many bytes of each memory are lacking."""
    return " and ".join(f"{format_bytes(nbytes)} of {memory}" for memory, nbytes in lacking.items())


def int8_answer(int8: Int8Reach) -> str:
    """Say which target a model quantised to int8 would fit, and what that costs, as far as samples tell."""
    ports = f", with --io {int8.io}," if int8.io else ""
    cost = "these are sizes only: `passfit quantize` measures the accuracy, on samples"
    if int8.loss is not None:
        cost = f"{int8.loss:.4f} of {int8.metric} lost on {int8.samples} samples; `passfit quantize` leaves layers in float"
    return f"quantised to int8{ports} it would fit {int8.target}: ram {format_bytes(int8.ram)}, flash {format_bytes(int8.flash)}; {cost}"
