"""Cycles of instructions by class: laws of every core, and rows of the manuals."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.targets.catalogue import load_catalogue
from passfit.targets.core_timings import Block, Cycles, by_function, core_timings, cycles_of

CORES = sorted({target.cpu for target in load_catalogue().values() if target.bare})
TEXT = st.lists(
    st.sampled_from(
        "adds r0, r1, r2|ldr r3, [r0]|str.w r3, [r0, #4]|vldr s0, [r1]|vmul.f32 s2, s0, s1|vadd.f32 s2, s2, s3"
        "|vdiv.f32 s0, s1, s2|ldm.w r3!, {r4, r5, r6}|ldrd r0, r1, [r2]|udiv r0, r1, r2|it mi|bne #0x10|blt.w #0x10"
        "|smlad r0, r1, r2, r0|lw a0, 4(sp)|mul a0, a1, a2|div a0, a1, a2|bgeu a0, a1, 16|nop".split("|")
    ),
    min_size=1,
    max_size=12,
).map(tuple)
BLOCKS = st.builds(
    lambda text, runs, jumps: Block(0x100, 0x100 + 4 * len(text), runs, min(jumps, runs), text),
    TEXT, st.integers(1, 1000), st.integers(0, 1000),
)  # fmt: skip


def run(*text, cpu="cortex-m4", jumps=0, waits=0):
    return cycles_of([Block(0, 2 * len(text), 1, jumps, text)], core_timings(cpu), waits)


@pytest.mark.parametrize("cpu", CORES)
@given(block=BLOCKS, waits=st.integers(0, 7))
def test_the_likely_time_is_within_its_range_and_grows_with_runs_and_waits(cpu, block, waits):
    core = core_timings(cpu)
    once, twice = (cycles_of([replace(block, runs=n * block.runs, jumps=n * block.jumps)], core, waits) for n in (1, 2))
    assert 0 <= once.least <= once.likely <= once.most
    assert twice == pytest.approx(once.times(2))
    assert twice == pytest.approx(cycles_of([block, block], core, waits))
    assert cycles_of([block], core, waits + 1).most >= once.most
    assert cycles_of([block], core, waits + 1)[:2] == once[:2]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        (("adds r0, r1, r2",), Cycles(1, 1, 1)),
        (("smlad r0, r1, r2, r0",), Cycles(1, 1, 1)),
        (("vdiv.f32 s0, s1, s2",), Cycles(14, 14, 14)),
        (("vfma.f32 s0, s1, s2",), Cycles(3, 3, 3)),
        (("ldm.w r3!, {r4, r5, r6}",), Cycles(4, 4, 4)),
        (("ldrd r0, r1, [r2]",), Cycles(3, 3, 3)),
        (("udiv r0, r1, r2",), Cycles(2, 7, 12)),
        (("ldr r0, [r1]", "ldr r2, [r1, #4]", "adds r3, r0, r2"), Cycles(4, 4, 4)),
        (("ldr r0, [r1]", "adds r3, r0, r2", "ldr r2, [r1, #4]"), Cycles(5, 5, 5)),
        (("vmul.f32 s2, s0, s1", "vadd.f32 s3, s4, s5"), Cycles(2, 2, 2)),
        (("vmul.f32 s2, s0, s1", "vadd.f32 s3, s2, s5"), Cycles(2, 3, 3)),
    ],
)
def test_rows_of_the_manual_of_the_m4(text, cycles):
    assert run(*text) == cycles


def test_a_jump_refills_the_pipeline_and_two_independent_instructions_may_issue_at_once():
    assert run("b #0x10", jumps=1) == Cycles(2, 3, 4)
    assert run("adds r0, r1, r2", "adds r3, r4, r5", cpu="cortex-m7").likely == 1
    assert run("adds r0, r1, r2", "adds r3, r0, r5", cpu="cortex-m7").likely == 2
    assert run("vmul.f32 s2, s0, s1", "vadd.f32 s3, s4, s5", cpu="cortex-m7").likely == 2


def test_the_slowest_case_fetches_each_line_of_code_from_flash():
    assert run(*["nop"] * 16, waits=5) == Cycles(16, 16, 16)  # 32 bytes are two lines, of six cycles each
    assert run("nop", waits=5).most == 6


def test_every_core_of_a_board_with_a_clock_is_known():
    assert all(core_timings(target.cpu) for target in load_catalogue().values() if target.bare and target.mhz)
    assert core_timings("cortex-m99") is None


def test_blocks_belong_to_the_function_before_them():
    blocks = [Block(at, at + 2, 1, 0, ("nop",)) for at in (0x8, 0x10, 0x1E, 0x20)]
    found = by_function(blocks, {0x10: "one", 0x20: "two"})
    assert {name: [each.first for each in own] for name, own in found.items()} == {"one": [0x10, 0x1E], "two": [0x20]}


def test_vectors_of_the_m55_take_up_to_two_cycles():
    scalar, load, product, loop = (
        run(line, cpu="cortex-m55")
        for line in ("vadd.f32 s0, s1, s2", "ldc p8, c7, [r1]", "vadd.i32 q0, q1, q2", ".byte 0xf0, 0x0f")
    )
    assert scalar == Cycles(1, 1, 1) and load == product == loop == Cycles(1, 1.5, 2)
