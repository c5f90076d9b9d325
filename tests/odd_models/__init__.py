"""Odd models: damaged files, absurd sizes, graphs at the edges of ONNX. Each compiles or is refused in one line."""

from __future__ import annotations

from collections.abc import Iterator

from . import files, graphs
from .graphs import Odd

__all__ = ["Odd", "odd_models"]

GROUPS = (
    files.damaged, files.formats, files.structures, files.branches, files.side_files,
    graphs.dtypes, graphs.sizes, graphs.attributes, graphs.chains, graphs.names, graphs.values,
)  # fmt: skip


def odd_models() -> Iterator[tuple[str, Odd]]:
    """Yield the (group, model) pairs, the same in every run."""
    for group in GROUPS:
        for odd in group():
            yield group.__name__, odd
