"""Open samples in arrays: an .npz, or an .npy with its labels next to it."""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError
from .fit_value import InputForm
from .item import Item, digest_value
from .labels import LABELS, number_labels

#: bytes of the arrays of an .npz at most, unpacked
_LARGEST = 8 << 30


class ArraySource:
    """Samples along the first axes of arrays: of an .npz, or an .npy with its labels next to it."""

    def __init__(self, path: Path, inputs: Sequence[InputForm]):
        """Open the arrays. Raises ConfigError."""
        arrays = read_arrays(path, f"'{path}'")
        beside = path.with_name(f"{path.stem}.labels.npy")
        if path.suffix == ".npy" and beside.is_file():
            arrays |= {LABELS[0]: read_arrays(beside, f"'{beside}'")[""]}
        self._values, labels = name_values(arrays, inputs, f"'{path}'")
        self._arrays = arrays
        everything = dict(self._values) if labels is None else {**self._values, "labels": labels}
        for name, value in everything.items():
            if not value.ndim:
                raise ConfigError(
                    f"'{path}': '{name}' is a single number.", "Give an array whose first axis counts the samples."
                )
        counts = {name: len(value) for name, value in everything.items()}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
            raise ConfigError(f"'{path}': numbers of samples differ: {said}.", "Give each array one row a sample.")
        self.count = next(iter(counts.values()), 0)
        self._labels: list[Any] | None
        self.classes: tuple[str, ...]
        self._labels, self.classes = (None, ()) if labels is None else number_labels(labels, f"'{path}'")

    def item(self, number: int) -> Item:
        """Read a sample."""
        label = None if self._labels is None else self._labels[number]
        return Item({name: np.asarray(each[number]) for name, each in self._values.items()}, label, str(number))

    @cached_property
    def digest(self) -> str:
        """Return the sha256 of all arrays, by name."""
        digest = hashlib.sha256()
        for name in sorted(self._arrays):
            digest_value({name: self._arrays[name]}, digest)
        return digest.hexdigest()


def name_values(
    arrays: Mapping[str, np.ndarray], inputs: Sequence[InputForm], where: str
) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Return arrays by input, and the labels among them; a single other array is that of a single input."""
    names = [form.name for form in inputs]
    found = [name for name in LABELS if name in arrays and name not in names]
    labels = arrays[found[0]] if found else None
    values = {name: value for name, value in arrays.items() if name not in found[:1]}
    if len(values) == len(names) == 1 and names[0] not in values:
        return {names[0]: next(iter(values.values()))}, labels
    strange = [name for name in values if name not in names]
    if names and strange:
        raise ConfigError(
            f"{where}: '{strange[0]}' is not an input; those are {', '.join(names)}.",
            "Call the arrays as the inputs, and that of labels `labels`.",
        )
    return values, labels


def read_arrays(path: Path, where: str) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz by name, or the one of an .npy as ''. Raises ConfigError."""
    try:
        if path.suffix.lower() == ".npy":
            with np.errstate(over="raise"):  # of a size that wraps around
                return {"": np.load(path, mmap_mode="r" if path.stat().st_size else None, allow_pickle=False)}
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, where)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, ArithmeticError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = "it holds objects, not numbers" if "allow_pickle" in str(error) else str(error).rstrip(".")
        raise ConfigError(f"{where}: the arrays cannot be read: {reason}.", "Write them with numpy.savez.") from error


def _check_sizes(archive: zipfile.ZipFile, where: str) -> None:
    """Check the sizes that an .npz declares before anything is allocated. Raises ConfigError and ValueError."""
    size = sum(each.file_size for each in archive.infolist())
    if size > _LARGEST:
        raise ConfigError(
            f"{where}: the arrays take {size / (1 << 30):.3g} GiB; {_LARGEST >> 30} GiB of an .npz are read at once.",
            "Give an .npy, which is read sample by sample, or a folder of one file a sample.",
        )
    for each in archive.infolist():
        with archive.open(each) as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(member)
        if not dtype.hasobject and math.prod(shape) * dtype.itemsize > each.file_size:
            raise ValueError(f"'{each.filename}' declares more numbers than it holds")
