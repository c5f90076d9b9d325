from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.memory import Budget, account, fits, plan_arena
from passfit.memory.footprint import Measured
from passfit.memory.limits import RegionUse
from passfit.memory.placement.account import footprint_of
from passfit.program import Port, Step, Tensor, Weight
from passfit.targets import get_target

from ...strategies import chain, programs


@given(programs(), st.integers(0, 1000), st.integers(0, 1000), st.booleans())
def test_ram_and_flash_are_the_sums_of_their_parts(program, workspace, code, in_place):
    plan = plan_arena(program)
    footprint = account(program, plan, workspace=workspace, code=code, weights_in_place=in_place)
    assert footprint.ram == footprint.arena + footprint.workspace + (0 if in_place else footprint.weights)
    assert footprint.flash == footprint.weights + footprint.code
    assert (footprint.workspace, footprint.code, footprint.kernels) == (workspace, code, len(program.steps))
    assert (footprint.arena, footprint.bound, footprint.floor) == (plan.arena, plan.bound, plan.floor)
    assert footprint.proved == plan.proved


def test_the_sum_counts_read_inputs_weights_and_results_but_no_views():
    program = chain(10, 20, 30)
    program = replace(
        program,
        tensors=(
            *program.tensors,
            Tensor((4, 5), "uint8", buffer=1),
            Tensor((7,), "uint8", weight=0),
            Tensor((99,), "uint8", buffer=3),
        ),
        buffers=(*program.buffers, replace(program.buffers[0], name="unread", nbytes=99)),
        weights=(Weight("w", 7, "0" * 64),),
        inputs=(*program.inputs, Port("unread", 5)),
        steps=(program.steps[0], Step("k1", (3, 4), (2,))),
    )
    footprint = account(program, plan_arena(program), workspace=0, code=0, weights_in_place=True)
    assert footprint.sum == 10 + 7 + 20 + 30
    assert footprint.weights == 64


def test_the_stack_is_in_the_first_ram_and_memories_add_up():
    program = chain(64, 64)
    regions = (
        RegionUse("rom", "flash", 700, 1024),
        RegionUse("sram", "ram", 100, 200),
        RegionUse("dtcm", "ram", 64, 64),
    )
    measured = Measured(True, "emulated", ram=164, flash=700, stack=36, regions=regions)
    found = footprint_of(program, plan_arena(program), 0, 0, get_target("mps2-an386"), measured)
    assert [region.used for region in found.regions] == [700, 136, 64] and found.ram == 200
    assert all(region.fits for region in found.regions) and not replace(regions[2], room=63).fits


@pytest.mark.parametrize(
    ("budget", "fitting"),
    [
        (Budget(), True),
        (Budget(ram=100, flash=200), True),
        (Budget(ram=99), False),
        (Budget(flash=199), False),
        (Budget(ram=100), True),
    ],
)
def test_the_budget_wins_over_the_capacity(budget, fitting):
    assert fits(100, 200, budget, capacity_ram=1000, capacity_flash=1000) == fitting


def test_the_capacity_counts_where_there_is_no_budget():
    assert not fits(100, 200, Budget(flash=300), capacity_ram=99, capacity_flash=1)
    assert not fits(100, 200, Budget(ram=100), capacity_ram=99, capacity_flash=199)
    assert fits(100, 200, Budget(), capacity_ram=100, capacity_flash=200)
