"""Rules of convolutions keep the numbers for random ranks, layouts, strides, dilations, paddings, groups and dtypes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tvm")

from ... import strategies  # noqa: F401  (the settings of hypothesis)
from ...kernels.programs import module_of
from ...profiles import examples
from .test_padding_taps import results_of

pytestmark = pytest.mark.tvm
#: errors relative to the largest output: the weights are rounded once more
TOLERANCE = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}
RULES = (
    "fold-explicit-padding", "fold-batch-norm", "fold-scale-axis", "drop-padding-taps", "partial-convolutions",
    "combine-parallel-conv2d",
)  # fmt: skip
few = st.integers(1, 3)


@dataclass(frozen=True)
class Layer:
    """A convolution of random attributes on `shape`; `channel` is the axis of channels."""

    shape: tuple[int, ...]
    channel: int
    results: int
    dtype: str
    weight: tuple[int, ...]
    operator: str
    options: dict

    def __call__(self, x, seed: int = 0):
        from tvm import relax

        return getattr(relax.op.nn, self.operator)(x, _random(self.weight, self.dtype, seed), **self.options)


def _random(shape: tuple[int, ...], dtype: str, seed: int, least: float = -1.0):
    from tvm import relax

    values = np.random.default_rng(seed).uniform(least, 1.0, shape)
    return relax.const(values.astype(dtype), dtype)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    transposed, last, rank = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from([1, 2, 2, 3]))
    groups, taken, given_ = draw(st.sampled_from([1, 1, 2, 3])), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    drawn = []
    for _ in range(rank):
        axis = (
            draw(st.sampled_from([1, 2, 5])),
            *(draw(few) for _ in range(3)),
            draw(st.integers(0, 2)),
            draw(st.integers(0, 2)),
        )
        while results_of(axis, transposed) < 1:
            more = -1 if transposed else 1
            axis = (*axis[:4], max(axis[4] + more, 0), max(axis[5] + more, 0))
        drawn.append(axis)
    extents, sizes, strides, dilations, before, after = (list(each) for each in zip(*drawn))
    letters = {1: "W", 2: "HW", 3: "DHW"}[rank]
    channels = groups * taken
    first, second = (channels, given_) if transposed else (groups * given_, taken)
    pair = "IO" if transposed else "OI"
    # TVM's own layouts are channels first or last, of data and weights
    data, kernel = (f"N{letters}C", f"{letters}{pair}") if last else (f"NC{letters}", f"{pair}{letters}")
    return Layer(
        (2, *extents, channels) if last else (2, channels, *extents), rank + 1 if last else 1, groups * given_,
        draw(st.sampled_from(["float32", "float32", "float64", "float16"])),
        (*sizes, first, second) if last else (first, second, *sizes),
        f"conv{rank}d{'_transpose' if transposed else ''}",
        {
            "strides": strides, "padding": before + after, "dilation": dilations, "groups": groups, "data_layout": data,
            "kernel_layout": kernel,
        },
    )  # fmt: skip


def _step(kind: str, x, channels: int, layer: Layer, seed: int):
    """Apply something per channel."""
    from tvm import relax

    op, dtype = relax.op, layer.dtype
    shape = (channels, *(1,) * (len(layer.shape) - layer.channel - 1))
    if kind == "norm":
        numbers = [_random((channels,), dtype, seed + each, 0.5) for each in range(4)]
        return op.nn.batch_norm(x, *numbers, axis=layer.channel, training=False)[0]
    if kind in ("relu", "leakyrelu"):
        return getattr(op.nn, kind)(x)
    if kind == "gate":
        return op.multiply(x, op.sigmoid(op.mean(x, list(range(1, len(layer.shape))), True)))
    if kind == "tiny":
        return op.multiply(relax.const(np.asarray(2e-5, dtype), dtype), x)
    if kind == "whole":
        return op.multiply(relax.const(np.asarray(1.5, dtype), dtype), x)
    operator, least = {
        "scale": (op.multiply, 0.5), "bound": (op.maximum, -1.0), "signed": (op.multiply, -1.0), "quotient": (op.divide, 0.5), "shift": (op.add, -1.0),
        "less": (op.subtract, -1.0),
    }[kind]  # fmt: skip
    return operator(x, _random(shape, dtype, seed, least))


steps = st.lists(
    st.sampled_from(
        ["norm", "relu", "leakyrelu", "whole", "scale", "signed", "quotient", "shift", "less", "bound", "gate", "tiny"]
    ),
    max_size=3,
)


def _agree(module, order: list[str], dtype: str):
    """Apply the rules in this order; return the module they make, which computes the same."""
    from tvm import relax

    from passfit.passes.sequence.catalogue import parse_spec

    from .interpret import inputs_of, interpret

    changed = module
    for name in order:
        changed = parse_spec(name).apply(changed)
        relax.analysis.well_formed(changed)  # raises
    inputs = inputs_of(module)
    for found, expected in zip(interpret(changed, inputs), interpret(module, inputs), strict=True):
        assert found.dtype == expected.dtype
        scale = float(np.abs(expected, dtype="float64").max(initial=0))
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)
    return changed


def _operators(module) -> set[str]:
    from passfit.passes.graph.rules.dataflow import Dataflow

    graph = Dataflow(module["main"])
    return {graph.operator(call) for _, call in graph.calls()}


orders = st.permutations(RULES)


@settings(max_examples=examples(60))
@given(layer=layers(), before=steps, behind=steps, order=orders)
def test_scales_and_shifts_around_a_convolution(layer: Layer, before: list[str], behind: list[str], order: list[str]):
    from tvm import relax

    def body(x):
        for seed, kind in enumerate(before):
            x = _step(kind, x, layer.shape[layer.channel], layer, seed)
        x = layer(x)
        for seed, kind in enumerate(behind):
            x = relax.BlockBuilder.current().emit(_step(kind, x, layer.results, layer, 10 + seed))
        return x

    changed = _agree(module_of([layer.shape], body, layer.dtype), [*order, *order], layer.dtype)
    linear = not {"relu", "leakyrelu", "bound", "gate"} & {*before, *behind} and layer.dtype != "float16"
    if linear and "tiny" not in before:  # a shift before padding stays, and is divided by no scale below 1e-3
        assert not {"relax.multiply", "relax.divide", "relax.nn.batch_norm"} & _operators(changed)


@settings(max_examples=examples(40))
@given(layer=layers(), widths=st.lists(st.integers(0, 2), min_size=6, max_size=6), order=orders)
def test_padding_before_a_convolution(layer: Layer, widths: list[int], order: list[str]):
    from tvm import relax

    spatial = [axis for axis in range(1, len(layer.shape)) if axis != layer.channel]
    around = [0] * 2 * len(layer.shape)
    for number, axis in enumerate(spatial):
        around[2 * axis : 2 * axis + 2] = widths[2 * number : 2 * number + 2]
    module = module_of([layer.shape], lambda x: layer(relax.op.nn.pad(x, around)), layer.dtype)
    changed = _agree(module, order, layer.dtype)
    if not layer.operator.endswith("transpose"):
        assert "relax.nn.pad" not in _operators(changed)


@settings(max_examples=examples(40))
@given(layer=layers(), before=steps, order=orders, cut=st.integers(1, 5))
def test_a_convolution_of_concatenated_channels(layer: Layer, before: list[str], order: list[str], cut: int):
    from tvm import relax

    channels = layer.shape[layer.channel]
    if channels == 1:
        return
    cut = 1 + cut % (channels - 1)
    shapes = [
        tuple(n if axis == layer.channel else each for axis, each in enumerate(layer.shape))
        for n in (cut, channels - cut)
    ]

    def body(*parts):
        x = relax.op.concat(parts, layer.channel)
        for seed, kind in enumerate(before):
            x = _step(kind, x, channels, layer, seed)
        return layer(x)

    changed = _agree(module_of(shapes, body, layer.dtype), [*order, "partial-convolutions"], layer.dtype)
    if layer.options["groups"] == 1 and "gate" not in before:  # a gate reads all channels
        assert "relax.concat" not in _operators(changed)


@settings(max_examples=examples(40))
@given(layer=layers(), behind=steps, order=orders, other=steps)
def test_parallel_convolutions(layer: Layer, behind: list[str], order: list[str], other: list[str]):
    from tvm import relax

    def body(x):
        x = relax.BlockBuilder.current().emit(relax.op.nn.relu(x))
        branches = []
        for seed, kinds in ((0, behind), (100, behind), (200, other)):
            y = layer(x, seed)
            for number, kind in enumerate(kinds):
                y = _step(kind, y, layer.results, layer, seed + number)
            branches.append(y)
        return relax.op.concat(branches, layer.channel)

    _agree(module_of([layer.shape], body, layer.dtype), order, layer.dtype)


@settings(max_examples=examples(40))
@given(
    before=steps, behind=steps, order=orders, left=st.booleans(), shape=st.sampled_from([(4, 3), (2, 4, 3), (2, 1, 4, 3)]),
    dtype=st.sampled_from(["float32", "float64", "float16"]), parallel=st.booleans(),
)  # fmt: skip
def test_dense_layers(before, behind, order, left: bool, shape: tuple[int, ...], dtype: str, parallel: bool):
    from tvm import relax

    taken, given_, axis = shape[-2 if left else -1], 5, len(shape) - (2 if left else 1)
    layer = Layer(shape, axis, given_, dtype, (given_, taken) if left else (taken, given_), "", {})

    def body(x):
        for seed, kind in enumerate(before):
            x = _step(kind, x, taken, layer, seed)
        x = relax.BlockBuilder.current().emit(relax.op.nn.relu(x))
        results = []
        for seed in (0, 1)[: 1 + parallel]:
            weight = _random(layer.weight, dtype, seed)
            y = relax.op.matmul(weight, x) if left else relax.op.matmul(x, weight)
            for number, kind in enumerate(behind):
                y = _step(kind, y, given_, layer, 10 * seed + number)
            results.append(y)
        return relax.op.concat(results, axis) if parallel else results[0]

    _agree(module_of([shape], body, dtype), order, dtype)
