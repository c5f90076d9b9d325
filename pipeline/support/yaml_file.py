"""Read a YAML file with DVC's own parser, so that both see the same values; errors name the line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError


def read_yaml(path: Path) -> object:
    """Read a YAML 1.2 file; None for an empty one.

    Raises ConfigError for an unreadable file, malformed YAML, and a key given twice, each with its line.
    """
    return parse_yaml(read_yaml_text(path), path)


def read_yaml_text(path: Path) -> str:
    """Read the text of the file, its line ends unchanged. Raises ConfigError if that fails."""
    try:
        if path.is_fifo():  # it would wait for a writer
            raise ConfigError(f"{path}: a pipe, not a file.", "Give a file.")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        above = next((folder for folder in path.resolve().parent.parents if (folder / path.name).is_file()), None)
        hint = "Write one with `passfit init`." if above is None else f"Run it in '{above}', which has one."
        raise ConfigError(f"{path}: no such file.", hint) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: byte {error.start}.", "Save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.", "Check the path and its permissions.") from None


def parse_yaml(text: str, path: Path | str) -> Any:
    """Parse a YAML 1.2 text. Raises ConfigError; `path` is for its message."""
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except DuplicateKeyError as error:
        key = re.search(r'duplicate key "(.*?)"', str(error.problem))
        what = f"the key '{key[1]}' is given twice" if key else "a key is given twice"
        raise ConfigError(f"{path}:{_line(error)} {what}.", "Keep one of them.") from None
    except MarkedYAMLError as error:
        raise ConfigError(f"{path}:{_line(error)} malformed YAML: {error.problem}.", "Correct that line.") from None
    except (YAMLError, AssertionError, LookupError, TypeError, ValueError, RecursionError) as error:
        # AssertionError, LookupError: a version that is none; TypeError: a list as a key; ValueError: a date or number that looks like one and is none, such as 2020-13-45
        raise ConfigError(f"{path}: malformed YAML: {error}.", "Correct it.") from None


def key_line(text: str, places: Sequence[tuple[str, ...]]) -> int | None:
    """Return the line, from 1, of the first of the paths of keys that the text has; None if it has none of them."""
    from ruamel.yaml import YAML

    root = YAML(typ="safe", pure=True).compose(text)
    for place in places:
        node, key = root, None
        for word in place:
            entries = node.value if node is not None and node.id == "mapping" else []
            key, node = next(((key, value) for key, value in entries if key.value == word), (None, None))
        if key is not None:
            return key.start_mark.line + 1
    return None


def _line(error: Any) -> str:
    return f"{error.problem_mark.line + 1}:" if error.problem_mark else ""
