import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from rich.cells import cell_len

from passfit.memory import Bank, lifetimes, plan_arena
from passfit.program import Buffer
from passfit.report.arena.explain import explain
from passfit.report.arena.explanation_table import explanation_table
from passfit.report.pictures.arena_map import LIST, arena_svg, common_scale

from ...strategies import NAMES, chain, programs, two_parts
from ..rendered import words

SVG = "{http://www.w3.org/2000/svg}"


def test_walls_between_memories_are_drawn_with_their_names():
    program = chain(640, 1280, 64, 320)
    plan = replace(plan_arena(program), banks=(Bank("dtcm", 1280), Bank("sram<1>", 640)))
    svg = arena_svg(program, plan, "two memories")
    assert "dtcm, 1.2 KiB" in svg and "sram&lt;1&gt;, 640 B" in svg and svg.count('stroke-dasharray="2 3"') == 2
    assert 'stroke-dasharray="2 3"' not in arena_svg(program, plan_arena(program), "one memory")
    assert "memories 2 dtcm 1.2 KiB, sram<1> 640 B" in words(explanation_table(explain(program, plan)))


def tips(svg: str) -> list[str]:
    """The tooltips of the rectangles."""
    return [rect.find(f"{SVG}title").text for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect") if len(rect)]


def sizes(svg: str) -> list[tuple[float, float]]:
    """Height and width of the rectangles of buffers."""
    rects = [rect for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect") if len(rect)]
    return [(float(rect.get("height")), float(rect.get("width"))) for rect in rects]


@given(programs())
def test_every_plan_is_a_valid_picture_with_one_rectangle_for_each_living_buffer(program):
    svg = arena_svg(program, plan_arena(program), program.name)
    living = [
        b for b, life in zip(program.buffers, lifetimes(program), strict=True) if b.nbytes and life.end > life.start
    ]
    assert len(tips(svg)) == len(living)
    assert svg == arena_svg(program, plan_arena(program), program.name)


@given(programs())
def test_rectangles_are_inside_the_picture(program):
    root = ElementTree.fromstring(arena_svg(program, plan_arena(program), "t"))
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and w > 0 and h >= 0 and x + w <= width and y + h <= height


@given(programs(), programs())
def test_on_a_common_scale_equal_bytes_are_equally_high_and_steps_equally_wide(one, other):
    drawn = [(program, plan_arena(program)) for program in (one, other)]
    scale = common_scale(*drawn)
    for program, plan in drawn:
        living = [
            (b.nbytes, life.end - life.start)
            for b, life in zip(program.buffers, lifetimes(program), strict=True)
            if b.nbytes and life.end > life.start
        ]
        drawn_as = sizes(arena_svg(program, plan, "t", scale=scale))
        heights = sorted(scale.y(0) - scale.y(-(-nbytes // 64) * 64) for nbytes, _ in living)
        widths = sorted(scale.x(steps) - scale.x(0) for _, steps in living)
        assert sorted(height for height, _ in drawn_as) == pytest.approx(heights, abs=0.02)
        assert sorted(width for _, width in drawn_as) == pytest.approx(widths, abs=0.02)


def test_a_rectangle_tells_name_size_offset_and_steps():
    program = chain(64, 2048, 64)
    svg = arena_svg(program, plan_arena(program), "chain on a device")
    assert "b1: uint8, 2.0 KiB at offset 0, steps 0 to 1, from k00 k (k0)" in tips(svg)
    assert "b0: uint8, 64 B at offset 2048, step 0" in tips(svg)
    texts = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "chain on a device" in texts
    assert "peak: k00 k, 2.1 KiB alive" in texts


#: pixels of a character in DejaVu Sans, wider than Helvetica and Arial: of small, bold small and bold large text
WIDEST = {None: 7.0, "10": 6.4, "15": 10.5}


@given(programs(), NAMES, NAMES)
def test_no_text_is_cut_off_or_runs_into_the_list(program, kernel, title):
    program = replace(program, steps=tuple(replace(step, kernel=kernel * 9) for step in program.steps))
    svg = arena_svg(program, plan_arena(program), f"{title * 7}: order given, nothing shared or split")
    root = ElementTree.fromstring(svg)
    for text in root.iter(f"{SVG}text"):
        long = cell_len(text.text or "") * WIDEST[text.get("font-size")]
        x = float(text.get("x"))
        left = {"end": x - long, "middle": x - long / 2}.get(text.get("text-anchor"), x)
        assert left >= -1
        assert left + long <= float(root.get("width")) + 20
        if x < LIST:
            assert left + long < LIST + 20, text.text


def test_a_long_title_is_shortened_from_the_middle_and_whole_in_its_tooltip():
    program, title = chain(64, 64), "a-model-with-a-name-of-many-words" * 5 + " @ a-target: order given"
    root = ElementTree.fromstring(arena_svg(program, plan_arena(program), title))
    first = next(root.iter(f"{SVG}text"))
    assert "…" in first.text and first.text.endswith("order given") and first.find(f"{SVG}title").text == title
    assert root.find(f"{SVG}title").text.startswith(title)


def test_kernels_have_short_names_and_the_whole_ones_are_told_beside():
    program = chain(64, 2048, 64)
    long = "fused_conv2d7_add3_relu"
    program = replace(program, steps=tuple(replace(step, kernel=long) for step in program.steps))
    svg = arena_svg(program, plan_arena(program), "t")
    assert "k00 conv2d+add+relu" in svg and f"<title>k00 conv2d+add+relu ({long})</title>" in svg
    assert all(long not in (text.text or "") for text in ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_parts_that_are_alive_at_different_times_are_rectangles_of_their_own():
    program = two_parts()
    svg = arena_svg(program, plan_arena(program), "concat")
    assert sorted(tip.partition(" at")[0] for tip in tips(svg)) == [
        "both: uint8, 128 B", "both: uint8, 64 B", "x: uint8, 64 B", "y: uint8, 64 B",
    ]  # fmt: skip
    assert "3 buffers" in svg


def test_names_that_are_markup_or_no_text_at_all_are_escaped():
    program = chain(64, 64)
    program = replace(program, buffers=(Buffer('<b> & "c"', 64), Buffer("\x00\x1b", 64)))
    found = tips(arena_svg(program, plan_arena(program), "<&>"))
    assert any(tip.startswith('<b> & "c": uint8, 64 B') for tip in found)
    assert any(tip.startswith("\ufffd\ufffd: uint8, 64 B") for tip in found)


def test_thousands_of_buffers_are_drawn():
    program = chain(*(64 * (n % 13 + 1) for n in range(3000)))
    assert len(tips(arena_svg(program, plan_arena(program), "long"))) == 3000
