"""Store copies of elements together: the same results, vectors instead of gathers, other kernels left alone."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.codegen.llvm_pipelines import RAW
from passfit.codegen.objects import build_module
from passfit.kernels.rules.axes.repeat_elements import repeat_elements
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target
from passfit.tir.in_place.analysis import analyse_sharing

from ...programs import lowered, random_inputs, run

pytestmark = pytest.mark.tvm
FUSED = ("legalize", "fuse-operators")


def grown(x, high, wide, method="nearest_neighbor"):
    _, _, rows, columns = map(int, x.ty.shape)
    size = (rows * high, columns * wide)
    return relax.op.image.resize2d(x, size, None, "NCHW", method, "asymmetric", "floor")


def added(x, y):
    return relax.op.add(grown(x, 2, 2), y)


@pytest.mark.parametrize(
    ("shapes", "body", "copies"),
    [
        ([(1, 3, 5, 7)], lambda x: grown(x, 2, 2), 2),
        ([(1, 2, 6, 16)], lambda x: grown(x, 1, 3), 3),
        ([(1, 2, 3, 9)], lambda x: grown(x, 5, 8), 8),
        ([(1, 2, 4, 8), (1, 2, 8, 16)], added, 2),
    ],
)
def test_a_picture_that_grows_by_a_whole_factor(shapes, body, copies):
    program = lowered(shapes, body, FUSED)
    ((name, kernel),) = program.kernels.items()
    repeated = repeat_elements(kernel)
    assert f"T.unroll(T.int64({copies}))" in repeated.script()
    assert set(analyse_sharing(repeated).in_place) >= set(analyse_sharing(kernel).in_place)
    inputs = random_inputs(program)
    after = type(program)(program.program, {name: repeated}, program.weights)
    for ours, reference in zip(run(after, inputs), run(program, inputs), strict=True):
        np.testing.assert_array_equal(ours, reference)


@pytest.mark.parametrize(
    "body",
    [
        lambda x: grown(x, 2, 1),
        lambda x: grown(x, 1, 16),
        lambda x: grown(x, 2, 2, "linear"),
        lambda x: relax.op.nn.relu(x),
        lambda x: relax.op.image.resize2d(x, (10, 11), None, "NCHW", "nearest_neighbor", "asymmetric", "floor"),
    ],
)
def test_other_kernels_stay(body):
    (kernel,) = lowered([(1, 3, 5, 7)], body, FUSED).kernels.values()
    assert repeat_elements(kernel) is None


def test_elements_are_not_gathered():
    target = get_target("x86-64-v4")
    (kernel,) = lowered([(1, 3, 32, 32)], lambda x: grown(x, 2, 2), FUSED).kernels.values()
    chosen = schedules(kernel, frozenset(), target.machine).within(0).kernel

    def assembly(kernel):
        return build_module({"f": kernel}, target.llvm_config(), RAW).inspect_source("asm")

    assert "vpgather" not in assembly(chosen) and "vgather" not in assembly(chosen)
