"""Read and write a model in parts, so that its weights are held once.

A message is the union of the messages that its bytes are cut into, field by field. Source: protobuf, "Encoding", "Message Structure".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...errors import ModelError
from ...support.own_memory import give_back_blocks

if TYPE_CHECKING:
    import onnx

#: bytes of a field from which on it is read by itself
_LARGE = 1 << 20
#: the fields that may hold weights, of a model and of its graph
_FIELDS = (("graph",), ("node", "initializer"))
#: kinds of fields, and the bytes of those with a fixed size. Source: protobuf, "Encoding"
_VARINT, _SIZED, _FIXED = 0, 2, {1: 8, 5: 4}
_MOST_BITS = 63


def parse_file(path: Path) -> onnx.ModelProto:
    """Read a model without its side files; write bytes of texts that are not UTF-8 as escapes.

    Raises OSError, DecodeError of protobuf, and ModelError for a port whose name holds such bytes.
    """
    from onnx import ModelProto

    model, size = ModelProto(), path.stat().st_size
    give_back_blocks(size)
    with path.open("rb") as opened:
        try:
            _merge(model, opened, size, _FIELDS)
        except EOFError:  # not a message: protobuf says so
            model.ParseFromString(path.read_bytes())
    for port in (*model.graph.input, *model.graph.output):
        if isinstance(port.name, bytes):
            raise ModelError(
                f"The input or output '{_escape(port.name)}' of the model '{path}' has a name that is not UTF-8.",
                "Export the model with other names.",
            )
    _escape_texts(model)
    return model


def _escape_texts(message: Any) -> None:
    """Escape texts in place, also of inner messages: protobuf reads any bytes as a text, and writes UTF-8 only."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in (value,) if hasattr(value, "ListFields") else value:
                _escape_texts(inner)
        elif isinstance(value, bytes) and field.type == field.TYPE_STRING:
            setattr(message, field.name, _escape(value))
        elif field.type == field.TYPE_STRING and not isinstance(value, str):
            for place, text in enumerate(value):
                if isinstance(text, bytes):
                    value[place] = _escape(text)


def _escape(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


def _merge(message: Any, opened: IO[bytes], end: int, names: Sequence[Sequence[str]]) -> None:
    """Read the fields up to `end` into a message, large ones of `names` by themselves. Raises EOFError, DecodeError."""
    start = opened.tell()
    large = {message.DESCRIPTOR.fields_by_name[name].number << 3 | _SIZED: name for name in names[0]} if names else {}
    while large and (place := opened.tell()) < end:
        key = _read_number(opened)
        size = _read_number(opened) if key & 7 in (_VARINT, _SIZED) else _FIXED.get(key & 7, end)
        following = opened.tell() + (size if key & 7 != _VARINT else 0)
        if following > end or not key >> 3:  # no message has a field 0: a file of zeros ends here
            raise EOFError
        if key in large and size >= _LARGE:
            inside = opened.tell()
            _merge_run(message, opened, start, place)
            field = getattr(message, large[key])
            opened.seek(inside)
            _merge(field.add() if hasattr(field, "add") else field, opened, following, names[1:])
            start = following
        opened.seek(following)
    _merge_run(message, opened, start, end)


def _merge_run(message: Any, opened: IO[bytes], start: int, end: int) -> None:
    opened.seek(start)
    message.MergeFromString(opened.read(end - start))


def _read_number(opened: IO[bytes]) -> int:
    """Read a number of seven bits a byte, the low ones first. Raises EOFError."""
    number = shift = 0
    while byte := opened.read(1):
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return number
        shift += 7
        if shift > _MOST_BITS:
            break
    raise EOFError


def serialise(model: onnx.ModelProto) -> Iterator[bytes]:
    """Yield the bytes of `SerializeToString(deterministic=True)`, each constant of the graph by itself."""
    first, last = _around(model, "graph")
    before, after = _around(model.graph, "initializer")
    sizes = [tensor.ByteSize() for tensor in model.graph.initializer]
    heads = [_head(model.graph, "initializer", size) for size in sizes]
    size = len(before) + len(after) + sum(map(len, heads)) + sum(sizes)
    yield first + _head(model, "graph", size) + before
    for head, tensor in zip(heads, model.graph.initializer, strict=True):
        yield head
        yield tensor.SerializeToString(deterministic=True)
    yield after + last


def _around(message: Any, name: str) -> tuple[bytes, bytes]:
    """Return the bytes of the fields before and after the one called `name`."""
    number = message.DESCRIPTOR.fields_by_name[name].number
    parts = type(message)(), type(message)()
    for field, value in message.ListFields():
        if field.name != name:
            copy_field(parts[field.number > number], field.name, value)
    before, after = (part.SerializeToString(deterministic=True) for part in parts)
    return before, after


def copy_field(message: Any, name: str, value: Any) -> None:
    """Write the value of a field of another message into the field `name`."""
    if isinstance(value, (bool, int, float, str, bytes)):
        setattr(message, name, value)
    else:
        getattr(message, name).MergeFrom(value)


def _head(message: Any, name: str, size: int) -> bytes:
    """Return the bytes in front of a field of `size` bytes."""
    written = bytearray()
    for number in (message.DESCRIPTOR.fields_by_name[name].number << 3 | _SIZED, size):
        while number > 0x7F:
            written.append(number & 0x7F | 0x80)
            number >>= 7
        written.append(number)
    return bytes(written)
