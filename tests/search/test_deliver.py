"""Check which plan is delivered where one fails, and whose error a failure is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from passfit.errors import ConfigError, NumericError, PlanError, SequenceError
from passfit.memory import Footprint
from passfit.passes.sequence.sequence import Sequence
from passfit.search.deliver import check_as_searched, deliver, simpler_plans
from passfit.support.strictness import STRICT

WHOLE = ("legalize", "fuse-operators", "order{by=given}")
SPLIT = Sequence.parse((*WHOLE[:2], "split-rows{steps=0-1}", "split-rows{steps=3-4}", WHOLE[2]))
ERRORS = [SequenceError("It does not fit.", "Search again."), NumericError("It is wrong.", ""), IndexError("a bug")]


@pytest.fixture(autouse=True)
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRICT, "0")


def build_whole(error: Exception, folder: Path):
    """Return a builder that writes a file, then fails for sequences with a split."""

    def build(plan: Sequence) -> str:
        (folder / "half.a").touch()
        if not plan.whole:
            raise error
        return "library"

    return build


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_searched_plan_that_fails_costs_a_plan(tmp_path: Path, error: Exception) -> None:
    plan, built, defects = deliver(SPLIT, build_whole(error, tmp_path), tmp_path, lambda: "")
    assert (built, plan.specs) == ("library", WHOLE)
    assert len(defects) == 2 and all("split" in " ".join(each.passes) for each in defects)


@pytest.mark.parametrize("searched", [False, True])
def test_errors_of_the_user_end_it_at_once(tmp_path: Path, searched: bool) -> None:
    errors = [ConfigError("It is wrong.", "")] + ([] if searched else ERRORS[:1])
    for error in errors:
        with pytest.raises(type(error)):
            deliver(SPLIT, build_whole(error, tmp_path), tmp_path, lambda: "", searched)


def test_the_first_error_is_told_where_no_plan_works(tmp_path: Path) -> None:
    tried = []

    def build(plan: Sequence) -> str:
        tried.append(plan)
        raise IndexError(len(tried))

    with pytest.raises(IndexError, match="1"):
        deliver(SPLIT, build, tmp_path, lambda: "")
    assert tried == [SPLIT, *simpler_plans(SPLIT)]


@pytest.mark.parametrize("part", ["arena", "workspace"])
def test_a_library_of_other_memory_than_searched_is_a_defect(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    searched = Footprint(
        ram=96, flash=8, arena=64, workspace=32, weights=8, code=0, bound=64, floor=64, proved=True, kernels=1, sum=64
    )
    built = replace(searched, **{part: 128})
    check_as_searched(searched, built)  # users get the library, which verifies
    monkeypatch.setenv(STRICT, "1")
    check_as_searched(searched, replace(searched, code=100, stack=50))
    with pytest.raises(PlanError, match="128"):
        check_as_searched(searched, built)
