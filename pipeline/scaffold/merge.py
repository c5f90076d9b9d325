"""Merge stages and settings into a dvc.yaml and params.yaml of the owner's (`passfit init --merge`)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..params.params import SECTIONS, params_of
from ..support.yaml_file import parse_yaml
from .dvc_file import part
from .edited_file import EditedFile

_FOLDER = "Use --folder passfit: a folder has names of its own."


def merge_dvc_yaml(path: Path, rendered: str) -> str:
    """Return the text of the dvc.yaml `path` with the `rendered` stages at the end of its own.

    Raises ConfigError for a stage of its own that has the name of one of them, or owns what they write; for a value under
    `vars`, or in a file named there, of the name of a section of params.yaml; and for a file that cannot be edited.
    """
    edited = EditedFile.read(path)
    head, _, stages = rendered.partition("stages:\n")
    if edited.data is None:
        return edited.text + rendered
    own, values = part(edited.data, ("stages",)) or {}, part(edited.data, ("vars",)) or []
    if not isinstance(own, dict) or not isinstance(values, list):
        raise ConfigError(f"{path}: its stages are not a table, or its vars not a list.", "`dvc stage list` says more.")
    if part(own, ("toolchain", "cmd")) == part(parse_yaml(rendered, path), ("stages", "toolchain", "cmd")):
        raise ConfigError(f"{path} has passfit's stages already.", "Use `passfit add` for models and targets.")
    ours = parse_yaml(stages, path)
    _refuse_taken(path, "stage", own, ours)
    for where, wdir, each in _all_vars(own, values):
        source, table = _variables(path.parent / wdir, each)
        _refuse_taken(path, f"value under {where}{source}", table, SECTIONS)
    written = {output.partition("/${")[0] for stage in ours.values() for output in _outputs(stage)}
    for name, stage in own.items():
        for output in _outputs(stage):
            if any(f"{each}/".startswith(f"{output}/") or output.startswith(f"{each}/") for each in written):
                raise ConfigError(f"{path}: the stage '{name}' owns '{output}', as passfit would.", _FOLDER)
    edited.add_section("stages")
    edited.append(("stages",), head + textwrap.dedent(stages))
    return edited.text


def merge_params_yaml(path: Path, rendered: str) -> str:
    """Return the text of the params.yaml `path` with the `rendered` sections at its end.

    Raises ConfigError for a section of its own that has a name of passfit's, and a file that cannot be edited.
    """
    edited = EditedFile.read(path)
    _refuse_taken(path, "section", edited.data or {}, SECTIONS)
    edited.append((), rendered)
    params_of(edited.data, path)
    return edited.text


def _refuse_taken(path: Path, what: str, own: object, names: Iterable[str]) -> None:
    """Refuse names that the file has already. Raises ConfigError."""
    taken = [f"'{name}'" for name in names if isinstance(own, dict) and name in own]
    if taken:
        raise ConfigError(f"{path} has a {what} {' and '.join(taken)} already, a name that passfit needs.", _FOLDER)


def _all_vars(stages: dict[str, Any], shared: list[Any]) -> Iterator[tuple[str, str, object]]:
    """Yield all entries of `vars`, with the path of their list and the folder of their files."""
    yield from (("vars", "", each) for each in shared)
    for name, stage in stages.items():
        body = part(stage, ("do",)) or stage
        listed = part(body, ("vars",))
        wdir = str(part(body, ("wdir",)) or "")
        yield from ((f"stages.{name}.vars", wdir, each) for each in (listed if isinstance(listed, list) else ()))


def _variables(folder: Path, entry: object) -> tuple[str, object]:
    """Return the source, for a message, and the variables of an entry of `vars`: a table, or `FILE` or `FILE:KEY,…`.

    DVC merges both with params.yaml, and refuses every stage if a value has two sources. It says itself what it cannot read.
    """
    if not isinstance(entry, str):
        return "", entry
    from dvc.exceptions import DvcException
    from dvc.utils.serialize import LOADERS

    name, _, keys = entry.partition(":")
    try:
        table = {} if Path(name) == Path("params.yaml") else LOADERS[Path(name).suffix.lower()](folder / name)
    except (OSError, SyntaxError, DvcException):
        table = {}
    if not isinstance(table, dict):
        return "", None
    chosen = set(filter(None, keys.split(",")))
    return f" (in '{name}')", {key: value for key, value in table.items() if not chosen or key in chosen}


def _outputs(stage: object) -> list[str]:
    """List the files and folders that a stage of a parsed dvc.yaml writes, without slashes at their ends."""
    body = part(stage, ("do",)) or stage
    listed = [each for kind in ("outs", "metrics", "plots") for each in part(body, (kind,)) or ()]
    return [
        str(next(iter(each), "") if isinstance(each, dict) else each).removeprefix("./").rstrip("/") for each in listed
    ]
