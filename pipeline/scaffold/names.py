"""Name models after their files, for params.yaml, folders and C."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from ..errors import ConfigError


def model_names(sources: Iterable[str]) -> dict[str, str]:
    """Name the sources, as name → source, in the given order.

    A name is the file's, in lower case, with '-' for every other character. Raises ConfigError if a file name holds no
    letter or digit, or two models get one name.
    """
    named: dict[str, str] = {}
    for source in sources:
        name = model_name(source)
        if name in named:
            raise ConfigError(
                f"'{named[name]}' and '{source}' would both be called '{name}'.",
                "Rename one of the files, or give it once.",
            )
        named[name] = source
    return named


def model_name(source: str) -> str:
    """Name one model after its file. Raises ConfigError if that holds no letter or digit."""
    stem = PurePosixPath(source.rpartition("!")[2]).stem
    name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    if not name:
        raise ConfigError(f"No name can be made from the file name of '{source}'.", "Rename it: a-z, 0-9 and '-'.")
    return name
