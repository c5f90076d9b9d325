"""Compute a node of constants by ONNX Runtime, in the operator set of its model.

ONNX's own evaluator in Python is wrong for many operators: Softmax below set 13, BatchNormalization, Resize in three
dimensions, cubic GridSample at borders, IsInf of one sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....support.background import compute_apart
from ..read_onnx import NEWEST

if TYPE_CHECKING:
    import onnx
    import onnxruntime

#: the file version of the graphs, with all dtypes of that set
_IR = 10
#: computes outputs from inputs, or says why it cannot
Run = Callable[[Mapping[str, np.ndarray]], "list[np.ndarray] | str"]
#: processors trap at integers divided by 0, and at the smallest one divided by -1
_DIVIDES = frozenset({"Div", "Mod"})


def evaluate(node: onnx.NodeProto, constants: Sequence[onnx.TensorProto], opset: int) -> list[np.ndarray] | str:
    """Return the results of a node of constants, in the order of its named outputs; else the reason there is none."""
    from onnx import helper

    if _traps(node, constants):
        return "it divides by 0"
    made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    run = evaluator(helper.make_graph([node], "constant", [], made, constants), opset)
    return run if isinstance(run, str) else run({})


def evaluator(graph: onnx.GraphProto, opset: int) -> Run | str:
    """Return a function from a graph's inputs to its outputs, in order; else the reason there is none.

    It runs the graph as it is, on one thread, and returns a reason, too, if that fails.
    """
    import onnxruntime
    from onnx import helper

    onnxruntime.set_default_logger_severity(4)  # it warns of old attributes past the options of a session
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", min(opset, NEWEST))], ir_version=_IR)
    try:
        session = open_session(model.SerializeToString())
    except failures_of_runs() as error:
        return first_line(error)
    kinds = [each.type for each in session.get_outputs()]

    def run(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray] | str:
        try:
            results = session.run(None, dict(inputs))
        except failures_of_runs(RuntimeError) as error:  # of a dtype that numpy lacks
            return first_line(error)
        if not all(isinstance(value, (np.ndarray, np.generic)) for value in results):
            return "a result is not a tensor"
        if any(value.dtype == np.uint8 and kind != "tensor(uint8)" for value, kind in zip(results, kinds, strict=True)):
            return "a result has a dtype that comes as bytes"
        return [np.asarray(value) for value in results]

    return run


def reason_against(
    node: onnx.NodeProto, inputs: Mapping[str, onnx.TypeProto], constants: Sequence[onnx.TensorProto], sets: Sequence
) -> str:
    """Return ONNX Runtime's reason not to load a node by itself, "" if it does; it may crash at a malformed one."""
    from onnx import helper

    given = [helper.make_value_info(name, kind) for name, kind in inputs.items()]
    made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "alone", given, made, constants)
    content = helper.make_model(graph, opset_imports=sets, ir_version=_IR).SerializeToString()

    def load() -> str:
        try:
            open_session(content)
        except failures_of_runs(RuntimeError, ValueError) as error:
            return first_line(error)
        return ""

    try:
        return str(compute_apart(load))
    except ChildProcessError as error:
        return f"ONNX Runtime {error}"


def open_session(model: bytes | Path, *, optimized: bool = False) -> onnxruntime.InferenceSession:
    """Load a model, or its file, in ONNX Runtime, silent and on one thread; `optimized` lets it fuse and reorder."""
    import onnxruntime

    level = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # weights that nodes dequantise: in ONNX Runtime's own order, all of them at once
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.log_severity_level = 4  # errors are raised as exceptions
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    session._model_bytes = None  # it would hold the model a second time
    return session


def failures_of_runs(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the exceptions of ONNX Runtime for models that it does not load or run, and `others`."""
    from onnxruntime.capi import onnxruntime_pybind11_state as ort

    return ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException, *others


def declare_types(model: onnx.ModelProto) -> None:
    """Declare, in place, the types that ONNX Runtime infers of results without one: it knows vendors' operators.

    Nothing changes where it does not load the model.
    """
    from onnx import TensorProto, helper

    known = {value.name for value in (*model.graph.value_info, *model.graph.output)}
    names = [name for node in model.graph.node for name in node.output if name and name not in known]
    wider = deepcopy(model)
    wider.graph.output.extend(map(helper.make_empty_tensor_value_info, names))
    try:
        session = open_session(wider.SerializeToString())
    except failures_of_runs(ValueError):
        return
    for value in session.get_outputs():
        number = getattr(TensorProto, value.type.removeprefix("tensor(").rstrip(")").upper(), 0)
        if value.name not in known and number and all(isinstance(each, int) for each in value.shape):
            shape = value.shape or None  # it calls an unknown rank that of a scalar
            model.graph.value_info.append(helper.make_tensor_value_info(value.name, number, shape))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _traps(node: onnx.NodeProto, constants: Sequence[onnx.TensorProto]) -> bool:
    """Return whether a node divides integers by 0 or, perhaps, the smallest one by -1."""
    from onnx import numpy_helper

    if node.op_type not in _DIVIDES or len(node.input) != 2:
        return False
    values = {tensor.name: tensor for tensor in constants}
    dividend, divisor = (numpy_helper.to_array(values[name]) for name in node.input)
    if divisor.dtype.kind not in "iu":
        return False
    smallest = dividend.dtype.kind == "i" and (dividend == np.iinfo(dividend.dtype).min).any()
    return bool((divisor == 0).any() or (smallest and (divisor == -1).any()))
