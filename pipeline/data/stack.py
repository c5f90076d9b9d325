"""Stack the outputs of samples along a first axis of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..errors import ConfigError


def stack(outputs: Iterator[Mapping[str, np.ndarray]], count: int) -> dict[str, np.ndarray]:
    """Return the outputs of samples by name, along a first axis of their own."""
    found: dict[str, np.ndarray] = {}
    for number, sample in enumerate(outputs):
        for name, value in sample.items():
            value = np.asarray(value)
            if name not in found:
                found[name] = np.empty((count, *value.shape), value.dtype)
            if value.shape != found[name].shape[1:]:
                raise ConfigError(
                    f"The output '{name}' is {list(found[name].shape[1:])} for the first sample, and {list(value.shape)} "
                    f"for sample {number}.",
                    "Export the model with outputs of a fixed shape.",
                )
            found[name][number] = value
    return found
