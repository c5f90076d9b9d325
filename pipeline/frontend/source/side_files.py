"""Find, digest and load side files: weights outside of the model's own file (`external_data` in ONNX).

A tensor names its side file by a path relative to the model's folder. PyTorch writes one, `<model>.onnx.data`; others
write one a tensor, under any name. onnx's own loader refuses every link; here those are read that caches make (of DVC,
of Hugging Face), whose targets are named by their content.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import ModelError
from ...support.digests import digest_of, holds, is_inside
from ...support.own_memory import give_back_blocks
from .model_file import parse_file

if TYPE_CHECKING:
    import onnx

#: the key of a side file's path: a model without these bytes has none, and need not be parsed
_MARK = b"location"
#: messages that hold tensors, directly or not
_HOLDERS = frozenset(
    {
        "AttributeProto",
        "FunctionProto",
        "GraphProto",
        "NodeProto",
        "SparseTensorProto",
        "TensorProto",
        "TrainingInfoProto",
    }
)


def side_files(model: Path) -> tuple[str, ...]:
    """List the side files of a model, sorted, relative to its folder; none of a file that is not a model.

    Raises ModelError for a path that leaves the folder, and OSError.
    """
    if not holds(model, _MARK):
        return ()
    from google.protobuf.message import DecodeError

    try:
        parsed = parse_file(model)
    except DecodeError:
        return ()
    return tuple(sorted({_place(tensor, model)[0] for tensor in filter(_is_outside, tensors_of(parsed))}))


def model_digest(model: Path) -> str:
    """Return the sha256 of a model's file; with side files, of the digests of all its files.

    Raises OSError, and ModelError as `side_files`.
    """
    own, others = digest_of(model), side_files(model)
    if not others:
        return own
    digests = {"": own, **{name: digest_of(model.parent / name) for name in others}}
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def load_side_files(model: onnx.ModelProto, path: Path) -> None:
    """Load tensors of side files into a model read from `path`. Raises ModelError."""
    from onnx import TensorProto

    outside = [(tensor, _place(tensor, path)) for tensor in tensors_of(model) if _is_outside(tensor)]
    give_back_blocks(sum(length or 0 for _, (_, _, length) in outside))
    for tensor, (name, offset, length) in outside:
        tensor.raw_data = _read(path, name, offset, length, tensor.name)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def read_with_side_files(path: Path) -> bytes:
    """Return a model as one file, with its side files loaded into it.

    Raises ModelError if a side file cannot be read, and for more than the 2 GiB that one file can hold.
    """
    import google.protobuf.message

    model = parse_file(path)
    load_side_files(model, path)
    try:
        return model.SerializeToString(deterministic=True)
    except (google.protobuf.message.EncodeError, ValueError) as error:
        raise ModelError(
            f"The model '{path.name}' does not fit into one file of 2 GiB.", "Choose a smaller model."
        ) from error


def _is_outside(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor is kept in a side file."""
    return tensor.data_location == tensor.EXTERNAL


def tensors_of(message: Any) -> Iterator[onnx.TensorProto]:
    """Yield the tensors in a message, in subgraphs, attributes and functions too."""
    return messages_of(message, "TensorProto")


def messages_of(message: Any, kind: str) -> Iterator[Any]:
    """Yield the messages of a kind in a message; those inside of one before it."""
    from google.protobuf.message import Message

    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.name not in _HOLDERS:
            continue
        for each in (value,) if isinstance(value, Message) else value:
            yield from messages_of(each, kind)
            if field.message_type.name == kind:
                yield each


def _refuse(
    model: Path, what: str, step: str = "Put the side file beside the model, or export the model again."
) -> NoReturn:
    """Raise the ModelError of a model that keeps a tensor in no good place; `what` ends the sentence."""
    raise ModelError(f"The model '{model}' keeps {what}.", step)


def _place(tensor: onnx.TensorProto, model: Path) -> tuple[str, int, int | None]:
    """Return a tensor's side file, offset, and length in bytes; None is the rest of the file."""
    said = {entry.key: entry.value for entry in tensor.external_data}
    name = posixpath.normpath(said.get("location") or "/")
    if posixpath.isabs(name) or name in (".", "..") or name.startswith("../") or "\0" in name:
        _refuse(model, f"'{tensor.name}' in '{said.get('location', '')}', outside of its own folder")
    try:
        offset, length = int(said.get("offset") or 0), int(said["length"]) if said.get("length") else None
    except ValueError:
        offset, length = -1, None
    if not 0 <= offset < 1 << 63 or (length is not None and length < 0):
        _refuse(model, f"'{tensor.name}' at no place of '{name}'", "Export the model again.")
    return name, offset, length


def _read(model: Path, name: str, offset: int, length: int | None, tensor: str) -> bytes:
    target = Path(os.path.realpath(model.parent / name))
    if not is_inside(target, model.parent):
        _refuse(model, f"'{tensor}' in '{name}', a link to outside of its own folder")
    if os.path.exists(target) and not target.is_file():  # not of a name that no file can have
        _refuse(model, f"'{tensor}' in '{name}', which is not a regular file")
    try:
        with target.open("rb") as opened:
            rest = max(0, os.fstat(opened.fileno()).st_size - offset)
            opened.seek(offset)
            content = opened.read(rest if length is None else min(length, rest))
    except OSError as error:
        _refuse(model, f"tensors in a side file that cannot be read: '{name}': {error.strerror}")
    if length is not None and len(content) < length:
        _refuse(model, f"'{tensor}' in the side file '{name}', which is cut short")
    return content
