"""Hold the choices of an import, which every reader of the file shares."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypedDict

from ...support.digests import OriginRecord, json_values


@dataclass(frozen=True)
class ImportOptions:
    """Choices of an import.

    `shapes` are the sizes of inputs with open shapes in the file, `fix` the constants that inputs are frozen to, `outputs` the names
    of those to keep; none: all.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    fix: Mapping[str, object] = field(default_factory=dict)
    outputs: Collection[str] = ()

    @property
    def given(self) -> bool:
        """Return whether anything is chosen."""
        return bool(self.shapes or self.fix or self.outputs)

    def keywords(self) -> ImportKeywords:
        """Return the choices as keywords of the api."""
        return ImportKeywords(**{each.name: getattr(self, each.name) for each in fields(self)})  # type: ignore[typeddict-item]

    def record(self) -> OriginRecord:
        """Return the choices as plain numbers and lists: the api takes numpy arrays too."""
        return json_values(
            {
                "shapes": {name: list(map(int, shape)) for name, shape in self.shapes.items()},
                "fix": {name: _plain(value) for name, value in self.fix.items()},
                "outputs": sorted(set(self.outputs)),
            }
        )


def _plain(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else value


class ImportKeywords(TypedDict, total=False):
    """Keywords of the api for `ImportOptions`: the same names."""

    shapes: Mapping[str, Sequence[int]]
    fix: Mapping[str, object]
    outputs: Collection[str]
