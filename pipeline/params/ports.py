"""Describe inputs and outputs as the device has them: a text such as `uint8,nhwc,bgr,std=255`, or a table of params.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    NonNegativeInt,
    PositiveInt,
    Tag,
    ValidationError,
)

from ..errors import ConfigError, did_you_mean
from .fields import Table, read_names, refuse

_Port = TypeVar("_Port", bound="InputPort | OutputPort")
#: numbers of a device's inputs and outputs
DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "float16", "float32")
Dtype = Literal["uint8", "int8", "int16", "uint16", "int32", "float16", "float32"]
#: largest number of float32, and the least whose reciprocal is one
_LARGEST, _LEAST = (2 - 2**-23) * 2.0**127, 2.0**-126


def _numbers(value: object) -> tuple[float, ...]:
    """Read a number, or one of each channel."""
    found = value if isinstance(value, (list, tuple)) else [value]
    numbers = [each for each in found if isinstance(each, (int, float)) and not isinstance(each, bool)]
    if not found or len(numbers) < len(found):
        raise refuse(f"{value!r} is not a number. Write one, or one of each channel: [123.7, 116.3, 103.5].")
    if not all(abs(each) <= _LARGEST for each in numbers):
        raise refuse("not finite in float32. Write numbers up to 3.4e38.")
    return tuple(map(float, numbers))


def _divisors(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Check numbers that divide: above 0, and their reciprocals in float32."""
    for each in numbers:
        if not _LEAST <= each <= 1 / _LEAST:
            raise refuse(f"{each:g} is not above 0 and within float32. Write another number.")
    return numbers


def _scale(value: object) -> float:
    """Read a single number above 0."""
    numbers = _divisors(_numbers(value))
    if len(numbers) > 1:
        raise refuse(f"{value!r} is not a number. Write one.")
    return numbers[0]


Numbers = Annotated[tuple[float, ...], BeforeValidator(_numbers)]
Divisors = Annotated[Numbers, AfterValidator(_divisors)]
Scale = Annotated[float, BeforeValidator(_scale)]
ZeroPoint = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class _PortTable(Table):
    @property
    def record(self) -> dict[str, Any]:
        """Return the differences from the file, as JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class InputPort(_PortTable):
    """Input as the device writes it; what is left out is as in the file.

    The file gets `(raw − mean) / std`, or `scale · (raw − zero-point)`, in the unit of the raw number: a file of pictures from 0 to 1 has
    `std: 255`. `mean` and `std` are one number, or one of each channel in the order of the file.
    """

    dtype: Dtype | None = None
    layout: Literal["nhwc"] | None = None
    channels: Literal["bgr"] | None = None
    mean: Numbers = ()
    std: Divisors = ()
    scale: Scale | None = None
    zero_point: ZeroPoint | None = Field(None, alias="zero-point")

    @property
    def computes(self) -> bool:
        """Return whether numbers change: not only their order."""
        return bool(self.dtype or self.mean or self.std or self.scale is not None or self.zero_point is not None)


class OutputPort(_PortTable):
    """Output as the device reads it; what is left out is as in the file.

    `logits` leaves out the last Softmax, LogSoftmax or Sigmoid; `argmax` gives the index of the largest number, `top` those of the largest ones,
    largest first, along `axis`: int32. An integer `dtype` leaves out the last DequantizeLinear, or quantises by `scale` and `zero-point`.
    """

    logits: bool = False
    argmax: bool = False
    top: PositiveInt | None = None
    axis: NonNegativeInt | None = None
    dtype: Dtype | None = None
    layout: Literal["nhwc"] | None = None
    scale: Scale | None = None
    zero_point: ZeroPoint | None = Field(None, alias="zero-point")


#: keys of bare words, by kind of port
_WORDS: dict[type, dict[str, tuple[str, object]]] = {
    InputPort: {"nhwc": ("layout", "nhwc"), "bgr": ("channels", "bgr")},
    OutputPort: {"nhwc": ("layout", "nhwc"), "logits": ("logits", True), "argmax": ("argmax", True)},
}
for _words in _WORDS.values():
    _words |= {dtype: ("dtype", dtype) for dtype in DTYPES}


def port_table(kind: type, value: object) -> object:
    """Read the text of a port as a table of its keys; leave a table as it is. Raises a refusal of pydantic."""
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    table: dict[str, Any] = {}
    for part in filter(None, value.replace(" ", "").split(",")):
        word, equals, number = part.partition("=")
        known = [*_WORDS[kind], *(f"{key}=" for key in ("scale", "zero-point"))]
        known += ["mean=", "std="] if kind is InputPort else ["top=", "axis="]
        key, read = (word, _read(number)) if equals else _WORDS[kind].get(word, ("", None))
        if (not equals and not key) or (equals and (f"{word}=" not in known or read is None)):
            raise refuse(f"'{part}' is not a form. {did_you_mean(part, known)}")
        if key in table:
            raise refuse(f"'{part}' says {key} again. Say it once.")
        table[key] = read
    return table


def _read(text: str) -> object:
    """Read `1.5`, or `1:2.5:3` as a list; None for anything else."""
    try:
        numbers = [float(each) for each in text.split(":")]
    except ValueError:
        return None
    plain = [int(each) if each.is_integer() else each for each in numbers]
    return plain if len(plain) > 1 else plain[0]


def port_of(kind: type[_Port], value: object, name: str) -> _Port:
    """Return the port that a text, a table or the api gives for the input or output `name`. Raises ConfigError."""
    if isinstance(value, kind):
        return value
    try:
        return kind.model_validate(port_table(kind, dict(value) if isinstance(value, Mapping) else value))
    except ValidationError as error:
        problem = error.errors()[0]
        said = problem.get("ctx", {})
        where = "".join(f" {part}:" for part in problem["loc"])
        what = said.get("message") or (f"{said['key']} is unknown. {said['hint']}" if "key" in said else problem["msg"])
    except ValueError as error:  # a refusal outside of a validator
        where, what = "", str(error)
    raise ConfigError(f"The form of '{name}':{where} {what}", f"Write it like {EXAMPLES[kind]}.")


EXAMPLES: dict[type, str] = {
    InputPort: "image=uint8,nhwc,bgr,mean=123.7:116.3:103.5,std=58.4",
    OutputPort: "scores=argmax, scores=top=5, scores=logits,int8",
}


def _kind_of_outputs(value: object) -> str:
    """Tell a list of names from a table with the form of each."""
    return "[table]" if isinstance(value, dict) else "[list]"


def _input(value: object) -> object:
    return port_table(InputPort, value)


def _output(value: object) -> object:
    return port_table(OutputPort, value)


InputForm = Annotated[InputPort, BeforeValidator(_input)]
_Names = Annotated[tuple[str, ...], BeforeValidator(read_names), Tag("[list]")]
_Forms = Annotated[dict[str, Annotated[OutputPort, BeforeValidator(_output)]], Tag("[table]")]
#: a list of names, or a table with the form of each
OutputForms = Annotated[_Names | _Forms, Discriminator(_kind_of_outputs)]
