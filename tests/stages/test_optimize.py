from __future__ import annotations

from pathlib import Path

import pytest

from passfit import api
from passfit.memory.footprint import Budget
from passfit.params.latency_limit import LatencyLimit
from passfit.params.params import load_params
from passfit.stages import optimize as stage
from passfit.stages.optimize import optimize


def searches(monkeypatch) -> list:
    """Record the settings and budgets of the stage's searches without running them."""
    got = []
    monkeypatch.setattr(api, "optimize", lambda model, target, budget, *, search, **_: got.append((search, budget)))
    monkeypatch.setattr(stage, "read_json", lambda _: {})
    monkeypatch.setattr(stage, "optimize_line", lambda *_: "found")
    return got


@pytest.mark.parametrize(
    ("search", "given"),
    [
        ("", api.SearchSettings()),
        ("{max-extra-compute: 0.5}", api.SearchSettings(max_extra_compute=0.5)),
        ("{max-extra-compute: null, lossy: true}", api.SearchSettings(max_extra_compute=None, lossy=True)),
        ("{max-slowdown: null}", api.SearchSettings(max_slowdown=None)),
        ("{max-latency: 1.5x}", api.SearchSettings(max_latency=LatencyLimit(ratio=1.5))),
        ("{knowledge: k.json}", api.SearchSettings(knowledge=Path("k.json"))),
    ],
)
def test_the_search_is_as_params_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: str, given: api.SearchSettings
):
    got = searches(monkeypatch)
    path = tmp_path / "params.yaml"
    path.write_text(f"models: {{ocr: {{source: o.onnx}}}}\ntargets: {{rpi4: }}\nsearch: {search}\n")
    assert optimize(load_params(path), "ocr", "rpi4") == "found"
    assert [search for search, _ in got] == [given]


@pytest.mark.parametrize(
    ("search", "budget"),
    [
        ("objective: ram, max-slowdown: null", None),
        ("objective: ram", Budget(ram=1024)),
        ("max-latency: 1.5x", None),
        ("objective: null", Budget(ram=1024)),
        ("objective: flash", Budget(ram=1024)),
        ("until: fits", Budget(ram=1024)),
    ],
)
def test_a_budget_is_handed_over_only_to_a_search_that_reads_it(tmp_path, monkeypatch, search, budget):
    got = searches(monkeypatch)
    path = tmp_path / "params.yaml"
    path.write_text(
        f"models: {{ocr: {{source: o}}}}\ntargets: {{rpi4: {{budget: {{ram: 1KiB}}}}}}\nsearch: {{{search}}}\n"
    )
    optimize(load_params(path), "ocr", "rpi4")
    assert [given for _, given in got] == [budget]
