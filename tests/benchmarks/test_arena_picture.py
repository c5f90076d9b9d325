"""The picture of README: one scale for both plans, no names of tensors, the same bytes again, readable at any width."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit import api
from passfit.artifacts.read_results import read_folder
from passfit.memory.footprint import Budget
from passfit.search.settings import SearchSettings
from passfit.support.sizes import format_bytes
from passfit.targets import get_target

from ..models import model_of

pytestmark = pytest.mark.tvm
ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "arena.svg"
DEVICE = get_target("x86-64")
KIB = 1024


@pytest.fixture
def drawn(scripts: Path, tmp_path: Path) -> tuple[object, object, object]:
    """Return the panels of a small network's library and of TVM's default, and the result."""
    import arena_picture

    random = np.random.default_rng(0)
    weights = {f"w{n}": random.standard_normal((8, 8, 3, 3)).astype(np.float32) for n in range(3)}
    nodes = [
        node for n in range(3) for node in (
            helper.make_node("Conv", [f"layer/{n}:0", f"w{n}"], [f"conv/{n}:0"], pads=[1] * 4),
            helper.make_node("Relu", [f"conv/{n}:0"], [f"layer/{n + 1}:0"]),
        )
    ]  # fmt: skip
    file = tmp_path / "net.onnx"
    onnx.save(model_of(nodes, {"layer/0:0": (1, 8, 24, 24)}, {"layer/3:0": (1, 8, 24, 24)}, weights), file)
    search = SearchSettings(evaluations=1, workers=0)
    api.compile_model(file, DEVICE, Budget(ram=64 * KIB), out=tmp_path / "out", search=search)
    result = read_folder(tmp_path / "out")
    return arena_picture.default_panel(result, file, DEVICE), arena_picture.library_panel(result, DEVICE), result


def test_panels_hold_what_the_footprint_counts(drawn):
    above, below, result = drawn
    for panel, counted in ((above, result.footprint.baseline), (below, result.footprint.best)):
        assert panel.ram == counted.ram == sum(nbytes for nbytes, _ in panel.blocks)
        assert all(0 <= each.start < each.end <= panel.columns and each.high <= panel.ram for each in panel.areas)
    assert above.columns == result.footprint.baseline.kernels


def test_no_tensors_of_a_panel_overlap(drawn):
    for panel in drawn[:2]:
        found = [each for each in panel.areas if each.kind == "tensor"]
        for number, one in enumerate(found):
            for other in found[:number]:
                together = one.start < other.end and other.start < one.end
                assert not together or one.high <= other.low or other.high <= one.low, (one, other)


def test_a_byte_is_as_high_in_one_panel_as_in_the_other(drawn, scripts):
    import arena_picture

    above, below, result = drawn
    text = arena_picture.draw(above, below, result, DEVICE)
    assert text == arena_picture.draw(above, below, result, DEVICE)
    assert "layer/" not in text and "conv/" not in text
    plots = ElementTree.fromstring(text).findall(".//{*}svg[@class='plot']")
    assert len(plots) == 2
    for plot, panel in zip(plots, (above, below), strict=True):
        held = sum(float(each.get("height")) for each in plot.findall("{*}rect[@class='held']"))
        assert held == pytest.approx(panel.ram * arena_picture.HIGH / max(above.ram, below.ram), abs=0.5)
    over = above.ram > 64 * KIB
    assert ("does not fit" in text) is over
    assert f"budget {format_bytes(64 * KIB)}" in text


def test_a_limit_far_away_is_said_in_words(drawn, scripts):
    import arena_picture

    above, below, result = drawn
    near, far = (
        arena_picture.draw(
            above, below, replace(result, footprint=replace(result.footprint, budget=Budget(ram=ram))), DEVICE
        )
        for ram in (above.ram * 2, above.ram * 2 + 1)
    )
    assert "budget" in near.partition("</style>")[2] and "budget" not in far.partition("</style>")[2]
    assert near.count("fits, ") == far.count("fits, ") == 2
    assert all(float(each) >= 0 for each in re.findall(r' y1?="(-?[\d.]+)"', near + far))


def test_the_readme_says_what_the_picture_shows():
    title = re.search(r"<title>.*?: (.*) where TVM's default takes (.*)</title>", PICTURE.read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    alternative = re.search(r'<img width="100%" src="docs/arena.svg" alt="([^"]*)"', readme)
    assert title and alternative and all(size in alternative[1] for size in title.groups())
