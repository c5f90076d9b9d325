"""Mutate an ONNX file: fields of its protobuf by their kind, and bytes of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from .mutate_text import NUMBERS, WORDS, damage

_WHOLE = (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_ENUM)
_LIMITS = {
    FieldDescriptor.CPPTYPE_INT32: 2**31,
    FieldDescriptor.CPPTYPE_ENUM: 2**31,
    FieldDescriptor.CPPTYPE_INT64: 2**63,
}
_OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain})
Place = tuple[Message, FieldDescriptor]


def mutate_model(content: bytes, random: Random) -> bytes:
    """Return the file with some mutations; one in eight has other bytes rather than other fields."""
    if random.random() < 1 / 8:
        return damage(content, random)
    model = onnx.ModelProto.FromString(content)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        with suppress(ValueError):  # numbers that an enumeration does not have
            _mutate(model, random)
    return model.SerializeToString()


def _mutate(model: onnx.ModelProto, random: Random) -> None:
    places = list(_places(model))
    # of each kind of field the same share: there are many more numbers of weights than attributes
    kinds = sorted({field.full_name for _, field in places})
    chosen = random.choice(kinds)
    holder, field = random.choice([place for place in places if place[1].full_name == chosen])
    if field.is_repeated:
        _mutate_list(getattr(holder, field.name), field, model, random)
    elif field.message_type or random.random() < 1 / 8:
        holder.ClearField(field.name)
    else:
        setattr(holder, field.name, _odd(field, getattr(holder, field.name), model, random))


def _mutate_list(values: Any, field: FieldDescriptor, model: onnx.ModelProto, random: Random) -> None:
    at = random.randrange(len(values))
    how = random.choice(("drop", "twice", "move", "value", "value", "many"))
    if how == "drop":
        del values[at]
    elif how == "twice":
        values.append(values[at])
    elif how == "move":
        moved = values.pop(at)
        values.insert(random.randrange(len(values) + 1), moved)
    elif how == "many":
        values.extend([values[at]] * random.choice((10, 1000)))
    elif field.message_type:
        values[at].Clear()
    else:
        values[at] = _odd(field, values[at], model, random)


def _odd(field: FieldDescriptor, value: Any, model: onnx.ModelProto, random: Random) -> Any:
    """Return another value of a field: an extreme one, a near one, or one of another place."""
    if field.cpp_type in _WHOLE:
        limit = _LIMITS[field.cpp_type]
        drawn = random.choice((value + 1, value - 1, -value, value * 2, random.randrange(30), *NUMBERS))
        return max(-limit, min(limit - 1, int(drawn) if abs(drawn) < 1e30 else limit))
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return float(random.choice((-value, value * 1e30, 0.0, *NUMBERS, float("inf"), float("nan"))))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return damage(value, random) if random.random() < 0.7 else bytes(random.choice((0, 1, 7, 4096)))
    if field.name == "op_type":
        return random.choice((*_OPERATORS, *WORDS))
    names = [name for node in model.graph.node for name in (*node.output, *node.input, node.name)]
    return random.choice((*names, *WORDS)) if random.random() < 0.7 else random.choice(WORDS)


def _places(message: Message) -> Iterator[Place]:
    """Yield the fields that a message and those below it have."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type:
            for each in value if field.is_repeated else (value,):
                yield from _places(each)
