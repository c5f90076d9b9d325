"""Check repacked weights: the same bytes in another order, and never twice."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passfit.kernels.weights.deferred_weights import DeferredWeights
from passfit.kernels.weights.repack import Repack, repack_weights, repackable_parameters
from passfit.program import Buffer, Port, Program, Step, Tensor, Weight
from passfit.program.check import first_problem


def _program(*steps: Step, weight_output: bool = False) -> Program:
    tensors = (
        Tensor((4,), "float32", buffer=0),
        Tensor((8, 3), "float32", weight=0),
        Tensor((8,), "float32", buffer=1),
    )
    return Program(
        "p", steps, tensors, (Buffer("x", 16), Buffer("y", 32)), (Weight("w", 96, "d"),),
        (Port("x", 0),), (Port("y", 1 if weight_output else 2),),
    )  # fmt: skip


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2))
def test_every_element_is_where_the_index_map_says(width, blocks, dimension):
    shape = [2, 3, 5]
    shape[dimension] = width * blocks
    array = np.arange(np.prod(shape)).reshape(shape)
    repack = Repack(0, dimension, width)
    packed = repack.apply(array)
    assert packed.size == array.size
    for index in np.ndindex(*shape):
        assert packed[tuple(repack.index_map(*index))] == array[index]


@given(st.integers(2, 5), st.integers(1, 8), st.integers(0, 2), st.booleans())
def test_elements_of_overlapping_vectors_are_where_the_index_map_says(vectors, lanes, dimension, alone):
    extent = vectors * lanes - lanes // 2
    shape = [2, 3, 5]
    shape[dimension] = extent
    array = np.arange(np.prod(shape)).reshape(shape)
    width = lanes if alone else vectors * lanes
    repack = Repack(0, dimension, width, extent=extent, lanes=lanes)
    packed = repack.apply(array)
    assert packed.shape == repack.shape(tuple(shape))
    for index in np.ndindex(*shape):
        assert packed[tuple(repack.index_map(*index))] == array[index]
    last = packed[-1, ..., width - lanes :]  # the last vector holds the last elements
    assert np.array_equal(last, np.moveaxis(np.take(array, range(extent - lanes, extent), dimension), dimension, -1))


def test_a_weight_of_one_kernel_may_be_repacked():
    assert repackable_parameters(_program(Step("a", (0, 1), (2,)), Step("a", (0, 1), (2,)))) == {"a": frozenset({1})}


def test_a_weight_that_something_else_reads_may_not():
    assert repackable_parameters(_program(Step("a", (0, 1), (2,)), Step("b", (0, 1), (2,))))["a"] == frozenset()
    assert repackable_parameters(_program(Step("a", (0, 1, 1), (2,))))["a"] == frozenset()
    assert repackable_parameters(_program(Step("a", (0, 1), (2,)), weight_output=True))["a"] == frozenset()


def test_a_parameter_that_is_once_an_activation_may_not():
    assert repackable_parameters(_program(Step("a", (0, 1), (2,)), Step("a", (0, 0), (2,))))["a"] == frozenset()


def test_repacking_changes_order_shape_and_digest_but_no_size():
    program = _program(Step("a", (0, 1), (2,)))
    array = np.arange(24, dtype="float32").reshape(8, 3)
    packed, (result,) = repack_weights(program, [array], {"a": (Repack(1, 0, 4),)})
    assert first_problem(packed) is None
    assert packed.tensors[1].shape == result.shape == (2, 3, 4)
    assert packed.weights[0].digest == hashlib.sha256(result.tobytes()).hexdigest()
    assert packed.weight_bytes == program.weight_bytes
    assert sorted(result.ravel()) == sorted(array.ravel())


def test_without_wishes_nothing_changes():
    program = _program(Step("a", (0, 1), (2,)))
    array = np.zeros((8, 3), "float32")
    assert repack_weights(program, (array,), {"a": ()}) == (program, (array,))


def test_deferred_weights_are_repacked_where_they_are_read():
    program, reads = _program(Step("a", (0, 1), (2,))), []
    array = np.arange(24, dtype="float32").reshape(8, 3)
    deferred = DeferredWeights(lambda: reads.append(1) or (array,), 1)
    wishes = {"a": (Repack(1, 0, 4),)}
    packed, later = repack_weights(program, deferred, wishes)
    assert first_problem(packed) is None
    assert not reads
    known, (now,) = repack_weights(program, [array], wishes)
    assert (packed.tensors, packed.weight_bytes) == (known.tensors, known.weight_bytes)
    np.testing.assert_array_equal(later[0], now)
    assert packed.weights != program.weights
    assert reads == [1]
