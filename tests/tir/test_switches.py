"""A transformation that is switched off changes nothing, and none of them changes what a kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import topi

import passfit.kernels.lower.schedule_program  # noqa: F401  # has all that rewrites kernels
from passfit.codegen.objects import build_module
from passfit.kernels.schedule.candidates import RULES, schedules
from passfit.targets import get_target
from passfit.tir.switches import CHANGED, SWITCHES, is_on, switchable, switched_off

from ..kernels.programs import HOST
from ..kernels.te_kernels import kernel_of, operands_of, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine
NAMES = [name for name, each in SWITCHES.items() if ".kernels." in each.__module__]


@pytest.fixture
def doubled():
    @switchable
    def doubled(values: list[int], times: int = 2) -> list[int]:
        return values * times if times > 1 else values

    yield doubled
    del SWITCHES["doubled"]
    CHANGED.discard("doubled")


def test_a_switch_returns_the_first_argument(doubled):
    given = [1]
    assert doubled(given, 1) is given and "doubled" not in CHANGED
    with switched_off("doubled"):
        assert doubled(given) is given and not is_on("doubled")
        with switched_off("doubled", "another"):
            assert not is_on("another")
        assert not is_on("doubled") and is_on("another")
    assert doubled(given) == [1, 1] and "doubled" in CHANGED


def test_names_are_told_apart():
    names = [*SWITCHES, *(rule.__name__ for rule in RULES)]
    assert len(set(names)) == len(names) and len(NAMES) >= 8


@pytest.mark.parametrize("number, name", list(enumerate([*NAMES, *(rule.__name__ for rule in RULES)])))
def test_a_kernel_computes_the_same_without(number: int, name: str):
    """Schedule a kernel of a shape that no other test has: schedules are kept in memory."""
    kernel = kernel_of(
        [(1, 3, 23, 41 + number), (8, 3, 3, 3), (1, 8, 23, 41 + number)],
        lambda data, weight, other: topi.nn.relu(
            topi.add(
                topi.nn.conv2d(data, weight, 1, 1, 1), topi.nn.pool2d(other, [3, 3], [1, 1], [1, 1], [1] * 4, "max")
            )
        ),
    )
    with switched_off(name):
        scheduled = schedules(kernel, frozenset(), MACHINE).within(4096).kernel
    operands = [tvm.runtime.tensor(each) for each in operands_of(kernel)]
    build_module({"f": scheduled}, HOST)["f"](*operands)
    assert np.allclose(operands[-1].numpy(), run(kernel), rtol=1e-4, atol=1e-5)
