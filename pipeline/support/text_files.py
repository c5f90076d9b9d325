"""Read and write small text files, whole or not at all; errors name the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ConfigError, OutputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 under a temporary name, then rename it.

    Raises OutputError; nothing half-written stays.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_bytes(text.encode("utf-8"))
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise OutputError(
            f"'{path}' cannot be written: {error.strerror}.", "Choose a folder you can write to."
        ) from error


def read_text(path: Path, hint: str) -> str:
    """Read a UTF-8 file. Raises ConfigError with `hint` as the next step."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.", hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{path}' is not a text file.", hint) from error


def decode(kind: type[T], text: str, where: str, hint: str) -> T:
    """Decode the JSON `text` as an object of `kind`, a dataclass. Types are not converted. Raises ConfigError.

    `where` names the file in the message, `hint` the next step.
    """
    from pydantic import ValidationError

    try:
        return adapter_of(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise ConfigError(f"'{where}': {_problem(error)}.", hint) from None


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return the codec of a type, made once: 60 ms for a program, of which a search reads hundreds."""
    from pydantic import TypeAdapter

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"not JSON: {first['ctx']['error']}"
    field = ".".join(map(str, first["loc"])) or "the content"
    if first["type"] == "missing":
        return f"{field} is missing"
    return f"{field} {first['msg'].replace('Input should', 'should', 1)}"


def sorted_json(data: dict) -> str:
    """Format `data` as JSON with sorted keys, as stages write their settings and versions."""
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def json_lines(data: dict) -> str:
    """Format `data` as JSON, one key or listed object per line."""
    return f"{{\n{_members(data, '')}\n}}\n"


def _members(data: dict, indent: str) -> str:
    return ",\n".join(f"{indent} {_text(key)}: {_value(value, indent + ' ')}" for key, value in data.items())


def _value(value: object, indent: str) -> str:
    if isinstance(value, dict) and value:
        return f"{{\n{_members(value, indent)}\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = ",\n".join(f"{indent} {_text(item)}" for item in value)
        return f"[\n{items}\n{indent}]"
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
