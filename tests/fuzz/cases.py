"""A case of the fuzzer: a model with inputs, drawn from a seed; its reference; and its form as an onnx test folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.defs
import onnx.shape_inference
from onnx import helper, numpy_helper

from .draw import Draw, Illegal
from .operators import TABLE
from .reference import expected

#: first operator set, and the last one that ONNX Runtime knows
OLDEST, NEWEST = 7, 23
#: draws until a seed is given up
_DRAWS = 12


@dataclass(frozen=True)
class Case:
    """Model with inputs by name and the outputs expected of it; `title` names what it is about, `passes` compile it."""

    title: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: tuple[np.ndarray, ...] = ()
    passes: tuple[str, ...] = ()

    def with_model(self, model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> Case:
        """Return the case of another model, with its own reference. Raises Illegal."""
        return replace(self, model=model, inputs=dict(inputs), outputs=expected(model, inputs))


@cache
def forms() -> tuple[tuple[str, int, int], ...]:
    """List operator, first and last set of each form with a function in the table."""
    versions: dict[str, list[int]] = {name: [] for name in sorted(TABLE)}
    ends: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in TABLE:
            if schema.deprecated:
                ends[schema.name] = schema.since_version
            else:
                versions[schema.name].append(schema.since_version)
    result = []
    for name, found in versions.items():
        found.sort()
        for since, following in zip(found, [*found[1:], ends.get(name, NEWEST + 1)]):
            last = min(following - 1, NEWEST)
            if last >= max(since, OLDEST):
                result.append((name, max(since, OLDEST), last))
    return tuple(result)


def operator_case(seed: int, only: str = "") -> Case:
    """Draw a model of one operator. Raises Illegal if no draw is legal."""
    chosen = [form for form in forms() if not only or form[0] in only.split(",")]
    name, first, last = chosen[seed % len(chosen)]
    reason = ""
    for attempt in range(_DRAWS):
        random = np.random.default_rng([1, seed, attempt])
        opset = int(random.integers(first, last + 1))
        draw = Draw(random, onnx.defs.get_schema(name, opset, ""))
        try:
            TABLE[name](draw)
            return _assembled(draw, opset)
        except Illegal as error:
            reason = str(error)
    raise Illegal(f"{name}-{first}: {reason}")


def _assembled(draw: Draw, opset: int) -> Case:
    mode = draw.choice(("computed", "computed", "computed", "folded", "mixed"))
    name, inputs, constants, names = draw.schema.name, {}, [], []
    for position, value in enumerate(draw.operands):
        names.append("" if value is None else f"x{position}")
        if value is None:
            continue
        fixed = position in draw.told or mode == "folded" or (mode == "mixed" and draw.chance(0.6))
        if fixed:
            constants.append(numpy_helper.from_array(np.asarray(value), names[-1]))
        else:
            inputs[names[-1]] = np.asarray(value)
    while names and not names[-1]:
        names.pop()
    results = [f"y{number}" for number in range(draw.results)]
    node = helper.make_node(name, names, results, name="node", **draw.attributes)
    given = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for key, value in inputs.items()
    ]
    graph = helper.make_graph(
        [node], "fuzz", given, [helper.make_empty_tensor_value_info(each) for each in results], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 21 else 10)
    outputs = expected(model, inputs)
    if len(outputs) != len(results) or any(value.size == 0 or value.dtype == object for value in outputs):
        raise Illegal("an empty result")
    inferred = onnx.shape_inference.infer_shapes(model).graph.output
    if any(
        info.type.tensor_type.elem_type not in (0, helper.np_dtype_to_tensor_dtype(value.dtype))
        for info, value in zip(inferred, outputs)
    ):
        raise Illegal("the reference returns another dtype than the schema says")
    for info, value in zip(model.graph.output, outputs):
        info.CopyFrom(
            helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        )
    return Case(f"{name}-{draw.version}", model, inputs, outputs, sequence(draw.random))


def sequence(random: np.random.Generator) -> tuple[str, ...]:
    """Draw a sequence of passes for a single operator."""
    before = [
        name
        for name in ("canonicalize-bindings", "decompose-ops-for-inference", "fold-batchnorm-to-conv2d", "simplify")
        if random.random() < 0.2
    ]
    return (
        *before,
        "legalize",
        "fold-constant",
        "fuse-operators",
        *(("share", "order") if random.random() < 0.5 else ()),
    )


def write_case(case: Case, folder: Path) -> None:
    """Write a case as an onnx test folder."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    (folder / "passes.txt").write_text("\n".join(case.passes) + "\n", encoding="utf-8")
    for number, value in enumerate(case.model.graph.input):
        tensor = numpy_helper.from_array(case.inputs[value.name], value.name)
        (data / f"input_{number}.pb").write_bytes(tensor.SerializeToString())
    for number, (value, array) in enumerate(zip(case.model.graph.output, case.outputs)):
        (data / f"output_{number}.pb").write_bytes(
            numpy_helper.from_array(np.asarray(array), value.name).SerializeToString()
        )


def read_case(folder: Path) -> Case:
    """Read an onnx test folder."""
    model, data = onnx.load(folder / "model.onnx"), folder / "test_data_set_0"
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in constants]
    inputs = {name: _tensor(data / f"input_{number}.pb") for number, name in enumerate(names)}
    outputs = tuple(_tensor(data / f"output_{number}.pb") for number in range(len(model.graph.output)))
    passes = (folder / "passes.txt").read_text(encoding="utf-8").split("\n") if (folder / "passes.txt").exists() else []
    return Case(folder.name, model, inputs, outputs, tuple(filter(None, passes)))


def _tensor(file: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
