"""Read the user's samples one by one, as the inputs of a model.

data.npz                   arrays by the names of inputs, the samples along their first axis; labels in `labels`
data.npy                   the samples of a single input; labels in data.labels.npy
folder/                    one file a sample: arrays, pictures, sounds; folders in it are classes, or labels.csv, .txt, .npy
FILE.py:function           yields an array, a dict by input or a tuple of inputs, each with a label behind it, if there is one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError
from .arrays import ArraySource
from .fit_value import InputForm as InputForm
from .fit_value import fit_value
from .folder import FolderSource
from .item import Item, Source
from .user_function import is_function
from .yielded import FunctionSource

_GOLDEN_RATIO = (5**0.5 - 1) / 2


class Samples:
    """Samples of a source, read when they are asked for; `classes` are names of class labels, if there are any.

    `remarks` are casts of the samples read so far.
    """

    def __init__(self, name: str, source: Source, inputs: Sequence[InputForm]):
        """Take samples from an opened source."""
        self.source = name
        self.count = source.count
        self.classes = source.classes
        self.remarks: tuple[str, ...] = ()
        self._source = source
        self._inputs = tuple(inputs)
        self._last: tuple[int, Item] | None = None

    def inputs(self, number: int) -> dict[str, np.ndarray]:
        """Return the inputs of a sample by name, in the model's shapes and dtypes. Raises ConfigError."""
        item, found = self._item(number), {}
        where = f"'{self.source}', sample {item.name}"
        for form in self._inputs:
            if form.name not in item.values:
                raise ConfigError(
                    f"{where}: there is no input '{form.name}'; it has {_named(item.values)}.",
                    "Call the arrays as the inputs of the model.",
                )
            found[form.name], remark = fit_value(item.values[form.name], form, where)
            if remark and remark not in self.remarks:
                self.remarks += (remark,)
        return found

    def label(self, number: int) -> Any | None:
        """Return a sample's label, a number or an array of boxes and the like; None without one."""
        return self._item(number).label

    def name(self, number: int) -> str:
        """Return a sample's name: that of its file in the folder, or its number."""
        return self._item(number).name

    @property
    def digest(self) -> str:
        """Return the sha256 of the content: independent of paths, times, and the model."""
        return self._source.digest

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.count

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the inputs of each sample."""
        return map(self.inputs, range(self.count))

    def _item(self, number: int) -> Item:
        if not 0 <= number < self.count:
            raise IndexError(f"sample {number} of {self.count}")
        if self._last is None or self._last[0] != number:
            self._last = number, self._source.item(number)
        return self._last[1]


def read_samples(source: str | Path, inputs: Sequence[InputForm]) -> Samples:
    """Open samples for a model with these inputs. Raises ConfigError with the next step."""
    samples = Samples(str(source), open_source(str(source), inputs), inputs)
    if not samples.count:
        raise ConfigError(f"'{source}' has no samples.", "Give at least one.")
    return samples


def source_digest(source: str | Path) -> str:
    """Return the sha256 of a source's content, without a model; it runs a function. Raises ConfigError."""
    return open_source(str(source), ()).digest


def open_source(source: str, inputs: Sequence[InputForm]) -> Source:
    """Open a source by its form. Raises ConfigError."""
    if is_function(source):
        return FunctionSource(source, inputs)
    path = Path(source)
    if path.is_dir():
        return FolderSource(path, inputs)
    if not path.is_file():
        raise ConfigError(
            f"The samples '{source}' are missing.",
            "Give an .npz, .npy, a folder or FILE.py:function; `dvc pull` fetches data that DVC keeps.",
        )
    if path.suffix not in (".npz", ".npy"):
        raise ConfigError(
            f"'{source}' is no form of samples.",
            "Give an .npz, .npy, a folder of one file a sample, or FILE.py:function.",
        )
    return ArraySource(path, inputs)


def _named(values: Mapping[str, object]) -> str:
    return ", ".join(f"'{name}'" for name in values) or "nothing"


def spread(count: int, most: int | None) -> list[int]:
    """Return the numbers of at most so many samples, spread over all: files may be ordered by class, or take turns.

    Multiples of the golden ratio leave gaps of two or three lengths, in an order without a period.
    """
    chosen = count if most is None else min(count, most)
    keys = np.arange(count) * _GOLDEN_RATIO % 1
    return sorted(np.argsort(keys, kind="stable")[:chosen].tolist())
