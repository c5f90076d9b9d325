"""The page in a real browser: what is drawn, asked of the network, said on the console, reached by the keyboard."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from passfit.report.html import page

from ...strategies import chain
from ..results import EVIL, accuracy, result, results

webdriver = pytest.importorskip("selenium.webdriver", reason="the extra `test` is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium is not installed"),
]
NARROW, HALF, WIDE = 360, 500, 1600
INTERACTIVE = "a[href], summary, [tabindex='0']"


@pytest.fixture(scope="module")
def browser() -> Iterator:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield made
    made.quit()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    long = chain(64, *(512 + 64 * (n % 5) for n in range(40)), 64)
    evil = replace(long, buffers=tuple(replace(each, name=f"{EVIL}{n}") for n, each in enumerate(long.buffers)))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(
        page(results(result(), replace(result(evil, target=EVIL), accuracy=accuracy(target=EVIL)))), encoding="utf-8"
    )
    return path


def show(browser, file: Path, width: int, scheme: str) -> None:
    """Open the page with every result unfolded, and wait until all charts are drawn."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(file.as_uri())
    browser.set_script_timeout(60)
    browser.execute_async_script(
        """
        const done = arguments[0];
        document.querySelectorAll("details").forEach((each) => { each.open = true; });
        const left = () => document.querySelector("figure:not([data-drawn])");
        const next = () => { const figure = left(); if (!figure) return done(); figure.scrollIntoView(); setTimeout(next, 20); };
        next();
        """
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, HALF, WIDE])
def test_the_page_is_drawn_without_errors_requests_or_overflow(browser, file: Path, width: int, scheme: str):
    show(browser, file, width, scheme)
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("data:", file.as_uri()))] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.title.startswith("repo")
    written = datetime.fromtimestamp(file.stat().st_mtime).strftime("written %Y-%m-%d")
    assert browser.execute_script("return document.getElementById('written').textContent") == written
    marks = browser.execute_script(
        "return [...document.querySelectorAll('figure')].map(f => f.querySelectorAll('svg path').length)"
    )
    assert marks and all(marks)
    paper, ink = browser.execute_script(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color].map(c => Number(c.match(/\\d+/)[0]))"
    )
    assert (paper < 64 and ink > 192) if scheme == "dark" else (paper > 192 and ink < 64)
    if folder := os.environ.get("PASSFIT_SCREENSHOTS"):
        _screenshot(browser, Path(folder) / f"report-{width}-{scheme}.png", width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, HALF, WIDE])
def test_the_verdict_of_each_result_is_in_the_first_screen_beside_its_name(
    browser, file: Path, width: int, scheme: str
):
    show(browser, file, width, scheme)
    browser.execute_script("window.scrollTo(0, 0)")
    places = browser.execute_script(
        """
        const box = (each) => { const b = each.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; };
        const rows = [...document.querySelectorAll("#main > section:first-of-type tbody tr")];
        return [box(document.querySelector("#main p")), ...rows.flatMap(r => [box(r.cells[0]), box(r.querySelector(".good, .bad"))])];
        """
    )
    assert len(places) == 1 + 2 * 2
    assert all(left >= 0 and right <= width and top >= 0 and bottom <= 900 for left, right, top, bottom in places)
    for name, verdict in zip(places[1::2], places[2::2], strict=True):
        assert name[1] <= verdict[0] and name[2] <= verdict[2] < name[3]


def test_names_of_results_are_whole_beside_their_bars(browser, tmp_path: Path):
    model, targets = "causal-conv-of-speech", ("mps2-an386", "x86-64")
    path = tmp_path / "report.html"
    path.write_text(page(results(*(result(model=model, target=each) for each in targets))), encoding="utf-8")
    show(browser, path, NARROW, "light")
    words = browser.execute_script(
        "return [...document.querySelectorAll('#main > section:first-of-type svg .role-axis-label text')].map(t => t.textContent)"
    )
    assert all(f"{model}{target}" in words for target in targets)


@pytest.mark.parametrize("width", [NARROW, HALF, WIDE])
def test_the_picture_of_the_readme_has_room_for_its_words(browser, width: int):
    size = {"width": width - 32, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((Path(__file__).parents[3] / "docs" / "arena.svg").as_uri())
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('text')].map(t => t.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
    )
    assert len(boxes) > 8
    for number, (left, right, top, bottom) in enumerate(boxes):
        assert left >= 0 and right <= width - 32
        for other in boxes[:number]:  # letters leave a part of their line free
            assert right <= other[0] or other[1] <= left or bottom - 4 <= other[2] or other[3] - 4 <= top


def test_all_that_unfolds_links_and_scrolls_is_reached_by_the_keyboard(browser, file: Path):
    from selenium.webdriver.common.keys import Keys

    show(browser, file, WIDE, "light")
    wanted = browser.execute_script(f'return document.querySelectorAll("{INTERACTIVE}").length')
    body = browser.find_element("tag name", "body")
    reached, active = set(), body
    for _ in range(2 * wanted + 5):
        active.send_keys(Keys.TAB)
        active = browser.switch_to.active_element
        if active.id in reached:
            break
        reached.add(active.id)
    every = {element.id for element in browser.find_elements("css selector", INTERACTIVE)}
    assert every <= reached and len(every) > 10


def test_enter_folds_a_result_and_a_link_opens_one(browser, file: Path):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    show(browser, file, NARROW, "light")
    summary = browser.find_element("css selector", "#result-2 > summary")
    summary.send_keys(Keys.ENTER)
    opened = "return document.getElementById('result-2').open"
    assert browser.execute_script(opened) is False
    browser.find_element("css selector", "a[href='#result-2']").send_keys(Keys.ENTER)
    # the page hears of it by an event
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script(opened) is True)


def test_pointing_at_a_buffer_tells_its_kernel_and_onnx_nodes(browser, file: Path):
    from selenium.webdriver import ActionChains

    show(browser, file, WIDE, "dark")
    mark = browser.find_element("css selector", "#result-1 section:nth-of-type(2) svg .mark-rect path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(browser).move_to_element(mark).perform()
    tooltip = browser.find_element("id", "vg-tooltip-element").text
    assert all(word in tooltip for word in ("buffer", "kernel", "ONNX nodes", "size", "alive"))


def _screenshot(browser, path: Path, width: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    browser.execute_script("window.scrollTo(0, 0)")
    height = browser.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(taken["data"]))
