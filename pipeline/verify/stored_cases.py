"""Keep chosen cases for the other targets of a model: nothing in them depends on a target.

    <store>/cases/1f3a….npz        `forms`: the cases as JSON, with numbers for arrays; "0", "1" …: the arrays

It only saves time: a lost or damaged file is made again. Archives hold a checksum of each array.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..support.result_store import SUBJECTS, kept_folder, sweep_files
from .cases import Case, choose_cases

if TYPE_CHECKING:
    import onnx

#: most bytes of the cases of a model
MOST_BYTES = 64 << 20
_PACKAGES = ("numpy", "onnx", "onnxruntime")
#: raised where inputs are drawn in another way
_DRAWS_VERSION = 3
_WORDS = ("no_double", "units", "reference")
_TENSORS = ("inputs", "expected", "optimized", "double")


def stored_cases(
    model: onnx.ModelProto, seed: int, count: int, tolerance: float, given: onnx.ModelProto | None = None
) -> list[Case]:
    """Return `choose_cases`, computed once for all targets. Raises its errors."""
    folder = kept_folder("cases")
    if folder is None:
        return choose_cases(model, seed, count, tolerance, given)
    file = folder / f"{_key((model, given), seed, count, tolerance)}.npz"
    with suppress(OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return _read(file)
    cases = choose_cases(model, seed, count, tolerance, given)
    with suppress(OSError):
        _write(cases, file)
    return cases


def _key(models: Sequence[onnx.ModelProto | None], *settings: object) -> str:
    """Return 32 digits for the models, the settings, and the packages that compute the cases."""
    versions = [importlib.metadata.version(each) for each in _PACKAGES]
    digest = hashlib.sha256()
    for model in models:
        digest.update(
            b"none" if model is None else hashlib.sha256(model.SerializeToString(deterministic=True)).digest()
        )
    digest.update(repr((settings, versions, _DRAWS_VERSION)).encode())
    return digest.hexdigest()[:32]


def _write(cases: Sequence[Case], file: Path) -> None:
    """Write the cases, unless they are too large, or not all arrays of numpy's own dtypes."""
    arrays: list[np.ndarray] = []

    def numbered(tensors: dict[str, np.ndarray] | None) -> dict[str, int] | None:
        if tensors is None:
            return None
        first = len(arrays)
        arrays.extend(tensors.values())
        return {name: first + place for place, name in enumerate(tensors)}

    forms = [
        {each: getattr(case, each) for each in _WORDS} | {each: numbered(getattr(case, each)) for each in _TENSORS}
        for case in cases
    ]
    if not all(
        isinstance(each, np.ndarray) and each.dtype.isbuiltin == 1 and not each.dtype.hasobject for each in arrays
    ):
        return
    if sum(each.nbytes for each in arrays) > MOST_BYTES:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    sweep_files(file.parent, file.suffix, SUBJECTS)
    new = file.with_suffix(f".{os.getpid()}.new")
    try:
        with new.open("wb") as opened:
            np.savez(
                opened, forms=np.array(json.dumps(forms)), **{str(place): each for place, each in enumerate(arrays)}
            )
        os.replace(new, file)
    finally:
        new.unlink(missing_ok=True)


def _read(file: Path) -> list[Case]:
    with np.load(file, allow_pickle=False) as found:

        def tensors(numbers: dict[str, int]) -> dict[str, np.ndarray]:
            return {name: found[str(number)] for name, number in numbers.items()}

        def case(form: dict) -> Case:
            kept: dict[str, Any] = {each: form[each] for each in _WORDS}
            kept |= {each: None if form[each] is None else tensors(form[each]) for each in _TENSORS}
            return Case(**kept)

        return [case(form) for form in json.loads(found["forms"].item())]
