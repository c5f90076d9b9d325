"""Check that every choice computes the same as TVM's kernel, and that the rules' own is among them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.errors import ConfigError
from passfit.kernels.schedule.candidates import RULE_WORKSPACE, schedules
from passfit.kernels.schedule.choices import schedule_by_spec, schedule_choices, turned
from passfit.kernels.weights.repack import repackable_parameters
from passfit.targets import Machine, get_target
from passfit.tuning.measure.timed import TimingHarness

from ...profiles import examples
from ...tuning.helpers import requests_of
from ..programs import lowered, weight

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(5))
HOST = get_target("x86-64")
_PARTS = 4
_PART = st.integers(0, _PARTS - 1)


def agree(program, part: int) -> None:
    """Check each possible choice of a part: same results, no other memory written."""
    for request in requests_of(program):
        stand = TimingHarness(request, HOST, 0)
        found = list(schedule_choices(request.kernel, request.repackable, request.machine))
        found = found[part::_PARTS] or found  # a part of them for each example: each takes a tenth of a second to build
        found += [other for spec in found[:1] if (other := turned(spec)) is not None]
        possible = 0
        for spec in found:
            schedule = request.scheduled(spec)
            if schedule is not None and schedule.workspace <= RULE_WORKSPACE:
                possible += 1
                assert stand.agrees(schedule), spec
        assert possible or part


@_FEW
@given(
    st.sampled_from([3, 8, 12]), st.sampled_from([4, 16, 24]), st.sampled_from([5, 7, 12]), st.sampled_from([1, 2]),
    st.sampled_from([0, 1]), _PART,
)  # fmt: skip
def test_convolutions(channels, filters, side, stride, padding, part):
    def body(x):
        result = relax.op.nn.conv2d(x, weight(filters, channels, 3, 3), strides=stride, padding=padding)
        return relax.op.nn.relu(relax.op.add(result, weight(1, filters, 1, 1)))

    agree(lowered([(1, channels, side, side)], body), part)


@_FEW
@given(st.sampled_from([1, 3, 12]), st.sampled_from([5, 16, 33]), st.sampled_from([8, 10, 48]), _PART)
def test_products_of_matrices(rows, depth, width, part):
    agree(lowered([(rows, depth)], lambda x: relax.op.tanh(relax.op.matmul(x, weight(depth, width)))), part)


@_FEW
@given(st.sampled_from([2, 5]), st.sampled_from([7, 9, 17, 70]), st.sampled_from([1, 2]), st.booleans(), _PART)
def test_windows(channels, side, stride, pooling, part):
    def body(x):
        if pooling:
            return relax.op.nn.max_pool2d(x, (3, 3), (stride, stride), (1, 1))
        return relax.op.nn.conv2d(x, weight(channels, 1, 3, 3), strides=stride, padding=1, groups=channels)

    agree(lowered([(1, channels, 6, side)], body), part)


@_FEW
@given(st.sampled_from([3, 8]), st.sampled_from([4, 6, 16]), st.sampled_from([5, 8]), _PART)
def test_sums_along_memory(channels, height, width, part):
    agree(lowered([(1, channels, height, width)], lambda x: relax.op.mean(x, [2, 3])), part)


@pytest.mark.parametrize(
    ("shape", "body", "kind"),
    [
        ((1, 8, 9, 9), lambda x: relax.op.nn.conv2d(x, weight(16, 8, 3, 3), padding=1), "tile"),
        ((1, 8, 9, 9), lambda x: relax.op.nn.max_pool2d(x, (3, 3)), "slide"),
        ((1, 8, 12, 16), lambda x: relax.op.mean(x, [2, 3]), "lane-sums"),
    ],
)
def test_the_rules_own_choice_is_one_of_them(shape, body, kind):
    program = lowered([shape], body)
    ((name, kernel),) = program.kernels.items()
    private = repackable_parameters(program.program)[name]
    own = schedules(kernel, private, Machine()).within(RULE_WORKSPACE).kernel
    same = [
        spec
        for spec in schedule_choices(kernel, private, Machine())
        if (made := schedule_by_spec(kernel, private, Machine(), False, spec))
        and tvm_ffi.structural_equal(made.kernel, own)
    ]
    assert len(same) == 1 and same[0].startswith(kind)


@pytest.mark.parametrize(
    "spec", ["", "tile", "tile{}", "tile{along=1}", "tile{along=a,vectors=1,rows=1}", "slide{rows=1}", "lane-sums{late}",
             "fuse{x=1}", "tile{along=1,vectors=1,rows=1,late=true}", "nothing", "{", "slide{at-once=0,rows=1,band=1}",
             "lane-sums{lanes=0}"],
)  # fmt: skip
def test_what_is_no_spec_is_refused(spec):
    ((_, kernel),) = lowered([(1, 8, 9, 9)], lambda x: relax.op.nn.max_pool2d(x, (3, 3))).kernels.items()
    with pytest.raises(ConfigError, match="is not a choice"):
        schedule_by_spec(kernel, frozenset(), Machine(), False, spec)


@pytest.mark.parametrize(
    "spec",
    ["tile{along=1,vectors=3,rows=1x1}", "tile{along=9,vectors=1,rows=1x1}", "slide{at-once=1,rows=1,band=1}",
     "lane-sums{lanes=5}", "[]", '[[["GetLoops", ["b9"], [], []]], []]', "[1"],
)  # fmt: skip
def test_what_does_not_fit_a_kernel_is_none(spec):
    ((_, kernel),) = lowered([(1, 8, 9, 9)], lambda x: relax.op.nn.conv2d(x, weight(16, 8, 3, 3))).kernels.items()
    assert schedule_by_spec(kernel, frozenset({1}), Machine(), False, spec) is None


def test_a_turned_tile_walks_the_other_way():
    for end in ("}", ",late}"):
        spec = "tile{along=1,vectors=2,rows=1x6" + end
        other = turned(spec)
        assert other == "tile{along=1,vectors=2,rows=1x6,turned" + end and turned(other) == spec
    assert turned("slide{at-once=1,rows=1,band=1}") is None


def test_results_are_compared_at_all():
    (request,) = requests_of(lowered([(1, 8, 9, 9)], lambda x: relax.op.nn.max_pool2d(x, (3, 3))))
    (other,) = requests_of(lowered([(1, 8, 9, 9)], lambda x: relax.op.nn.avg_pool2d(x, (3, 3))))
    assert not TimingHarness(request, HOST, 0).agrees(other.rules)
    assert np.isfinite(TimingHarness(request, HOST, 0).cost(request.rules))
