"""Collect ONNX's own test cases of single operators: model, inputs, expected outputs.

The onnx package itself makes the cases (`onnx.backend.test.case.node`). Inputs that only say shapes, axes and
the like become constants of the model, since a compiled library has static shapes.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.shape_inference
from onnx import numpy_helper

from passfit.frontend.canonical.ports.values import widened

#: what ONNX Runtime has run for a while
NEWEST_OPSET = 22

#: inputs, by position, that must be known before the model runs
CONSTANT_INPUTS = {
    "Clip": (1, 2), "ConstantOfShape": (0,), "CumSum": (1,), "Dropout": (1, 2), "Expand": (1,), "OneHot": (1, 2),
    "Pad": (1, 2, 3), "Range": (0, 1, 2), "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,), "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,),
    "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4),
    "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
    "CenterCropPad": (1,), "AffineGrid": (1,), "LayerNormalization": (1, 2), "BatchNormalization": (1, 2, 3, 4),
    "DequantizeLinear": (1, 2), "QuantizeLinear": (1, 2), "LSTM": (1, 2, 3, 7), "GRU": (1, 2, 3), "RNN": (1, 2, 3),
    "Col2Im": (1, 2), "Compress": (1,), "CumProd": (1,), "DFT": (1, 2), "STFT": (1, 3),
}  # fmt: skip

#: operators that models for small devices are made of
COMMON = (
    "Abs", "Add", "And", "ArgMax", "ArgMin", "AveragePool", "BatchNormalization", "Cast", "Ceil", "Celu", "Clip",
    "Concat", "ConstantOfShape", "Conv", "ConvTranspose", "Cos", "CumSum", "DepthToSpace", "DequantizeLinear",
    "Div", "Dropout", "Einsum", "Elu", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "GRU", "Gather",
    "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "Greater", "GreaterOrEqual",
    "GroupNormalization", "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "LRN", "LSTM",
    "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "MatMul",
    "Max", "MaxPool", "Mean", "MeanVarianceNormalization", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu",
    "Pad", "Pow", "QuantizeLinear", "RNN", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Reshape", "Resize", "Round", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Size", "Slice", "Softmax",
    "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh",
    "ThresholdedRelu", "Tile", "Transpose", "Trilu", "Unsqueeze", "Upsample", "Where", "Xor",
)  # fmt: skip


@dataclass(frozen=True)
class NodeCase:
    """One operator in one form; `inputs` by name, `outputs` in the model's order."""

    name: str
    op: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: tuple[np.ndarray, ...]
    rtol: float
    atol: float

    def __repr__(self) -> str:
        return self.name


@functools.cache
def all_cases() -> tuple[NodeCase, ...]:
    """Return every case with numeric tensors as inputs and outputs, in a fixed order."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [_read(case) for case in collect_testcases(None)]
    return tuple(sorted((case for case in found if case is not None), key=lambda case: case.name))


@functools.cache
def cases_of(op: str, most: int = 3) -> tuple[NodeCase, ...]:
    """Return at most `most` cases of an operator, spread over its forms.

    Making the cases takes seconds: call this inside a test, and parametrize by COMMON.
    """
    forms = [case for case in all_cases() if case.op == op and "expanded" not in case.name]
    count = min(most, len(forms))
    return tuple(forms[index * len(forms) // count] for index in range(count))


def _lower_opset(model: onnx.ModelProto) -> None:
    """Declare a set that ONNX Runtime runs, if the operator is valid in it.

    The newest sets only add dtypes.
    """
    newest = next((each for each in model.opset_import if not each.domain), None)
    if newest is None:
        return
    declared = newest.version
    newest.version = min(declared, NEWEST_OPSET)
    model.ir_version = min(model.ir_version, 10)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError):
        newest.version = declared


def _read(case: object) -> NodeCase | None:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    values, expected = case.data_sets[0]
    inputs = {}
    for info, value in zip(model.graph.input, values):
        if not info.type.HasField("tensor_type") or isinstance(value, list) or value is None:
            return None
        if isinstance(value, onnx.TensorProto):
            value = numpy_helper.to_array(value)
        inputs[info.name] = np.asarray(value)
    outputs = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in expected]
    arrays = [*inputs.values(), *outputs]
    if any(not isinstance(a, (np.ndarray, np.generic)) or np.asarray(a).dtype.kind not in "biuf" for a in arrays):
        return None
    op = model.graph.node[0].op_type
    for node in model.graph.node:
        for position in CONSTANT_INPUTS.get(node.op_type, ()):
            if position < len(node.input) and node.input[position] in inputs:
                name = node.input[position]
                model.graph.initializer.append(numpy_helper.from_array(inputs.pop(name), name))
    kept = [info for info in model.graph.input if info.name in inputs]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    _lower_opset(model)
    wide = {name: widened(value) for name, value in inputs.items()}
    return NodeCase(
        case.name, op, model, wide, tuple(widened(np.asarray(each)) for each in outputs), case.rtol, case.atol
    )
