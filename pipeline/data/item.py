"""Describe a sample as its source has it, and digest its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Item:
    """Sample as its source has it: values by input, its label, and its name."""

    values: Mapping[str, np.ndarray]
    label: Any | None
    name: str


class Source(Protocol):
    """Samples by number, the names of classes, and the digest of all content."""

    @property
    def count(self) -> int: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def digest(self) -> str: ...
    def item(self, number: int) -> Item:
        """Read a sample."""


def digest_value(value: Any, digest: Any) -> None:
    """Add a value, or all of a dict or tuple, to a digest."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            digest.update(f"{name}=".encode())
            digest_value(each, digest)
    elif isinstance(value, tuple):
        digest.update(f"({len(value)}".encode())
        for each in value:
            digest_value(each, digest)
    elif value is not None:
        array = np.asarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(repr(value).encode() if array.dtype.hasobject else np.ascontiguousarray(array).view(np.uint8))
