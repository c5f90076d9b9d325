"""Link libraries into images: the map, the sizes, and what the library asks of its surroundings."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from passfit.codegen import write_library
from passfit.codegen.elf import archive_members, read_object, together
from passfit.codegen.library import state_stack
from passfit.errors import NumericError
from passfit.image import link_image
from passfit.targets import Target, emulated_board, get_target, how_to_run
from passfit.verify.runner import link

from ..codegen import models

pytestmark = pytest.mark.slow
BOARDS = ("mps2-an386", "mps2-an500", "mps3-an547", "rv32-virt", "rp2040")
#: a line of the map: addresses, size, alignment, then the name at its depth
_ROW = re.compile(r" *[0-9a-f]+ +([0-9a-f]+) +([0-9a-f]+) +\d+ ( *)(\S.*)")


def library(model: models.Model, folder: Path, target: Target):
    folder.mkdir(parents=True, exist_ok=True)
    name = model.program.name
    built = models.build_object(model.kernels, name, target, folder / "kernels.o")
    return write_library(name, model.program, model.plan, model.workspace, model.weights, [built], target, folder)


def rows(text: str, depth: int) -> list[tuple[str, int]]:
    """Return names and sizes in the linker's map: of output sections (depth 0), or of their parts (8)."""
    found = [match for line in text.splitlines() if (match := _ROW.fullmatch(line))]
    return [(match[4], int(match[2], 16)) for match in found if len(match[3]) == depth]


@pytest.mark.parametrize("make", [models.matmul_exp, models.comparison, models.empty_program])
@pytest.mark.parametrize("name", BOARDS)
def test_the_sizes_are_those_of_the_map_to_the_byte(tmp_path, name, make):
    target, model = get_target(name), make()
    made = library(model, tmp_path, target)
    image = link_image(made, model.program, target, tmp_path)
    sections = dict(rows(image.map.read_text(), 0))
    sizes = image.sizes
    assert (sizes.text, sizes.rodata, sizes.data, sizes.bss) == tuple(
        sections.get(f".{each}", 0) for each in ("text", "rodata", "data", "bss")
    )
    assert sizes.flash == sizes.text + sizes.rodata + sizes.data and sizes.ram == sizes.data + sizes.bss
    assert sizes.rodata >= made.weight_bytes and sizes.bss >= model.plan.arena
    # start-up and main are elsewhere
    assert sections[".boot"] > 0 and not [
        each for each, _ in rows(image.map.read_text(), 8) if "boot" in each and ".text" in each
    ]


@pytest.mark.parametrize("make", [models.matmul_exp, models.comparison, models.whole_numbers])
@pytest.mark.parametrize("name", BOARDS)
def test_a_library_calls_nothing_but_memory_functions_and_the_compilers_runtime(tmp_path, name, make):
    made = library(make(), tmp_path, get_target(name))
    members = together([read_object(body) for _, body in archive_members(made.archive.read_bytes())])
    allowed = r"memcpy|memset|memmove|__(?:add|sub|mul|div|eq|ne|lt|le|gt|ge|unord|fix|fixuns|float|floatun)\w*(?:sf|df|si|di)\w*|__aeabi_(?!unwind)\w+|__u?divsi3|__u?modsi3"
    assert not [symbol for symbol in members.undefined if not re.fullmatch(allowed, symbol)]
    assert not [
        section.name for section in members.sections if section.name.startswith((".ARM.ex", ".eh_frame", ".init_array"))
    ]


def test_an_archive_for_linux_on_arm_needs_no_unwinder(tmp_path):
    made = library(models.matmul_exp(), tmp_path, get_target("beaglebone"))
    members = together([read_object(body) for _, body in archive_members(made.archive.read_bytes())])
    assert not [symbol for symbol in members.undefined if "unwind" in symbol]
    assert not [section.name for section in members.sections if ".ARM.ex" in section.name]


def test_the_header_states_stack_survivors_version_and_model(tmp_path):
    target, model = get_target("mps2-an386"), models.matmul_exp()
    built = models.build_object(model.kernels, "m", target, tmp_path / "kernels.o")
    name = model.program.inputs[0].name
    made = write_library(
        "m",
        model.program,
        model.plan,
        model.workspace,
        model.weights,
        [built],
        target,
        tmp_path,
        model_sha256="ab12",
        ports={name: {"scale": 0.1, "zero_point": -7, "form": "write 3 bytes */"}},
    )
    text = made.header.read_text()
    assert (
        "#define M_INPUT0_SCALE 0.1f /*" in text
        and "\n * write 3 bytes * / */\n" in text
        and "#define M_INPUT0_ZERO_POINT -7\n" in text
        and "M_OUTPUT0_SCALE" not in text
    )
    assert re.search(r'#define M_INPUT0_NAME "x \*/ [^"]*"', text)
    version = text.partition('#define M_PASSFIT_VERSION "')[2].partition('"')[0]
    assert f"passfit {version}: m, sha256 ab12\0".encode() in made.archive.read_bytes()
    assert (
        '#define M_MODEL_SHA256 "ab12"' in text
        and "#define M_PASSFIT_VERSION" in text
        and "Make one call at a time on each" in text
    )
    assert "#define M_STACK_BYTES 0 /* not measured" in text
    assert re.search(r"input 0: .*; (kept until it is written again|lost by a run)( \*/|$)", text, re.MULTILINE)
    state_stack(made, 312)
    assert "#define M_STACK_BYTES 312 /* of one run" in made.header.read_text()


@pytest.mark.parametrize("name", BOARDS)
def test_an_image_reports_its_stack_and_the_same_instructions_each_time(tmp_path, name):
    target, model = get_target(name), models.matmul_exp(30, 40, 50)
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    made = library(model, tmp_path, target)
    (tmp_path / "linked").mkdir()
    linked = link(made, model.program, target, tmp_path / "linked")
    x = np.linspace(-1, 1, 1200, dtype=np.float32).reshape(30, 40)
    name = model.program.inputs[0].name
    (one, (first,)), (two, (_, second)) = linked.run([{name: x}]), linked.run([{name: -x}, {name: x}])
    assert one == two and one["instructions"] > 30 * 40 * 50 and 0 < one["stack"] < 4096
    assert all((first[each] == second[each]).all() for each in first)


def test_a_program_too_large_for_the_board_is_linked_and_its_sizes_are_known(tmp_path):
    target = get_target("mps2-an386")
    small = replace(target, memories=tuple(replace(each, size=256) for each in target.memories))
    model = models.matmul_exp()
    made = library(model, tmp_path, small)
    assert link_image(made, model.program, small, tmp_path).sizes.ram > 256
    (tmp_path / "linked").mkdir()
    runner = link(made, model.program, small, tmp_path / "linked").runner
    assert runner.command is None and re.fullmatch(
        r"not-run: the image takes \d+ bytes of flash, and ssram1 of mps2-an386 has 256", runner.how
    )


def test_a_kernel_that_fails_on_the_board_is_an_error_with_its_message(tmp_path):
    target, model = get_target("mps2-an386"), models.matmul_exp(40, 50, 60)
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    made = library(replace(model, workspace=0), tmp_path, target)
    (tmp_path / "linked").mkdir()
    with pytest.raises(NumericError, match="the workspace is too small"):
        link(made, model.program, target, tmp_path / "linked").run(
            [{model.program.inputs[0].name: np.zeros((40, 50), np.float32)}]
        )


def test_a_real_board_is_run_as_the_emulated_one_of_its_core():
    board = emulated_board(get_target("stm32f746"))
    assert board.name == "mps2-an500" and [each.start for each in board.memories] == [
        0,
        0x20000000,
        0x60000000,
        0x60010000,
    ]
    assert board.features == get_target("stm32f746").features
