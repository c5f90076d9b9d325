"""Constant channels of quantised networks go; results stay the same, bit for bit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from passfit.frontend.canonical.folding.fold_constants import fold
from passfit.frontend.canonical.shapes import infer_shapes
from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.quantised.drop_channels import drop_constant_channels
from passfit.verify.equal_signs import equalise_signs

from ...models import NodeBuilder, run

DTYPES = {"int8": onnx.TensorProto.INT8, "uint8": onnx.TensorProto.UINT8}


class Network:
    """Chain of QLinearConv: `share` of the filters of each product are held constant by their biases."""

    def __init__(self, seed: int, dtype: str, share: float, edge: int):
        self.random = np.random.default_rng(seed)
        self.build, self.dtype, self.share, self.edge = NodeBuilder(), dtype, share, edge
        self.info = np.iinfo(dtype)

    def layer(self, x: str, channels: int, filters: int, *, window: int = 1, depthwise: bool = False) -> str:
        random, constant = self.random, self.build.constant
        inside = 1 if depthwise else channels
        w = random.integers(-127, 128, (filters, inside, window, window)).astype(np.int8)
        zero = np.asarray(self.info.min, self.dtype)
        step = np.float32(1 / (40 * np.sqrt(w[0].size)))
        bias = random.integers(-300, 300, filters)
        held = random.random(filters) < (0 if depthwise else self.share)
        scale = random.uniform(0.5, 1.5, filters).astype(np.float32) * step
        scale[held] *= np.float32(1e-5)
        # at the least number, or at another one that no sum moves
        bias[held] = np.where(random.random(filters) < 0.7, -100, self.edge / scale.clip(1e-6))[held]
        one, zeros = np.float32(1), np.zeros(filters, np.int8)
        operands = [one, zero, w, scale, zeros, one, zero, bias.astype(np.int32)]
        attributes = {"pads": [window // 2] * 4, "group": channels if depthwise else 1}
        return self.build.node("QLinearConv", x, *map(constant, operands), **attributes)

    def pooled(self, x: str) -> str:
        scale, zero = (self.build.constant(each) for each in (np.float32(1), np.asarray(self.info.min, self.dtype)))
        mean = self.build.node("GlobalAveragePool", self.build.node("DequantizeLinear", x, scale, zero))
        return self.build.node("QuantizeLinear", mean, scale, zero)


def _model(network: Network, shape: tuple[int, ...], *outputs: str) -> onnx.ModelProto:
    kinds = dict.fromkeys(("x", *outputs), DTYPES[network.dtype])
    return infer_shapes(network.build.model(shape, *outputs, dtypes=kinds))


def _weights(model: onnx.ModelProto) -> int:
    return sum(numpy_helper.to_array(each).size for each in model.graph.initializer if len(each.dims) == 4)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(sorted(DTYPES)), share=st.sampled_from([0.3, 0.8, 1.0]),
    filters=st.sampled_from([5, 16, 24, 48]), edge=st.sampled_from([0, 3, 90]), window=st.sampled_from([1, 3]),
    pooled=st.booleans(),
)  # fmt: skip
def test_results_are_the_same(
    seed: int, dtype: str, share: float, filters: int, edge: int, window: int, pooled: bool
) -> None:
    network = Network(seed, dtype, share, edge)
    first = network.layer("x", 3, filters)
    deep = network.layer(first, filters, filters, window=3, depthwise=True)
    wide = network.layer(deep, filters, 16, window=window)
    last = network.layer(network.pooled(wide) if pooled else wide, 16, 4)
    model = _model(network, (1, 3, 6, 5), last)
    made = drop_constant_channels(model)
    data = network.random.integers(network.info.min, network.info.max, (1, 3, 6, 5), dtype, endpoint=True)
    results = [run(equalise_signs(infer_shapes(fold(each))), {"x": data})[0] for each in (model, made)]
    np.testing.assert_array_equal(*results)


def test_constant_channels_go_and_counts_stay_whole_vectors() -> None:
    network = Network(1, "int8", 0.8, 0)
    first = network.layer("x", 3, 64)
    deep = network.layer(first, 64, 64, window=3, depthwise=True)
    last = network.layer(deep, 64, 4)
    model = _model(network, (1, 3, 6, 5), last)
    made = infer_shapes(fold(drop_constant_channels(model)))
    counts = [each.dims[0] for each in made.graph.initializer if len(each.dims) == 4]
    assert counts[0] == counts[1] < 64 and counts[0] % 16 == 0, counts
    assert _weights(made) <= _weights(model) // 2
    assert drop_constant_channels(made) is made
    assert canonicalize(model).SerializeToString() == canonicalize(canonicalize(model)).SerializeToString()


def test_channels_that_others_read_stay() -> None:
    network = Network(2, "int8", 0.8, 0)
    first = network.layer("x", 3, 32)
    model = _model(network, (1, 3, 6, 5), network.layer(first, 32, 4), first)
    made = fold(drop_constant_channels(model))
    assert _weights(made) == _weights(model)


def test_a_network_without_constant_channels_stays() -> None:
    network = Network(3, "int8", 0, 0)
    model = _model(network, (1, 16, 6, 5), network.layer(network.layer("x", 16, 32), 32, 4))
    assert drop_constant_channels(model) is model


def test_the_weights_of_one_layer_are_held_at_a_time() -> None:
    network, value = Network(0, "int8", 0, 0), "x"
    for _ in range(48):
        value = network.layer(value, 32, 32, window=3)
    model = _model(network, (1, 32, 4, 4), value)
    tracemalloc.start()
    try:
        drop_constant_channels(model)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * _weights(model)
