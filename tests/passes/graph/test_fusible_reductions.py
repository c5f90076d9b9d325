"""Compare the detection of read-once reductions with a count of the reads, form by form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

pytestmark = pytest.mark.tvm


def _reads_once(shape: tuple[int, ...], body: Callable, others: Sequence[tuple[int, ...]] = ()) -> bool:
    """Of the one kernel that `body` becomes."""
    from tvm.tirx import PrimFunc

    from passfit.passes.graph.fusible_reductions import reads_each_element_once
    from passfit.passes.sequence.catalogue import parse_spec

    from ...kernels.programs import module_of

    module = parse_spec("legalize").apply(module_of([shape, *others], body))
    (kernel,) = [function for function in module.functions.values() if isinstance(function, PrimFunc)]
    return reads_each_element_once(kernel)


def _window_places(size: int, window: int, stride: int, dilation: int) -> list[int]:
    """Every place a pooling reads along one axis, as often as it reads it."""
    count = (size - dilation * (window - 1) - 1) // stride + 1
    return [start * stride + step * dilation for start in range(count) for step in range(window)]


@pytest.mark.parametrize("kind", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("window, stride, dilation", [
    (2, 2, 1), (3, 3, 1), (2, 3, 1), (1, 1, 1), (1, 2, 1), (8, 8, 1), (2, 4, 2), (3, 1, 3), (3, 2, 1), (2, 1, 1),
    (2, 2, 2), (3, 2, 2),
])  # fmt: skip
def test_poolings_are_told_apart_by_their_windows(kind: str, window: int, stride: int, dilation: int):
    from tvm import relax

    pool = getattr(relax.op.nn, kind)
    found = _reads_once((1, 2, 8, 8), lambda x: pool(x, (window,) * 2, (stride,) * 2, (0, 0), (dilation,) * 2))
    places = _window_places(8, window, stride, dilation)
    assert found == (len(places) == len(set(places)))


@pytest.mark.parametrize("padding", [(1, 1, 1, 1), (0, 0, 1, 1), (1, 0, 0, 0)])
def test_a_padded_pooling_has_a_reader_in_between(padding: tuple[int, ...]):
    from tvm import relax

    assert not _reads_once((1, 2, 8, 8), lambda x: relax.op.nn.max_pool2d(x, (2, 2), (2, 2), padding))


@pytest.mark.parametrize(
    "name",
    ["global mean", "sum over all", "max over the middle", "argmax", "mean of part", "mean of uneven parts"],
)
def test_reductions(name: str):
    from tvm import relax

    op = relax.op
    body, once = {
        "global mean": (lambda x: op.mean(x, [2, 3]), True),
        "sum over all": (op.sum, True),
        "max over the middle": (lambda x: op.max(x, [1]), True),
        "argmax": (lambda x: op.argmax(x, 1), False),
        "mean of part": (lambda x: op.nn.adaptive_avg_pool2d(x, (4, 2)), True),
        "mean of uneven parts": (lambda x: op.nn.adaptive_avg_pool2d(x, (3, 3)), False),
    }[name]
    assert _reads_once((1, 3, 8, 8), body) == once


@pytest.mark.parametrize("name", ["softmax", "variance", "relu", "transpose", "cumsum", "broadcast"])
def test_what_is_no_single_reduction_does_not_count(name: str):
    from tvm import relax

    op = relax.op
    body = {
        "softmax": op.nn.softmax,  # reads its input three times
        "variance": lambda x: op.variance(x, [1]),
        "relu": op.nn.relu,
        "transpose": op.permute_dims,
        "cumsum": lambda x: op.cumsum(x, 1),
        "broadcast": lambda x: op.broadcast_to(x, (2, 3, 4)),
    }[name]
    assert not _reads_once((1, 3, 4), body)


def test_two_inputs_do_not_count():
    from tvm import relax

    assert not _reads_once((3, 3), relax.op.matmul, [(3, 3)])


def test_sums_by_the_place_they_read():
    from tvm import te, tirx

    from passfit.passes.graph.fusible_reductions import reads_each_element_once

    x = te.placeholder((8, 8), name="x")
    k = te.reduce_axis((0, 4), name="k")

    def total_of(place: Callable) -> te.Tensor:
        return te.compute((4,), lambda i: te.sum(place(i), axis=k), name="y")

    for place, once in (
        (lambda i: x[i, 2 * k], True),  # strided
        (lambda i: x[k, i], True),  # transposed
        (lambda i: x[i + k, 0], False),  # overlapping
        (lambda i: x[0, k], False),  # broadcast: every result reads the same
        (lambda i: x[i, (k + i) % 4], False),  # not linear
        (lambda i: x[i, k] * x[i, k + 4], False),  # two reads
        (lambda i: x[i, 7 - k], False),  # backwards: legal, but not seen
        (lambda i: tirx.if_then_else(k > 0, x[i, k - 1], tirx.const(0, "float32")), True),  # a border
    ):
        assert reads_each_element_once(te.create_prim_func([x, total_of(place)])) == once


@pytest.mark.parametrize("over", ["pooling", "reduction"])
@pytest.mark.parametrize(("window", "kernels"), [(2, 1), (4, 1), (8, 2)])
def test_a_large_window_behind_a_product_stays_a_kernel(over: str, window: int, kernels: int):
    """No tile of a convolution holds a plane: fused, it ran as plain loops."""
    from tvm import relax
    from tvm.tirx import PrimFunc

    from passfit.passes.sequence.catalogue import parse_spec

    from ...kernels.programs import module_of, weight

    def body(x):
        product = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(4, 3, 1, 1)))
        return relax.op.nn.avg_pool2d(product, (window, window), (window, window))

    module = parse_spec("legalize").apply(module_of([(1, 3, 8, 8)], body))
    fused = parse_spec(f"fuse-operators{{over={over}}}").apply(module)
    assert sum(isinstance(function, PrimFunc) for function in fused.functions.values()) == kernels
