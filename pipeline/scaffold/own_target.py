"""Write a device of one's own into params.yaml (`passfit targets --add`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from ..errors import ConfigError
from ..params.params import MODEL_NAME, params_of
from ..support.sizes import parse_size
from ..targets.catalogue import get_target, load_catalogue
from ..targets.memory import Kind, Memory, select_kind
from .edit_yaml import Entry
from .edited_file import EditedFile
from .render import scalar
from .write import write_all


def add_own_target(repo: Path, name: str, like: str, ram: str | None = None, flash: str | None = None) -> list[Path]:
    """Add `name` to `boards` of params.yaml, with all facts of the target `like` but for the sizes given.

    Every other byte stays. Return the file if it changed. Raises ConfigError for a name that is malformed or taken, or a bad size;
    TargetError for an unknown target.
    """
    base = get_target(like, repo)
    if not MODEL_NAME.fullmatch(name):
        raise ConfigError(f"'{name}' is not the name of a target.", "Use a-z, 0-9 and '-', no '-' in front.")
    if name in load_catalogue(repo):
        raise ConfigError(f"There is a target '{name}' already.", "Choose another name, or change it where it is.")
    sizes = {kind: _size(text) for kind, text in (("ram", ram), ("flash", flash)) if text is not None}
    board: dict[str, Any] = {"base": like, "description": f"own device, like {like}"}
    board |= {"memories": _memories(base.memories, sizes, like)} if base.memories and sizes else sizes
    edited = EditedFile.read(repo / "params.yaml")
    params_of(edited.data, edited.path)
    edited.add_section("boards")
    line = f"{scalar(name)}: {_flow(board)}"
    edited.add(("boards",), name, board, Entry((line,), line))
    return write_all({edited.path: edited.text})


def _size(text: str) -> int | str:
    """Return a size as params.yaml holds it. Raises ConfigError."""
    if parse_size(text) == 0:
        raise ConfigError("A device needs more than 0 bytes.", "Write a size like 512KiB.")
    return int(text) if text.strip().isdigit() else text.strip()


def _memories(memories: tuple[Memory, ...], sizes: dict[str, int | str], like: str) -> list[dict[str, Any]]:
    """Return the memories of a device with other sizes. Raises ConfigError where a size could be that of several."""
    for kind in get_args(Kind):
        if kind in sizes and len(select_kind(memories, kind)) > 1:
            names = ", ".join(each.name for each in select_kind(memories, kind))
            raise ConfigError(
                f"'{like}' has several memories of {kind}: {names}.",
                f"Leave --{kind} out, and write `memories` of the new board by hand.",
            )
    return [
        {"name": each.name, "kind": each.kind, "size": sizes.get(each.kind, each.size), "start": each.start}
        | ({} if each.wait_states is None else {"wait_states": each.wait_states})
        for each in memories
    ]


def _flow(value: Any) -> str:
    """Format tables, lists, numbers and short texts in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return scalar(value) if isinstance(value, str) else str(value)
