"""Evaluate a model in double precision, as the truth for both ONNX Runtime and a library.

ONNX's own evaluator works on numpy arrays of any float dtype. It shares no code with TVM or ONNX Runtime, so an error
of either shows as a distance. ONNX Runtime itself lacks most kernels for doubles, including convolution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ...frontend.canonical.read_onnx import operator_set
from ...frontend.canonical.shapes import without_values
from ...frontend.source.keep_outputs import reads
from ...frontend.source.side_files import messages_of, tensors_of

if TYPE_CHECKING:
    import onnx

#: failures of ONNX's evaluator on unsupported operators or forms; its own errors derive from these
_FAILURES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
#: ONNX's number of the dtype
_DOUBLE = 11
#: attributes that name a dtype, of Cast, EyeLike, DequantizeLinear, normalisations and others
_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")


class NoDouble(Exception):
    """Evaluation in double precision is impossible; the message says why."""


class DoubleReference:
    """Canonical model with all floats widened to doubles.

    With `rounded`, sums are sequential in float32, and each result is rounded to the model's dtype: the distance from
    the doubles is then rounding alone.
    """

    def __init__(self, model: onnx.ModelProto, *, rounded: bool = False):
        """Prepare the evaluator. Raises NoDouble for an unsupported operator."""
        from onnx.reference import ReferenceEvaluator

        from .double_operators import OPERATORS

        try:
            operators = [*(_plain(model) if rounded else ()), *OPERATORS]  # of two with one name, the first wins
            self._evaluator = ReferenceEvaluator(_widen_types(model), new_ops=operators)
        except _FAILURES as error:
            raise NoDouble(_reason(error)) from error
        # widened when they are read: all weights as doubles would take twice the model
        self._constants = {each.name: each for each in model.graph.initializer}
        self._reads = [reads(node) for node in model.graph.node]
        self._narrow = _dtypes(model) if rounded else {}

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Evaluate the outputs by name: float64 for floats, other dtypes unchanged.

        Each value is freed after its last reader. Raises NoDouble if an operator fails, or rounds to a narrower float.
        """
        evaluator = self._evaluator
        outputs = set(evaluator.output_names)
        results: dict[str, np.ndarray | None] = {"": None, **{name: _wide(value) for name, value in inputs.items()}}
        readers = Counter(chain.from_iterable(self._reads))
        with np.errstate(all="ignore"):
            for node, names in zip(evaluator.rt_nodes_, self._reads, strict=True):
                try:
                    self._load_constants(results, names)
                    more = {"context": results} if node.need_context() else {}
                    made = node.run(*(results[name] for name in node.input), **more)
                except _FAILURES as error:
                    raise NoDouble(f"{node.op_type}: {_reason(error)}") from error
                for name, value in zip(node.output, made):
                    if isinstance(value, np.ndarray) and _narrow(value.dtype):
                        if any(_is_float(results[each]) for each in node.input):
                            raise NoDouble(f"{node.op_type} is evaluated in {value.dtype}")
                        value = _wide(value)  # made of integers, as the zeros of ConstantOfShape
                    results[name] = (
                        value.astype(self._narrow[name]).astype(np.float64) if name in self._narrow else value
                    )
                for name in names:
                    readers[name] -= 1
                    if name and not readers[name] and name not in outputs:
                        results[name] = None
        self._load_constants(results, evaluator.output_names)
        return {name: np.asarray(results[name]) for name in evaluator.output_names}

    def _load_constants(self, results: dict[str, np.ndarray | None], names: Iterable[str]) -> None:
        """Add the constants of these names to `results`, widened."""
        from onnx import numpy_helper

        for name in names:
            if name in self._constants and name not in results:
                results[name] = _wide(numpy_helper.to_array(self._constants[name]))


def _is_float(value: np.ndarray | None) -> bool:
    return isinstance(value, np.ndarray) and (value.dtype.kind == "f" or value.dtype == ml_dtypes.bfloat16)


def _narrow(dtype: np.dtype) -> bool:
    return (dtype.kind == "f" and dtype.itemsize < 8) or dtype == ml_dtypes.bfloat16


def _plain(model: onnx.ModelProto) -> tuple[type, ...]:
    from .plain_sums import ALONG_ONE_AXIS, OPERATORS

    opset = operator_set(model.opset_import)
    return (*OPERATORS, *(ALONG_ONE_AXIS if opset >= 13 else ()))


def _dtypes(model: onnx.ModelProto) -> dict[str, np.dtype]:
    """Return the dtype of each narrow float result of the model."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(without_values(model)).graph
    values = (*inferred.value_info, *inferred.output)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return {name: onnx.helper.tensor_dtype_to_np_dtype(each) for name, each in types.items() if _is_narrow(each)}


def _wide(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float64) if _narrow(value.dtype) else value


def _widen_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy the model with every narrower float replaced by double, but not its initializers."""
    import onnx

    graph = model.graph
    wide = onnx.helper.make_model(
        onnx.helper.make_graph(graph.node, graph.name, graph.input, graph.output),
        opset_imports=model.opset_import, functions=model.functions, ir_version=model.ir_version,
    )  # fmt: skip
    for inner in messages_of(wide, "GraphProto"):
        for value in (*inner.input, *inner.output):
            if _is_narrow(value.type.tensor_type.elem_type):
                value.type.tensor_type.elem_type = _DOUBLE
    for attribute in messages_of(wide, "AttributeProto"):
        if attribute.name in _DTYPE_ATTRIBUTES and _is_narrow(attribute.i):
            attribute.i = _DOUBLE
    for tensor in tensors_of(wide):
        if _is_narrow(tensor.data_type):
            tensor.CopyFrom(onnx.numpy_helper.from_array(_wide(onnx.numpy_helper.to_array(tensor)), tensor.name))
    return wide


def _is_narrow(elem_type: int) -> bool:
    from onnx import TensorProto

    return elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:200] if lines else type(error).__name__
