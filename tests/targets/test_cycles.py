"""Laws of the model of cycles: more work is never faster, and a roofline has its ceilings."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.targets.catalogue import load_catalogue
from passfit.targets.cycles import CORES, KernelWork, StatementWork, core_of, kernel_cycles

_AMOUNT = st.integers(0, 10**6)
_STATEMENTS = st.builds(StatementWork, _AMOUNT, _AMOUNT, _AMOUNT, _AMOUNT)
_KERNELS = st.builds(KernelWork, st.lists(_STATEMENTS, max_size=3).map(tuple), st.integers(0, 1 << 22))


@given(_KERNELS, _STATEMENTS, st.sampled_from(sorted(CORES)))
def test_more_statements_take_no_less_time(work, more, name):
    longer = replace(work, statements=(*work.statements, more))
    assert kernel_cycles(longer, CORES[name]) >= kernel_cycles(work, CORES[name]) >= CORES[name].call


def test_the_slowest_resource_is_the_ceiling():
    core = CORES["x86_64"]
    compute = KernelWork((StatementWork(arithmetic=1000),), 0)
    assert kernel_cycles(compute, core) == 1000 / core.arithmetic + core.call
    moved = KernelWork((StatementWork(arithmetic=1),), core.cache + 4)
    assert kernel_cycles(moved, core) == (core.cache + 4) / core.memory + core.call


def test_one_chain_of_sums_waits_for_each_and_many_short_ones_overlap():
    core = CORES["x86_64"]
    one = StatementWork(arithmetic=1000, chain=1000, steps=1000)
    many = replace(one, steps=2)
    assert kernel_cycles(KernelWork((one,), 0), core) == 1000 * core.latency + core.call
    assert kernel_cycles(KernelWork((many,), 0), core) == 1000 / core.arithmetic + core.call


@given(_KERNELS, st.sampled_from(sorted(CORES)))
def test_operands_that_are_near_take_no_more_time(work, name):
    core = CORES[name]
    assert kernel_cycles(work, core, near=True) <= kernel_cycles(work, core)
    assert core.second <= core.cache


def test_every_architecture_of_the_catalogue_has_a_core():
    assert {target.architecture for target in load_catalogue(None).values()} <= set(CORES)
    assert core_of("unknown") in CORES.values()


def test_weights_read_again_from_beyond_the_first_cache_take_its_bandwidth():
    core = CORES["aarch64"]
    again = StatementWork(arithmetic=10, refilled=1 << 20)
    assert kernel_cycles(KernelWork((again,), 0), core) == (1 << 20) / core.refill + core.call
