"""Check that regions of columns keep their rings with channels last, compute the same, and take fewer cycles."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rewrite.columns_last import region_with_columns_last
from passfit.kernels.rewrite.split_reductions import split_reductions
from passfit.kernels.rewrite.splittable import splits_of
from passfit.kernels.rewrite.stream_region import stream_region
from passfit.memory.streaming.region import region
from passfit.program.check import first_problem
from passfit.targets import get_target
from passfit.targets.cycles import core_of, kernel_cycles
from passfit.tir.counts.operation_counts import kernel_work

from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
_op, _nn = relax.op, relax.op.nn


def _emit(expr):
    return relax.BlockBuilder.current().emit(expr)


def _conv(x, taken, given, size=3, seed=0, groups=1, **options):
    options.setdefault("padding", size // 2)
    made = _nn.conv2d(x, weight(given, taken // groups, size, size, seed=seed), groups=groups, **options)
    return _emit(_nn.relu(_emit(made)))


def separable(x):
    y = _conv(_conv(x, 2, 16), 16, 16, groups=16, seed=1)
    return _conv(_conv(y, 16, 24, size=1, seed=2), 24, 24, size=5, groups=24, strides=2, seed=3)


def residual(x):
    first = _conv(x, 2, 8)
    y = _emit(_op.add(_conv(_conv(first, 8, 8, groups=8, seed=1), 8, 8, size=1, seed=2), first))
    return _conv(_emit(_op.concat((y, _conv(x, 2, 8, seed=3)), 1)), 16, 4, seed=4)


def pooled(x):
    y = _emit(_nn.max_pool2d(_conv(x, 2, 16), (3, 3), (2, 2), (1, 1)))
    return _conv(_emit(_nn.avg_pool2d(_conv(y, 16, 16, size=1, seed=1), (2, 2), (1, 1))), 16, 4, seed=2)


def line(x):
    for taken, given, seed in ((2, 16, 0), (16, 16, 1), (16, 3, 2)):
        x = _emit(_nn.relu(_emit(_nn.conv1d(x, weight(given, taken, 5, seed=seed), padding=2))))
    return x


def summed(x):
    return _emit(_op.mean(_conv(_conv(x, 2, 16), 16, 16, groups=16, seed=1), [2, 3], True))


def narrow(x):
    return _conv(_conv(x, 2, 4), 4, 4, groups=4, seed=1)


IMAGE = (1, 2, 13, 22)
MODELS = {
    "separable": (IMAGE, separable),
    "residual": (IMAGE, residual),
    "pooled": (IMAGE, pooled),
    "line": ((1, 2, 40), line),
    "summed": (IMAGE, summed),
}


def columns(name, group=1):
    """Return a program on AVX2 and the region of all its steps, `group` columns at a time."""
    shape, body = MODELS[name]
    program = split_reductions(replace(lowered([shape], body), machine=TARGET.machine))
    last = len(program.program.steps) - 1
    return program, region(program.program, splits_of(program), 0, last, len(shape) - 1, group)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("group", [1, 2, 3])
def test_rings_have_channels_last(name, group):
    program, found = columns(name, group)
    if found is None:
        pytest.skip("these columns cannot be taken by so many")
    moved, _ = region_with_columns_last(program, found)
    for ring in found.rings:
        before, after = program.program.tensors[ring].shape, moved.program.tensors[ring].shape
        assert after == ((*before[:1], *before[2:], before[1]) if before[1] >= 8 else before)
    streamed = stream_region(program, found)
    assert first_problem(streamed.program) is None
    inputs = random_inputs(program)
    for ours, reference in zip(run(schedule_program(streamed)[0], inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-5 * float(np.abs(reference).max()))


def test_rows_and_few_channels_keep_planes():
    program, _ = columns("separable")
    rows = region(program.program, splits_of(program), 0, 3, 2)
    assert region_with_columns_last(program, rows) == (program, rows)
    small = replace(lowered([IMAGE], narrow), machine=TARGET.machine)
    found = region(small.program, splits_of(small), 0, 1, 3)
    assert region_with_columns_last(small, found) == (small, found)


def test_channels_last_take_fewer_cycles(monkeypatch):
    program, found = columns("separable")

    def cycles():
        scheduled, _ = schedule_program(stream_region(program, found))
        each = {
            name: kernel_cycles(kernel_work(kernel, TARGET.machine), core_of(TARGET.architecture))
            for name, kernel in scheduled.kernels.items()
        }
        return sum(each[call.step.kernel] * call.runs for call in scheduled.program.calls())

    last = cycles()
    monkeypatch.setattr("passfit.kernels.rewrite.stream_region.region_with_columns_last", lambda *given: given)
    assert last < 0.7 * cycles()
