"""Test the instruction counts read from an emulator's log."""

from __future__ import annotations

import shutil

import pytest

from passfit.errors import ToolchainError
from passfit.targets import get_target, zig_cc
from passfit.verify.measure.instructions import count_between, count_between_calls, log_of

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

LOOP = """
__attribute__((noinline)) void mark(void) { __asm__ volatile(""); }
void _start(void) {
  long i = N;
  mark();
  __asm__ volatile("1: nop\\nsubs %0, %0, #1\\nbne 1b" : "+r"(i));
  mark();
  __asm__ volatile("mov x0, #0\\nmov x8, #93\\nsvc #0");
}
"""


def test_what_lies_between_two_marks_is_counted():
    lines = LOG.splitlines(keepends=True)
    assert count_between([*lines, *lines], "main", limit=2) == 1 + 1
    assert count_between([*lines, *lines], "main", limit=1) is None
    assert count_between([*lines, *lines], "main", limit=2, most=1) is None
    assert count_between(lines, "main", limit=2) is None and count_between([*lines, *lines], "none", limit=9) is None


def test_a_run_lasts_from_the_first_call_to_the_second():
    lines = LOG.splitlines(keepends=True)
    assert count_between_calls(lines * 2, "main") == count_between_calls(lines * 9, "main") == 2 + 1 + 1
    assert (
        count_between_calls(lines * 9, "main", most=6) == 4 and count_between_calls(lines * 9, "main", most=3) is None
    )
    with pytest.raises(ToolchainError, match="1 calls of 'main'"):
        count_between_calls(lines, "main")
    with pytest.raises(ToolchainError, match="0 calls"):
        count_between_calls(lines, "run_measured")


def test_a_block_translated_again_has_its_new_length():
    again = LOG.replace(
        b"0x00400108:  d1000400  sub x0, x0, #1\n",
        b"0x00400108:  d1000400  sub x0, x0, #1\n0x0040010c:  d503201f  nop\n",
    )
    assert count_between((LOG + again + again).splitlines(keepends=True), "main", limit=9) == 1 + 1
    assert count_between((again + again).splitlines(keepends=True), "main", limit=9) == 2 + 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="qemu is not installed")
def test_a_loop_takes_its_instructions_each_time(tmp_path):
    """Run three instructions in a loop: the counts of two trip counts differ by three per trip."""
    (tmp_path / "loop.c").write_text(LOOP)
    counts = []
    for number in (1000, 4000):
        zig_cc(
            ["-O1", "-nostdlib", "-ffreestanding", "-static", f"-DN={number}", "loop.c", "-o", "loop"],
            get_target("rpi4"),
            tmp_path,
        )
        with log_of(["qemu-aarch64-static"], [str(tmp_path / "loop")], tmp_path) as log:
            counts.append(count_between(log, "mark", limit=100_000))
    assert counts[1] - counts[0] == 3 * 3000
