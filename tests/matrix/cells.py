"""Cells of the matrix: a network's file, and what became of it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from passfit.backend.built import NAME, SHORT, LoadedLibrary, host, link_lowered
from passfit.errors import ModelError, NumericError
from passfit.frontend.imported_model import ImportedModel, load
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.verify.cases import ONNX, ONNX_RUNTIME, add_plain_sums, choose_cases
from passfit.verify.compare import compare
from passfit.verify.inputs import make_input
from passfit.verify.integers.given_outputs import given_outputs

from ..models import run
from .networks import NETWORKS, NUMBERS, VENDOR, network

SETS = range(7, onnx.defs.onnx_opset_version() + 1)
#: file versions: of constants as inputs, of constants of their own, and those in which dtypes came
VERSIONS = (3, 4, 7, 8, 9, 10, 11, onnx.IR_VERSION)
PLACES = ("raw bytes", "fields", "side file", "inputs too", "vendor's domain", "domain not imported")
#: relative to the range of an output: float16 is compared with ONNX Runtime's own sums
TOLERANCE = 1e-3


@dataclass(frozen=True, order=True)
class Cell:
    """A file of the matrix."""

    network: str
    numbers: str
    opset: int
    version: int
    place: str

    def write(self, folder: Path) -> Path:
        model = network(self.network, self.numbers, self.opset, "domain" in self.place)
        model.ir_version = self.version
        graph = model.graph
        if self.place == "vendor's domain":
            model.opset_import.append(helper.make_opsetid(VENDOR, 1))
        if self.place == "inputs too" or self.version < 4:
            graph.input.extend(
                helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in graph.initializer
            )
        for tensor in graph.initializer if self.place == "fields" else ():
            _write_fields(tensor)
        file = folder / "model.onnx"
        onnx.save(
            model, file, save_as_external_data=self.place == "side file", location="weights.bin", size_threshold=0
        )
        return file


def _write_fields(tensor: onnx.TensorProto) -> None:
    """Write numbers in the field of their dtype: integers and halves in int32_data, those of 4 bits two a number."""
    raw = tensor.raw_data or numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
    field = helper.tensor_dtype_to_field(tensor.data_type)
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    words = np.frombuffer(raw, np.uint8 if dtype.name.endswith("int4") else np.uint16 if dtype == np.float16 else dtype)
    for each in ("raw_data", field):
        tensor.ClearField(each)
    getattr(tensor, field).extend(words.tolist())


def whole() -> Iterator[Cell]:
    """Yield a cell for each network, kind of numbers and operator set; file versions and places take turns."""
    rest = itertools.cycle(itertools.product(VERSIONS, PLACES))
    for name, (numbers, since), opset in itertools.product(NETWORKS, NUMBERS.items(), SETS):
        if opset >= since:
            yield Cell(name, numbers, opset, *next(rest))


def covering(sets: Collection[int]) -> list[Cell]:
    """Return few cells of these operator sets with each pair of values of two axes that some cell of `whole` has."""
    chosen: list[Cell] = []
    cells = [each for each in whole() if each.opset in sets]
    pairs = {each: _pairs(each) for each in cells}
    left = set[tuple]().union(*pairs.values())
    while left:
        best = max(cells, key=lambda each: len(pairs[each] & left))
        chosen.append(best)
        left -= pairs[best]
    return chosen


def _pairs(cell: Cell) -> set[tuple]:
    return set(itertools.combinations(enumerate((cell.network, cell.numbers, cell.opset, cell.version, cell.place)), 2))


#: how an outcome begins, and its sign in a table; others are faults
_SIGNS = {
    "verified by ONNX Runtime": "●", "verified by the evaluator": "○", "verified against": "c", "refused": "–",
}  # fmt: skip


def sign(said: str) -> str:
    """Return the sign of an outcome: of a fault, its first letter."""
    return next((each for start, each in _SIGNS.items() if said.startswith(start)), said[:1])


def outcome(cell: Cell) -> str:
    """Say what became of a cell: by which reference it was verified, why nobody runs it, or a fault, in capitals."""
    with tempfile.TemporaryDirectory() as folder:
        file = cell.write(Path(folder))
        runs = _runs(file)
        try:
            return _verified(load(file), runs)
        except ModelError as error:
            return f"REFUSED: {error}" if runs else f"refused, as by ONNX Runtime: {error}"
        except NumericError as error:
            return f"WRONG: {error}"


def _runs(file: Path) -> bool:
    """Return whether ONNX Runtime runs a file."""
    from onnxruntime.capi import onnxruntime_pybind11_state as ort

    model = onnx.load(file)
    try:
        run(model, make_input(model, 0, 0))
    except (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException):
        return False
    return True


def _verified(model: ImportedModel, runs: bool) -> str:
    cases = choose_cases(model.onnx, 0, 2, TOLERANCE, model.given)
    given = given_outputs(model.onnx, model.given, TOLERANCE)
    library, by = _library(model), cases[0].reference
    if not cases[0].expected:
        return f"UNVERIFIED: {by}"
    results = [library.run(case.inputs) for case in cases]
    try:
        compare(results, cases, TOLERANCE)
    except NumericError:
        compare(results, add_plain_sums(model.onnx, cases, model.given), TOLERANCE)
    if by not in (ONNX, ONNX_RUNTIME) or (given is not None and given.unknown):
        return f"UNVERIFIED: {by}, {given and given.unknown}" if runs else "verified against its canonical form"
    if given is not None:
        given.agreement([library.run(each) for each in given.inputs])
    return f"verified by {'ONNX Runtime' if by == ONNX_RUNTIME else 'the evaluator of ONNX'}"


#: libraries by the bytes of their canonical model: few differ
_BUILT: dict[bytes, LoadedLibrary] = {}


def _library(model: ImportedModel) -> LoadedLibrary:
    alone = type(model.onnx)(graph=model.onnx.graph)
    key = alone.SerializeToString(deterministic=True)
    if key not in _BUILT:
        lowered, workspace = replay(Sequence.parse(SHORT), model.graph, model.onnx, NAME, host().machine)
        _BUILT[key] = LoadedLibrary(link_lowered(lowered, workspace, _folder()))
    return _BUILT[key]


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp())
