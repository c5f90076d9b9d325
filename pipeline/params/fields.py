"""Types of the entries of params.yaml: sizes, shapes, limits, and tables that refuse unknown keys."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ..errors import ConfigError, did_you_mean
from ..support.sizes import parse_size
from .latency_limit import LatencyLimit, parse_latency


def refuse(message: str) -> PydanticCustomError:
    # pydantic fills {placeholders} of its template; handing the sentence over as a value keeps braces in it literal
    return PydanticCustomError("params", "{message}", {"message": message})


def _unknown(key: str, hint: str) -> PydanticCustomError:
    # pydantic knows the table's path; the key is appended when the path is put together
    return PydanticCustomError("unknown_key", "{key} is unknown", {"key": key, "hint": hint})


def _size(value: object) -> int:
    """Read a size in bytes: `1MiB`, `512KiB`, `1MB`, or a number of bytes."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise refuse(f"{value!r} is not a size. Write it like 512KiB, 1MiB, 1MB, or a number of bytes.")
    try:
        nbytes = parse_size(value)
    except ConfigError as error:
        raise refuse(str(error)) from error
    if nbytes == 0:
        raise refuse("nothing fits in 0 bytes. Leave it out for no limit.")
    return nbytes


def _room(value: object) -> int:
    """Read a size in bytes that may be 0."""
    return 0 if value in (0, "0") and not isinstance(value, bool) else _size(value)


def _shape(value: object) -> tuple[int, ...]:
    """Read a static shape: `[1, 3, 48, 192]` or `1x3x48x192`."""
    dims = value
    if isinstance(value, str) and re.fullmatch(r"\d+(x\d+)*", value):
        dims = [int(dim) for dim in value.split("x")]
    elif isinstance(value, int) and not isinstance(value, bool):
        dims = [value]
    if not isinstance(dims, list) or not all(type(dim) is int and dim > 0 for dim in dims):
        raise refuse(f"{value!r} is not a shape. Write it like [1, 3, 48, 192] or 1x3x48x192.")
    return tuple(dims)


def _check_fixed(value: object) -> object:
    """Check the value an input is frozen to: a number, a truth value, or nested lists."""
    if not _is_fixed(value):
        raise refuse(f"no input can be fixed to {value!r}. Write a number or a list of numbers.")
    return value


def _is_fixed(value: object) -> bool:
    return all(map(_is_fixed, value)) if isinstance(value, list) else isinstance(value, (bool, int, float))


def _latency(value: object) -> LatencyLimit:
    """Read a limit of latency: `20ms`, or `1.5x`."""
    if not isinstance(value, str):
        raise refuse(f"{value!r} is not a latency limit. Write it like 20ms, 0.5s, or 1.5x.")
    try:
        return parse_latency(value)
    except ConfigError as error:
        raise refuse(str(error)) from error


def _duration(value: object) -> float:
    """Read a time, such as `20ms`, in milliseconds."""
    try:
        found = _latency(value).milliseconds
    except PydanticCustomError:
        found = None
    if found is None:
        raise refuse(f"{value!r} is not a time. Write it like 20ms or 0.5s.")
    return found


def _executor(value: object) -> object:
    """Check where cells are computed; an empty section is none."""
    if value == {} or value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"local(:[1-9]\d*)?|dask://[^/\s]+:\d+/?", value):
        raise refuse(f"{value!r} is not an executor. Write local, local:4, or dask://HOST:8786.")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise refuse("it is empty. Write a name.")
    return value


def read_names(value: object) -> tuple[str, ...]:
    """Read a list of names."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name.strip() for name in value):
        raise refuse(f"{value!r} is not a list of names. Write it like [scores, boxes].")
    return tuple(value)


def _table(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Give a section left empty in YAML (`search:`), which is None, its defaults."""
    return handler({} if value is None else value)


Executor = Annotated[str | None, BeforeValidator(_executor)]
Text = Annotated[str, AfterValidator(_text)]
Size = Annotated[int, BeforeValidator(_size)]
Room = Annotated[int, BeforeValidator(_room)]
Shape = Annotated[tuple[int, ...], BeforeValidator(_shape)]
Latency = Annotated[LatencyLimit, BeforeValidator(_latency)]
Duration = Annotated[float, BeforeValidator(_duration)]
Fixed = Annotated[Any, BeforeValidator(_check_fixed)]
Fraction = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Slowdown = Annotated[float, Field(ge=1, allow_inf_nan=False)]


class Table(BaseModel):
    """Table with the fields of the class as keys, and no others."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(cls, value: object, handler: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls._keys():
                    raise _unknown(str(key), did_you_mean(str(key), cls._keys()))
        return handler(value)

    @classmethod
    def _keys(cls) -> list[str]:
        """Return the names of the fields as they are written."""
        return [field.alias or name for name, field in cls.model_fields.items()]


#: a section that may be left empty
Section = WrapValidator(_table)
