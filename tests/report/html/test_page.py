import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from passfit.data.accuracy import Score
from passfit.memory import lifetimes, plan_arena
from passfit.memory.footprint import Budget
from passfit.report.arena.blocks import blocks_of
from passfit.report.html import page, passes_page
from passfit.report.results import Judgement, Result, Results

from ...profiles import examples
from ...strategies import NAMES, chain, programs
from ..results import EVIL, accuracy, bare, result, results, saved

SECTIONS = (
    "Footprint", "Arena", "Sequence", "Ram against time", "Nodes and their time", "Accuracy", "Accuracy on samples", "Changes", "History",
)  # fmt: skip


class Elements(HTMLParser):
    """Tags with their attributes, scripts, and the text outside of scripts and styles."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.scripts: list[tuple[str, str]] = []
        self.text = ""
        self._script = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._script = dict(attrs).get("type", "") if tag in ("script", "style") else None

    def handle_data(self, data):
        if self._script is None:
            self.text += data
        elif self.tags[-1][0] == "script":
            self.scripts.append((self._script, data))

    def handle_endtag(self, tag):
        self._script = None if tag in ("script", "style") else self._script


@pytest.fixture(scope="module")
def full() -> str:
    return page(results(replace(result(), accuracy=accuracy()), result(target="u")))


def test_the_same_results_are_the_same_bytes(full: str):
    assert page(results(replace(result(), accuracy=accuracy()), result(target="u"))) == full


def test_every_section_is_there_and_charts_show_the_figures(full: str):
    read = Elements(full)
    assert all(title in read.text for title in (*SECTIONS, "All results"))
    charts = [json.loads(text) for kind, text in read.scripts if kind == "application/json"]
    assert len(charts) == full.count('class="chart"') == 2 * 7 + 1
    assert all(chart["data"]["values"] for chart in charts)
    assert "n @ t: there is no result" in read.text


def test_the_page_opens_with_the_verdicts_of_the_gate():
    """Two that fit their memories, of which one is too slow: the tightest is that of the gate, of any limit."""
    slow, good = result(model="slow"), result(model="good")
    judged = {
        slow.pair: Judgement(
            "latency over budget by 3.75 ms (18.75 ms of 15.00 ms)", "latency 18.75 ms of 15.00 ms", 1.25
        ),
        good.pair: Judgement("", "accuracy 0.93 of at least 0.92", 0.875),
    }
    alone = Results("title", [good, slow])
    assert "2 of 2 fit." in Elements(page(alone)).text
    opened = Elements(page(replace(alone, judged=judged))).text
    assert "1 of 2 keep their limits." in opened and "FAILS" in opened
    assert "slow @ t: latency over budget by 3.75 ms (18.75 ms of 15.00 ms)" in opened
    assert "The tightest of the others is good @ t: accuracy 0.93 of at least 0.92." in opened


def test_the_page_opens_with_the_answer_and_the_tightest_result():
    def limited(model: str, left: int) -> Result:
        made = result(model=model)
        limit = Budget(made.footprint.best.ram + left)
        return replace(made, footprint=replace(made.footprint, budget=limit))

    opened = Elements(page(results(limited("m", 1 << 20), limited("k", 1)))).text
    assert (
        opened.index("2 of 3 fit.")
        < opened.index("The tightest of the others is k @ t: 1 B of")
        < opened.index("tvm-default:")
    )
    assert "of flash left" not in opened
    table = opened[opened.index("limit") :]
    assert table.index("k @ t") < table.index("m @ t")


def test_the_first_result_that_does_not_fit_is_unfolded_else_the_first():
    fine, other = result(), result(target="u")
    fails = replace(other, footprint=replace(other.footprint, fits=False))
    for shown, opened in (([fine, fails], "result-2"), ([fine, other], "result-1")):
        tags = Elements(page(results(*shown))).tags
        assert [each["id"] for tag, each in tags if tag == "details" and "open" in each] == [opened]


def cells(html: str) -> str:
    """The text of a page without white space: the cells of a table side by side."""
    return "".join(Elements(html).text.split())


def test_accuracy_is_shown_beside_ram_and_by_class_and_sample(full: str):
    text = cells(full)
    assert "timeaccuracymaxerror" in text and "0.95" in text and "thefile,inONNXRuntime1,0000.95" in text
    assert "dog5000.90.9" in text and "7.pngdogcatcat0.9" in text
    assert "Themodelhasnosamples:`passfitaddMODEL--dataSAMPLES`" in text
    assert "timeaccuracymaxerror" not in cells(page(results()))
    stale = replace(result(), why_unevaluated="stale: test.npz changed since it was evaluated.")
    assert "stale: test.npz changed" in page(results(stale))


def test_files_and_library_stand_side_by_side():
    part = accuracy(original=Score(1000, 0.97))
    part = replace(part, library=replace(part.library, how="qemu", samples=64, value=0.9, reference=0.92, within=False))
    text = cells(page(results(replace(result(), accuracy=part))))
    assert "thefloatfile,inONNXRuntime1,0000.97thequantisedfile,inONNXRuntime1,0000.95" in text
    assert "thequantisedfile,onthesamplesofthelibrary640.92thelibrary,qemu640.9" in text
    assert "Asampleisfurtheroffthanverificationallows:1.0e-07oftherange" in text


def test_a_section_without_anything_to_show_says_so():
    text = " ".join(Elements(page(Results("r", [bare()]))).text.split())
    for said in (
        "no plan.json", "no sequence.json", "no search left its search.json", "The kernels were not timed", "did not run",
        "Git has no other footprint",
    ):  # fmt: skip
        assert said in text


def test_passes_have_a_page_of_their_own_and_the_pages_link_to_each_other():
    report, passes = page(results(), "p.html"), passes_page(results(), "r.html")
    assert "legalize" in passes and "Effects of passes on each other: m, on t" in Elements(passes).text
    assert "Effects of passes on each other" not in Elements(report).text and "Footprint" not in Elements(passes).text
    for one, other in ((report, "p.html"), (passes, "r.html")):
        assert [each["href"] for _, each in Elements(one).tags if each.get("href", "").endswith(".html")] == [other]
    assert "The passes were not profiled" in Elements(passes_page(Results("r", [bare()]), "r.html")).text


def test_the_page_may_run_its_own_two_scripts_alone_and_load_nothing(full: str):
    read = Elements(full)
    policy = next(
        attributes["content"]
        for tag, attributes in read.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    run = [text for kind, text in read.scripts if kind == ""]
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in run}
    assert len(run) == 2 and set(re.search(r"script-src ([^;]+)", policy)[1].split()) == digests
    assert policy.startswith("default-src 'none'") and "http" not in policy
    loading = [attributes for _, attributes in read.tags if {"src", "href"} & set(attributes)]
    assert all(each.get("href", "").startswith(("#", "data:")) and "src" not in each for each in loading)


def test_names_of_a_model_are_text(full: str):
    program = chain(64, 512, 256, 64)
    named = replace(
        program,
        buffers=tuple(replace(each, name=f"{EVIL}{n}") for n, each in enumerate(program.buffers)),
        steps=tuple(replace(each, kernel=EVIL, nodes=(EVIL, EVIL)) for each in program.steps),
    )
    given = results(replace(result(named, model=EVIL, passes=(EVIL,)), before=saved(named)), title=EVIL)
    read, plain = Elements(page(given)), Elements(page(results(result(program))))
    assert EVIL in read.text
    assert [tag for tag, _ in read.tags].count("img") == 0
    assert len(read.scripts) == len(plain.scripts), "no name ends a script, or begins one"


@settings(max_examples=examples(20))
@given(programs(), NAMES)
def test_every_plan_has_a_page(program, name):
    # a name that cannot be shown is replaced
    shown = replace(result(program, model=name), before=None)
    assert Elements(page(results(shown))).scripts


@given(programs())
def test_each_living_buffer_is_a_block_inside_the_arena_and_no_two_meet(program):
    plan = plan_arena(program)
    blocks = blocks_of(program, plan)
    living = {
        n
        for n, (buffer, life) in enumerate(zip(program.buffers, lifetimes(program), strict=True))
        if buffer.nbytes and life.end > life.start
    }
    assert {block.number for block in blocks} == living
    assert all(0 <= block.offset < block.top <= plan.arena for block in blocks)
    for n, one in enumerate(blocks):
        for two in blocks[:n]:
            assert one.end <= two.start or two.end <= one.start or one.top <= two.offset or two.top <= one.offset
