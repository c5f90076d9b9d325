"""Build models over several memories of a board, run them, and judge each memory to the byte."""

import json
import re
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit import api
from passfit.image.image_sizes import image_sizes
from passfit.memory import read_plan
from passfit.memory.placement.place_weights import RESERVE as FLASH_RESERVE
from passfit.memory.placement.plan_banks import RESERVE
from passfit.report.footprint_table import footprint_table
from passfit.targets import get_target, how_to_run
from passfit.targets.memory import Memory
from passfit.tracking.metrics import figures

from ..models import model_of
from ..report.rendered import rendered
from .test_link_image import rows

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
KIB = 1024


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Make a network of three products of 4 KiB, and a sum with its input: an arena of 12 KiB, and weights of 48 KiB."""
    nodes = [
        helper.make_node("MatMul", ["x", "u"], ["a"]), helper.make_node("MatMul", ["a", "v"], ["b"]), helper.make_node("MatMul", ["b", "w"], ["c"]),
        helper.make_node("Add", ["c", "x"], ["y"]),
    ]  # fmt: skip
    random = np.random.default_rng(0)
    weights = {name: random.normal(size=(64, 64)).astype(np.float32) / 8 for name in "uvw"}
    path = tmp_path_factory.mktemp("model") / "sums.onnx"
    onnx.save(model_of(nodes, {"x": (16, 64)}, {"y": (16, 64)}, weights), path)
    return path


def board(ram, psram, flash=4096 * KIB, more=()):
    """Return the emulated Cortex-M4 with memories of these sizes."""
    memories = (
        Memory("ssram1", "flash", flash, 0), *more, Memory("ssram23", "ram", ram, 0x20000000, 0), Memory("psram", "ram", psram, 0x21000000),
    )  # fmt: skip
    return replace(get_target("mps2-an386"), memories=memories)


def compiled(model, target, out, sequence=None):
    search = api.SearchSettings("tvm-default", workers=0, max_extra_compute=None)
    return api.compile_model(
        model, target, out=out, sequence=sequence, search=search, verify=api.VerifySettings(image=True)
    )


def used(report):
    return {region.name: region.used for region in report.best.regions}


def judge_map(report, out):
    """Check that the sections of the map add up to the footprint, memory by memory."""
    sections, sizes = dict(rows((out / "sums.map").read_text(), 0)), image_sizes(out / "sums.elf")
    parts = {name: size for name, size in sections.items() if name.startswith((".arena.", ".weights."))}
    assert parts == {f".arena.{name}": size for name, size in sizes.arenas.items()} | {
        f".weights.{name}": size for name, size in sizes.weights.items()
    }
    for kind, total in (("ram", report.best.ram), ("flash", report.best.flash)):
        assert sum(region.used for region in report.best.regions if region.kind == kind) == total
    own = {"ssram1": sizes.text + sizes.rodata + sizes.data, "ssram23": sizes.data + sizes.bss + report.best.stack}
    assert used(report) == {
        name: own.get(name, sections.get(f".arena.{name}", sections.get(f".weights.{name}", 0)))
        for name in used(report)
    }


def test_an_arena_over_two_memories_runs_and_each_is_judged_to_the_byte(tmp_path, model):
    report = compiled(model, board(RESERVE + 8 * KIB, 10 * KIB), tmp_path)
    plan = read_plan(tmp_path / "plan.json").plan
    assert [(bank.region, bank.size) for bank in plan.banks] == [("ssram23", 8 * KIB), ("psram", 4 * KIB)]
    assert report.fits and used(report)["psram"] == 4 * KIB and report.best.arena == plan.arena
    judge_map(report, tmp_path)
    header = (tmp_path / "sums.h").read_text()
    assert "#define SUMS_ARENA_PSRAM_BYTES 4096 /* statically in section .bss.arena.psram */" in header
    assert "int32_t sums_bind(void *arena_ssram23, void *arena_psram);" in header
    recorded = json.loads((tmp_path / "footprint.json").read_text())["best"]["regions"]
    assert [each["name"] for each in recorded] == ["ssram1", "ssram23", "psram"]
    if not report.measured.ran:
        pytest.skip(how_to_run(get_target("mps2-an386")).how)
    assert report.measured.max_rel_error < 1e-5
    # exactly enough, then a byte less of each memory
    sequence, first = tmp_path / "sequence.json", used(report)["ssram23"]
    assert compiled(model, board(first, 4 * KIB), tmp_path / "exact", sequence).fits
    short = compiled(model, board(RESERVE + 8 * KIB, 4 * KIB - 1), tmp_path / "short", sequence)
    assert not short.fits and [region.name for region in short.best.regions if not region.fits] == ["psram"]
    assert used(short)["psram"] == 4 * KIB
    lines = rendered(footprint_table(short)).splitlines()
    assert any("psram" in line and "4,096 B" in line and "of 4,095 B" in line for line in lines)
    assert lines[-1].strip() == "does NOT fit the device: psram over by 1 B"
    said = [figure for figure in figures(short, []) if figure.name.startswith("regions/")]
    assert [(figure.name, figure.value) for figure in said] == [
        ("regions/ssram23_kib", used(short)["ssram23"] / KIB),
        ("regions/psram_kib", 4.0),
    ]
    assert first < RESERVE + 8 * KIB


def test_an_arena_that_fits_the_second_memory_alone_is_there(tmp_path, model):
    report = compiled(model, board(RESERVE + 4 * KIB, 12 * KIB), tmp_path)
    assert used(report)["psram"] == 12 * KIB == report.best.arena and report.fits
    assert '#define SUMS_ARENA_REGION "psram"' in (tmp_path / "sums.h").read_text()
    judge_map(report, tmp_path)


def test_weights_that_exceed_the_first_flash_are_in_the_second(tmp_path, model):
    second = Memory("qspi", "flash", 64 * KIB, 0x100000)
    report = compiled(model, board(64 * KIB, 64 * KIB, FLASH_RESERVE + 40 * KIB, [second]), tmp_path)
    assert report.fits and used(report)["qspi"] % (16 * KIB) == 0 < used(report)["qspi"] and used(report)["psram"] == 0
    assert report.best.weights == 48 * KIB
    judge_map(report, tmp_path)


@pytest.mark.parametrize(
    ("name", "first", "second", "start"),
    [("stm32f746", "sram1", "dtcm", "0x20000000"), ("mps3-an547", "dtcm", "isram", "0x21000000")],
)
def test_a_board_with_little_room_uses_its_next_memory_and_runs(tmp_path, model, name, first, second, start):
    target = get_target(name).with_rooms({first: RESERVE + 4 * KIB, second: 8 * KIB})
    report = compiled(model, target, tmp_path)
    assert report.fits and [region.room for region in report.best.regions][1:3] == [RESERVE + 4 * KIB, 8 * KIB]
    assert sorted((bank.region, bank.size) for bank in read_plan(tmp_path / "plan.json").plan.banks) == sorted(
        [(first, 4 * KIB), (second, 8 * KIB)]
    )
    script = (tmp_path / "link.ld").read_text()
    assert re.search(rf"{second} \(rw\) : ORIGIN = {start}", script) and f".arena.{second} (NOLOAD)" in script
    if report.measured.ran:
        assert report.measured.max_rel_error < 1e-5 and (
            name != "stm32f746" or report.measured.how.endswith("mps2-an500")
        )


def test_memories_that_run_into_each_other_are_still_measured(tmp_path, model):
    close = board(RESERVE + 8 * KIB, 64 * KIB)
    close = replace(
        close,
        memories=tuple(replace(each, start=0x20000400) if each.name == "psram" else each for each in close.memories),
    )
    report = compiled(
        model,
        replace(
            close,
            memories=tuple(replace(each, size=1 * KIB) if each.kind == "ram" else each for each in close.memories),
        ),
        tmp_path,
    )
    assert not report.fits and not report.measured.ran and "bytes of ram" in report.measured.how
