"""Estimate the time of a run on a board, by function, from the blocks of instructions that its emulator ran."""

from __future__ import annotations

from dataclasses import asdict, replace

from ...codegen.elf import functions_of
from ...memory.measured import EstimatedTime
from ...support.text_files import json_lines, write_text
from ...targets.core_timings import Block, Cycles, by_function, core_timings, cycles_of
from ...targets.memory import first_of
from ..linked.image import LinkedImage
from .executed_blocks import counting_options, read_blocks
from .run_cycles import CYCLES, FunctionCycles, RunCycles

#: largest difference of the instructions by block and by clock: blocks count every run, the clock the first, and arithmetic in software
#: takes as long as its numbers ask
_AGREEMENT = 0.25


def counting(linked: LinkedImage) -> LinkedImage:
    """Return the image run by an emulator that counts blocks; itself where that is not possible, or its core's cycles are unknown."""
    command = linked.runner.command
    if not command or linked.image.board.runner or core_timings(linked.image.board.cpu) is None:
        return linked
    options = counting_options(command[0], linked.folder.absolute())
    if not options:
        return linked
    return replace(linked, runner=replace(linked.runner, command=[command[0], *options, *command[1:]]))


def estimate_time(linked: LinkedImage, runs: int, instructions: int) -> EstimatedTime | None:
    """Estimate the time of one of `runs` runs, and write cycles.json next to the library.

    `instructions` are those of the first run by the board's clock. None without counted blocks, a clock, or agreement of both counts.
    """
    board, elf = linked.image.board, linked.emulated.elf
    core, blocks = core_timings(board.cpu), read_blocks(linked.folder)
    if core is None or board.mhz is None or not blocks:
        return None
    names = {each.value & ~1: each.name for each in functions_of(elf.read_bytes())}  # without the bit of Thumb code
    around = {each.name for part in ("main.o", "startup.o") for each in functions_of(elf.with_name(part).read_bytes())}
    found = {name: own for name, own in by_function(blocks, names).items() if name not in around}
    counts = {name: _instructions(own) / runs for name, own in found.items()}
    if abs(sum(counts.values()) - instructions) > _AGREEMENT * instructions:
        return None
    waits = first_of(board.memories, "flash").wait_states or 0
    cycles = {name: cycles_of(own, core, waits).times(1 / runs) for name, own in found.items()}
    rows = tuple(
        FunctionCycles(name.removeprefix(f"{linked.library.name}_"), round(counts[name]), _whole(each))
        for name, each in sorted(cycles.items(), key=lambda item: (-item[1].likely, item[0]))
    )
    total = EstimatedTime(_whole(sum(cycles.values(), Cycles(0, 0, 0))), board.mhz)
    place = linked.library.archive.with_name(CYCLES)
    write_text(place, json_lines(asdict(RunCycles(board.mhz, rows))))
    return total


def _instructions(blocks: list[Block]) -> int:
    return sum(block.runs * len(block.text) for block in blocks)


def _whole(cycles: Cycles) -> tuple[int, int, int]:
    least, likely, most = map(round, cycles)
    return least, likely, most
