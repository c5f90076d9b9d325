"""Adapt passfit to `onnx.backend.base`: prepare a model, run it, tell whether it is supported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.backend.base
from onnx import helper
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from ..errors import ModelError, PassfitError
from ..frontend.canonical.clean_names import free_inputs
from ..frontend.canonical.ports.values import NARROW, dtype_of
from .built import Built
from .worker import check_import, library_of, outputs_of, shared_worker

#: option that advice to cut a model names
_CUT = "--output"


class Unsupported(ModelError, BackendIsNotSupposedToImplementIt):
    """Refusal of a model; onnx's runner counts it as a skipped test."""

    def __str__(self) -> str:
        return f"{self.what} {self.hint}".strip()


class PreparedModel(onnx.backend.base.BackendRep):
    """Model with its libraries: one for each set of input shapes, and of frozen inputs, seen so far.

    If `data_vary`, data are not frozen, nor anything where the refusal advises to cut the model: another run has others.
    """

    def __init__(self, model: onnx.ModelProto, data_vary: bool = False):
        self._data_vary = data_vary
        self._content = model.SerializeToString()
        inputs = free_inputs(model)
        self.inputs = tuple(value.name for value in inputs)
        #: the inputs whose values the latest run had to take for constants
        self.frozen: tuple[str, ...] = ()
        #: outputs, and the dtypes of those that libraries return in wider ones
        self._results = {value.name: _narrow_dtype(value) for value in model.graph.output}
        self._libraries: dict[tuple, Built | PassfitError] = {}
        self.static = all(_is_static(value) for value in inputs)

    def compile(self) -> None:
        """Compile a model of static shapes before its inputs are known. Raises ModelError."""
        self._library({}, {})

    def run(self, inputs: Any, **_: Any) -> tuple[np.ndarray, ...]:
        """Return the outputs for `inputs`: a list in the model's order, a mapping by name, or one array.

        Open shapes take those of the values. If the model is refused, inputs are frozen to their values: first those
        that say shapes and axes. Raises Unsupported, and BackendCrash for a bug.
        """
        values = self._name_inputs(inputs)
        shapes = {} if self.static else {name: value.shape for name, value in values.items()}
        refusals: list[PassfitError] = []
        for frozen in _frozen_choices(values, self._data_vary):
            if self._data_vary and refusals and _CUT in refusals[-1].hint:
                break
            try:
                built = self._library(shapes, {name: values[name] for name in frozen})
            except PassfitError as error:
                refusals.append(error)
                continue
            self.frozen = frozen
            given = {name: value for name, value in values.items() if name not in frozen}
            results = shared_worker().ask(outputs_of, built, given)
            return tuple(
                results[name].astype(dtype) if dtype else results[name] for name, dtype in self._results.items()
            )
        raise Unsupported(refusals[0].what, refusals[0].hint) from refusals[0]

    def _name_inputs(self, inputs: Any) -> dict[str, np.ndarray]:
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        values = inputs if isinstance(inputs, Mapping) else dict(zip(self.inputs, inputs, strict=False))
        if set(values) != set(self.inputs) or any(
            isinstance(value, list) or value is None for value in values.values()
        ):
            raise Unsupported("An input is missing, or is not a tensor.", "Give every input of the model.")
        return {name: np.asarray(values[name]) for name in self.inputs}

    def _library(self, shapes: Mapping[str, Sequence[int]], fix: Mapping[str, np.ndarray]) -> Built:
        frozen = tuple((name, value.dtype.name, value.shape, value.tobytes()) for name, value in fix.items())
        key = (tuple(shapes.items()), frozen)
        if key not in self._libraries:
            rest = {name: shape for name, shape in shapes.items() if name not in fix}
            try:
                self._libraries[key] = shared_worker().ask(library_of, self._content, rest, dict(fix))
            except PassfitError as error:
                self._libraries[key] = error
        found = self._libraries[key]
        if isinstance(found, PassfitError):
            raise found
        return found


class Backend(onnx.backend.base.Backend):
    """Backend for this machine's processor."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        """Return whether the import takes a model as it is; True with open shapes, which only values decide."""
        if not cls.supports_device(device):
            return False
        if not PreparedModel(model).static:
            return True
        try:
            shared_worker().ask(check_import, model.SerializeToString())
        except PassfitError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> PreparedModel:
        """Compile a model, or wait for its inputs if their shapes are open.

        Raises Unsupported for a model without inputs to freeze, BackendCrash for a bug.
        """
        if not cls.supports_device(device):
            raise Unsupported(f"The device '{device}' is not supported.", "Choose CPU.")
        prepared = PreparedModel(model)
        if prepared.static:
            try:
                prepared.compile()
            except PassfitError as error:
                if not model.graph.input:
                    raise Unsupported(error.what, error.hint) from error
        return prepared

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[np.ndarray, ...]:
        """Return the results of one operator, of the operator set `opset_version` or onnx's newest."""
        names = [name for name in node.input if name]
        values = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, map(np.asarray, inputs), strict=True))
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in values.items()
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        for info, (dtype, shape) in zip(results, outputs_info or ()):
            info.CopyFrom(
                helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            )
        opset = helper.make_opsetid(node.domain, kwargs.get("opset_version", onnx.defs.onnx_opset_version()))
        model = helper.make_model(helper.make_graph([node], "node", given, results), opset_imports=[opset])
        return cls.run_model(model, values, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device is this machine's processor."""
        return device.split(":")[0] == "CPU"


def _narrow_dtype(value: onnx.ValueInfoProto) -> np.dtype | None:
    number = value.type.tensor_type.elem_type
    return np.dtype(helper.tensor_dtype_to_np_dtype(number)) if dtype_of(number) in NARROW else None


def _is_static(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim)


def _frozen_choices(values: Mapping[str, np.ndarray], data_vary: bool) -> Iterator[tuple[str, ...]]:
    """Yield the inputs to freeze, the fewest first: none, those that say shapes and axes, all but the first, all."""
    names = tuple(values)
    told = tuple(name for name, value in values.items() if value.dtype.kind in "iub" or value.size < 2)
    yield from dict.fromkeys(((), told, names[1:], *(() if data_vary else (names,))))
