"""Test the instruction counts read from an emulator's log."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from passfit.errors import ToolchainError
from passfit.targets import get_target, zig_cc
from passfit.verify.instructions import between, between_calls, executed

LOG = b"""----------------
IN: main
0x00400100:  d2800000  mov x0, #0
0x00400104:  14000001  b #0x400108

Trace 0: 0x7f0000000100 [0000000000000000/0000000000400100/00000000/ff000000] main
----------------
IN: loop
0x00400108:  d1000400  sub x0, x0, #1

Trace 0: 0x7f0000000200 [0000000000000000/0000000000400108/00000000/ff000000] loop
Trace 0: 0x7f0000000200 [0000000000000000/0000000000400108/00000000/ff000000] loop
Linking TBs 0x7f0000000200 index 0 -> 0x7f0000000200
"""


def test_every_execution_of_a_block_counts_its_instructions():
    assert executed(LOG.splitlines(keepends=True)) == 2 + 1 + 1


def test_more_blocks_than_are_counted_have_no_count():
    lines = LOG.splitlines(keepends=True)
    assert executed(lines, most=3) == 4 and executed(lines, most=2) is None


def test_what_lies_between_two_marks_is_counted():
    lines = LOG.splitlines(keepends=True)
    assert between([*lines, *lines], "main", limit=2) == 1 + 1
    assert between([*lines, *lines], "main", limit=1) is None
    assert between([*lines, *lines], "main", limit=2, most=1) is None
    assert between(lines, "main", limit=2) is None and between([*lines, *lines], "none", limit=9) is None


def test_a_run_lasts_from_the_second_call_to_the_third():
    lines = LOG.splitlines(keepends=True)
    assert between_calls(lines * 3, "main") == between_calls(lines * 9, "main") == 2 + 1 + 1
    assert between_calls(lines * 9, "main", most=9) == 4 and between_calls(lines * 9, "main", most=6) is None
    with pytest.raises(ToolchainError, match="2 calls of 'main'"):
        between_calls(lines * 2, "main")
    with pytest.raises(ToolchainError, match="0 calls"):
        between_calls(lines, "measured_run")


def test_a_block_translated_again_has_its_new_length():
    again = LOG.replace(b"0x00400108:  d1000400  sub x0, x0, #1\n", b"0x00400108:  d1000400  sub x0, x0, #1\n0x0040010c:  d503201f  nop\n")
    assert executed((LOG + again).splitlines(keepends=True)) == (2 + 1 + 1) + (2 + 2 + 2)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="qemu is not installed")
def test_a_loop_takes_its_instructions_each_time(tmp_path):
    """Run three instructions in a loop: the counts of two trip counts differ by three per trip."""
    loop = '__asm__ volatile("1: nop\\nsubs %0, %0, #1\\nbne 1b" : "+r"(i));'
    end = '__asm__ volatile("mov x0, #0\\nmov x8, #93\\nsvc #0");'
    (tmp_path / "loop.c").write_text(f"void _start(void) {{ long i = N; {loop} {end} }}")
    counts = []
    for number in (1000, 4000):
        zig_cc(["-O1", "-nostdlib", "-ffreestanding", "-static", f"-DN={number}", "loop.c", "-o", "loop"], get_target("rpi4"), tmp_path)
        log = tmp_path / "log"
        subprocess.run(
            ["qemu-aarch64-static", "-d", "nochain,exec,in_asm", "-D", log, tmp_path / "loop"], check=True, cwd=tmp_path
        )
        with log.open("rb") as lines:
            counts.append(executed(lines))
    assert counts[1] - counts[0] == 3 * 3000
