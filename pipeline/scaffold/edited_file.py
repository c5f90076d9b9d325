"""Edit a YAML file as text, and check by its data that nothing else changes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..support.yaml_file import parse_yaml, read_yaml_text
from .dvc_file import part
from .edit_yaml import Entry, insert, remove


@dataclass
class EditedFile:
    """YAML file as text, with its parsed data."""

    path: Path
    text: str
    data: Any

    @classmethod
    def read(cls, path: Path) -> EditedFile:
        """Read and parse the file. Raises ConfigError."""
        text = read_yaml_text(path)
        return cls(path, text, parse_yaml(text, path))

    def add(self, place: tuple[str, ...], key: str, value: object, entry: Entry, before: str | None = None) -> None:
        """Insert `key: value`, or the item `key` if `value` is None, into the section `place`.

        Raises ConfigError if the new text holds anything but the same data and the new entry.
        """
        text = insert(self.text, place, entry, before)
        expected = copy.deepcopy(self.data)
        if text is None or not _put(expected, place, key, value) or not _holds(text, expected, self.path):
            lines = entry.flow or " ".join(entry.block)
            raise ConfigError(
                f"{self.path}: nothing can be inserted under '{'.'.join(place)}' as it is written there.",
                f"Write it as a block of lines, or add by hand: {lines}",
            )
        self.text, self.data = text, expected

    def append(self, place: tuple[str, ...], entries: str) -> None:
        """Append the YAML text `entries`, of a table, to the table `place`, () for the file.

        Raises ConfigError if the new text holds anything but the same data and the new entries.
        """
        new, expected = parse_yaml(entries, self.path), copy.deepcopy(self.data)
        section = part(expected, place)
        if place:
            text = insert(self.text, place, Entry(("", *entries.splitlines()), ""))
        else:
            end = "\r\n" if "\r\n" in self.text else "\n"
            gap = "" if not self.text else end if self.text.endswith("\n") else 2 * end
            text = self.text + gap + entries.replace("\n", end)
        if section is None and not place:
            expected = new
        elif section is None and isinstance(above := part(expected, place[:-1]), dict):
            above[place[-1]] = new
        elif isinstance(section, dict):
            section |= new
        if text is None or not _holds(text, expected, self.path):
            raise ConfigError(
                f"{self.path}: nothing can be appended to {'.'.join(place) or 'it'} as it is written.",
                "Write its tables as blocks of lines, without `...` at the end.",
            )
        self.text, self.data = text, expected

    def add_section(self, key: str) -> None:
        """Append the empty section `key:` at the end of the file if it has none. Raises ConfigError."""
        if not isinstance(self.data, dict) or key in self.data:
            return
        text = f"{self.text}{'' if self.text.endswith(chr(10)) else chr(10)}\n{key}:\n"
        if not _holds(text, expected := {**self.data, key: None}, self.path):
            raise ConfigError(f"{self.path}: no section can be added to it as it is written.", f"Add by hand: {key}:")
        self.text, self.data = text, expected

    def drop(self, place: tuple[str, ...], key: str) -> None:
        """Remove the entry `key` of the table or list `place`. Raises ConfigError if the text would lose anything else."""
        text = remove(self.text, place, key)
        expected = copy.deepcopy(self.data)
        section = part(expected, place)
        if key not in (section or ()):
            text = None
        elif isinstance(section, dict):
            del section[key]
        else:
            section.remove(key)
        if text is None or not _holds(text, expected, self.path):
            raise ConfigError(f"{self.path}: '{key}' cannot be removed from '{'.'.join(place)}'.", "Remove it by hand.")
        self.text, self.data = text, expected


def _holds(text: str, expected: object, path: Path) -> bool:
    """Return whether the text parses to the expected data."""
    try:
        return parse_yaml(text, path) == expected
    except ConfigError:
        return False


def _put(data: Any, place: tuple[str, ...], key: str, value: object) -> bool:
    """Put the entry into parsed data; False if the section is none."""
    above, section = part(data, place[:-1]), part(data, place)
    if not isinstance(above, dict) or place[-1] not in above:
        return False
    if section is None:
        section = above[place[-1]] = {} if value is not None else []
    if isinstance(section, dict) and value is not None:
        section[key] = value
    elif isinstance(section, list) and value is None:
        section.append(key)
    else:
        return False
    return True
