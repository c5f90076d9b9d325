"""Single operators as the file has them, against ONNX Runtime with nothing optimised: many forms in one library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
from onnx import helper, numpy_helper

from ..frontend.onnx_nodes import NodeCase
from ..models import run
from .building import compile_and_run

#: of the largest finite number expected
TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-6}
PASSES = ("legalize", "fold-constant", "fuse-operators")


def single(
    name: str,
    op: str,
    inputs: Sequence[np.ndarray],
    constants: Mapping[int, np.ndarray] | None = None,
    *,
    opset: int = 18,
    results: int = 1,
    **attributes: Any,
) -> NodeCase:
    """Return a case of one node; `constants` are operands by place, the others are `inputs` in order."""
    fixed = {place: np.asarray(value) for place, value in (constants or {}).items()}
    left = iter(inputs)
    operands = [fixed[place] if place in fixed else np.asarray(next(left)) for place in range(len(fixed) + len(inputs))]
    names = [f"x{place}" for place in range(len(operands))]
    given = {title: value for place, (title, value) in enumerate(zip(names, operands)) if place not in fixed}
    ports = [
        helper.make_tensor_value_info(title, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for title, value in given.items()
    ]
    outputs = [onnx.ValueInfoProto(name=f"y{place}") for place in range(results)]
    weights = [numpy_helper.from_array(value, names[place]) for place, value in fixed.items()]
    node = helper.make_node(op, names, [each.name for each in outputs], name="node")
    for title, value in attributes.items():
        kind = onnx.AttributeProto.INTS if isinstance(value, list) and not value else None
        node.attribute.append(helper.make_attribute(title, value, attr_type=kind))
    graph = helper.make_graph([node], "single", ports, outputs, weights)
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), data_prop=True
    )
    return NodeCase(name, op, model, given, tuple(_expected(model, given)), 0, 0)


def _expected(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

    try:
        return [np.asarray(each) for each in run(model, inputs)]
    except NoKernel:
        return [np.asarray(each) for each in onnx.reference.ReferenceEvaluator(model).run(None, inputs)]


def wrong(cases: Sequence[NodeCase], folder: Path) -> dict[str, str]:
    """Compile all cases into one library, run it; return the cases whose results differ, with both."""
    outcomes = compile_and_run(cases, PASSES, folder)
    found = {}
    for case in cases:
        outcome = outcomes[case.name]
        if outcome.refusal or outcome.failure:
            found[case.name] = outcome.refusal or outcome.failure
        elif not all(map(_same, outcome.outputs, case.outputs)):
            found[case.name] = f"{outcome.outputs} instead of {case.outputs}"
    return found


def _same(result: np.ndarray, expected: np.ndarray) -> bool:
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return False
    if expected.dtype.kind != "f":
        return np.array_equal(result, expected)
    finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.allclose(
            result,
            expected,
            rtol=0,
            atol=TOLERANCE[expected.dtype.name] * max(finite.max(initial=0), 1e-3),
            equal_nan=True,
        )
