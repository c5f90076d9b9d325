"""A name that an import makes may be one of the file: of a value, a constant or a node, in the graph or inside of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from passfit.frontend.canonical.node_builder import Names
from passfit.frontend.canonicalise import import_model

from ...models import run, save

_HEAD = '<ir_version: 8, opset_import: ["" : {}, "com.microsoft" : 1]> m (float[2, 3] x) => (float[{}] y) '
_BODY = "body = b (int64 i, bool c, float[2, 3] h) => (bool d, float[2, 3] k, float[2, 3] row) {"
#: a form of each kind that makes names: operator set, size of the output, nodes
FORMS = {
    "rewritten": (18, "2, 1", "<int64[1] a = {1}> { [n] y = ReduceLogSumExp(x, a) }"),
    "rewritten twice": (18, "2, 3", "{ [n] b = Celu(x) [m] y = Celu(b) }"),
    "raised": (9, "2, 3", "{ [n] b = Clip<min = -0.5, max = 0.5>(x) [m] y = Hardmax(b) }"),
    "expanded": (17, "2, 3", "<float[3] g = {1, 2, 3}> { [n] y = com.microsoft.SkipLayerNormalization(x, x, g) }"),
    "branches": (
        17,
        "2, 3",
        """<int64 a = {0}> {
            s = ReduceSum<keepdims = 0>(x) z = Sub(s, s) c = Less(z, s)
            [n] b = If(c) <then_branch = t () => (float[2, 3] v) <float k = {2}> { w = Mul(x, k) v = Neg(w) },
                           else_branch = e () => (float[2, 3] v) <float k = {3}> { w = Mul(x, k) v = Abs(w) }>
            y = Neg(b)
        }""",
    ),
    "one branch": (
        17,
        "2, 3",
        """<bool c = {1}> {
            [n] b = If(c) <then_branch = t () => (float[2, 3] v) { w = Abs(x) v = Neg(w) },
                           else_branch = e () => (float[2, 3] v) { v = Abs(x) }>
            y = Neg(b)
        }""",
    ),
    "unrolled": (
        17,
        "3, 2, 3",
        f"<int64 t = {{3}}, bool go = {{1}}> {{ [n] b, y = Loop(t, go, x) <{_BODY} d = Identity(c) k = Neg(h) row = Abs(k) }}> }}",
    ),
    "long": (
        17,
        "300, 2, 3",
        f"<int64 t = {{300}}, bool go = {{1}}> {{ [n] b, y = Loop(t, go, x) <{_BODY} d = Identity(c) k = Neg(h) row = Abs(k) }}> }}",
    ),
    "recurrent": (
        17,
        "2, 1, 2, 1",
        """<float[1, 1, 3] w = {1, 2, 3}, float[1, 1, 1] r = {1}, int64[3] s = {2, 1, 3}, int64[4] a = {2, 1, 2, 1}> {
            z = Reshape(x, s) zz = Concat<axis = 1>(z, z) [n] q = RNN<hidden_size = 1>(zz, w, r) y = Reshape(q, a)
        }""",
    ),
    "quantised": (
        17,
        "2, 3",
        """<float s = {0.1}, int8 z = {1}, int8[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
            a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) v = DequantizeLinear(w, s, z)
            [n] c = MatMul(b, v) d = QuantizeLinear(c, s, z) [m] y = DequantizeLinear(d, s, z)
        }""",
    ),
    "empty": (17, "2, 3", "<int64[2] s = {0, 3}, float[0, 3] e = {}> { [n] y = Concat<axis = 0>(e, x) }"),
    "constant output": (17, "2", "<float[2] a = {1, 2}> { [n] y = Neg(a) }"),
}


def model_of(form: str) -> onnx.ModelProto:
    version, size, nodes = FORMS[form]
    return parser.parse_model(_HEAD.format(version, size) + nodes)


def with_values_called(model: onnx.ModelProto, names: list[str], inside: bool) -> onnx.ModelProto:
    """Return the model with a second path x2 ─► y2 whose nodes, values and constants have these names."""
    nodes, constants, before = [], [], "x2"
    for number, name in enumerate(names):
        if number % 3 == 2:
            constants.append(numpy_helper.from_array(np.float32(number), name))
            nodes.append(helper.make_node("Add", [before, name], [f"sum{number}"], name=f"last{number}"))
        else:
            nodes.append(helper.make_node("Neg", [before], [name], name=name))
        before = nodes[-1].output[0]
    if inside:
        nodes.append(helper.make_node("Identity", [before], ["last_inside"]))
        branch = helper.make_graph(nodes, "b", [], [helper.make_empty_tensor_value_info("last_inside")], constants)
        sums = [
            helper.make_node("ReduceMax", ["x2"], ["most"], keepdims=0),
            helper.make_node("Less", ["most", "most"], ["never"]),
        ]
        nodes, before = (
            [*sums, helper.make_node("If", ["never"], ["of_if"], then_branch=branch, else_branch=branch)],
            "of_if",
        )
    else:
        model.graph.initializer.extend(constants)
    model.graph.input.append(helper.make_tensor_value_info("x2", 1, [4]))
    model.graph.output.append(helper.make_tensor_value_info("y2", 1, [4]))
    own = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*own, *nodes, helper.make_node("Identity", [before], ["y2"])])
    return model


@pytest.mark.parametrize("inside", [False, True], ids=["values", "values of a branch"])
@pytest.mark.parametrize("form", FORMS)
def test_names_that_an_import_makes_may_be_names_of_the_file(
    form: str, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    ask = Names.new

    def note(names: Names, name: str) -> str:
        made.append(name)
        return ask(names, name)

    with monkeypatch.context() as patched:
        patched.setattr(Names, "new", note)
        canonical = import_model(save(model_of(form), tmp_path))
    own = {value.name for value in (*model_of(form).graph.input, *model_of(form).graph.output)}
    own |= {name for node in model_of(form).graph.node for name in (node.name, *node.output)}
    own |= {tensor.name for tensor in model_of(form).graph.initializer}
    made += [name for node in canonical.graph.node for name in (node.name, *node.output)]
    names = sorted({each for each in made if each} - own)
    clashing = with_values_called(model_of(form), names, inside)
    inputs = {"x": np.float32([[1, -2, 3], [4, 5, -6]]), "x2": np.float32([1, 2, 3, -4])}
    found = run(import_model(save(clashing, tmp_path, "clashing.onnx")), inputs)
    for value, expected in zip(found, run(clashing, inputs), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
