"""A real tracking server: runs and models on it, the query of the docs, its comparison in a browser; and a served model."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from passfit.tracking import TrackResult

from ..servers import Servers, ask, free_port
from .samples import Repo

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PARAMS = """
models: {detector: {source: detector.onnx}}
targets: {x86-64: {budget: {ram: 200KiB}}, rpi4: {budget: {ram: 200KiB}}, beaglebone: {budget: {ram: 100KiB}}}
"""
#: ram in bytes and latency in ms of each target; the last does not fit
RESULTS = {"x86-64": (131072, 3.5), "rpi4": (196608, 1.5), "beaglebone": (128000, 0.5)}
REFUSED = ("detector", "beaglebone")
NARROW, WIDE = 360, 1600
#: what MLflow opens beside the page
PANELS = ("mlflow.assistant.chat_panel.close", "mlflow_header.toggle_sidebar_button")
#: scrolls the table of metrics, which draws what is visible
SCROLL = """
for (const grid of document.getElementsByClassName("ReactVirtualized__Grid")) grid.scrollLeft = arguments[0] * grid.scrollWidth;
"""
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("servers"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def url(servers: Servers) -> str:
    """Start a server of tracking and registry; return its address."""
    address, folder = f"http://127.0.0.1:{free_port()}", servers.folder
    store = ("--backend-store-uri", f"sqlite:///{folder}/s.db", "--artifacts-destination", str(folder / "files"))
    port = address.rsplit(":", 1)[1]
    servers.start(f"{address}/health", "server", "--host", "127.0.0.1", "--port", port, "--workers", "1", *store)
    return address


@pytest.fixture(scope="module")
def tracked(url: str, library: bytes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Repo, TrackResult]:
    """Track and register a model on three targets, of which the gate refuses one; the host's can be served."""
    repo = Repo(tmp_path_factory.mktemp("repo"))
    (repo.path / "params.yaml").write_text(PARAMS)
    for target, (ram, latency) in RESULTS.items():
        repo.result("detector", target, ram=ram, latency=latency)
    repo.library(library, "detector")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", url)
        return repo, repo.track({REFUSED: "ram over budget by 25.0 KiB"})


@pytest.fixture
def at_server(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    return url


def passfit(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a command in this process; return its exit code."""
    from passfit.cli.app import main

    monkeypatch.setattr("sys.argv", ["passfit", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_runs_and_models_on_a_tracking_server(tracked, at_server, capfd, tmp_path):
    from mlflow import MlflowClient
    from mlflow.artifacts import download_artifacts

    repo, first = tracked
    assert first.warnings == () and [run.new for run in first.runs] == [True, True, True]
    assert first.refused == ("detector @ beaglebone: not registered: the gate refuses it: ram over budget by 25.0 KiB",)
    assert any(line.startswith(f"charts:  {at_server}/#/experiments/") for line in first.links)
    assert [run.new for run in repo.track({REFUSED: "again"}).runs] == [False, False, False]
    assert capfd.readouterr() == ("", "")
    client = MlflowClient(at_server)
    names = {artifact.path for artifact in client.list_artifacts(first.runs[0].run_id)}
    assert {"footprint.json", "libtwo.so", "report.html"} <= names
    assert not (repo.path / "mlflow.db").exists()
    assert set(client.get_registered_model("detector").aliases) == {
        "champion", "champion-x86-64", "champion-rpi4",
    }  # fmt: skip
    files = Path(download_artifacts("models:/detector@champion-rpi4", dst_path=str(tmp_path)))
    assert {file.name for file in files.iterdir()} >= {"libtwo.a", "MODEL_CARD.md", "bom.cdx.json"}


def test_the_query_of_the_docs_finds_the_best_that_fits(tracked, at_server, capsys):
    page = (ROOT / "docs" / "ci-gate.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(query, {})
    said = capsys.readouterr().out
    assert said.startswith("detector @ rpi4 1.5 192.0 models:/m-"), "the fastest does not fit"


@pytest.fixture(scope="module")
def browser() -> Iterator:
    webdriver = pytest.importorskip("selenium.webdriver", reason="the extra `test` is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield made
    made.quit()


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium is not installed")
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_comparison_of_mlflow_shows_the_ram_of_every_run(tracked, browser, tmp_path, width):
    from selenium.webdriver.support.ui import WebDriverWait

    (link,) = (line.partition(" ")[2].strip() for line in tracked[1].links if line.startswith("compare:"))
    size = {"width": width, "height": 1800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(link)
    WebDriverWait(browser, 60).until(lambda page: "best/ram_kib" in page.find_element("tag name", "body").text)
    for panel in PANELS if width == NARROW else ():  # MLflow opens them over the page, on a phone too
        for button in browser.find_elements("css selector", f'[data-component-id="{panel}"]'):
            browser.execute_script("arguments[0].click()", button)
    folder = Path(os.environ.get("PASSFIT_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    for number, (ram, _) in enumerate(RESULTS.values()):

        def is_shown(page, number: int = number, figure: str = f"{ram / 1024:g}") -> bool:
            # on a phone one column of figures has room, and the others are drawn as they are scrolled into it
            page.execute_script(SCROLL, number / len(RESULTS))
            return figure in page.find_element("tag name", "body").text.split()

        WebDriverWait(browser, 30).until(is_shown)
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", {})
        (folder / f"mlflow-comparison-{width}-{number}.png").write_bytes(base64.b64decode(taken["data"]))


def test_track_register_names_what_it_refuses_and_exits_with_1(tracked, at_server, monkeypatch, capsys):
    monkeypatch.chdir(tracked[0].path)
    assert passfit(monkeypatch, "track") == 0 and capsys.readouterr().err == ""
    assert passfit(monkeypatch, "track", "--register") == 1
    said = capsys.readouterr()
    for target in RESULTS:  # no model file is there to compare them with
        assert f"passfit: detector @ {target}: not registered: the gate refuses it: " in said.err
    assert said.out.count("already logged: ") == len(RESULTS)


@pytest.mark.fault("tracking server", "it is down", "one warning; results stay")
def test_a_server_that_is_down_costs_a_warning(repo, monkeypatch):
    repo.result()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    result = repo.track()
    assert result.runs == ()
    assert "no answer from http://127.0.0.1" in result.warnings[0] and "passfit track" in result.warnings[0]
    monkeypatch.chdir(repo.path)
    assert [passfit(monkeypatch, *words) for words in (("track",), ("track", "--register"))] == [0, 2]


@pytest.mark.parametrize("uri", ["file:///nowhere", "nonsense://x", "sqlite:////dev/null/all.db"])
def test_a_store_that_cannot_be_used_costs_a_warning(repo, monkeypatch, uri):
    repo.result()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    result = repo.track()
    assert result.runs == () and len(result.warnings) == 1


def test_mlflow_serves_what_was_registered_by_its_alias(tracked, servers, at_server):
    address = servers.serve(["detector"], at_server)["detector"]
    assert ask(address, {"x": [[1, 2, 3]]}) == {"y": [[2.0, 4.0, 6.0]], "n": [1]}
