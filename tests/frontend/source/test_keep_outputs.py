"""Chosen outputs compute what they do in the whole model, and nothing else is left."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.read_onnx import all_nodes
from passfit.frontend.imported_model import load
from passfit.frontend.source.keep_outputs import keep_outputs

from ...models import model_of, run, save, shape_of

PORTS = ("a", "b", "c")


@st.composite
def graphs(draw) -> onnx.ModelProto:
    """Draw a graph of sums over inputs, constants and earlier results; some nodes read through a subgraph."""
    values, nodes = [*PORTS, "k0", "k1"], []
    for number in range(draw(st.integers(1, 8))):
        left, right = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        name = f"v{number}"
        if draw(st.booleans()):
            nodes.append(helper.make_node("Add", [left, right], [name], name=f"add{number}"))
        else:
            branches = [
                helper.make_graph(
                    [helper.make_node("Sub", [first, second], [f"{name}_{branch}"])],
                    branch,
                    [],
                    [helper.make_tensor_value_info(f"{name}_{branch}", TensorProto.FLOAT, [2])],
                )
                for branch, first, second in (("then", left, right), ("else", right, left))
            ]
            nodes.append(
                helper.make_node("If", ["yes"], [name], f"if{number}", then_branch=branches[0], else_branch=branches[1])
            )
        values.append(name)
    made = values[len(PORTS) + 2 :]
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, unique=True))
    constants = {"k0": np.float32([1, 2]), "k1": np.float32([3, 5]), "yes": np.array(True)}
    return model_of(nodes, dict.fromkeys(PORTS, (2,)), dict.fromkeys(outputs, (2,)), constants)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.data())
def test_chosen_outputs_compute_what_they_do_in_the_whole_model(whole: onnx.ModelProto, data: st.DataObject):
    names = [value.name for value in whole.graph.output]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    less = onnx.ModelProto.FromString(whole.SerializeToString())
    keep_outputs(less, chosen)
    assert [value.name for value in less.graph.output] == [name for name in names if name in chosen]
    inputs = {name: np.float32([number, 7 - number]) for number, name in enumerate(PORTS)}
    expected = dict(zip(names, run(whole, inputs), strict=True))
    left = {value.name for value in less.graph.input}
    results = run(less, {name: value for name, value in inputs.items() if name in left})
    for value, result in zip(less.graph.output, results, strict=True):
        np.testing.assert_array_equal(result, expected[value.name])
    # no value is left that nothing reads
    read = {name for node in all_nodes(less.graph) for name in node.input} | set(chosen)
    assert left | {tensor.name for tensor in less.graph.initializer} <= read
    assert all(read.intersection(node.output) for node in less.graph.node)


def two_heads(folder: Path) -> Path:
    """Save a model of two heads, each with an input of its own beside the common one."""
    nodes = [
        helper.make_node("Relu", ["x"], ["h"], name="trunk"),
        helper.make_node("Add", ["h", "bias"], ["scores"], name="left"),
        helper.make_node("Mul", ["h", "mask"], ["boxes"], name="right"),
    ]
    ports = {"x": (1, 4), "mask": ("n", 4)}
    onnx.save(model_of(nodes, ports, ["scores", "boxes"], {"bias": np.ones(4, np.float32)}), folder / "heads.onnx")
    return folder / "heads.onnx"


def test_an_import_is_of_the_chosen_outputs_and_compared_with_them(tmp_path: Path):
    imported = load(two_heads(tmp_path), outputs=("scores",))
    for model in (imported.onnx, imported.given):
        assert model is not None
        assert [value.name for value in model.graph.input] == ["x"]
        assert [value.name for value in model.graph.output] == ["scores"]
    assert imported.start.kernels == 2 and imported.record["outputs"] == ["scores"]


def test_a_result_inside_may_be_an_output_and_follows_those_of_the_file(tmp_path: Path):
    imported = load(two_heads(tmp_path), outputs=("h", "scores"))
    assert [value.name for value in imported.onnx.graph.output] == ["scores", "h"]
    x = np.float32([[-1, 2, -3, 4]])
    for model in (imported.onnx, imported.given):
        scores, trunk = run(model, {"x": x})
        assert np.array_equal(trunk, np.maximum(x, 0)) and np.array_equal(scores, trunk + 1)
    with pytest.raises(ModelError, match="Did you mean 'trunk'"):
        keep_outputs(model_of([helper.make_node("Relu", ["x"], ["trunk"])], {"x": [1]}, ["y"]), ["trank"])


@pytest.mark.parametrize(("form", "shape"), [("argmax", (1,)), ("float16", (1, 4)), ("top=2", (1, 2))])
def test_a_result_inside_takes_the_forms_of_outputs(tmp_path: Path, form: str, shape: tuple[int, ...]):
    (output, *_) = load(two_heads(tmp_path), outputs={"h": form}).onnx.graph.output
    assert output.name == "h" and shape_of(output) == shape


def test_the_advice_of_a_refusal_can_be_followed(tmp_path: Path):
    nodes = [
        helper.make_node("Compress", ["x", "flags"], ["rows"], axis=0),
        helper.make_node("Relu", ["rows"], ["kept"]),
        helper.make_node("Einsum", ["kept"], ["y"], equation="ij->i"),
    ]
    model = model_of(nodes, {"x": [4, 2], "flags": [4]}, ["y"], dtypes={"flags": TensorProto.BOOL})
    with pytest.raises(ModelError, match="Einsum") as refused:
        load(save(model, tmp_path))
    assert "(--output)" in refused.value.hint
    (read,) = re.findall("reads '(.+)',", refused.value.what)
    imported = load(save(model, tmp_path), outputs=(read,))
    inputs = {"x": np.float32([[1, -2]] * 4), "flags": np.array([True, False, True, False])}
    for each in (imported.onnx, imported.given):
        rows, length = run(each, inputs)
        assert np.array_equal(rows, [[1, 0]] * 2 + [[0, 0]] * 2) and length == [2]


def test_outputs_stay_in_the_order_of_the_file(tmp_path: Path):
    imported = load(two_heads(tmp_path), shapes={"mask": (1, 4)}, outputs=("boxes", "scores"))
    assert [value.name for value in imported.onnx.graph.output] == ["scores", "boxes"]


def test_an_unknown_output_is_refused_with_the_nearest_and_all(tmp_path: Path):
    with pytest.raises(
        ModelError, match="no output 'score', and no node makes it; it has scores, boxes.*Did you mean 'scores'"
    ):
        load(two_heads(tmp_path), outputs=("score",))
