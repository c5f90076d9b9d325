"""Results expected of a model: ONNX Runtime's, nothing optimised; those of ONNX's evaluator in Python if it lacks a kernel.

The evaluator is wrong in some forms (pipeline/verify/doubles/evaluator_faults.py), or for some values: such cases are illegal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper
from onnx.reference.op_run import OpRun

from passfit.frontend.canonical.shapes import static_shape
from passfit.verify.doubles.double_operators import OPERATORS, PaddedWindows
from passfit.verify.doubles.evaluator_faults import evaluator_fault

from .draw import Illegal

#: the set whose Clip is a function to ONNX Runtime for other floats than float32: infinity passes a missing bound only there
_CLIP_OF_NO_KERNEL = 11
#: the set from which on a softmax is along one axis
_ONE_AXIS = 13
#: of a whole number, so near a sum of rounded products is
_NEAR = 1e-3
#: dtypes that ONNX Runtime's Python interface does not take, by number
_FOREIGN = frozenset({onnx.TensorProto.BFLOAT16})


def expected(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return ONNX Runtime's results, nothing optimised; ONNX's reference evaluator's if it lacks a kernel.

    Raises Illegal for a model that neither takes, or the evaluator alone, wrongly.
    """
    from ..models import run

    dtypes = {value.type.tensor_type.elem_type for value in model.graph.input}
    try:
        if dtypes & _FOREIGN:
            return by_reference(model, inputs)
        return tuple(map(np.asarray, run(model, inputs)))
    except Illegal:
        raise
    except Exception as error:  # ONNX Runtime has an exception class for each of its codes
        if "NOT_IMPLEMENTED" not in str(error) and "opset" not in str(error).lower():
            raise Illegal(str(error)[:200]) from error
    return by_reference(model, inputs)


def by_reference(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], operators: Sequence[type] = (), casts: bool = False
) -> tuple[np.ndarray, ...]:
    """Return the results of ONNX's reference evaluator, `operators` replaced; with `casts` in the dtypes they should have.

    Raises Illegal.
    """
    from onnx.reference import ReferenceEvaluator

    try:
        if fault := evaluator_fault(model) or _wrong_values(model, inputs):
            raise Illegal(fault)
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True).graph.output
        with np.errstate(all="ignore"):
            results = tuple(
                map(np.asarray, ReferenceEvaluator(model, new_ops=[*operators, *OPERATORS]).run(None, dict(inputs)))
            )
    except Illegal:
        raise
    except Exception as error:  # written in Python: whatever an operator's function raises
        raise Illegal(str(error)[:200]) from error
    dtypes = [helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type or 1) for info in inferred]
    # numpy adds int32 in int64
    kinds = "iuf" if casts else "iu"
    results = tuple(
        value.astype(dtype) if value.dtype.kind == dtype.kind in kinds else value
        for value, dtype in zip(results, dtypes)
    )
    for info, dtype, value in zip(inferred, dtypes, results):
        if static_shape(info.type) not in (None, value.shape) or (
            info.type.tensor_type.elem_type and dtype != value.dtype
        ):
            raise Illegal("ONNX's evaluator returns another shape or dtype than ONNX infers")
    return results


def second_opinions(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield other results that are as right as ONNX Runtime's, which differ for NaN and infinities.

    They are those of ONNX's evaluator, with and without sums over padding, and of the pixels alone that a resized one is made of.
    """
    for operators in ((), (Conv,)):
        try:
            yield by_reference(model, inputs, operators, casts=True)
        except Illegal:
            continue
    operators = [node.op_type for node in model.graph.node]
    if operators in (["Resize"], ["Upsample"]) and model.graph.node[0].input[0] in inputs:
        yield from _of_weighed_pixels(model, inputs)
    if operators in (["LogSoftmax"], ["Softmax"]) and model.opset_import[0].version < _ONE_AXIS:
        yield (_softmax_of_rows(model, inputs),)
    if operators == ["Clip"] and model.opset_import[0].version == _CLIP_OF_NO_KERNEL:
        newer = onnx.ModelProto.FromString(model.SerializeToString())
        newer.opset_import[0].version += 1
        yield expected(newer, inputs)


def _softmax_of_rows(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a softmax over all dimensions from an axis on: ONNX Runtime's of doubles makes 1e-20 of a sum that is NaN."""
    (node,) = model.graph.node
    values = {**inputs, **{tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}}[
        node.input[0]
    ]
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    rows = values.reshape(math.prod(values.shape[:axis]) if axis else 1, -1)
    with np.errstate(all="ignore"):
        less = rows - rows.max(axis=1, keepdims=True)
        total = np.exp(less).sum(axis=1, keepdims=True)
        found = less - np.log(total) if node.op_type == "LogSoftmax" else np.exp(less) / total
    return found.reshape(values.shape).astype(values.dtype)


def _of_weighed_pixels(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray]]:
    """Yield a resized picture of pixels that count by the weights of ONNX Runtime, and others by pixels that hardly do.

    Infinity times 0 is NaN, and times a rounded 0 infinite: of the pixels around a place, ONNX Runtime leaves some of weight 0 out.
    Whole numbers that it rounds toward 0 are on either side of one.
    """
    name = model.graph.node[0].input[0]
    picture = inputs[name]
    if picture.dtype.kind in "iu":
        (exact,) = expected(_of_floats(model), {**inputs, name: picture.astype(np.float32)})
        yield from ((np.trunc(exact + less).astype(picture.dtype),) for less in (-_NEAR, _NEAR))
        return

    def resized(values: np.ndarray) -> np.ndarray:
        return expected(model, {**inputs, name: values.astype(picture.dtype)})[0]

    finite = np.isfinite(picture)
    result = resized(np.where(finite, picture, 0))
    above, below, neither = (resized(each) for each in (picture == np.inf, picture == -np.inf, np.isnan(picture)))
    result = np.where(above != 0, np.copysign(np.inf, above), np.where(below != 0, np.copysign(np.inf, -below), result))
    yield (np.where((neither != 0) | ((above != 0) & (below != 0)), np.nan, result).astype(picture.dtype),)
    around = np.isnan(resized(np.where(finite, 0, np.nan)))
    yield from ((np.where(around, each, result).astype(picture.dtype),) for each in (np.nan, np.inf, -np.inf))


def _of_floats(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of one node with its first operand, and its result, in float32."""
    floats = onnx.ModelProto.FromString(model.SerializeToString())
    for value in (*floats.graph.input, *floats.graph.output):
        if value.name in (floats.graph.node[0].input[0], floats.graph.node[0].output[0]):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return floats


class Conv(OpRun):
    """Convolution that leaves padding out, as ONNX Runtime's own kernels do once it optimises: 0 · inf is NaN."""

    op_domain = ""

    def _run(self, X, W, B=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        windows = PaddedWindows.of(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad)
        groups, (filters, inner), ones = group or 1, W.shape[:2], (1,) * len(windows.out)
        wide = np.float32 if X.dtype == np.float16 else X.dtype
        padded, inside = windows.padded(X.astype(wide), 0), windows.padded(np.ones_like(X), 0)
        total = np.zeros((len(X), groups, filters // groups, *windows.out), wide)
        for position, slices in windows.positions():
            seen, real = (
                each[(..., *slices)].reshape(len(X), groups, 1, inner, *windows.out) for each in (padded, inside)
            )
            weights = W[(..., *position)].reshape(1, groups, -1, inner, *ones)
            total += np.where(real != 0, seen * weights, 0).sum(axis=3, dtype=wide)
        result = total.reshape(len(X), filters, *windows.out)
        return ((result if B is None else result + B.reshape(-1, *ones)).astype(X.dtype),)


def _wrong_values(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> str:
    """Say for which operand of a node the evaluator's result is wrong; "" for none."""
    values = {**inputs, **{tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}}
    for node in model.graph.node:
        place, wrong = _VALUES.get(node.op_type, (0, None))
        if wrong and node.input[place] in values and (why := wrong(values[node.input[place]])):
            return f"ONNX's evaluator computes {node.op_type} wrongly: {why}"
    return ""


def _norm(values: np.ndarray) -> str:
    if values.dtype.kind not in "iu":
        return ""
    return "its squares overflow" if (values.astype(np.float64) ** 2).sum() > np.iinfo(values.dtype).max else ""


def _norm_of_numbers(values: np.ndarray) -> str:
    return "NaN is none of its elements" if values.dtype.kind == "f" and np.isnan(values).any() else ""


def _mean(values: np.ndarray) -> str:
    if values.dtype.kind not in "iu":
        return ""
    return "its sum overflows" if np.abs(values.astype(np.float64)).sum() > np.iinfo(values.dtype).max else ""


def _multiplied(values: np.ndarray) -> str:
    return "infinity times 0" if values.dtype.kind == "f" and not np.isfinite(values).all() else ""


#: operators by what is wrong with the evaluator's results for some values of an operand
_VALUES: dict[str, tuple[int, Callable[[np.ndarray], str]]] = {
    "LpPool": (0, _norm_of_numbers), "OneHot": (2, _multiplied), "ReduceL2": (0, _norm), "ReduceMean": (0, _mean),
}  # fmt: skip
