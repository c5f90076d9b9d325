"""Run kernels specialised to in-place operands, at their planned addresses."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from dataclasses import replace

from tvm import relax
from tvm.ir import Var
from tvm.script import ir as I  # noqa: F401  (TVMScript wants its names)
from tvm.script import tirx as T

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.lower.specialise import _same_element, specialise_kernels
from passfit.memory import share
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.tir.in_place.analysis import analyse_sharing, masked_loads
from passfit.tir.stores import stores

from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_UNFUSED = ("legalize",)


def residual(x):
    """Build a residual block: the sum is computed in place of the skip connection."""
    hidden = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(8, 8, 3, 3), padding=1))
    return relax.op.nn.relu(relax.op.add(relax.op.nn.conv2d(hidden, weight(8, 8, 3, 3, seed=1), padding=1), x))


def dense(x):
    """Build concatenations of concatenations, with parts at unaligned offsets."""
    for channels in (3, 6):
        x = relax.op.concat([x, relax.op.nn.conv2d(x, weight(3, channels, 1, 1))], axis=1)
    return relax.op.nn.conv2d(x, weight(4, 9, 3, 3, seed=2), padding=1)


def shuffled(x):
    """Build slices of a tensor, one of them used further, and a concatenation of them."""
    halves = relax.op.split(x, 2, axis=1)
    return relax.op.concat([relax.op.exp(halves[1]), relax.op.nn.conv2d(halves[0], weight(5, 3, 1, 1))], axis=1)


def reshaped(x):
    flat = relax.op.reshape(relax.op.exp(x), (1, 30))
    return relax.op.nn.relu(relax.op.subtract(flat, relax.op.mean(flat, axis=[1], keepdims=True)))


def cast(x):
    numbers = relax.op.astype(relax.op.multiply(x, relax.const(8.0, "float32")), "int32")
    return relax.op.astype(relax.op.multiply(numbers, numbers), "float32")


def reflected(x):
    """Build reflections around computed values: the kernel of each finds its operand in the middle of its result."""
    for width in (2, 5):
        x = relax.op.nn.pad(relax.op.exp(x), (0, 0, width, width - 1), pad_mode="reflect")
    return x


def cached(x):
    """Build a cache that grows by a token for each head: it waits at the end of its result, which grows over it."""
    return relax.op.concat([relax.op.exp(x), relax.op.mean(x, axis=[1], keepdims=True)], axis=1)


def grown(x):
    """Build pictures that grow in place: each row is read twice, before the result reaches it."""
    for size in ((10, 14), (10, 42)):
        x = relax.op.image.resize2d(relax.op.exp(x), size, None, "NCHW", "nearest_neighbor", "asymmetric", "floor")
    return x


def repeated(x):
    return relax.op.tile(relax.op.repeat(relax.op.exp(x), 3, axis=1), (1, 1, 2))


def normed(x):
    """Build softmaxes: sums read an operand whole, or its row, before the result is written over it."""
    for axis in (2, 1):
        x = relax.op.nn.softmax(relax.op.exp(x), axis)
    return x


def centred(x):
    """Build means and what is left without them, of rows and of columns."""
    for axis in (1, 2):
        x = relax.op.exp(x)
        x = relax.op.subtract(x, relax.op.mean(x, axis=[axis], keepdims=True))
    return x


@pytest.mark.parametrize(
    ("shape", "body", "passes", "buffers"),
    [
        ((1, 8, 9, 9), residual, TVM_DEFAULT, 2),
        ((1, 8, 9, 9), residual, _UNFUSED, 3),
        ((1, 3, 5, 5), dense, TVM_DEFAULT, 2),
        ((1, 6, 5, 5), shuffled, _UNFUSED, 1),
        ((1, 2, 3, 5), reshaped, _UNFUSED, 2),
        ((40,), cast, _UNFUSED, 1),
        ((1, 40), reflected, _UNFUSED, 1),
        ((3, 14, 5), cached, _UNFUSED, 3),
        ((1, 3, 5, 7), grown, _UNFUSED, 1),
        ((3, 4, 5), repeated, _UNFUSED, 1),
        ((3, 9, 33), normed, ("legalize", "fuse-by-mapping"), 2),
        ((3, 9, 33), centred, ("legalize", "fuse-by-mapping"), 1),
        ((3, 9, 33), centred, TVM_DEFAULT, 1),
    ],
)
def test_shared_memory_changes_no_bit(shape, body, passes, buffers):
    program, _ = schedule_program(lowered([shape], body, passes))
    shared = replace(program, program=share(program.program))
    assert len(shared.program.buffers) == buffers
    inputs = random_inputs(program)
    np.testing.assert_array_equal(run(shared, inputs)[0], run(program, inputs)[0])


def test_no_kernel_reads_one_memory_by_two_names():
    """Read sums, too, from the result: LLVM is told that parameters do not overlap."""
    program, _ = schedule_program(lowered([(3, 9, 33)], centred))
    placed = specialise_kernels(replace(program, program=share(program.program)))
    inside = [kernel for name, kernel in placed.kernels.items() if "in_place" in name]
    assert len(inside) == 3
    for kernel in inside:
        assert all(
            load.source.same_as(kernel.params[1]) or load.source not in kernel.params
            for store in stores(kernel.body)
            for load, _ in masked_loads(store)
        )


def test_an_element_is_read_at_its_place_for_a_buffer_of_the_kernels_own():
    """Read it from the result as well: the place tells nothing about the parameter."""
    program, _ = schedule_program(lowered([(24,)], relax.op.nn.relu))

    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((24,), "float32"), y: T.Buffer((24,), "float32")):
        own = T.sblock_alloc_buffer((24,))
        for i in range(24):
            with T.sblock("own"):
                vi = T.axis.spatial(24, i)
                own[vi] = x[vi] * x[vi]
        for i in range(24):
            with T.sblock("y"):
                vi = T.axis.spatial(24, i)
                y[vi] = x[vi] + own[23 - vi]

    ((name, _),) = program.kernels.items()
    assert analyse_sharing(kernel).in_place == program.program.steps[0].in_place
    placed = specialise_kernels(replace(program, program=share(program.program), kernels={name: kernel}))
    ((_, made),) = placed.kernels.items()
    assert not any(
        load.source.same_as(made.params[0]) for store in stores(made.body) for load, _ in masked_loads(store)
    )


def test_an_element_of_another_shape_is_read_without_quotients():
    """No simplifier joined them again: a division for each load of a convolution in place."""
    row, column = Var("row", "int64"), Var("column", "int64")
    found = _same_element([row, column], [T.int64(6), T.int64(10)], [T.int64(4), T.int64(3), T.int64(5)], 7)
    assert [str(each) for each in found] == ["T.int64(0)", "T.int64(0)", "row * T.int64(10) + column + T.int64(7)"]
    assert _same_element([row, column], [T.int64(6), T.int64(10)], [T.int64(6), T.int64(10)]) == [row, column]


def test_a_kernel_is_made_once_for_each_way_it_is_called():
    def body(x, y):
        early = relax.op.exp(x)
        return relax.op.add(relax.op.exp(relax.op.nn.relu(relax.op.add(early, y))), relax.op.exp(early))

    program, _ = schedule_program(lowered([(64,), (64,)], body, _UNFUSED))
    placed = specialise_kernels(replace(program, program=share(program.program)))
    names = [step.kernel for step in placed.program.steps]
    assert sorted(set(names)) == list(placed.kernels)
    for step in placed.program.steps:
        operands = {placed.program.tensors[read].buffer for read in step.reads}
        results = {placed.program.tensors[write].buffer for write in step.writes}
        assert ("in_place" in step.kernel) == bool(operands & results)


def test_only_tensors_inside_of_buffers_are_less_aligned():
    program, _ = schedule_program(lowered([(1, 3, 5, 5)], dense))
    placed = specialise_kernels(replace(program, program=share(program.program)))
    for step in placed.program.steps:
        kernel = placed.kernels[step.kernel]
        for tensor, param in zip((*step.reads, *step.writes), kernel.params, strict=True):
            offset = placed.program.tensors[tensor].offset
            assert offset % param.ty.data_alignment == 0
            assert param.ty.data_alignment == (64 if offset % 64 == 0 else 4)


def test_a_program_that_shares_nothing_keeps_its_kernels():
    program, _ = schedule_program(lowered([(1, 8, 9, 9)], residual))
    placed = specialise_kernels(program)
    assert placed.program == program.program
    assert all(placed.kernels[name].same_as(program.kernels[name]) for name in placed.kernels)
