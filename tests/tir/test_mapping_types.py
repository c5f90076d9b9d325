"""Mapping types of operands: of copies as executing them shows, of other kernels as the textbook says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.program.mapping import MappingType

from .. import strategies  # noqa: F401  (the settings of hypothesis)
from ..profiles import examples

pytestmark = pytest.mark.tvm
ONE, REORGANISE, SHUFFLE, SPREAD, MANY = MappingType


def kernel_of(shapes: Sequence[tuple[int, ...]], body: Callable):
    """The one kernel that `body` becomes."""
    from tvm.tirx import PrimFunc

    from passfit.passes.sequence.catalogue import parse_spec

    from ..kernels.programs import module_of

    module = parse_spec("legalize").apply(module_of(shapes, body))
    (kernel,) = [function for function in module.functions.values() if isinstance(function, PrimFunc)]
    return kernel


@st.composite
def copies(draw: st.DrawFn) -> tuple[tuple[int, ...], Callable, Callable]:
    """A shape, an operator that only moves elements, and the same on a numpy array."""
    from tvm import relax

    op = relax.op
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)))
    size = int(np.prod(shape))
    kind = draw(st.sampled_from(["reshape", "transpose", "slice", "broadcast", "take", "flip", "tile"]))
    if kind == "reshape":
        divisor = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
        new = (divisor, size // divisor)
        return shape, lambda x: op.reshape(x, new), lambda x: x.reshape(new)
    axes = list(draw(st.permutations(range(len(shape)))))
    axis = axes[0]
    if kind == "transpose":
        return shape, lambda x: op.permute_dims(x, axes), lambda x: x.transpose(axes)
    if kind == "slice":
        begin = draw(st.integers(0, shape[axis] - 1))
        end, step = draw(st.integers(begin + 1, shape[axis])), draw(st.integers(1, 3))
        where = tuple(slice(begin, end, step) if n == axis else slice(None) for n in range(len(shape)))
        return shape, lambda x: op.strided_slice(x, [axis], [begin], [end], [step]), lambda x: x[where]
    if kind == "broadcast":
        new = (draw(st.integers(1, 3)), *(draw(st.integers(1, 3)) if extent == 1 else extent for extent in shape))
        return shape, lambda x: op.broadcast_to(x, new), lambda x: np.broadcast_to(x, new)
    if kind == "take":
        places = np.array(draw(st.permutations(range(shape[axis]))), "int64")
        return shape, lambda x: op.take(x, relax.const(places), axis=axis, mode="clip"), lambda x: x.take(places, axis)
    if kind == "flip":
        return shape, lambda x: op.flip(x, axis), lambda x: np.flip(x, axis)
    repeats = tuple(draw(st.integers(1, 2)) for _ in shape)
    return shape, lambda x: op.tile(x, repeats), lambda x: np.tile(x, repeats)


@settings(max_examples=examples(60))
@given(case=copies())
def test_a_copy_is_of_the_type_that_moving_numbers_shows(case):
    from passfit.tir.mapping_types import accesses_of

    shape, body, copy = case
    numbers = np.arange(np.prod(shape)).reshape(shape)
    moved = copy(numbers)
    same = moved.size == numbers.size and (moved.ravel() == numbers.ravel()).all()
    once = len(np.unique(moved)) == moved.size
    expected = (ONE if moved.shape == shape else REORGANISE) if same else SHUFFLE if once else SPREAD
    kernel = kernel_of([shape], body)
    found = accesses_of(kernel)
    assert found is not None and found.copies
    data = len(kernel.params) > 2  # places that come from data may be any
    assert found.mappings[0] in ((SHUFFLE, expected) if data else (expected,))


def _cases() -> dict[str, tuple[Sequence[tuple[int, ...]], Callable, tuple[MappingType, ...]]]:
    from tvm import relax

    from ..kernels.programs import weight

    op, plane = relax.op, (2, 4, 6, 6)
    return {
        "relu": ([plane], op.nn.relu, (ONE,)),
        "square": ([plane], lambda x: op.multiply(x, x), (ONE, ONE)),
        "add": ([plane, plane], op.add, (ONE, ONE)),
        "bias": ([plane, (4, 1, 1)], op.add, (ONE, SPREAD)),
        "scalar": ([plane, ()], op.add, (ONE, SPREAD)),
        "concat": ([plane, plane], lambda x, y: op.concat([x, y], 1), (SHUFFLE, SHUFFLE)),
        "pad": ([plane], lambda x: op.nn.pad(x, [0, 0, 0, 0, 1, 1, 1, 1]), (SHUFFLE,)),
        "nearest": ([plane], lambda x: op.image.resize2d(x, (12, 12), method="nearest_neighbor"), (SPREAD,)),
        "bilinear": ([plane], lambda x: op.image.resize2d(x, (12, 12), method="linear"), (MANY,)),
        "mean": ([plane], lambda x: op.mean(x, [2, 3]), (MANY,)),
        "sum over one": ([(3, 1)], lambda x: op.sum(x, [1]), (MANY,)),
        "max pool": ([plane], lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)), (MANY,)),
        "softmax": ([plane], lambda x: op.nn.softmax(x, -1), (MANY,)),
        "conv": ([plane], lambda x: op.nn.conv2d(x, weight(4, 4, 3, 3), padding=1), (MANY, MANY)),
        "matmul": ([(3, 4), (4, 5)], op.matmul, (MANY, MANY)),
    }


NAMES = (
    "relu", "square", "add", "bias", "scalar", "concat", "pad", "nearest", "bilinear", "mean", "sum over one", "max pool",
    "softmax", "conv", "matmul",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_operands_of_well_known_kernels(name: str):
    from passfit.tir.mapping_types import accesses_of

    assert tuple(_cases()) == NAMES
    shapes, body, expected = _cases()[name]
    found = accesses_of(kernel_of(shapes, body))
    assert found is not None
    assert found.mappings == expected


def test_names_play_no_part():
    from passfit.tir.mapping_types import accesses_of

    kernel = kernel_of([(2, 3)], lambda x: _op().exp(x))
    assert accesses_of(kernel.with_attr("global_symbol", "conv2d")) == accesses_of(kernel)


@pytest.mark.parametrize("name", NAMES)
def test_an_operand_in_place_is_one_to_one_or_keeps_its_order(name: str):
    """The analysis of the compiled kernel and this one agree on what may lie in the result."""
    from passfit.tir.in_place.analysis import analyse_sharing
    from passfit.tir.inlining import inlined
    from passfit.tir.mapping_types import accesses_of

    shapes, body, _ = _cases()[name]
    kernel = kernel_of(shapes, body)
    found = accesses_of(kernel)
    in_place = {overlay.read for overlay in analyse_sharing(inlined(kernel)).in_place if overlay.shift == 0}
    assert found is not None
    mapped = {n for n, each in enumerate(found.mappings) if each in (ONE, REORGANISE)}
    assert mapped <= in_place | ({0, 1} if name == "square" else set())
    assert all(found.mappings[each] in (ONE, REORGANISE, SHUFFLE, MANY) for each in in_place)


@pytest.mark.parametrize("name", ["topk", "cumsum", "split"])
def test_a_kernel_of_another_form_is_not_read(name: str):
    from passfit.tir.mapping_types import accesses_of

    bodies = {
        "topk": lambda x: _op().topk(x, 2)[0], "cumsum": lambda x: _op().cumsum(x, 1), "split": lambda x: _op().split(x, 2, 1)[1],
    }  # fmt: skip
    assert accesses_of(kernel_of([(3, 4)], bodies[name])) is None


def _op():
    from tvm import relax

    return relax.op
