"""Open samples in files of a folder; folders in it are classes, or a file has the labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..support.digests import folders_digest, is_inside
from ..support.text_files import read_text
from .arrays import name_values, read_arrays
from .fit_value import InputForm
from .item import Item
from .labels import check_label, number_classes, number_labels, number_texts
from .media import PICTURES, SOUNDS, read_picture, read_sound

_ARRAYS = (".npy", ".npz")
_LABEL_FILES = ("labels.csv", "labels.txt", "labels.npy")


class FolderSource:
    """Samples in files of a folder, in the order of their names; its folders are classes, or a file has the labels."""

    def __init__(self, path: Path, inputs: Sequence[InputForm]):
        """List the files, and read the labels. Raises ConfigError."""
        self._path, self._inputs = path, inputs
        shown = sorted(each for each in path.iterdir() if not each.name.startswith("."))
        folders = [each for each in shown if each.is_dir()]
        files = [each for each in shown if not each.is_dir() and each.name not in _LABEL_FILES]
        tables = [each for each in shown if each.name in _LABEL_FILES]
        if folders and (files or tables):
            raise ConfigError(
                f"'{path}' has both folders and '{(files + tables)[0].name}'.",
                "Give one folder for each class, or files next to labels.csv.",
            )
        if len(tables) > 1:
            raise ConfigError(f"'{path}' has both {tables[0].name} and {tables[1].name}.", "Keep one of them.")
        classes, self.classes = number_classes([each.name for each in folders])
        self._labels: list[Any] | None = None
        if folders:
            files = [file for folder in folders for file in _files_in(folder)]
            self._labels = [classes[file.parent.name] for file in files]
        elif tables:
            self._labels, self.classes = _read_labels(tables[0], [file.name for file in files])
        self._files = files
        self.count = len(files)

    def item(self, number: int) -> Item:
        """Read the file of a sample. Raises ConfigError."""
        file = self._files[number]
        name = file.relative_to(self._path).as_posix()
        where = f"'{self._path}', sample {name}"
        if not is_inside(file, self._path):
            raise ConfigError(
                f"{where}: is a link to outside of the folder.", "Copy the file, or give the folder that holds it."
            )
        kind = file.suffix.lower()
        label = None if self._labels is None else self._labels[number]
        if kind in _ARRAYS:
            values, own = name_values(read_arrays(file, where), self._inputs, where)
            return Item(values, label if own is None else check_label(own, where), name)
        if kind not in (*PICTURES, *SOUNDS):
            known = ", ".join((*_ARRAYS, *PICTURES, *SOUNDS))
            raise ConfigError(
                f"{where}: is no form of a sample.", f"Known: {known}. Move other files out of the folder."
            )
        form = _single(self._inputs, where)
        return Item({form.name: (read_picture if kind in PICTURES else read_sound)(file, form, where)}, label, name)

    @property
    def digest(self) -> str:
        """Return the sha256 of all files, by their names in the folder."""
        return folders_digest({"": self._path})


def _files_in(folder: Path) -> list[Path]:
    found = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    if deeper := [each for each in found if each.is_dir()]:
        raise ConfigError(f"'{deeper[0]}' is a folder in that of a class.", "Give files of samples alone.")
    return found


def _read_labels(table: Path, files: Sequence[str]) -> tuple[list[Any], tuple[str, ...]]:
    """Read the labels of files: `file,label` by name, or one a line or row in their order. Raises ConfigError."""
    if table.suffix == ".npy":
        labels, classes = number_labels(np.asarray(read_arrays(table, f"'{table}'")[""]), f"'{table}'")
        given: list[Any] = labels
    else:
        hint = "Write one `file,label` a line in labels.csv, or one label a line in labels.txt."
        text = read_text(table, hint)
        if table.suffix == ".csv":
            rows = [row for row in csv.reader(io.StringIO(text)) if row]
            pairs = [(row[0].strip(), row[1].strip()) for row in rows if len(row) == 2]
            by_file = dict(pairs)
            if twice := [name for name, label in pairs if by_file[name] != label]:
                raise ConfigError(f"'{table}' has two labels for '{twice[0]}'.", "Remove one of its lines.")
            if missing := [file for file in files if not by_file.get(file)]:
                raise ConfigError(f"'{table}' has no label for '{missing[0]}'.", hint)
            gone = [name for number, name in enumerate(by_file) if name not in files and number]
            if gone:  # the first line may be a head
                raise ConfigError(f"'{table}' has a label for '{gone[0]}', which is missing.", "Remove its line.")
            texts = [by_file[file] for file in files]
        else:
            texts = [line.strip() for line in text.splitlines() if line.strip()]
        given, classes = number_texts(texts)
    if len(given) != len(files):
        raise ConfigError(
            f"'{table}' has {len(given)} labels for {len(files)} files.", "Give one each, in their order."
        )
    return given, classes


def _single(inputs: Sequence[InputForm], where: str) -> InputForm:
    if len(inputs) != 1:
        raise ConfigError(
            f"{where}: is one input, the model takes {len(inputs)}.",
            "Give an .npz for each sample, with arrays by the names of the inputs.",
        )
    return inputs[0]
