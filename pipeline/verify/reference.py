"""Run a model as the reference for a library: in ONNX Runtime without its optimisations, else in ONNX's evaluator."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError
from ..frontend.canonical.folding.evaluate import failures_of_runs, open_session
from ..frontend.canonical.read_onnx import all_nodes
from ..frontend.source.model_file import serialise
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


class NoReference(ModelError):
    """Model that an evaluator cannot load, or cannot run on the inputs at hand."""


#: dtypes of ONNX Runtime's tensors that numpy has, by its words for them
_DTYPES = {"float": "float32", "double": "float64"} | {
    name: name for name in ("bool", "float16", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
}


class Reference:
    """Model in ONNX Runtime, on one thread; `optimized` lets it fuse and reorder.

    `dtypes` are those of its outputs, and of the values it returns beside them.
    """

    def __init__(self, model: onnx.ModelProto, *, optimized: bool = False, also: Collection[str] = ()):
        """Load the model, to return the values of `also` too, unless numpy has no such dtype.

        Raises NoReference if ONNX Runtime rejects it.
        """
        own = [value.name for value in model.graph.output]
        with _failures_named():
            self._session = _open(_with_outputs(_determined(equalise_signs(model)), also), optimized)
        kinds = {each.name: each.type.removeprefix("tensor(").rstrip(")") for each in self._session.get_outputs()}
        self.dtypes = {name: np.dtype(_DTYPES[kind]) for name, kind in kinds.items() if kind in _DTYPES}
        self._names = [*own, *(name for name in dict.fromkeys(also) if name not in own and name in self.dtypes)]

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs by name. Raises NoReference if the model cannot run on `inputs`."""
        with _failures_named():
            return dict(zip(self._names, self._session.run(self._names, inputs), strict=True))


def _open(model: onnx.ModelProto, optimized: bool) -> onnxruntime.InferenceSession:
    """Load a model; a large one from a file, so that its bytes are not held too."""
    if sum(math.prod(tensor.dims) for tensor in model.graph.initializer) < _LARGE:
        return open_session(model.SerializeToString(), optimized=optimized)
    with scratch_folder() as folder:
        file = folder / "model.onnx"
        with file.open("wb") as opened:
            opened.writelines(serialise(model))
        try:
            return open_session(file, optimized=optimized)
        except failures_of_runs() as error:
            raise type(error)(str(error).replace(str(file), "the model")) from error


def load_optimized(model: onnx.ModelProto, plain: Reference) -> Reference:
    """Return ONNX Runtime with its optimisations, or `plain` if these break the model."""

    def loads() -> bool:
        Reference(model, optimized=True)
        return True

    # ONNX Runtime 1.32 reads freed memory while it optimises some models, silero-vad's with a fixed rate for one, and
    # raises an error or crashes; so a process that may crash loads the model first
    with background(loads, nice=0) as results:
        if not results.of(0):
            return plain
    try:
        return Reference(model, optimized=True)
    except NoReference:
        return plain


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
