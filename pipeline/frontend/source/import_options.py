"""Hold the choices of an import, which every reader of the file shares."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypedDict

from ...errors import ConfigError
from ...params.ports import InputPort, OutputPort, port_of
from ...support.digests import OriginRecord, json_values


@dataclass(frozen=True)
class ImportOptions:
    """Choices of an import.

    `shapes` are the sizes of inputs with open shapes in the file, `fix` the constants that inputs are frozen to, `outputs` the names
    of those to keep, with the form of each where it is a mapping; none: all. `inputs` are the forms of inputs, and `io` that of
    all quantised ones: `int8` leaves out their conversion from and to floats. A form is an object, a table or a text of `params/ports.py`. `bounds` lower those of results whose length the data decide, by name.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    fix: Mapping[str, object] = field(default_factory=dict)
    outputs: Collection[str] = ()
    inputs: Mapping[str, object] = field(default_factory=dict)
    io: str | None = None
    bounds: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ConfigError for a form that is none."""
        if self.io not in (None, "float", "int8"):
            raise ConfigError(f"io: {self.io!r} is not a form of inputs and outputs.", "Write int8, or float.")
        _ = self.input_ports, self.output_ports

    @property
    def input_ports(self) -> dict[str, InputPort]:
        """Return the forms of inputs that differ from the file."""
        ports = {name: port_of(InputPort, form, name) for name, form in self.inputs.items()}
        return {name: port for name, port in ports.items() if port != InputPort()}

    @property
    def output_ports(self) -> dict[str, OutputPort]:
        """Return the forms of outputs that differ from the file."""
        forms = self.outputs if isinstance(self.outputs, Mapping) else {}
        ports = {name: port_of(OutputPort, form, name) for name, form in forms.items()}
        return {name: port for name, port in ports.items() if port != OutputPort()}

    @property
    def integer_ports(self) -> bool:
        """Return whether quantised inputs and outputs are integers."""
        return self.io == "int8"

    @property
    def given(self) -> bool:
        """Return whether anything is chosen."""
        return bool(self.shapes or self.fix or self.outputs or self.input_ports or self.integer_ports or self.bounds)

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
                "inputs": {name: port.record for name, port in self.input_ports.items()},
                "forms": {name: port.record for name, port in self.output_ports.items()},
                "io": self.io if self.integer_ports else None,
                **({"bounds": {name: int(bound) for name, bound in self.bounds.items()}} if self.bounds else {}),
            }
        )


def _plain(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else value


class ImportKeywords(TypedDict, total=False):
    """Keywords of the api for `ImportOptions`: the same names."""

    shapes: Mapping[str, Sequence[int]]
    fix: Mapping[str, object]
    outputs: Collection[str]
    inputs: Mapping[str, object]
    io: str | None
    bounds: Mapping[str, int]
