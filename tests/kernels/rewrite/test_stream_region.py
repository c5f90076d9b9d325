"""Check that a streaming region computes the same as its steps, in less memory."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.lower.lower import lower
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rewrite.split_reductions import split_reductions
from passfit.kernels.rewrite.splittable import splits_of
from passfit.kernels.rewrite.stream_region import stream_region
from passfit.kernels.schedule.candidates import RULE_WORKSPACE
from passfit.memory import bound
from passfit.memory.streaming.in_place import GROWING
from passfit.memory.streaming.region import region
from passfit.passes.program.order import Order
from passfit.passes.program.share import Share
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.program import Loop
from passfit.program.check import first_problem
from passfit.program.workspaces import largest_workspace
from passfit.targets import get_target
from passfit.tir.row_window import tensors_of
from passfit.tir.workspace import workspace_bytes

from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_op, _nn = relax.op, relax.op.nn


def _emit(expr: relax.Expr) -> relax.Var:
    return relax.BlockBuilder.current().emit(expr)


def _conv(x, taken, given, size=3, seed=0, **options):
    options.setdefault("padding", size // 2)
    groups = options.get("groups", 1)
    return _emit(_nn.relu(_emit(_nn.conv2d(x, weight(given, taken // groups, size, size, seed=seed), **options))))


def conv_pool(x):
    y = _emit(_nn.max_pool2d(_conv(_conv(x, 2, 4), 4, 6, seed=1), (2, 2), (2, 2)))
    return _conv(y, 6, 2, size=1)


def pools(x):
    """Build poolings whose windows overlap, with padding on one side, and of a column alone."""
    y = _emit(_nn.max_pool2d(_conv(x, 2, 4), (3, 3), (2, 2), (1, 1)))
    y = _emit(_nn.max_pool2d(_conv(y, 4, 4, size=1, seed=1), (3, 2), (2, 1), (0, 0, 1, 0), (1, 1)))
    return _emit(_nn.max_pool2d(_conv(y, 4, 4, seed=2), (2, 1), (2, 1)))


def convolved_pools(x):
    """Build convolutions that a pooling is fused with; a weight is read in parts."""
    y = _emit(_nn.max_pool2d(_conv(_conv(x, 2, 16), 16, 16, seed=1), (2, 2), (2, 2)))
    return _emit(_nn.max_pool2d(_conv(y, 16, 16, seed=2), (3, 3), (2, 2), (1, 1)))


def sliced(x):
    """Build convolutions of which a part is read."""
    y = _emit(_op.strided_slice(_conv(x, 2, 32), axes=[1], begin=[16], end=[32], strides=[1]))
    return _conv(
        _emit(_op.strided_slice(_conv(y, 16, 48, seed=1), axes=[1], begin=[24], end=[40], strides=[1])), 16, 2, seed=2
    )


def odd_edges(x):
    """Build strides larger than a window, dilations, one-sided padding, poolings that count unpadded elements."""
    y = _conv(x, 2, 4, size=2, strides=3, padding=[1, 0, 2, 1])
    y = _conv(y, 4, 4, dilation=2, padding=2, seed=1)
    y = _emit(_nn.avg_pool2d(y, (3, 3), (2, 2), (1, 1), ceil_mode=True, count_include_pad=False))
    return _conv(y, 4, 3, padding=2, seed=2)


def bottleneck(x):
    y = _conv(x, 2, 12, size=1)
    y = _conv(y, 12, 12, groups=12, strides=2, seed=1)
    return _emit(_nn.conv2d(y, weight(3, 12, 1, 1, seed=2)))


def residual(x):
    first = _conv(x, 2, 4)
    second = _conv(_conv(first, 4, 4, seed=1), 4, 4, seed=2)
    return _conv(_emit(_op.add(first, second)), 4, 2, seed=3)


def squeeze(x):
    y = _conv(_conv(x, 2, 6), 6, 6, groups=6, seed=1)
    gate = _emit(_op.mean(y, [2, 3], keepdims=True))
    gate = _emit(_op.sigmoid(_emit(_nn.conv2d(gate, weight(6, 6, 1, 1, seed=2)))))
    return _conv(_emit(_op.multiply(y, gate)), 6, 2, size=1, seed=3)


def enlarged(x):
    small = _conv(x, 2, 4, strides=2)
    sides = [int(each) for each in x.ty.shape.values[2:]]
    large = _emit(_op.image.resize2d(small, relax.ShapeExpr(sides), layout="NCHW", method="nearest_neighbor"))
    return _conv(_emit(_op.concat((large, _conv(x, 2, 3, seed=1)), 1)), 7, 2, seed=2)


def line(x):
    for seed in range(3):
        x = _emit(_nn.relu(_emit(_nn.conv1d(x, weight(2, 2, 5, seed=seed), padding=2))))
    return x


def gathered(x):
    """Build rows of a table looked up, then a window over them."""
    ids = np.random.default_rng(0).integers(0, x.ty.shape[0], (1, 16))
    y = _emit(_op.permute_dims(_emit(_op.take(x, relax.const(ids, "int64"), axis=0, mode="clip")), (0, 2, 1)))
    return line(y)


def two_readers(x):
    y = _conv(x, 2, 4)
    left, right = _conv(y, 4, 4, size=5, seed=1), _conv(y, 4, 4, size=1, seed=2)
    return _emit(_op.multiply(left, right))


def one_kernel_twice(x):
    for seed in range(3):
        x = _conv(x, 2, 2, seed=seed)
    return x


def wide_then_narrow(x):
    """Build a model whose intermediate is much larger than its input and output."""
    return _conv(_conv(x, 2, 32), 32, 2, size=1, seed=1)


IMAGE = (1, 2, 12, 8)
MODELS = {
    "conv-pool": (IMAGE, conv_pool), "odd edges": ((1, 2, 31, 17), odd_edges), "bottleneck": (IMAGE, bottleneck),
    "residual": (IMAGE, residual), "squeeze": (IMAGE, squeeze), "enlarged": (IMAGE, enlarged),
    "line": ((1, 2, 48), line), "gathered": ((20, 2), gathered), "two readers": (IMAGE, two_readers), "one kernel twice": (IMAGE, one_kernel_twice),
    "wide then narrow": (IMAGE, wide_then_narrow), "pools": ((1, 2, 37, 9), pools), "convolved pools": ((1, 2, 26, 20), convolved_pools),
    "sliced": (IMAGE, sliced),
}  # fmt: skip


PASSES = {
    "convolved pools": ("legalize", "fold-constant", "fuse-operators{over=pooling}"),
    "sliced": ("legalize", "fold-constant", "fuse-by-mapping"),
}


#: first steps of regions, with the rows that they run at a time
STARTS = ((0, (1, 2)), (1, (1,)))
BY_DAY = ((0, (2,)), (1, (1,)))


def _regions(program, starts=STARTS, axes=(1, 2)):
    """Yield the longest regions along each axis from some first steps."""
    splits, steps = splits_of(program), program.program
    for axis in axes:
        for first, groups in starts:
            ends = range(len(steps.steps) - 1, first, -1)
            last = next((end for end in ends if region(steps, splits, first, end, axis)), first)
            found = [region(steps, splits, first, last, axis, group) for group in groups] if last > first else []
            yield from (each for each in found if each is not None)


def _check(program, found, wanted, inputs):
    after, _ = schedule_program(stream_region(program, found))
    assert first_problem(after.program) is None
    for ours, reference in zip(run(after, inputs), wanted, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-5 * float(np.abs(reference).max()))
    assert any(isinstance(step, Loop) for step in after.program.steps)
    called = (
        step.kernel
        for step in after.program.steps
        if isinstance(step, Loop)
        for _, step, _ in after.program.calls_of(step)
    )
    assert all(workspace_bytes(after.kernels[kernel]) <= RULE_WORKSPACE for kernel in called)
    return after


@pytest.mark.parametrize("starts", [BY_DAY, pytest.param(STARTS, marks=pytest.mark.nightly)], ids=["day", "night"])
@pytest.mark.parametrize("name", MODELS)
def test_steps_that_run_as_one_compute_the_same(name, starts):
    shape, body = MODELS[name]
    program = lowered([shape], body, PASSES.get(name, TVM_DEFAULT))
    inputs = random_inputs(program)
    wanted = run(program, inputs)
    checked = [_check(program, found, wanted, inputs) for found in _regions(program, starts)]
    assert len(checked) > 1


@pytest.mark.parametrize("name", ["odd edges", "residual", "pools", "squeeze"])
def test_columns_that_run_as_one_compute_the_same(name):
    shape, body = MODELS[name]
    program = split_reductions(replace(lowered([shape], body), machine=get_target("x86-64").machine))
    inputs = random_inputs(program)
    wanted = run(program, inputs)
    assert [_check(program, found, wanted, inputs) for found in _regions(program, ((0, (1, 2)),), (3,))]


def test_poolings_take_rows_as_they_come():
    program = lowered([(1, 2, 37, 9)], pools)
    leads = {
        stage.leads for found in _regions(program) for stage in found.stages if stage.axis == 2 and stage.group == 1
    }
    assert {(), (2, 1, 0)} < leads


def pointwise(x):
    return _conv(_conv(_conv(x, 2, 8, size=1), 8, 8, size=1, seed=1), 8, 2, size=1, seed=2)


@pytest.mark.parametrize(
    ("shape", "body", "axis"),
    [((1, 2, 11, 13), pointwise, 2), ((1, 2, 11, 13), pointwise, 3), ((1, 2, 31, 17), odd_edges, 2)],
)
def test_the_last_rows_of_an_uneven_group_are_computed_again(shape, body, axis):
    program = lowered([shape], body)
    inputs = random_inputs(program)
    wanted, splits = run(program, inputs), splits_of(program)
    last = len(program.program.steps) - 1
    found = [each for group in (3, 4, 5) if (each := region(program.program, splits, 0, last, axis, group)) is not None]
    assert any(stage.extent % stage.group for each in found for stage in each.stages)
    assert any(stage.lockstep for each in found for stage in each.stages) == (body is pointwise)
    for each in found:
        _check(program, each, wanted, inputs)


@pytest.mark.parametrize("kind", ["pixels", "channels"])
def test_a_sum_takes_the_rows_that_groups_leave(kind):
    def body(x):
        y = _conv(_conv(x, 2, 7, size=1), 7, 11, size=1, seed=1)
        return _emit(_op.mean(y, [2, 3], keepdims=True)) if kind == "pixels" else _conv(y, 11, 2, seed=2)

    program = lowered([(1, 2, 11, 13)], body)
    inputs = random_inputs(program)
    wanted, splits = run(program, inputs), splits_of(program)
    last, axis = len(program.program.steps) - 1, 2 if kind == "pixels" else 1
    found = [region(program.program, splits, 1, last, axis, group) for group in (2, 3, 4, 7)]
    for each in found:
        assert each.stages[-1].operand is not None and len(each.stages[-1].pieces) == 2
        _check(program, each, wanted, inputs)


def test_channels_are_added_once_where_vectors_of_a_row_overlap():
    program = lowered(
        [(1, 2, 9, 14)], lambda x: _emit(_nn.conv2d(_conv(x, 2, 4), weight(1, 4, 5, 1, seed=1), padding=(2, 0)))
    )
    inputs = random_inputs(program)
    _check(program, region(program.program, splits_of(program), 0, 1, 1), run(program, inputs), inputs)


def same(x):
    """Build windows, a residual, a resized copy: the result is as large as the operand."""
    y = _emit(_op.add(_conv(_conv(x, 2, 4), 4, 2, size=5, seed=1), x))
    return _conv(y, 2, 2, size=3, padding=[2, 0, 0, 2], seed=2)


def attention(x):
    """Build three heads of attention with a residual: operands and result lie at the same bytes in other shapes."""

    def heads(seed):
        y = _emit(_op.reshape(_emit(_op.matmul(x, weight(12, 12, seed=seed))), (1, 10, 3, 4)))
        return _emit(_op.permute_dims(y, (0, 2, 1, 3)))

    query, key, value = map(heads, range(3))
    scores = _emit(_nn.softmax(_emit(_op.matmul(query, _emit(_op.permute_dims(key, (0, 1, 3, 2))))), axis=-1))
    means = _emit(_op.permute_dims(_emit(_op.matmul(scores, value)), (0, 2, 1, 3)))
    joined = _emit(_op.reshape(means, (1, 10, 12)))
    return _emit(_op.add(_emit(_op.matmul(joined, weight(12, 12, seed=3))), x))


SAME_SIZE = {
    "same": (IMAGE, same),
    "attention": ((1, 10, 12), attention),
    "one kernel twice": (IMAGE, one_kernel_twice),
}


@pytest.mark.parametrize("name", SAME_SIZE)
@pytest.mark.parametrize("group", [1, 2])
def test_a_result_in_place_of_an_operand_is_the_same(name, group):
    shape, body = SAME_SIZE[name]
    program = lowered([shape], body)
    inputs = random_inputs(program)
    wanted = run(program, inputs)
    splits, steps = splits_of(program), program.program
    last = len(steps.steps) - 1
    checked = 0
    for axis in (1, 2):
        for first in range(last + 1):
            found = region(steps, splits, first, last, axis, group, in_place=True)
            if found is None:
                continue
            after = _check(program, found, wanted, inputs)
            shared = Share().rearrange(after.program)
            shared = replace(after, program=shared)
            assert any(
                shared.program.is_in_place(step, each) for step in shared.program.steps for each in step.in_place
            )
            ours = run(shared, inputs)
            np.testing.assert_allclose(ours[0], wanted[0], rtol=1e-5, atol=1e-5 * float(np.abs(wanted[0]).max()))
            checked += 1
    assert checked


def widened(x):
    """Build a result of more bytes than the operand has."""
    return _conv(_conv(x, 3, 4), 4, 7, size=5, seed=1)


def strided(x):
    return _conv(_conv(x, 3, 8, strides=2), 8, 5, seed=1, strides=2)


@pytest.mark.parametrize("body", [widened, strided])
@pytest.mark.parametrize("shape", [(1, 3, 12, 8), (1, 3, 16, 35), (1, 3, 9, 64)])
def test_a_result_grows_over_an_operand_of_other_planes(body, shape):
    program = lowered([shape], body)
    inputs, steps = random_inputs(program), program.program
    wanted = run(program, inputs)
    apart, found = (region(steps, splits_of(program), 0, 1, 2, in_place=each) for each in (0, GROWING))
    assert found.replacement.growth is not None
    after, before = stream_region(program, found), stream_region(program, apart)
    assert first_problem(after.program) is None
    shared, _ = apply_program_passes(after, [Share(), Order(by="given")])
    assert all(any(shared.program.is_in_place(step, each) for each in step.in_place) for step in shared.program.steps)
    assert bound(shared.program) == bound(schedule_program(before)[0].program) - found.replacement.saved(
        program.program, 64
    )
    np.testing.assert_allclose(run(shared, inputs)[0], wanted[0], rtol=1e-5, atol=1e-5 * float(np.abs(wanted[0]).max()))


def test_what_is_between_is_never_whole():
    program = lowered([IMAGE], wide_then_narrow)
    inputs = random_inputs(program)
    wanted = run(program, inputs)
    pixels = IMAGE[2] * IMAGE[3] * 4
    assert bound(program.program) >= (2 + 32) * pixels
    for axis, between in ((2, 32 * IMAGE[3] * 4), (1, pixels)):
        after = _check(program, region(program.program, splits_of(program), 0, 1, axis), wanted, inputs)
        assert bound(after.program) == 2 * 2 * pixels + between


def test_a_region_whose_middle_is_handed_out():
    """Stream three results of which the second is an output too."""
    builder = relax.BlockBuilder()
    x = relax.Var("x0", relax.TensorType(IMAGE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            middle = _conv(_conv(x, 2, 4), 4, 3, seed=1)
            last = builder.emit_output(_conv(middle, 3, 2, seed=2))
            middle = builder.emit_output(middle)
        builder.emit_func_output([middle, last])
    module = builder.get()
    for each in Sequence.parse(TVM_DEFAULT).passes:
        module = each.apply(module)
    program = lower(module, "small", ["x0"], ["middle", "last"])
    inputs = random_inputs(program)
    wanted = run(program, inputs)
    for group in (1, 2, 3):
        found = region(program.program, splits_of(program), 0, 2, 2, group)
        assert len(found.results) == 2 and len(found.rings) == 1
        _check(program, found, wanted, inputs)


def test_splits_stand_in_a_sequence_and_numbers_are_those_before_them():
    program = lowered([IMAGE], conv_pool)
    inputs = random_inputs(program)
    specs = ("split-rows{steps=2-3,rows=2}", "split-rows{steps=0-1}", "order")
    passes = Sequence.parse(["legalize", *specs]).passes[1:]
    after, _ = apply_program_passes(program, passes)
    assert (
        len(after.program.steps) == 2
        and isinstance(passes[-1], Order)
        and largest_workspace(after.program) <= RULE_WORKSPACE
    )
    np.testing.assert_allclose(run(after, inputs)[0], run(program, inputs)[0], rtol=1e-5, atol=1e-4)


def test_a_weight_read_by_several_steps_is_laid_out_once_for_all_of_them():
    def body(x):
        shared = weight(16, 16, 3, 3)
        y = x
        for _ in range(3):
            y = _emit(_nn.relu(_emit(_nn.conv2d(y, shared, padding=1))))
        return y

    program = lowered([(1, 16, 12, 12)], body, ("legalize", "fuse-operators"))
    splits = splits_of(program)
    together = stream_region(program, region(program.program, splits, 0, 1, 2))
    scheduled, _ = apply_program_passes(together, [Order(by="given")])
    kernels = [scheduled.kernels[step.kernel] for _, step, _ in scheduled.program.calls()]
    shapes = [
        len(param.ty.shape)
        for kernel in kernels
        for param in tensors_of(kernel)
        if param.name == "weight" or len(param.ty.shape) == 5
    ]
    assert len(shapes) >= 3 and set(shapes) == {5}, "all steps read the layout the first one chose"
    assert scheduled.program.weight_bytes == program.program.weight_bytes
    inputs = random_inputs(program)
    expected = run(program, inputs)[0]
    np.testing.assert_allclose(run(scheduled, inputs)[0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
