from __future__ import annotations

from pathlib import Path

import pytest

from passfit import api
from passfit.config import load_params
from passfit.memory.latency import LatencyLimit
from passfit.stages.optimize import optimize


@pytest.mark.parametrize(
    ("search", "given"),
    [
        ("", api.SearchSettings()),
        ("{max-extra-compute: 0.5}", api.SearchSettings(max_extra_compute=0.5)),
        ("{max-extra-compute: null, lossy: true}", api.SearchSettings(max_extra_compute=None, lossy=True)),
        ("{max-latency: 1.5x}", api.SearchSettings(max_latency=LatencyLimit(ratio=1.5))),
        ("{knowledge: k.json}", api.SearchSettings(knowledge=Path("k.json"))),
    ],
)
def test_the_search_is_as_params_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: str, given: api.SearchSettings
):
    got = []
    monkeypatch.setattr(api, "optimize", lambda *_, search, **__: got.append(search))
    path = tmp_path / "params.yaml"
    path.write_text(f"models: {{ocr: {{source: o.onnx}}}}\ntargets: {{rpi4: }}\nsearch: {search}\n")
    optimize(load_params(path), "ocr", "rpi4")
    assert got == [given]
