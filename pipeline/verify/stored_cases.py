"""Keep chosen cases for the other targets of a model: nothing in them depends on a target.

<store>/cases/1f3a…        `forms`: the cases as JSON, with numbers for arrays; "0", "1" …: the arrays
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..frontend.source.model_file import serialise
from ..support.result_store import kept_bytes
from .cases import choose_cases
from .compare import Case, Tensors

if TYPE_CHECKING:
    import onnx

    from ..frontend.imported_model import ImportedModel
    from .settings import VerifySettings

#: most bytes of the cases of a model
MOST_BYTES = 64 << 20
_PACKAGES = ("numpy", "onnx", "onnxruntime")
#: raised where inputs are drawn in another way
_DRAWS_VERSION = 4
_WORDS = ("no_double", "units", "reference", "name")
_TENSORS = ("inputs", "expected", "optimized", "double")


def stored_cases(
    model: onnx.ModelProto,
    seed: int,
    count: int,
    tolerance: float,
    given: onnx.ModelProto | None = None,
    samples: Mapping[str, Tensors] = MappingProxyType({}),
) -> list[Case]:
    """Return `choose_cases`, computed once for all targets. Raises its errors."""
    made: list[list[Case]] = []

    def make() -> bytes:
        made.append(choose_cases(model, seed, count, tolerance, given, samples))
        return _packed(made[0])

    digests = {name: {each: sha256_of(value) for each, value in tensors.items()} for name, tensors in samples.items()}
    text = kept_bytes("cases", _key((model, given), seed, count, tolerance, *([digests] if digests else [])), make)
    return made[0] if made else _unpacked(text) or choose_cases(model, seed, count, tolerance, given, samples)


def cases_of(imported: ImportedModel, settings: VerifySettings) -> list[Case]:
    """Return the cases of a comparison: seeded ones, and the user's samples. Raises errors of `choose_cases`."""
    samples = {} if settings.samples is None else settings.samples.inputs
    return stored_cases(imported.onnx, settings.seed, settings.cases, settings.tolerance, imported.given, samples)


def _key(models: Sequence[onnx.ModelProto | None], *settings: object) -> str:
    """Return 32 digits for the models, the settings, and the packages that compute the cases."""
    versions = [importlib.metadata.version(each) for each in _PACKAGES]
    digest = hashlib.sha256()
    for model in models:
        own = hashlib.sha256()
        for part in () if model is None else serialise(model):
            own.update(part)
        digest.update(b"none" if model is None else own.digest())
    digest.update(repr((settings, versions, _DRAWS_VERSION)).encode())
    return digest.hexdigest()[:32]


def sha256_of(value: np.ndarray) -> str:
    """Return the sha256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(value)).hexdigest()


def _packed(cases: Sequence[Case]) -> bytes:
    """Return the cases as an archive; empty if they are too large, or not all arrays of numpy's own dtypes."""
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
        return b""
    if sum(each.nbytes for each in arrays) > MOST_BYTES:
        return b""
    archive = io.BytesIO()
    np.savez(archive, forms=np.array(json.dumps(forms)), **{str(place): each for place, each in enumerate(arrays)})
    return archive.getvalue()


def _unpacked(archive: bytes) -> list[Case]:
    if not archive:
        return []
    with np.load(io.BytesIO(archive), allow_pickle=False) as found:

        def tensors(numbers: dict[str, int]) -> dict[str, np.ndarray]:
            return {name: found[str(number)] for name, number in numbers.items()}

        def case(form: dict) -> Case:
            kept: dict[str, Any] = {each: form[each] for each in _WORDS}
            kept |= {each: None if form[each] is None else tensors(form[each]) for each in _TENSORS}
            return Case(**kept)

        return [case(form) for form in json.loads(found["forms"].item())]
