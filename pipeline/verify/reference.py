"""Run a model as the reference for a library: in ONNX Runtime without its optimisations, else in ONNX's evaluator."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError
from ..frontend.canonical.folding.evaluate import failures_of_runs, open_session
from ..frontend.canonical.read_onnx import all_nodes
from ..frontend.canonical.shapes import without_values
from ..support.background import background
from ..support.temporary_folder import scratch_folder
from .doubles.double_reference import DoubleReference, NoDouble
from .doubles.evaluator_faults import evaluator_fault
from .equal_signs import equalise_signs

if TYPE_CHECKING:
    import onnx
    import onnxruntime

#: elements of weights from which on a model is loaded from a file
_LARGE = 1 << 22
#: bytes of the longest vector, for weights that are read where the file is mapped
_ALIGNMENT = 64


class NoReference(ModelError):
    """Model that an evaluator cannot load, or cannot run on the inputs at hand."""


#: dtypes of ONNX Runtime's tensors that numpy has, by its words for them
_DTYPES = {"float": "float32", "double": "float64"} | {
    name: name for name in ("bool", "float16", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
}


class Reference:
    """Model in ONNX Runtime, on one thread.

    `dtypes` are those of its outputs, and of the values it returns beside them.
    """

    def __init__(self, model: onnx.ModelProto, *, also: Collection[str] = (), optimize: bool = False):
        """Load the model, to return the values of `also` too, unless numpy has no such dtype.

        With `optimize`, load it once more, fused and reordered. Raises NoReference if ONNX Runtime rejects it.
        """
        own = [value.name for value in model.graph.output]
        with _failures_named(), _loadable(_with_outputs(_determined(equalise_signs(model)), also)) as content:
            self._session = open_session(content)
            self._optimized = (_open_optimized(content) if optimize else None) or self._session
        kinds = {each.name: each.type.removeprefix("tensor(").rstrip(")") for each in self._session.get_outputs()}
        self.dtypes = {name: np.dtype(_DTYPES[kind]) for name, kind in kinds.items() if kind in _DTYPES}
        self._names = [*own, *(name for name in dict.fromkeys(also) if name not in own and name in self.dtypes)]

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs by name. Raises NoReference if the model cannot run on `inputs`."""
        return self._run(self._session, inputs)

    def run_optimized(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs as optimised; plainly if that was not asked for, or breaks the model. Raises NoReference."""
        return self._run(self._optimized, inputs)

    def _run(self, session: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        with _failures_named():
            return dict(zip(self._names, session.run(self._names, inputs), strict=True))


@contextmanager
def _loadable(model: onnx.ModelProto) -> Iterator[bytes | Path]:
    """Yield the bytes of a model; for a large one a file, whose weights all sessions map."""
    if sum(math.prod(tensor.dims) for tensor in model.graph.initializer) < _LARGE:
        yield model.SerializeToString()
        return
    with scratch_folder() as folder:
        file = folder / "model.onnx"
        _write(model, file)
        try:
            yield file
        except failures_of_runs() as error:
            raise type(error)(str(error).replace(str(file), "the model")) from error


def _write(model: onnx.ModelProto, file: Path) -> None:
    """Write a model, and its weights to a side file, each at a multiple of _ALIGNMENT."""
    light, place = without_values(model), file.with_name("weights")
    with place.open("wb") as weights:
        for tensor, whole in zip(light.graph.initializer, model.graph.initializer, strict=True):
            if tensor.ByteSize() == whole.ByteSize():
                continue
            if not whole.HasField("raw_data"):
                tensor.CopyFrom(whole)
                continue
            weights.write(bytes(-weights.tell() % _ALIGNMENT))
            tensor.data_location = tensor.EXTERNAL
            said = {"location": place.name, "offset": weights.tell(), "length": weights.write(whole.raw_data)}
            for key, value in said.items():
                tensor.external_data.add(key=key, value=str(value))
    file.write_bytes(light.SerializeToString())


def _open_optimized(content: bytes | Path) -> onnxruntime.InferenceSession | None:
    """Load a model in ONNX Runtime with its optimisations; None if these break it."""

    def loads() -> bool:
        open_session(content, optimized=True)
        return True

    # ONNX Runtime 1.32 reads freed memory while it optimises some models, silero-vad's with a fixed rate for one, and
    # raises an error or crashes; so a process that may crash loads the model first
    with background(loads, nice=0) as results:
        if not results.of(0):
            return None
    try:
        return open_session(content, optimized=True)
    except failures_of_runs(RuntimeError):
        return None


def _with_outputs(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """Return the model with further outputs, whose types ONNX Runtime infers."""
    from onnx import helper

    if not names:
        return model
    wider = deepcopy(model)
    present = {value.name for value in model.graph.output}
    wider.graph.output.extend(
        map(helper.make_empty_tensor_value_info, dict.fromkeys(each for each in names if each not in present))
    )
    return wider


#: attributes that let an evaluator choose: with the first, ONNX Runtime quantises floats; the second leaves rows in any order
_FREEDOMS = {"MatMulNBits": "accuracy_level", "TopK": "sorted"}


def _determined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without `_FREEDOMS`, of which the library uses none."""
    if _FREEDOMS.keys().isdisjoint(node.op_type for node in all_nodes(model.graph)):
        return model
    copied = deepcopy(model)
    for node in all_nodes(copied.graph):
        kept = [each for each in node.attribute if each.name != _FREEDOMS.get(node.op_type)]
        del node.attribute[:]
        node.attribute.extend(kept)
    return copied


class OnnxReference:
    """Model in ONNX's own evaluator, for files that ONNX Runtime cannot run. It computes in doubles."""

    def __init__(self, model: onnx.ModelProto):
        """Prepare the evaluator. Raises NoReference for an operator that it does not know, or computes wrongly."""
        from onnx import helper

        if fault := evaluator_fault(model):
            raise NoReference(f"{fault}.")
        types = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
        self._dtypes = {name: np.dtype(helper.tensor_dtype_to_np_dtype(kind)) for name, kind in types.items() if kind}
        try:
            self._evaluator = DoubleReference(model)
        except NoDouble as error:
            raise NoReference(f"ONNX's evaluator cannot run the model: {error}.") from error

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs by name, in their dtypes. Raises NoReference if an operator fails on `inputs`."""
        try:
            found = self._evaluator(inputs)
        except NoDouble as error:
            raise NoReference(f"ONNX's evaluator cannot run the model: {error}.") from error
        with np.errstate(over="ignore"):
            return {name: value.astype(self._dtypes.get(name, value.dtype)) for name, value in found.items()}


@contextmanager
def _failures_named() -> Iterator[None]:
    try:
        yield
    except failures_of_runs(RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise NoReference(
            f"ONNX Runtime cannot run the model, so the library cannot be verified: {reason}", "Correct the model."
        ) from error
