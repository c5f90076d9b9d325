import json

import onnx
import pytest

from passfit.errors import ConfigError
from passfit.frontend.canonicalise import import_model
from passfit.stages.report import report

from ..models import NodeBuilder, save
from ..report.results import EFFECTS, search
from ..tracking.samples import Repo


def test_the_page_of_all_results_is_written_the_same_each_time(tmp_path, monkeypatch):
    repo = Repo(tmp_path)
    repo.result("a", "rpi4")
    repo.result("b", "x86-64")
    for model in "ab":
        repo.write(f"profile/{model}/effects.json", EFFECTS)
    monkeypatch.chdir(tmp_path)
    said = report(repo.params)
    written = (tmp_path / "out" / "report" / "index.html").read_bytes()
    assert (
        said.startswith("out/report/index.html: ")
        and b"a @ rpi4" in written
        and b"a @ x86-64: there is no result" in written
    )
    passes = (tmp_path / "out" / "report" / "index-passes.html").read_bytes()
    assert b"index-passes.html" in written and b"Effects of passes on each other: b" in passes
    report(repo.params)
    assert (tmp_path / "out" / "report" / "index.html").read_bytes() == written
    assert (tmp_path / "out" / "report" / "index-passes.html").read_bytes() == passes


def test_the_data_of_the_plots_is_that_of_the_results(tmp_path, monkeypatch):
    repo = Repo(tmp_path)
    repo.result("a", "rpi4", ram=640)
    repo.result("b", "x86-64", ram=512)
    repo.write("optimize/b/x86-64/search.json", search())
    monkeypatch.chdir(tmp_path)
    report(repo.params)
    plots = tmp_path / "out" / "report" / "plots"
    found = {file.relative_to(plots).as_posix(): json.loads(file.read_text()) for file in plots.rglob("*.json")}
    assert [(each["result"], each["ram"]) for each in found["ram.json"]] == [("a @ rpi4", 640), ("b @ x86-64", 512)]
    assert [(each["time"], each["ram"]) for each in found["time/b/x86-64.json"]] == [(900, 5000), (1000, 4096)]
    assert found["history/a/rpi4.json"] == [{"number": 0, "commit": "now", "ram": 640}]
    assert set(found) == {"ram.json", "time/b/x86-64.json", "history/a/rpi4.json", "history/b/x86-64.json"}


@pytest.mark.tvm
def test_a_result_that_does_not_fit_says_whether_int8_would_and_which_board_holds_it(tmp_path, monkeypatch):
    repo = Repo(tmp_path)
    (tmp_path / "params.yaml").write_text(
        "models: {a: {source: a.onnx}}\ntargets: {stm32f446: , stm32f746: {budget: {ram: 100KiB}}, x86-64: }\n"
    )
    for target in ("stm32f446", "stm32f746", "x86-64"):
        repo.result("a", target, ram=200 << 10)
    build = NodeBuilder()
    x = build.node("Conv", "x", build.weight(64, 8, 3, 3))
    model = build.model((1, 8, 24, 24), build.node("GlobalAveragePool", build.node("Relu", x)))
    (tmp_path / "out/models/a").mkdir(parents=True)
    onnx.save(import_model(save(model, tmp_path)), tmp_path / "out/models/a/model.onnx")
    monkeypatch.chdir(tmp_path)
    report(repo.params)
    page = (tmp_path / "out/report/index.html").read_text()
    larger = "nrf52840 is the smallest board of `passfit targets` with room for these sizes."
    assert page.count(larger) == 1 and page.index(larger) < page.index('id="result-2"')
    for target in ("stm32f446", "stm32f746"):
        assert page.count(f"quantised to int8, with --io int8, it would fit {target}: ram ") == 1
    assert "it would fit x86-64" not in page


def test_a_file_that_was_changed_by_hand_is_named_and_takes_no_other_result_away(tmp_path, monkeypatch):
    repo = Repo(tmp_path)
    repo.result("a", "rpi4")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out/compile/a/rpi4/footprint.json").write_text("{")
    with pytest.raises(ConfigError, match=r"footprint\.json': "):
        report(repo.params)
    repo.result("b", "rpi4")
    repo.write("profile/b/effects.json", {"target": "t", "passes": [], "pairs": [{"first": "a"}]})
    report(repo.params)
    page = (tmp_path / "out/report/index.html").read_text()
    assert "a @ rpi4: &#39;out/compile/a/rpi4/footprint.json&#39;: " in page and "b @ rpi4" in page
    assert "effects.json&#39;: pairs is not a list of objects with alone, delta" in page
