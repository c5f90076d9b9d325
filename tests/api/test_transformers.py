"""Small transformers by default settings: no score matrix, no hidden layer and no projection of all heads is ever whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.zoo.transformer import decoder_step, encoder, vision_transformer
from passfit import api
from passfit.memory import read_report
from passfit.targets import get_target, how_to_run

from ..models import save

HOST = get_target("x86-64")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

TOKENS, WIDTH, HEADS = 32, 32, 2
#: bytes of all tokens' features, and of a head's keys and values: what each row of a head's attention needs whole
FEATURES, ONE_HEAD = 4 * TOKENS * WIDTH, 2 * 4 * TOKENS * WIDTH // HEADS
#: rows of a layer: of a token's features, hidden features, scores, and their norms, each aligned
ROWS = 4 * (8 * WIDTH + 4 * TOKENS) + 8 * 64

MODELS = {
    "encoder": (lambda: encoder(1, WIDTH, TOKENS, HEADS, 50), FEATURES, FEATURES + ONE_HEAD + ROWS),
    # the cache of a layer is read and written: one after the other would be less
    "decoder_step": (lambda: decoder_step(2, WIDTH, TOKENS - 1, HEADS, 50), 4 * FEATURES, 2 * FEATURES + ROWS),
    # the image, and the tokens made from it
    "vision_transformer": (lambda: vision_transformer(1, 32, 64, 16, 2), 4 * 3 * 64 * 64, 4 * 17 * 32),
}


@pytest.mark.parametrize(
    "name",
    ["encoder", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("decoder_step", "vision_transformer"))],
)
def test_ram_is_that_of_the_ports_and_the_rows_of_a_layer(name: str, tmp_path: Path):
    build, ports, more = MODELS[name]
    api.compile_model(save(build(), tmp_path), HOST, out=tmp_path / "out")
    report = read_report(tmp_path / "out/footprint.json")
    assert report.measured.ran and report.measured.max_rel_error < 1e-5
    assert report.measured.ram == pytest.approx(report.best.planned_ram, rel=0.05, abs=128 << 10)
    assert report.best.planned_ram <= ports + more + 512  # a mask, token ids, alignment
    assert report.best.planned_ram <= 2 * ports + ONE_HEAD + ROWS, "the issue's limit"
    specs = json.loads((tmp_path / "out/sequence.json").read_text())["passes"]
    if name == "encoder":  # the others need little beside their inputs either way
        assert "split-heads" in specs and any("in_place=1" in each for each in specs)
