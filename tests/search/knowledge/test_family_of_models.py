"""Families of real architectures, imported from ONNX, whatever their nodes are named."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

from onnx import helper

from benchmarks.zoo import BUILDERS
from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.relax.to_relax import to_relax
from passfit.search.knowledge.family import family_of
from passfit.search.knowledge.graph_features import read_graph

from ...models import NodeBuilder, model_of
from ..test_search import network

pytestmark = pytest.mark.tvm

#: the zoo's models of small weights; the others are classified when the shipped knowledge is learnt
ZOO = {
    "mobilenet_v1": "mobile", "mobilenet_v2": "mobile", "efficientnet_b0": "mobile", "squeezenet1.1": "plain",
    "yolov4-tiny": "detector", "densenet121": "plain",
}  # fmt: skip


def family(model):
    return family_of(read_graph(to_relax(canonicalize(model))))


@pytest.mark.parametrize(("name", "expected"), ZOO.items())
def test_networks_of_the_zoo(name, expected):
    assert family(BUILDERS[name]()) == expected


def attention(build, x, width=8):
    """Self-attention over rows of one sequence, with a mask added to the scores."""
    q, k, v = (build.node("MatMul", x, build.weight(width, width)) for _ in range(3))
    scores = build.node("MatMul", q, build.node("Transpose", k, perm=[0, 2, 1]))
    scores = build.node("Div", scores, build.constant(np.float32(2.0)))
    scores = build.node("Softmax", build.node("Add", scores, build.weight(1, 6, 6)), axis=-1)
    return build.node("Add", x, build.node("MatMul", build.node("MatMul", scores, v), build.weight(width, width)))


def encoder(build, blocks):
    x = "x"
    for _ in range(blocks):
        x = attention(build, x)
        hidden = build.node("Relu", build.node("MatMul", x, build.weight(8, 16)))
        x = build.node("Add", x, build.node("MatMul", hidden, build.weight(16, 8)))
    return build.model((1, 6, 8), x)


def test_an_encoder_is_a_transformer():
    assert family(encoder(NodeBuilder(), 1)) == family(encoder(NodeBuilder(), 3)) == "transformer"


def test_a_transformer_of_images_starts_with_one_convolution():
    build = NodeBuilder()
    patches = build.node("Conv", "x", build.weight(8, 3, 4, 4), strides=[4, 4])
    x = build.node("Transpose", build.node("Reshape", patches, build.constant(np.array([1, 8, 6]))), perm=[0, 2, 1])
    for _ in range(2):
        x = attention(build, x)
    assert family(build.model((1, 3, 8, 12), x)) == "transformer"


def test_rows_of_products_are_dense():
    build = NodeBuilder()
    x = "x"
    for _ in range(3):
        x = build.node("Relu", build.node("Gemm", x, build.weight(8, 8)))
    assert family(build.model((1, 8), x)) == "dense"


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("steps", [1, 5])
def test_recurrent_nodes_are_recurrent_as_one_step_and_as_a_loop(operator, gates, steps):
    random = np.random.default_rng(0)
    hidden = 4
    weights = {
        "w": random.standard_normal((1, gates * hidden, 6)).astype("float32"),
        "r": random.standard_normal((1, gates * hidden, hidden)).astype("float32"),
    }
    states = {"h": [1, 1, hidden]} | ({"c": [1, 1, hidden]} if operator == "LSTM" else {})
    node = helper.make_node(operator, ["x", "w", "r", "", "", *states], ["y"], hidden_size=hidden)
    model = model_of([node], {"x": [steps, 1, 6], **states}, ["y"], weights)
    # one step of a plain RNN is two products and a tanh: nothing in it is a recurrence
    assert family(model) == ("dense" if (operator, steps) == ("RNN", 1) else "recurrent")


def test_u_nets_go_down_and_up():
    build = NodeBuilder()
    skip = build.node("Relu", build.node("Conv", "x", build.weight(4, 3, 3, 3), pads=[1] * 4))
    low = build.node(
        "Conv", build.node("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), build.weight(4, 4, 3, 3), pads=[1] * 4
    )
    up = build.node("ConvTranspose", low, build.weight(4, 4, 2, 2), strides=[2, 2])
    x = build.node("Conv", build.node("Concat", skip, up, axis=1), build.weight(2, 8, 1, 1))
    assert family(build.model((1, 3, 8, 8), x)) == "u-shaped"


def test_blocks_of_shortcuts_are_residual_and_chains_are_plain():
    build = NodeBuilder()
    x = build.node("Conv", "x", build.weight(4, 3, 3, 3), pads=[1] * 4)
    for _ in range(2):
        branch = build.node("Relu", build.node("Conv", x, build.weight(4, 4, 3, 3), pads=[1] * 4))
        x = build.node("Add", x, build.node("Conv", branch, build.weight(4, 4, 3, 3), pads=[1] * 4))
    assert family(build.model((1, 3, 8, 8), x)) == "residual"
    assert family(network(["conv", "bn", "Relu", "conv", "pool"])) == "plain"


@pytest.mark.parametrize("block", ["Relu", "Sigmoid", "pool", "concat", "residual"])
def test_graphs_without_layers_are_mixed(block):
    assert family(network([block])) == "mixed"
