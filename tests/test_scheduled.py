"""The scheduled runs call commands that exist, and only actions of fixed bytes."""

from __future__ import annotations

import re
from pathlib import Path

from passfit.support.yaml_file import read_yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _steps() -> list[tuple[dict, dict]]:
    """Return each step of each workflow, with its job."""
    jobs = [job for file in WORKFLOWS for job in read_yaml(file)["jobs"].values()]
    return [(job, step) for job in jobs for step in job["steps"]]


def test_actions_are_pinned_to_commits():
    used = [step["uses"] for _, step in _steps() if "uses" in step]
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each) for each in used), used


def test_what_they_run_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    runs = [
        step["run"].replace("${{ matrix.run }}", value)
        for job, step in _steps()
        if "run" in step
        for value in job.get("strategy", {}).get("matrix", {}).get("run", [""])
    ]
    assert sorted(runs) == [
        ".ci/run coverage",
        ".ci/run docker",
        ".ci/run exporters",
        ".ci/run lowest",
        ".ci/run nightly",
    ]
    assert {run.split()[1] for run in runs} <= targets


def test_a_schedule_starts_each_job():
    for file in WORKFLOWS:
        workflow = read_yaml(file)
        times = {each["cron"] for each in workflow["on"]["schedule"]}
        excluded = [re.search(r"!= '(.+)'", job["if"])[1] for job in workflow["jobs"].values()]
        assert set(excluded) == times, "a time that no job knows, or a job that none starts"
