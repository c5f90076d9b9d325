"""Read labels: numbers, boxes, or names of classes, which are counted in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ConfigError

#: names of an array of labels, where no input is called so
LABELS = ("labels", "label", "y", "targets", "target")


def number_classes(names: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Number classes in the order of their names; return their numbers by name, and the names by number.

    Names that are all whole numbers are the numbers: then there are none.
    """
    distinct = sorted(set(names))
    if all(name.isdecimal() for name in distinct):
        return {name: int(name) for name in distinct}, ()
    return {name: number for number, name in enumerate(distinct)}, tuple(distinct)


def number_texts(texts: Sequence[str]) -> tuple[list[Any], tuple[str, ...]]:
    """Return labels written as text as whole numbers, else as floats, else as numbers of classes, with their names."""
    for kind in (int, float):
        try:
            return [kind(text) for text in texts], ()
        except ValueError:
            continue
    numbers, names = number_classes(texts)
    return [numbers[text] for text in texts], names


def number_labels(labels: np.ndarray, where: str) -> tuple[list[Any], tuple[str, ...]]:
    """Return an array of labels by sample, with the names of classes. Raises ConfigError."""
    if labels.dtype.kind in "US" and labels.ndim == 1:
        return number_texts(labels.astype(str).tolist())
    return [check_label(each, f"{where}, sample {number}") for number, each in enumerate(labels)], ()


def check_label(label: Any, where: str) -> Any:
    """Return a label as a number or an array of numbers. Raises ConfigError for anything else, and for NaN."""
    value = np.asarray(label)
    if value.dtype.kind not in "iufb":
        raise ConfigError(
            f"{where}: the label is {label!r}.",
            "Give a whole number, a float, an array of them, or the name of a class.",
        )
    if value.dtype.kind == "f" and np.isnan(value).any():
        raise ConfigError(f"{where}: the label is NaN.", "Leave the sample out, or give its label.")
    return value.item() if value.ndim == 0 else value
