"""Make a faulty case small: fewer nodes, attributes and operands, smaller shapes, simpler values; the verdict stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .cases import Case, write_case
from .draw import Illegal
from .execute import run_seeds
from .judge import Result
from .quantise import names_read
from .reference import expected

#: most trials of one case
_TRIALS = 40


def keep_reduced(case: Case, result: Result, folder: Path) -> Path:
    """Reduce a case and write it below `folder` as an onnx test folder; return its place."""
    small = reduced(case, lambda trial: verdict_of(trial).verdict == result.verdict)
    place = folder / result.verdict / f"{result.title.replace('/', '_')}-{result.seed}"
    write_case(small, place)
    (place / "reason.txt").write_text(f"{verdict_of(small).reason or result.reason}\n", encoding="utf-8")
    return place


def verdict_of(case: Case) -> Result:
    """Run one case in a process of its own."""
    return next(iter(run_seeds(lambda _seed: case, [0])))


def reduced(case: Case, still: Callable[[Case], bool]) -> Case:
    """Return the smallest case found of which `still` holds; `case` itself if nothing smaller does."""
    trials, smaller = 0, True
    while smaller and trials < _TRIALS:
        smaller = False
        for candidate in _simpler(case):
            trials += 1
            if still(candidate):
                case, smaller = candidate, True
                break
            if trials >= _TRIALS:
                break
    return case


def _simpler(case: Case) -> Iterator[Case]:
    """Yield legal cases a step smaller than `case`, the largest steps first."""
    for build in (_earlier_outputs, _later_inputs, _without_attributes, _smaller_sizes):
        for model, inputs in build(case):
            try:
                yield replace(case, model=model, inputs=inputs, outputs=expected(model, inputs))
            except Illegal:
                continue
    if len(case.passes) > 3:
        yield replace(case, passes=("legalize", "fold-constant", "fuse-operators"))


Changed = Iterator[tuple[onnx.ModelProto, dict[str, np.ndarray]]]


def _earlier_outputs(case: Case) -> Changed:
    """End the graph at the result of each node."""
    nodes = case.model.graph.node
    for count in range(1, len(nodes)):
        model = _copy(case.model)
        del model.graph.node[count:]
        del model.graph.output[:]
        model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in nodes[count - 1].output if name)
        pruned = _pruned(model)
        if pruned is not None and len(pruned.graph.node) < len(nodes):
            yield pruned, _rest(pruned, case.inputs)


def _later_inputs(case: Case) -> Changed:
    """Make a value an input, so that the nodes before it go."""
    nodes = case.model.graph.node
    results = [name for node in nodes[:-1] for name in node.output if name]
    if not results:
        return
    model = _copy(case.model)
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in results)
    try:
        values = dict(zip(results, expected(model, case.inputs)[len(case.model.graph.output) :]))
    except Illegal:
        return
    for name in reversed(results):
        model = _copy(case.model)
        value = values[name]
        for node in model.graph.node:
            node.output[:] = ["" if each == name else each for each in node.output]
        model.graph.input.append(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        )
        pruned = _pruned(model)
        if pruned is not None and len(pruned.graph.node) < len(nodes):
            yield pruned, _rest(pruned, {**case.inputs, name: value})


def _without_attributes(case: Case) -> Changed:
    for number, node in enumerate(case.model.graph.node):
        for attribute in range(len(node.attribute)):
            model = _copy(case.model)
            del model.graph.node[number].attribute[attribute]
            yield model, case.inputs


def _smaller_sizes(case: Case) -> Changed:
    """Cut each size to a smaller one in all operands that have it."""
    if len(case.model.graph.node) > 3:
        return
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in case.model.graph.initializer}
    sizes = {size for value in (*case.inputs.values(), *constants.values()) for size in value.shape}
    for size in sorted(sizes, reverse=True):
        for less in sorted({1, 2, size // 2, size - 1}):
            if not 0 < less < size:
                continue
            model = _copy(case.model)
            inputs = {name: _cut(value, size, less) for name, value in case.inputs.items()}
            for tensor in model.graph.initializer:
                tensor.CopyFrom(numpy_helper.from_array(_cut(constants[tensor.name], size, less), tensor.name))
            for value in model.graph.input:
                array = inputs[value.name]
                value.CopyFrom(helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, array.shape))
            for value in model.graph.output:
                value.CopyFrom(helper.make_empty_tensor_value_info(value.name))
            yield model, inputs


def _cut(value: np.ndarray, size: int, less: int) -> np.ndarray:
    return value[tuple(slice(less) if length == size else slice(None) for length in value.shape)]


def _pruned(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Remove nodes, inputs and constants that no output needs."""
    needed = {value.name for value in model.graph.output}
    kept = []
    for node in reversed(model.graph.node):
        if needed & {name for name in node.output if name}:
            kept.append(node)
            needed |= names_read(node)
    if not kept:
        return None
    nodes = [each for each in reversed(kept)]
    graph = helper.make_graph(
        nodes,
        model.graph.name,
        [value for value in model.graph.input if value.name in needed],
        list(model.graph.output),
        [tensor for tensor in model.graph.initializer if tensor.name in needed],
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _rest(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {value.name: inputs[value.name] for value in model.graph.input}


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied
