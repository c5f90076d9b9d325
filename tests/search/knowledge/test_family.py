"""Laws of the classifier, and a graph of each family by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.search.knowledge import family as families
from passfit.search.knowledge.family import FAMILIES, family_of
from passfit.search.knowledge.features import KINDS, Operation, OperatorGraph

_KIND_OF = {
    "conv2d": "convolution", "matmul": "matmul", "softmax": "normalise", "concat": "concat", "add": "element-wise",
    "multiply": "element-wise", "subtract": "element-wise", "sigmoid": "element-wise", "tanh": "element-wise",
    "relu": "element-wise", "resize2d": "move", "reshape": "move", "split": "move", "max_pool2d": "pool",
}  # fmt: skip


class Net:
    """Collect operations; every method returns the number of a value. The input is value 0."""

    def __init__(self, inputs: int = 1):
        self.inputs, self.operations, self.weights = inputs, [], 0

    def op(self, operator, *reads, shape=(1, 8, 16, 16), weights=(), depthwise=False):
        self.operations.append(Operation(_KIND_OF[operator], reads, 4, operator, shape, tuple(weights), depthwise))
        return self.inputs + len(self.operations) - 1

    def layer(self, operator, x, weight=None, **options):
        """A convolution or a product with a weight of its own, or with the number `weight`."""
        self.weights += 1
        return self.op(operator, x, weights=(1000 + self.weights if weight is None else weight,), **options)

    def conv(self, x, side=16, **options):
        return self.op("relu", self.layer("conv2d", x, shape=(1, 8, side, side), **options), shape=(1, 8, side, side))

    def graph(self, *outputs):
        last = self.inputs + len(self.operations) - 1
        return OperatorGraph([4] * self.inputs, self.operations, outputs or (last,), 0)


def chain(net, x, count=4, **options):
    for _ in range(count):
        x = net.conv(x, **options)
    return x


def plain(net):
    net.layer("matmul", chain(net, 0), shape=(1, 10))


def residual(net):
    x = net.conv(0)
    for _ in range(2):
        x = net.op("add", x, chain(net, x, 2))
    net.layer("matmul", x, shape=(1, 10))


def mobile(net):
    x = net.conv(0)
    for _ in range(3):
        x = net.conv(net.conv(x, depthwise=True))
        # squeeze and excite: convolutions on single pixels do not count
        x = net.op("multiply", x, net.op("sigmoid", chain(net, x, 2, side=1), shape=(1, 8, 1, 1)))


def detector(net):
    coarse = chain(net, 0, side=8)
    fine = net.op("concat", net.op("resize2d", coarse, shape=(1, 8, 16, 16)), net.conv(0))
    net.conv(fine)
    net.conv(coarse, side=8)


def u_shaped(net):
    skip = chain(net, 0)
    low = chain(net, net.op("max_pool2d", skip, shape=(1, 8, 8, 8)), side=8)
    net.conv(net.op("concat", skip, net.op("resize2d", low)))


def transformer(net):
    x = net.layer("conv2d", 0)
    for _ in range(2):
        q, k, v = (net.layer("matmul", x, shape=(1, 16, 8)) for _ in range(3))
        scores = net.op("softmax", net.op("add", net.op("matmul", q, k, shape=(1, 16, 16)), weights=(1,)))
        x = net.op("add", x, net.layer("matmul", net.op("matmul", scores, v), shape=(1, 16, 8)))
        x = net.op("add", x, net.layer("matmul", net.layer("matmul", x)))


def attention_after_convolutions(net):
    x = chain(net, 0, 6)
    scores = net.op("softmax", net.op("matmul", x, x))
    net.layer("matmul", net.op("matmul", scores, x))


def unrolled(net):
    state = 0
    for _ in range(3):
        state = net.op("tanh", net.layer("matmul", state, weight=7, shape=(1, 8)))
    net.layer("matmul", state, shape=(1, 2))


def one_step_of_an_lstm(net):
    gates = net.op("add", net.layer("matmul", 0), net.layer("matmul", 1))
    gate = net.op("split", gates)
    i, f, o = (net.op("sigmoid", gate) for _ in range(3))
    cell = net.op("add", net.op("multiply", f, 2), net.op("multiply", i, net.op("tanh", gate)))
    net.op("multiply", o, net.op("tanh", cell))


def one_step_of_a_gru(net):
    z = net.op("sigmoid", net.op("add", net.layer("matmul", 0), net.layer("matmul", 1)))
    new = net.op("tanh", net.op("add", net.layer("matmul", 0), net.layer("matmul", 1)))
    net.op("add", net.op("multiply", net.op("subtract", z, weights=(1,)), new), net.op("multiply", z, 1))


def recurrence_after_convolutions(net):
    x = chain(net, 0, 4)
    for _ in range(3):
        x = net.op("tanh", net.layer("matmul", x, weight=7))


def gated_convolutions(net):
    """WaveNet's: no product takes part in the gates, and nothing is a state."""
    x = 0
    for _ in range(2):
        wave, gate = net.layer("conv2d", x), net.layer("conv2d", x)
        x = net.op("multiply", net.op("tanh", wave), net.op("sigmoid", gate))


def dense(net):
    x = 0
    for _ in range(3):
        x = net.op("relu", net.layer("matmul", x, shape=(1, 8)), shape=(1, 8))
    net.op("sigmoid", x, shape=(1, 8))


def shared_heads(net):
    """One weight on two scales, side by side: no recurrence."""
    for side in (8, 16):
        net.layer("conv2d", chain(net, 0, side=side), weight=7, shape=(1, 8, side, side))


BY_HAND = [
    (plain, families.PLAIN), (residual, families.RESIDUAL), (mobile, families.MOBILE), (detector, families.DETECTOR),
    (u_shaped, families.U_SHAPED), (transformer, families.TRANSFORMER), (attention_after_convolutions, families.MIXED),
    (unrolled, families.RECURRENT), (one_step_of_an_lstm, families.RECURRENT), (one_step_of_a_gru, families.RECURRENT),
    (recurrence_after_convolutions, families.MIXED), (gated_convolutions, families.PLAIN), (dense, families.DENSE),
    (shared_heads, families.DETECTOR),
]  # fmt: skip


@pytest.mark.parametrize(("build", "family"), BY_HAND, ids=[build.__name__ for build, _ in BY_HAND])
def test_a_graph_of_each_family(build, family):
    net = Net(inputs=3)
    build(net)
    assert family_of(net.graph()) == family


def test_a_graph_without_layers_is_mixed():
    assert family_of(OperatorGraph([4], [], (0,), 0)) == families.MIXED
    assert family_of(OperatorGraph([], [], (), 0)) == families.MIXED
    for operator in set(_KIND_OF) - {"conv2d", "matmul"}:
        net = Net()
        net.op(operator, 0)
        assert family_of(net.graph()) == families.MIXED, operator


def test_one_operator_is_a_network_of_one_layer():
    for operator, family in (("conv2d", families.PLAIN), ("matmul", families.DENSE)):
        net = Net()
        net.layer(operator, 0)
        assert family_of(net.graph()) == family


def test_a_product_without_weights_is_no_layer():
    net = Net(inputs=2)
    net.op("matmul", 0, 1)
    assert family_of(net.graph()) == families.MIXED


def test_a_layer_of_constants_alone_does_not_count():
    net = Net()
    net.op("matmul", weights=(1, 2))
    net.conv(0)
    assert family_of(net.graph()) == families.PLAIN


def test_weights_that_are_transposed_first_are_still_one_layer():
    net = Net()
    weight = net.op("reshape", weights=(1,))
    first = net.op("matmul", 0, weight)
    net.op("matmul", first, weight)
    assert family_of(net.graph()) == families.RECURRENT


@st.composite
def graphs(draw):
    """Any operators in any order, sensible or not."""
    inputs = draw(st.integers(0, 2))
    operations = []
    for number in range(draw(st.integers(0, 12))):
        reads = st.lists(st.integers(0, inputs + number - 1), max_size=3) if inputs + number else st.just([])
        operator = draw(st.sampled_from([*_KIND_OF, "", "attention"]))
        operations.append(
            Operation(
                _KIND_OF.get(operator) or draw(st.sampled_from(KINDS)), tuple(draw(reads)), 4,
                operator, draw(st.sampled_from([(), (1, 8), (1, 4, 8, 8), (1, 4, 16, 16), (1, 4, 1, 1), (2, 3, 5)])),
                tuple(draw(st.lists(st.integers(0, 3), max_size=2))), draw(st.booleans()),
            )
        )  # fmt: skip
    return OperatorGraph([4] * inputs, operations, (), 0)


@given(graphs())
def test_every_graph_has_a_family(graph):
    assert family_of(graph) in FAMILIES


@given(graphs(), st.permutations(range(4)))
def test_weights_have_no_names(graph, order):
    renamed = [replace(each, weights=tuple(order[weight] + 50 for weight in each.weights)) for each in graph.operations]
    assert family_of(graph._replace(operations=renamed)) == family_of(graph)


@given(graphs())
def test_sizes_in_bytes_and_outputs_do_not_matter(graph):
    larger = [replace(each, nbytes=each.nbytes * 9) for each in graph.operations]
    assert family_of(OperatorGraph([1 for _ in graph.inputs], larger, (0,), 123)) == family_of(graph)


@given(graphs())
def test_an_activation_at_an_end_changes_nothing(graph):
    value = len(graph.inputs) + len(graph.operations) - 1
    if value < 0:
        return
    shape = graph.operations[-1].shape if graph.operations else ()
    more = [*graph.operations, Operation("element-wise", (value,), 4, "relu", shape)]
    assert family_of(graph._replace(operations=more)) == family_of(graph)
