"""Open samples that a function of the user's yields, each time in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError
from .fit_value import InputForm
from .item import Item, digest_value
from .labels import check_label, number_classes
from .user_function import load_function, split_function, users_errors

#: most samples of a function, which may never end
_MOST_YIELDED = 1_000_000


class FunctionSource:
    """Samples that a function of the user's yields, each time in the same order."""

    def __init__(self, source: str, inputs: Sequence[InputForm]):
        """Run the function once, to count and digest its samples. Raises ConfigError with the user's line."""
        self._source, self._inputs = source, inputs
        self._file = Path(split_function(source)[0])
        self._function = load_function(source)
        self._digests: list[bytes] = []
        words: list[str] = []
        for value in self._run():
            self._digests.append(_digest(value, f"'{source}', sample {len(self._digests)}"))
            label = _parts_of(value, inputs)[1]
            words += [str(label)] if isinstance(label, str) else []
            if len(self._digests) > _MOST_YIELDED:
                raise ConfigError(f"'{source}' yields over {_MOST_YIELDED:,} samples.", "End it.")
        self.count = len(self._digests)
        self._classes, self.classes = number_classes(words)
        self._next = 0
        self._running: Iterator[Any] = iter(())

    def item(self, number: int) -> Item:
        """Read on to a sample, from the first if it is behind. Raises ConfigError if it is another one now."""
        if number < self._next or not self._next:
            self._next, self._running = 0, self._run()
        where, value = f"'{self._source}', sample {number}", None
        while self._next <= number:
            value = next(self._running, None)
            self._next += 1
        if _digest(value, where) != self._digests[number]:
            raise ConfigError(
                f"{where}: the function yields another sample when it runs again.", "Seed its random numbers."
            )
        # copies: a function may fill the same array again
        values, label = _parts_of(value, self._inputs)
        if isinstance(label, str):
            label = self._classes[label]
        return Item(
            {name: np.array(each) for name, each in _by_input(values, self._inputs, where).items()},
            None if label is None else check_label(label, where),
            str(number),
        )

    def _run(self) -> Iterator[Any]:
        with users_errors(self._file):
            yield from self._function()

    @property
    def digest(self) -> str:
        """Return the sha256 of all that the function yields."""
        return hashlib.sha256(b"".join(self._digests)).hexdigest()


def _digest(value: Any, where: str) -> bytes:
    digest = hashlib.sha256()
    try:
        digest_value(value, digest)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: is not an array: {error}", "Yield arrays of numbers.") from error
    return digest.digest()


def _parts_of(value: Any, inputs: Sequence[InputForm]) -> tuple[Any, Any]:
    """Divide a sample of a function into its inputs, and its label or None."""
    if isinstance(value, tuple):
        if len(value) == 2 and isinstance(value[0], Mapping | tuple):
            return value
        if len(value) == len(inputs) + 1:
            return (value[0] if len(inputs) == 1 else value[:-1]), value[-1]
        if len(value) == 1:
            return value[0], None
    return value, None


def _by_input(values: Any, inputs: Sequence[InputForm], where: str) -> Mapping[str, Any]:
    """Return the values of a sample by input. Raises ConfigError for another number."""
    if isinstance(values, Mapping):
        return values
    listed = values if isinstance(values, tuple) else (values,)
    if len(listed) != len(inputs):
        names = ", ".join(form.name for form in inputs)
        raise ConfigError(
            f"{where}: it has {len(listed)} values for {len(inputs)} inputs ({names}).",
            "Yield a dict by input, or a tuple in their order, and a label behind it.",
        )
    return {form.name: value for form, value in zip(inputs, listed)}
